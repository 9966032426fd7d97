//! Keepers: clients that lock by SET, and have what they locked until their own clock says that its time is over.
//!
//! A keeper belongs to no machine. It sends its SET to some node, and its later words to all of them, as if the first that
//! gets one passed it on. Whatever becomes of that node, a keeper that was told OK believes to have the lock for the time
//! that it asked for, counted from the *sending* of its SET; and for longer only if an answer says so.

pub(crate) mod node;
pub(crate) mod words;

use std::collections::BTreeMap;

use vez_peer::{
    ask::{Ask, RequestId},
    fence::Fence,
    keep::Wish,
    name::Name,
    shard::Nanos,
};

use self::node::Order;
use crate::{
    clock::Clock,
    law::Belief,
    plan::{Chance, MILLISECOND, Plan, SECOND},
    world::{Event, World},
};

/// So many in a storm.
const KEEPERS: u64 = 6;
/// What they lock; others lock it too.
const NAMES: [&str; 3] = ["lock/a", "lock/b", "other/e"];
/// Nothing is kept for longer.
const KEPT: Nanos = 9 * SECOND;
const SHORTEST: Nanos = 200 * MILLISECOND;
/// So long a keeper waits for an answer.
const PATIENCE: Nanos = 1500 * MILLISECOND;

/// All keepers of a storm, and what is known to nodes of what they want.
pub(crate) struct Keepers {
    all: Vec<Keeper>,
    chance: Chance,
    /// What nodes are about to lock for one, by their requests.
    orders: BTreeMap<RequestId, Order>,
    /// Who waits for the answer to a wish, and until when it has then what it has.
    asked: BTreeMap<RequestId, (usize, u64, Nanos)>,
}

struct Keeper {
    stage: Stage,
    /// Whatever it was to do in an earlier epoch it does not do any more.
    epoch: u64,
}

/// What a keeper is about.
#[derive(Clone)]
enum Stage {
    Thinking,
    /// It has sent a SET.
    Setting(Set),
    /// It believes to have it, until then on its own clock.
    Having(Set, Fence, Nanos),
}

/// What a keeper wants to lock.
#[derive(Clone)]
struct Set {
    name: Name,
    /// Nobody else knows it, and it is used once.
    value: Vec<u8>,
    /// By which the node asks for the lock.
    request: RequestId,
    /// When it was sent, on its own clock.
    sent: Nanos,
    ttl: Nanos,
}

/// What a keeper does at some moment, or what comes to it.
pub(crate) enum Deed {
    /// It wants a lock.
    Set,
    /// It is told that it has it, or not.
    Hear(Option<Fence>),
    /// It does something with what it has.
    Use,
    /// It is told that what it has ends then, on its own clock.
    HearLonger(Nanos),
    /// It does not wait for an answer any more.
    GiveUp,
    /// Its time is over.
    Over,
}

impl Keepers {
    pub(crate) fn new(plan: &Plan) -> Self {
        let keeper = |_: &Clock| Keeper { stage: Stage::Thinking, epoch: 0 };
        Self {
            all: plan.keepers.iter().map(keeper).collect(),
            chance: Chance::new(plan.seed, 7),
            orders: BTreeMap::new(),
            asked: BTreeMap::new(),
        }
    }

    /// Some time within that.
    fn below(&mut self, time: Nanos) -> Nanos {
        self.chance.below(time)
    }
}

impl Plan {
    /// The clocks of keepers: as wrong as those of machines.
    pub(crate) fn draw_keepers(&self, most: i32) -> Vec<Clock> {
        let mut chance = Chance::new(self.seed, 6);
        (0..KEEPERS).map(|keeper| Clock::draw(SECOND * (7 + 1000 * keeper), most, &mut chance)).collect()
    }

    /// Nothing is kept for longer. Where clocks are wild it is less, for waiting may take much longer than it should.
    pub(crate) fn longest_kept(&self) -> Nanos {
        if self.wild { self.charter.lease } else { KEPT }
    }

    /// How much longer it may take until everybody is served, since what was kept is waited for.
    pub(crate) fn waits_for_kept(&self) -> Nanos {
        self.charter.of_others(self.longest_kept()) * 10 / if self.wild { 6 } else { 9 }
    }
}

impl World<'_> {
    pub(crate) fn populate_with_keepers(&mut self) {
        for keeper in 0..self.keepers.all.len() {
            self.ponder(keeper);
        }
    }

    /// The clock of a keeper, as the law knows it: they come after those of machines.
    fn clock_of(&self, keeper: usize) -> usize {
        self.plan.nodes + keeper
    }

    fn keeper_reads(&self, keeper: usize) -> Nanos {
        self.plan.keepers[keeper].reads(self.now)
    }

    fn keeper_later(&mut self, keeper: usize, pause: Nanos, deed: Deed) {
        let epoch = self.keepers.all[keeper].epoch;
        self.at(self.now + pause, Event::Keeper(keeper, epoch, deed));
    }

    /// A keeper has nothing, and after a while wants something.
    fn ponder(&mut self, keeper: usize) {
        self.keepers.all[keeper].stage = Stage::Thinking;
        self.keepers.all[keeper].epoch += 1;
        let pause = 20 * MILLISECOND + self.keepers.below(400 * MILLISECOND);
        self.keeper_later(keeper, pause, Deed::Set);
    }

    pub(crate) fn keeper_acts(&mut self, keeper: usize, epoch: u64, deed: Deed) -> Result<(), String> {
        if self.keepers.all[keeper].epoch != epoch {
            return Ok(());
        }
        match (deed, self.keepers.all[keeper].stage.clone()) {
            (Deed::Set, Stage::Thinking) => self.set(keeper),
            (Deed::Hear(Some(fence)), Stage::Setting(set)) => self.hear_ok(keeper, set, fence)?,
            (Deed::Hear(None) | Deed::GiveUp, Stage::Setting(_)) => self.ponder(keeper),
            (Deed::Use, Stage::Having(set, fence, deadline)) => self.use_it(keeper, set, fence, deadline)?,
            (Deed::HearLonger(until), Stage::Having(set, fence, _)) => self.have(keeper, set, fence, until)?,
            (Deed::Over, Stage::Having(set, ..)) => {
                self.law.leave(self.now, &set.name, set.request);
                self.ponder(keeper);
            }
            (Deed::GiveUp | Deed::Set | Deed::Hear(_) | Deed::Use | Deed::HearLonger(_) | Deed::Over, _) => {}
        }
        Ok(())
    }

    fn set(&mut self, keeper: usize) {
        if self.now >= self.plan.quiet {
            return;
        }
        let request = self.next_request();
        // Half of them are short.
        let most = if self.keepers.chance.one_in(2) { self.plan.longest_kept() } else { SECOND };
        let set = Set {
            name: Name::new(NAMES[self.keepers.chance.index(NAMES.len())].as_bytes()).expect("short"),
            value: request.0.to_be_bytes().to_vec(),
            request,
            sent: self.keeper_reads(keeper),
            ttl: SHORTEST + self.keepers.below(most - SHORTEST),
        };
        self.keepers.all[keeper].stage = Stage::Setting(set.clone());
        let machine = self.keepers.chance.index(self.plan.nodes);
        self.tell(|| format!("k{keeper} sets {} at m{machine} for {} ms", set.name, set.ttl / MILLISECOND));
        self.send_set(keeper, machine, set);
        self.keeper_later(keeper, PATIENCE, Deed::GiveUp);
    }

    fn hear_ok(&mut self, keeper: usize, set: Set, fence: Fence) -> Result<(), String> {
        let until = set.sent + set.ttl;
        self.tell(|| format!("k{keeper} has {} with {fence:?}", set.name));
        self.have(keeper, set, fence, until)
    }

    /// A keeper believes to have something until then, on its own clock, if that is not over.
    fn have(&mut self, keeper: usize, set: Set, fence: Fence, deadline: Nanos) -> Result<(), String> {
        self.law.leave(self.now, &set.name, set.request); // What it believed before.
        let belief = Belief {
            machine: self.clock_of(keeper),
            request: set.request,
            ask: Ask::Lock,
            fence,
            floor: fence,
            deadline,
        };
        if !self.law.enter(self.now, &set.name, belief)? {
            self.ponder(keeper);
            return Ok(());
        }
        let left = deadline - self.keeper_reads(keeper);
        let over = self.plan.keepers[keeper].when(deadline) - self.now;
        self.keepers.all[keeper].epoch += 1;
        self.keepers.all[keeper].stage = Stage::Having(set, fence, deadline);
        let pause = self.keepers.below(left);
        self.keeper_later(keeper, pause, Deed::Use);
        self.keeper_later(keeper, over, Deed::Over);
        Ok(())
    }

    /// A keeper gives back what it has, wants it for longer, vanishes, or lets it end.
    fn use_it(&mut self, keeper: usize, set: Set, fence: Fence, deadline: Nanos) -> Result<(), String> {
        if self.keepers.chance.one_in(2) {
            self.law.write(self.now, &set.name, Ask::Lock.kind(), fence, fence)?;
        }
        match self.keepers.chance.below(10) {
            0..4 => {
                self.tell(|| format!("k{keeper} gives back {}", set.name));
                self.law.leave(self.now, &set.name, set.request);
                self.send_word(keeper, &set, Wish::Release, 0);
                self.ponder(keeper);
            }
            4..7 if self.now < self.plan.quiet => self.want_longer(keeper, set, fence, deadline),
            7 => {
                self.law.leave(self.now, &set.name, set.request);
                self.ponder(keeper);
            }
            _ => {}
        }
        Ok(())
    }

    fn want_longer(&mut self, keeper: usize, set: Set, fence: Fence, deadline: Nanos) {
        let (reads, most) = (self.keeper_reads(keeper), self.plan.longest_kept());
        let time = SHORTEST + self.keepers.below(most - SHORTEST);
        // What it gets is as long as it wants from the sending, or so much longer than it had.
        let prolongs = self.keepers.chance.one_in(2);
        let (wish, until) = if prolongs {
            (Wish::Prolong { by: time }, deadline + time)
        } else {
            (Wish::Expire { ttl: time }, reads + time)
        };
        self.tell(|| format!("k{keeper} wants {}: {wish:?}", set.name));
        // It may be shorter: from now on it believes in no more than what it will have in any case.
        let least = deadline.min(until);
        self.law.shorten(&set.name, set.request, least);
        self.keepers.all[keeper].epoch += 1;
        self.keepers.all[keeper].stage = Stage::Having(set.clone(), fence, least);
        self.send_word(keeper, &set, wish, until);
        // If nobody answers it does nothing more: what it has said may come late, and undo what it would say later.
        let over = self.plan.keepers[keeper].when(least).saturating_sub(self.now);
        self.keeper_later(keeper, over, Deed::Over);
    }

    /// Whether a keeper believes to have something, or waits for it.
    pub(crate) fn busy_keeper(&self) -> Option<&Name> {
        self.keepers.all.iter().find_map(|keeper| match &keeper.stage {
            Stage::Thinking => None,
            Stage::Setting(set) | Stage::Having(set, ..) => Some(&set.name),
        })
    }
}
