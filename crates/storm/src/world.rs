//! The world of a storm: what happens, in its order.

use std::collections::{BTreeMap, VecDeque};

use vez_peer::{
    agreement::Disk,
    ask::SessionId,
    frame::Frame,
    identity::{Incarnation, MemberId},
    keep::KEEPER,
    name::Name,
    peer::{Call, Effect, Input},
    shard::Nanos,
};

use crate::{
    Tally,
    client::{Client, Deed},
    collector::{self, Collectors},
    keeper::{self, Keepers},
    law::Law,
    machine::{Machine, Sleep, machine_at},
    network::Network,
    observer::Observer,
    plan::{Chance, MILLISECOND, Midway, Plan, SECOND, Seconds},
    probe::Probe,
};

/// What comes to pass some time.
pub(crate) enum Event {
    /// A frame arrives.
    Arrives(usize, Box<Frame>),
    /// A process wanted to be woken.
    Tick(usize),
    /// A batch of a process is written.
    Written(usize, Incarnation),
    /// A machine starts a process.
    Start(usize),
    /// A process wakes up.
    Wake(usize, Incarnation),
    /// A client does something.
    Client(usize, u64, Deed),
    /// A client that locks by SET does something, or something comes to it.
    Keeper(usize, u64, keeper::Deed),
    /// A node does something for one.
    Set(keeper::node::Step),
    /// A word of one comes to a node.
    Word(Box<keeper::words::Word>),
    /// A client that wants several locks does something.
    Collector(usize, u64, collector::Deed),
    /// A client's session is ended.
    Bye(usize, SessionId),
    /// The observer on a machine does something.
    Look(usize),
    /// Something goes wrong, or not any more.
    Fault(usize),
    Over(usize),
    /// Nothing goes wrong any more.
    Calm,
    /// Everybody must have been served.
    Probe,
}

pub(crate) struct World<'a> {
    pub plan: &'a Plan,
    pub now: Nanos,
    agenda: BTreeMap<(Nanos, u64), Event>,
    next: u64,
    pub machines: Vec<Machine>,
    pub network: Network,
    disks: Chance,
    pub choices: Chance,
    pub whims: Chance,
    pub clients: Vec<Client>,
    pub observers: Vec<Observer>,
    pub keepers: Keepers,
    pub collectors: Collectors,
    pub sessions: BTreeMap<SessionId, usize>,
    pub law: Law,
    pub probe: Probe,
    /// Too many votes are lost with their disks.
    pub is_bereft: bool,
    pub tally: Tally,
    view: u64,
    pub next_id: u64,
    pub last_request: u64,
    /// How many units clients believe a semaphore to have.
    pub units: BTreeMap<Name, u32>,
    told: Option<&'a mut dyn FnMut(String)>,
}

impl<'a> World<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        let machine = |at: usize| Machine {
            clock: plan.clocks[at],
            id: MemberId(at as u64 + 1),
            disk: Disk::empty(),
            incarnation: Incarnation(0),
            process: None,
            sleep: Sleep::Awake,
            latency: Vec::new(),
            disk_fails: None,
            starting: false,
            away: None,
        };
        let mut world = Self {
            plan,
            now: 0,
            agenda: BTreeMap::new(),
            next: 0,
            machines: (0..plan.nodes).map(machine).collect(),
            network: Network::new(plan.seed, plan.nodes),
            disks: Chance::new(plan.seed, 2),
            choices: Chance::new(plan.seed, 3),
            whims: Chance::new(plan.seed, 4),
            clients: Vec::new(),
            observers: (0..plan.nodes).map(|_| Observer::default()).collect(),
            keepers: Keepers::new(plan),
            collectors: Collectors::new(plan),
            sessions: BTreeMap::new(),
            law: Law::new(plan.wild, plan.clocks.iter().chain(&plan.keepers).copied().collect()),
            probe: Probe::default(),
            is_bereft: false,
            tally: Tally::default(),
            view: 0,
            next_id: plan.nodes as u64 + 1,
            last_request: 0,
            units: BTreeMap::new(),
            told: None,
        };
        for machine in 0..plan.nodes {
            let at = machine as u64 * (100 * MILLISECOND + world.whims.below(300 * MILLISECOND));
            world.start_at(machine, at);
        }
        for (number, fault) in plan.faults.iter().enumerate() {
            world.at(fault.at, Event::Fault(number));
        }
        world.at(plan.calm, Event::Calm);
        world.at(plan.probe, Event::Probe);
        world.populate();
        world.populate_with_keepers();
        world.populate_with_collectors();
        world
    }

    pub(crate) fn telling(plan: &'a Plan, line: &'a mut dyn FnMut(String)) -> Self {
        let mut world = Self::new(plan);
        world.told = Some(line);
        world
    }

    /// Lets it all happen.
    pub(crate) fn pass(mut self) -> Result<Tally, String> {
        while let Some(((time, _), event)) = self.agenda.pop_first() {
            if time > self.plan.end {
                break;
            }
            self.now = time;
            self.tally.events += 1;
            self.happen(event).map_err(|what| format!("after {} s: {what}", Seconds(self.now)))?;
            if self.is_bereft {
                return Ok(self.tally);
            }
        }
        self.now = self.plan.end;
        self.everything_is_at_rest()?;
        Ok(self.tally)
    }

    pub(crate) fn at(&mut self, time: Nanos, event: Event) {
        self.next += 1;
        self.agenda.insert((time.max(self.now), self.next), event);
    }

    pub(crate) fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(told) = &mut self.told {
            told(format!("{:>9} {}", Seconds(self.now), line()));
        }
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Arrives(machine, frame) => self.input(machine, Input::Frame(frame)),
            Event::Tick(machine) => self.tick(machine),
            Event::Written(machine, incarnation) => self.written(machine, incarnation),
            Event::Start(machine) => self.start(machine),
            Event::Wake(machine, incarnation) => self.wake(machine, incarnation),
            Event::Client(client, epoch, deed) => self.client_acts(client, epoch, deed),
            Event::Keeper(keeper, epoch, deed) => self.keeper_acts(keeper, epoch, deed),
            Event::Set(step) => self.set_step(step),
            Event::Word(word) => self.word_arrives(*word),
            Event::Collector(machine, epoch, deed) => self.collector_acts(machine, epoch, deed),
            Event::Bye(machine, session) => self.call(machine, Call::End(session)),
            Event::Look(machine) => self.look(machine),
            Event::Fault(number) => self.fault(number),
            Event::Over(number) => self.over(number),
            Event::Calm => self.calm_down(),
            Event::Probe => self.begin_probe(),
        }
    }

    /// Something happens to a process, or will, when it wakes up.
    pub(crate) fn input(&mut self, machine: usize, input: Input) -> Result<(), String> {
        let place = &mut self.machines[machine];
        let Some(process) = &mut place.process else { return Ok(()) };
        if let Sleep::Asleep { backlog, .. } = &mut place.sleep {
            backlog.push_back(input);
            return Ok(());
        }
        let mut effects = Vec::new();
        let reads = place.clock.reads(self.now);
        process.peer.handle(reads, input, &mut effects, &mut |n| self.choices.below(n));
        self.decided(machine, effects)
    }

    /// A process has decided something. It is done at once, unless the process falls asleep before.
    fn decided(&mut self, machine: usize, effects: Vec<Effect>) -> Result<(), String> {
        for effect in &effects {
            if let Effect::Granted { request, name, fence, .. } = effect {
                self.tally.grants += 1;
                self.tell(|| format!("m{machine} grants {name} to {request:?} with {fence:?}"));
                self.law.grant(name, *request, *fence)?;
            }
            if let Effect::Resized { request, name, size, .. } = effect {
                self.tally.resizes += 1;
                self.tell(|| format!("m{machine} says that {name} has {size:?}"));
                self.law.resized(self.now, name, *request, *size);
            }
            if let Effect::Kept { request, name, fence, deadline } = effect {
                self.tally.grants += 1;
                self.tally.kept += 1;
                self.tell(|| format!("m{machine} keeps {name} for {request:?} with {fence:?} until {deadline}"));
                self.law.grant(name, *request, *fence)?;
            }
        }
        let place = &mut self.machines[machine];
        let grants = effects.iter().any(|effect| matches!(effect, Effect::Granted { .. } | Effect::Kept { .. }));
        if let Sleep::Soon(midway, lasts) = place.sleep
            && (grants || midway == Midway::Anything && !effects.is_empty())
        {
            place.sleep = Sleep::Asleep { decided: effects, backlog: VecDeque::new() };
            let incarnation = place.incarnation;
            self.at(self.now + lasts, Event::Wake(machine, incarnation));
            return Ok(());
        }
        self.do_all(machine, effects)
    }

    pub(crate) fn do_all(&mut self, machine: usize, effects: Vec<Effect>) -> Result<(), String> {
        for effect in effects {
            self.carry_out(machine, effect)?;
        }
        self.set_alarm(machine);
        Ok(())
    }

    fn carry_out(&mut self, machine: usize, effect: Effect) -> Result<(), String> {
        match effect {
            Effect::Send(address, frame) => {
                let to = machine_at(&address);
                let times = self.network.send(self.now, machine, to);
                for time in times {
                    self.at(time, Event::Arrives(to, frame.clone()));
                }
            }
            Effect::Persist(batch) => {
                if let Some(written) = self.machines[machine].disk_fails.take() {
                    self.tell(|| format!("m{machine} fails at a write"));
                    if written {
                        self.machines[machine].disk.write(&batch);
                    }
                    self.crash(machine, false, false);
                    let down = self.disks.below(SECOND);
                    self.start_at(machine, self.now + down);
                    return Ok(());
                }
                let slow = self.machines[machine].latency.iter().max().copied().unwrap_or(0);
                let takes = MILLISECOND / 5 + self.disks.below(3 * MILLISECOND) + self.disks.below(slow);
                let place = &mut self.machines[machine];
                let incarnation = place.incarnation;
                let Some(process) = &mut place.process else { return Ok(()) };
                assert!(process.writing.is_none(), "a batch is being written already");
                process.writing = Some(*batch);
                self.at(self.now + takes, Event::Written(machine, incarnation));
            }
            Effect::Entered(view) => {
                self.tell(|| format!("m{machine} is in view {view}"));
                let process = self.machines[machine].process.as_ref();
                self.law.view(process.and_then(|process| process.peer.view()))?;
                if view > self.view {
                    self.tally.view_changes += u64::from(self.view > 0);
                    self.view = view;
                }
            }
            Effect::Settled(view) => self.tell(|| format!("m{machine} is settled in view {view}")),
            Effect::Danger(_) => self.tell(|| format!("m{machine} is in danger")),
            Effect::Forgotten(name) => {
                self.tell(|| format!("m{machine} forgets {name}"));
                self.tally.forgotten += 1;
            }
            Effect::Violation(id, what) => {
                return Err(format!("m{machine} is told by {id} what it cannot say: {what}"));
            }
            Effect::Stopped(why) => self.stopped(machine, why)?,
            Effect::ByValue { request, result } => self.word_answered(machine, request, result)?,
            Effect::Kept { request, fence, .. } => self.set_kept(request, fence),
            Effect::Failed { session: KEEPER, request, failure } => self.set_denied(machine, request, &failure)?,
            Effect::Granted { .. }
            | Effect::Failed { .. }
            | Effect::Observed { .. }
            | Effect::Resized { .. }
            | Effect::Renewed { .. }
            | Effect::Released { .. }
            | Effect::NotOpened { .. }
            | Effect::Ended(_) => self.client_hears(machine, effect)?,
        }
        Ok(())
    }

    fn set_alarm(&mut self, machine: usize) {
        let place = &mut self.machines[machine];
        let Some(process) = &mut place.process else { return };
        let due = process.peer.deadline();
        if due == Nanos::MAX {
            return;
        }
        let when = place.clock.when(due).max(self.now);
        if process.tick.is_none_or(|tick| when < tick) {
            process.tick = Some(when);
            self.at(when, Event::Tick(machine));
        }
    }

    fn tick(&mut self, machine: usize) -> Result<(), String> {
        let place = &mut self.machines[machine];
        let Some(process) = &mut place.process else { return Ok(()) };
        if process.tick != Some(self.now) {
            return Ok(()); // It was set anew, or belongs to an earlier process.
        }
        process.tick = None;
        if place.clock.reads(self.now) < process.peer.deadline() {
            self.set_alarm(machine);
            return Ok(());
        }
        self.input(machine, Input::Tick)
    }

    fn written(&mut self, machine: usize, incarnation: Incarnation) -> Result<(), String> {
        let place = &mut self.machines[machine];
        if place.incarnation != incarnation {
            return Ok(());
        }
        let Some(process) = &mut place.process else { return Ok(()) };
        let Some(batch) = process.writing.take() else { return Ok(()) };
        place.disk.write(&batch);
        self.input(machine, Input::Written)
    }

    fn wake(&mut self, machine: usize, incarnation: Incarnation) -> Result<(), String> {
        let place = &mut self.machines[machine];
        if place.incarnation != incarnation {
            return Ok(());
        }
        let Sleep::Asleep { decided, backlog } = std::mem::replace(&mut place.sleep, Sleep::Awake) else {
            return Ok(());
        };
        self.tell(|| format!("m{machine} wakes up"));
        self.do_all(machine, decided)?;
        // What has been waiting is read before any timer fires.
        for input in backlog {
            self.input(machine, input)?;
        }
        if let Some(process) = &mut self.machines[machine].process {
            process.tick = None;
        }
        self.set_alarm(machine);
        Ok(())
    }
}
