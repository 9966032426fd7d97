//! A world for a few members: virtual time, a network that loses, doubles, delays and cuts, disks that are slow, crashes.
//!
//! Everything comes from one seed. The laws are looked at after every step.

use std::collections::{BTreeMap, BTreeSet};

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use vez_peer::{
    agreement::{Agreement, Batch, Cx, Disk, Event, Message, Nanos, Pace, SNAPSHOT_AFTER},
    charter::Charter,
    identity::{Address, ClusterId, Incarnation, MemberId},
    views::{Change, Views},
};

use super::laws::Laws;

/// A heartbeat every 10 ms, an election after 50 to 100.
pub(crate) const PACE: Pace = Pace { heartbeat: 10_000_000, election: 50_000_000, compaction: SNAPSHOT_AFTER };
/// As long as the shortest wait for a leader.
pub(crate) const ELECTION: Nanos = PACE.election;

const NEVER: &str = "a member that is asked is running";

/// What the network and the disks are like. Chances are in percent.
#[derive(Clone, Copy)]
pub(crate) struct Weather {
    pub(crate) loss: u64,
    pub(crate) doubled: u64,
    /// A message takes up to so long.
    pub(crate) delay: Nanos,
    /// A batch takes up to so long.
    pub(crate) writing: Nanos,
    /// So many messages take up to thirty times as long as the others.
    pub(crate) late: u64,
    /// After so many of the steps that write or promise something, a process ends and is started again.
    pub(crate) fragile: u64,
    /// How different the times are that members wait for a leader: 100 is as they should be.
    pub(crate) spread: u64,
}

pub(crate) const FAIR: Weather =
    Weather { loss: 0, doubled: 0, delay: 2_000_000, writing: 1_000_000, late: 0, fragile: 0, spread: 100 };

pub(crate) struct Machine {
    pub(crate) disk: Disk,
    /// The running process, if one is.
    pub(crate) process: Option<Agreement>,
    /// How often it was started.
    pub(crate) starts: u64,
    writing: Option<Batch>,
    /// Until then the process stands still, and does not know it.
    pub(crate) asleep: Nanos,
}

#[expect(clippy::large_enum_variant, reason = "few of them exist at a time")]
enum Happening {
    Message {
        from: MemberId,
        to: MemberId,
        message: Message,
    },
    Written {
        who: MemberId,
        starts: u64,
    },
    /// A process that stood still goes on.
    Wakes {
        who: MemberId,
    },
}

pub(crate) struct World {
    pub(crate) now: Nanos,
    pub(crate) weather: Weather,
    pub(crate) machines: BTreeMap<MemberId, Machine>,
    /// From whom to whom nothing gets through.
    pub(crate) cut: BTreeSet<(MemberId, MemberId)>,
    pub(crate) laws: Laws,
    /// Every message that was sent, if somebody wants to see them.
    pub(crate) sent: Option<Vec<(MemberId, MemberId, Message)>>,
    happenings: BTreeMap<(Nanos, u64), Happening>,
    sequence: u64,
    steps: u64,
    chance: ChaCha8Rng,
}

pub(crate) fn members(ids: impl IntoIterator<Item = u64>) -> BTreeSet<MemberId> {
    ids.into_iter().map(MemberId).collect()
}

pub(crate) fn first_views() -> Views {
    Views::new(ClusterId(7), Charter::new(8), 100)
}

/// Below `n`.
pub(crate) fn below(chance: &mut ChaCha8Rng, n: u64) -> u64 {
    ((u128::from(chance.next_u64()) * u128::from(n)) >> 64) as u64
}

impl World {
    /// A founder, and the empty disks of as many others as there are further ids.
    pub(crate) fn new(seed: u64, ids: impl IntoIterator<Item = u64>) -> Self {
        let machine = || Machine { disk: Disk::empty(), process: None, starts: 0, writing: None, asleep: 0 };
        let machines = ids.into_iter().map(|id| (MemberId(id), machine())).collect();
        let mut world = Self {
            now: 0,
            weather: FAIR,
            machines,
            cut: BTreeSet::new(),
            laws: Laws::default(),
            sent: None,
            happenings: BTreeMap::new(),
            sequence: 0,
            steps: 0,
            chance: ChaCha8Rng::seed_from_u64(seed),
        };
        for id in world.ids() {
            world.restart(id);
        }
        world
    }

    pub(crate) fn ids(&self) -> Vec<MemberId> {
        self.machines.keys().copied().collect()
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        below(&mut self.chance, n)
    }

    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn one_of(&mut self, ids: &[MemberId]) -> MemberId {
        ids[self.below(ids.len() as u64) as usize]
    }

    pub(crate) fn process(&self, id: MemberId) -> &Agreement {
        self.machines[&id].process.as_ref().expect(NEVER)
    }

    pub(crate) fn running(&self) -> impl Iterator<Item = (MemberId, &Agreement)> {
        self.machines.iter().filter_map(|(id, machine)| Some((*id, machine.process.as_ref()?)))
    }

    /// The established leader of the highest term.
    pub(crate) fn leader(&self) -> Option<MemberId> {
        let leading = |(id, process): (MemberId, &Agreement)| Some((process.leads()?, id));
        let established = self.running().filter_map(leading).filter(|(leading, _)| leading.since.is_some());
        established.max_by_key(|(leading, _)| leading.term).map(|(_, id)| id)
    }

    /// A process ends, in the midst of whatever it was doing. A batch under way is written, or it is not.
    pub(crate) fn crash(&mut self, id: MemberId) {
        let is_written = self.percent(50);
        let machine = self.machines.get_mut(&id).expect("known");
        machine.process = None;
        if let Some(batch) = machine.writing.take().filter(|_| is_written) {
            machine.disk.write(&batch);
        }
        self.laws.crashed(id);
    }

    /// A process begins: from its disk, or if that is the first one's and empty, by founding the cluster.
    pub(crate) fn restart(&mut self, id: MemberId) {
        let is_first = self.machines.first_key_value().is_some_and(|(first, _)| *first == id);
        let machine = self.machines.get_mut(&id).expect("known");
        assert!(machine.process.is_none(), "one process a disk");
        let mut events = Vec::new();
        let (chance, spread) = (&mut self.chance, self.weather.spread);
        let mut cx = Cx { events: &mut events, choose: &mut |n| below(chance, n * spread / 100 + 1).min(n - 1) };
        machine.starts += 1;
        machine.process = Some(if is_first && machine.disk == Disk::empty() {
            Agreement::found(id, first_views(), PACE, self.now, &mut cx)
        } else {
            Agreement::resume(id, &machine.disk, PACE, self.now, &mut cx)
        });
        self.carry_out(id, events);
    }

    /// A call of a running member, and what comes of it.
    pub(crate) fn call<T>(&mut self, id: MemberId, call: impl FnOnce(&mut Agreement, Nanos, &mut Cx<'_>) -> T) -> T {
        let process = self.machines.get_mut(&id).expect("known").process.as_mut().expect(NEVER);
        let mut events = Vec::new();
        let (chance, spread) = (&mut self.chance, self.weather.spread);
        let mut cx = Cx { events: &mut events, choose: &mut |n| below(chance, n * spread / 100 + 1).min(n - 1) };
        let answer = call(process, self.now, &mut cx);
        self.carry_out(id, events);
        answer
    }

    fn carry_out(&mut self, id: MemberId, events: Vec<Event>) {
        let mut is_promise = false;
        for event in events {
            self.laws.saw(id, &event);
            is_promise |= matches!(
                event,
                Event::Persist(_) | Event::Send(_, Message::VoteAnswer { .. } | Message::AppendAnswer { .. })
            );
            match event {
                Event::Send(to, message) => self.send(id, to, message),
                Event::Persist(batch) => {
                    let due = self.now + self.below(self.weather.writing.max(1));
                    let machine = self.machines.get_mut(&id).expect("known");
                    assert!(machine.writing.replace(batch).is_none(), "one batch at a time");
                    let starts = machine.starts;
                    self.at(due, Happening::Written { who: id, starts });
                }
                Event::Broken(why) => panic!("{id}: {why}"),
                Event::Viewed(_) | Event::Pledged | Event::Refused(..) | Event::Leads | Event::Follows => {}
            }
        }
        self.laws.stepped(id, self.machines[&id].process.as_ref().expect(NEVER));
        if is_promise && self.below(1000) < self.weather.fragile {
            self.crash(id);
            self.restart(id);
        }
    }

    fn at(&mut self, due: Nanos, happening: Happening) {
        self.sequence += 1;
        self.happenings.insert((due, self.sequence), happening);
    }

    fn send(&mut self, from: MemberId, to: MemberId, message: Message) {
        if let Some(sent) = &mut self.sent {
            sent.push((from, to, message.clone()));
        }
        let copies = u64::from(!self.percent(self.weather.loss)) + u64::from(self.percent(self.weather.doubled));
        for _ in 0..copies {
            let longer = if self.percent(self.weather.late) { 30 } else { 1 };
            let due = self.now + self.below(longer * self.weather.delay);
            self.at(due, Happening::Message { from, to, message: message.clone() });
        }
    }

    /// Time passes.
    pub(crate) fn run(&mut self, time: Nanos) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    /// Time passes until something is so. Whether it became so in time.
    pub(crate) fn run_until(&mut self, time: Nanos, is_so: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + time;
        while !is_so(self) {
            if !self.step(end) {
                self.now = end;
                return is_so(self);
            }
        }
        true
    }

    /// The next thing that happens, if it happens before the end.
    fn step(&mut self, end: Nanos) -> bool {
        self.steps += 1;
        assert!(self.steps < 1_000_000, "there is no end of it");
        let tick = self.running().map(|(id, process)| (process.deadline().max(self.machines[&id].asleep), id)).min();
        let first = self.happenings.first_key_value().map(|(key, _)| key.0);
        match (tick, first) {
            // Who stood still may read what has come before it looks at the clock.
            (Some((due, id)), first) if first.is_none_or(|first| due < first) && due <= end => {
                self.now = self.now.max(due);
                self.call(id, |process, now, cx| process.on_tick(now, cx));
                true
            }
            (_, Some(due)) if due <= end => {
                let (_, happening) = self.happenings.pop_first().expect("there is a first");
                self.now = due;
                let (Happening::Message { to: who, .. } | Happening::Written { who, .. } | Happening::Wakes { who }) =
                    &happening;
                match self.machines[who].asleep {
                    until if until > due => self.at(until, happening),
                    _ => self.happen(happening),
                }
                true
            }
            _ => false,
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Message { from, to, message } => {
                if !self.cut.contains(&(from, to)) && self.machines[&to].process.is_some() {
                    self.call(to, |process, now, cx| process.on_message(now, from, message, cx));
                }
            }
            Happening::Wakes { who } => {
                if self.machines[&who].process.is_some() {
                    self.ask(who);
                }
            }
            Happening::Written { who, starts } => {
                let machine = self.machines.get_mut(&who).expect("known");
                if machine.starts == starts && machine.process.is_some() {
                    let batch = machine.writing.take().expect("it was being written");
                    machine.disk.write(&batch);
                    self.call(who, |process, now, cx| process.on_written(now, cx));
                }
            }
        }
    }

    /// A process stands still for a while. When it goes on, it does something for a client before it reads what has come.
    pub(crate) fn send_to_sleep(&mut self, who: MemberId, time: Nanos) {
        let until = self.now + time;
        self.machines.get_mut(&who).expect("known").asleep = until;
        self.at(until, Happening::Wakes { who });
    }

    /// A round of confirmation, from which on the laws watch it.
    pub(crate) fn ask(&mut self, leader: MemberId) {
        if let Some(round) = self.call(leader, |process, now, cx| process.confirm(now, cx)) {
            let process = self.machines[&leader].process.as_ref().expect(NEVER);
            self.laws.asked(leader, process, round);
        }
    }

    /// Nothing gets through between these and the rest.
    pub(crate) fn isolate(&mut self, some: &BTreeSet<MemberId>) {
        for from in self.ids() {
            for to in self.ids() {
                if some.contains(&from) != some.contains(&to) {
                    self.cut.insert((from, to));
                }
            }
        }
    }

    /// The leader proposes a step that no other step equals. Whether it could.
    pub(crate) fn propose(&mut self, leader: MemberId) -> bool {
        let number = self.laws.next_incarnation();
        let Some(views) = self.process(leader).views() else { return false };
        let replaces = views.members().get(&MemberId(900)).map(|member| member.incarnation);
        let change = Change::Admit {
            id: MemberId(900),
            incarnation: Incarnation(number),
            address: Address::new("somewhere"),
            join_sent: 0,
            replaces,
            pledge: 0,
        };
        self.call(leader, |process, now, cx| process.propose(now, vec![change], cx))
    }

    /// The number of the latest view that a member knows.
    pub(crate) fn view_of(&self, id: MemberId) -> u64 {
        self.process(id).views().map_or(0, Views::number)
    }
}
