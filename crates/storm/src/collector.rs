//! Collectors: clients that want several locks at once, all or nothing.
//!
//! One lives on each machine. It has a session of its own for each attempt, and asks for one lock after the other, in the
//! order of their names: so two of them that want the same ones never wait for each other in a circle. Whoever loses one
//! loses all.

use std::collections::BTreeMap;

use vez_peer::{
    ask::{Ask, Patience, RequestId, SessionId},
    fence::Fence,
    name::Name,
    peer::{Call, Effect},
    shard::Nanos,
};

use crate::{
    law::Belief,
    plan::{Chance, MILLISECOND, Plan},
    world::{Event, World},
};

/// What they want some of; others want it too.
const NAMES: [&str; 5] = ["lock/a", "lock/b", "lock/c", "lock/d", "other/e"];

/// All collectors of a storm: one on each machine.
pub(crate) struct Collectors {
    all: Vec<Collector>,
    chance: Chance,
    sessions: BTreeMap<SessionId, usize>,
}

#[derive(Default)]
struct Collector {
    /// What it is about, if it is about something.
    attempt: Option<Attempt>,
    /// Whatever it was to do in an earlier epoch it does not do any more.
    epoch: u64,
}

struct Attempt {
    session: SessionId,
    /// The one that it waits for.
    waits: Option<(RequestId, Name)>,
    /// What is left to be asked for, the last first.
    left: Vec<Name>,
    has: Vec<(RequestId, Name, Fence)>,
}

/// What a collector does at some moment.
pub(crate) enum Deed {
    /// It wants several locks.
    Want,
    /// It asks for the next.
    Ask,
    /// It shows itself.
    Renew,
    /// It releases all that it has, one by one.
    Release,
    /// It goes, and leaves the rest to its session's end.
    Go,
    /// It notices that its node is gone.
    Notice,
}

impl Collectors {
    pub(crate) fn new(plan: &Plan) -> Self {
        let all = (0..plan.nodes).map(|_| Collector::default()).collect();
        Self { all, chance: Chance::new(plan.seed, 8), sessions: BTreeMap::new() }
    }

    /// Two or three of them, in any order.
    fn choose(&mut self) -> Vec<Name> {
        let mut left: Vec<&str> = NAMES.to_vec();
        let count = 2 + self.chance.index(2);
        let chosen = (0..count).map(|_| left.swap_remove(self.chance.index(left.len()))).collect::<Vec<_>>();
        chosen.into_iter().map(|name| Name::new(name.as_bytes()).expect("short")).collect()
    }
}

/// The order in which several locks are asked for, the last first.
fn in_order(mut names: Vec<Name>) -> Vec<Name> {
    names.sort();
    names.reverse();
    names
}

impl World<'_> {
    pub(crate) fn populate_with_collectors(&mut self) {
        for machine in 0..self.plan.nodes {
            self.pause_collecting(machine);
        }
    }

    fn collector_later(&mut self, machine: usize, pause: Nanos, deed: Deed) {
        let epoch = self.collectors.all[machine].epoch;
        self.at(self.now + pause, Event::Collector(machine, epoch, deed));
    }

    fn pause_collecting(&mut self, machine: usize) {
        self.collectors.all[machine].epoch += 1;
        let pause = 100 * MILLISECOND + self.collectors.chance.below(1500 * MILLISECOND);
        self.collector_later(machine, pause, Deed::Want);
    }

    pub(crate) fn collector_acts(&mut self, machine: usize, epoch: u64, deed: Deed) -> Result<(), String> {
        if self.collectors.all[machine].epoch != epoch {
            return Ok(());
        }
        match deed {
            Deed::Want => self.want_several(machine),
            Deed::Ask => self.ask_for_next(machine),
            Deed::Renew => self.renew_collector(machine),
            Deed::Release => {
                let Some(Attempt { session, has, .. }) = self.forget_attempt(machine) else { return Ok(()) };
                for (_, name, fence) in has {
                    self.call(machine, Call::Release { session, name, fence })?;
                }
                self.call(machine, Call::End(session))
            }
            Deed::Go => self.collector_goes(machine),
            Deed::Notice => {
                self.forget_attempt(machine);
                Ok(())
            }
        }
    }

    fn want_several(&mut self, machine: usize) -> Result<(), String> {
        if self.now >= self.plan.quiet {
            return Ok(());
        }
        let member = self.machines[machine].process.as_ref().is_some_and(|process| process.peer.view().is_some());
        if !member {
            self.pause_collecting(machine);
            return Ok(());
        }
        let session = SessionId(self.next_request().0);
        let left = in_order(self.collectors.choose());
        self.tell(|| format!("m{machine} collects {left:?}"));
        self.collectors.sessions.insert(session, machine);
        self.collectors.all[machine].attempt = Some(Attempt { session, waits: None, left, has: Vec::new() });
        if self.collectors.chance.one_in(12) {
            let pause = self.collectors.chance.below(500 * MILLISECOND);
            self.collector_later(machine, pause, Deed::Go);
        }
        self.collector_later(machine, 0, Deed::Ask);
        self.collector_later(machine, self.plan.charter.lease / 4, Deed::Renew);
        self.call(machine, Call::Open { session, ttl: None })
    }

    fn ask_for_next(&mut self, machine: usize) -> Result<(), String> {
        let request = self.next_request();
        let Some(attempt) = &mut self.collectors.all[machine].attempt else { return Ok(()) };
        let Some(name) = attempt.left.pop() else { return Ok(()) };
        attempt.waits = Some((request, name.clone()));
        let (session, ask, patience) = (attempt.session, Ask::Lock, Patience::Endless);
        self.law.asked(self.now, machine, request, ask.clone(), patience);
        self.call(machine, Call::Acquire { session, request, name, ask, patience })
    }

    fn renew_collector(&mut self, machine: usize) -> Result<(), String> {
        let Some(attempt) = &self.collectors.all[machine].attempt else { return Ok(()) };
        let session = attempt.session;
        self.collector_later(machine, self.plan.charter.lease / 4, Deed::Renew);
        self.call(machine, Call::Renew(session))
    }

    /// Whether a node says this to a collector.
    pub(crate) fn is_of_collector(&self, session: SessionId) -> bool {
        self.collectors.sessions.contains_key(&session)
    }

    pub(crate) fn collector_hears(&mut self, session: SessionId, effect: Effect) -> Result<(), String> {
        let machine = self.collectors.sessions[&session];
        match effect {
            Effect::Granted { request, name, fence, deadline, .. } => {
                self.collect(machine, request, (name, fence), deadline)
            }
            Effect::Renewed { deadline, .. } => {
                let Some(attempt) = &self.collectors.all[machine].attempt else { return Ok(()) };
                for (request, name, _) in &attempt.has {
                    self.law.extend(self.now, name, *request, deadline);
                }
                Ok(())
            }
            Effect::Failed { request, failure, .. } => {
                self.law.deny(self.now, request, &failure)?;
                self.forget_attempt(machine);
                self.at(self.now, Event::Bye(machine, session));
                Ok(())
            }
            Effect::Ended(_) | Effect::NotOpened { .. } => {
                self.forget_attempt(machine);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// One more of those that it wants is granted.
    fn collect(
        &mut self,
        machine: usize,
        request: RequestId,
        (name, fence): (Name, Fence),
        deadline: Nanos,
    ) -> Result<(), String> {
        let belief = Belief { machine, request, ask: Ask::Lock, fence, floor: fence, deadline };
        if !self.law.enter(self.now, &name, belief)? {
            // The answer took so long that what it says is over.
            self.collector_later(machine, 0, Deed::Go);
            return Ok(());
        }
        let Some(attempt) = &mut self.collectors.all[machine].attempt else { return Ok(()) };
        attempt.waits = None;
        attempt.has.push((request, name, fence));
        if !attempt.left.is_empty() {
            self.collector_later(machine, 0, Deed::Ask);
            return Ok(());
        }
        self.tally.collected += 1;
        let stay = self.collectors.chance.below(60 * MILLISECOND);
        let deed = if self.collectors.chance.one_in(4) { Deed::Go } else { Deed::Release };
        self.collector_later(machine, stay, deed);
        Ok(())
    }

    fn collector_goes(&mut self, machine: usize) -> Result<(), String> {
        match self.forget_attempt(machine) {
            Some(attempt) => self.call(machine, Call::End(attempt.session)),
            None => Ok(()),
        }
    }

    /// A collector gives up its session, and all that it believed to have: what that was.
    fn forget_attempt(&mut self, machine: usize) -> Option<Attempt> {
        let attempt = self.collectors.all[machine].attempt.take()?;
        for (request, name, _) in &attempt.has {
            self.law.leave(self.now, name, *request);
        }
        self.collectors.sessions.remove(&attempt.session);
        self.pause_collecting(machine);
        Some(attempt)
    }

    /// The node of a collector is gone. If nobody tells it, it notices some time.
    pub(crate) fn lose_collector(&mut self, machine: usize, told: bool) {
        let Some(attempt) = &self.collectors.all[machine].attempt else { return };
        self.collectors.sessions.remove(&attempt.session);
        if told || self.collectors.chance.one_in(2) {
            self.forget_attempt(machine);
            return;
        }
        self.collectors.all[machine].epoch += 1;
        let pause = self.collectors.chance.below(2 * self.plan.charter.lease);
        self.collector_later(machine, pause, Deed::Notice);
    }

    /// A machine wants to leave, and its collector has a moment to end what it is about.
    pub(crate) fn ask_collector_to_go(&mut self, machine: usize) {
        let pause = self.collectors.chance.below(400 * MILLISECOND);
        if self.collectors.all[machine].attempt.is_some() {
            self.collector_later(machine, pause, Deed::Go);
        }
    }

    /// What a collector waits for, or has, if it is about something.
    pub(crate) fn busy_collector(&self) -> Option<(usize, &Name)> {
        let attempts = self.collectors.all.iter().map(|collector| collector.attempt.as_ref());
        attempts.enumerate().find_map(|(machine, attempt)| {
            let attempt = attempt?;
            let has = attempt.has.last().map(|(_, name, _)| name);
            Some((machine, attempt.waits.as_ref().map(|(_, name)| name).or(has)?))
        })
    }
}
