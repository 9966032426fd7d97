//! What nodes do, written down: each local state, message and outcome once.

use std::{ops::Range, time::Duration};

use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use vez_algorithms::{
    Algorithm, Client, CommandOf, Effect, EffectOf, Heard, Input, NodeId, NodeSet, Phase, Protocol, Timing, step,
};

use super::{Breach, Config, Workload, action::Action};
use crate::{quiet, reach::Links, stage::Packet, timers::Timers};

/// All that concerns one node: what it knows, where its client stands, and what has befallen it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Local<P: Protocol> {
    me: NodeId,
    pub(super) node: P,
    client: Client<P::Family>,
    /// How often the client may still ask; `None` is for ever.
    left: Option<u32>,
    /// The timers that are set. If time is bounded, each with what is left of it, in [`THIRDS`]; otherwise with 0.
    timers: Timers<P::Timer, u64>,
    crashed: bool,
    /// Of whose crash the failure detector has told it.
    told: NodeSet,
    /// How often it has crashed, how many messages to it were lost, how often the detector lied to it: budgets are
    /// counted here, so that they are part of the state.
    crashes: u8,
    losses: u8,
    lies: u8,
}

/// What the checker wants to know of a local state at a glance.
pub(super) struct Facts {
    pub(super) crashed: bool,
    pub(super) crashes: u8,
    pub(super) losses: u8,
    pub(super) lies: u8,
    /// What the client may do.
    pub(super) actions: SmallVec<[Action; 2]>,
    /// The timers that are set, each with what is left of it.
    pub(super) timers: SmallVec<[(u32, u64); 2]>,
}

/// In a state, the number of a packet that has been on its way for as long as a message may take has this bit.
pub(super) const LATE: u32 = 1 << 31;

/// Nanoseconds are counted in thirds, so that a third of any time is a whole number.
pub(super) const THIRDS: u64 = 3;

/// A time, counted so.
pub(super) fn thirds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).saturating_mul(THIRDS)
}

/// What came of an action at a node.
pub(super) struct Outcome<P: Protocol> {
    pub(super) local: u32,
    pub(super) sends: SmallVec<[u32; 4]>,
    /// Whether the client entered, or had what it asked for done.
    pub(super) served: bool,
    pub(super) breach: Option<Breach>,
    pub(super) effects: Vec<EffectOf<P>>,
}

impl<P: Protocol> Outcome<P> {
    pub(super) fn messages(&self) -> usize {
        self.sends.len()
    }
}

/// What clients ask for, and what may go wrong.
pub(super) struct Rules<P: Protocol> {
    pub(super) wants: Vec<CommandOf<P>>,
    /// How many nodes have clients that ask: the first ones.
    askers: usize,
    workload: Workload,
    mixed: bool,
    /// Whether crashed nodes may come back.
    restarts: bool,
    /// How each node starts.
    fresh: Vec<P>,
    pub(super) links: Links,
}

/// All local states, messages and timers that were seen, by number, and what comes of every action in every local state.
pub(super) struct Book<P: Protocol> {
    nodes: usize,
    pub(super) rules: Rules<P>,
    locals: IndexSet<Local<P>, FxBuildHasher>,
    facts: Vec<Facts>,
    packets: IndexSet<Packet<P::Message>, FxBuildHasher>,
    /// For each packet, its way: packets with the same sender and receiver have the same number.
    channels: Vec<u32>,
    timers: IndexSet<P::Timer, FxBuildHasher>,
    outcomes: Vec<Outcome<P>>,
    /// By local state and action: which of the outcomes.
    known: IndexMap<(u32, Action), Range<u32>, FxBuildHasher>,
    /// By local state and a time that passes: the local state after it.
    later: IndexMap<(u32, u64), u32, FxBuildHasher>,
}

impl<P: Algorithm> Book<P> {
    /// An empty book about these nodes.
    pub(super) fn new(nodes: &[P], links: Links, wants: Vec<CommandOf<P>>, askers: usize, config: &Config) -> Self {
        let rules = Rules {
            wants,
            askers,
            workload: config.workload,
            mixed: config.mixed,
            restarts: config.restarts > 0,
            fresh: nodes.to_vec(),
            links,
        };
        Self {
            nodes: nodes.len(),
            rules,
            locals: IndexSet::default(),
            facts: Vec::new(),
            packets: IndexSet::default(),
            channels: Vec::new(),
            timers: IndexSet::default(),
            outcomes: Vec::new(),
            known: IndexMap::default(),
            later: IndexMap::default(),
        }
    }

    /// How a node starts.
    pub(super) fn start(&mut self, me: NodeId) -> Outcome<P> {
        let left = match self.rules.workload {
            _ if me.index() >= self.rules.askers || self.rules.wants.is_empty() => Some(0),
            Workload::Requests(requests) => Some(requests),
            Workload::Unbounded => None,
        };
        let local = Local {
            me,
            node: self.rules.fresh[me.index()].clone(),
            client: Client::default(),
            left,
            timers: Timers::default(),
            crashed: false,
            told: NodeSet::new(),
            crashes: 0,
            losses: 0,
            lies: 0,
        };
        self.run(local, Input::Start, &mut Vec::new())
    }

    pub(super) fn local(&self, number: u32) -> &Local<P> {
        &self.locals[number as usize]
    }

    pub(super) fn facts(&self, number: u32) -> &Facts {
        &self.facts[number as usize]
    }

    pub(super) fn message(&self, number: u32) -> &Packet<P::Message> {
        &self.packets[(number & !LATE) as usize]
    }

    pub(super) fn channel(&self, packet: u32) -> u32 {
        self.channels[(packet & !LATE) as usize]
    }

    pub(super) fn receiver(&self, packet: u32) -> usize {
        self.channels[(packet & !LATE) as usize] as usize % self.nodes
    }

    pub(super) fn sender(&self, packet: u32) -> usize {
        self.channels[(packet & !LATE) as usize] as usize / self.nodes
    }

    pub(super) fn timer(&self, number: u32) -> P::Timer {
        self.timers[number as usize]
    }

    pub(super) fn client(&self, local: u32) -> &Client<P::Family> {
        &self.locals[local as usize].client
    }

    pub(super) fn told(&self, local: u32, of: NodeId) -> bool {
        self.locals[local as usize].told.contains(of)
    }

    pub(super) fn outcome(&self, number: u32) -> &Outcome<P> {
        &self.outcomes[number as usize]
    }

    /// What comes of an action in a local state: one outcome, or one for each answer to what it leaves to chance.
    pub(super) fn outcomes(&mut self, local: u32, action: Action) -> Range<u32> {
        match self.known.get(&(local, action)) {
            Some(outcomes) => outcomes.clone(),
            None => self.learn(local, action),
        }
    }

    fn learn(&mut self, local: u32, action: Action) -> Range<u32> {
        let start = self.outcomes.len() as u32;
        let mut script = Vec::new();
        loop {
            let mut before = self.locals[local as usize].clone();
            let Some(input) = self.input(&mut before, action) else {
                let outcome = self.befall(before, action);
                self.outcomes.push(outcome);
                break;
            };
            let outcome = self.run(before, input, &mut script);
            self.outcomes.push(outcome);
            // The next script: the last answer that is not yet the last possible one moves on.
            while script.last().is_some_and(|(answer, of)| answer + 1 == *of) {
                script.pop();
            }
            match script.last_mut() {
                Some((answer, _)) => *answer += 1,
                None => break,
            }
        }
        let outcomes = start..self.outcomes.len() as u32;
        self.known.insert((local, action), outcomes.clone());
        outcomes
    }

    /// What an action means for the algorithm, if anything; the part of it that is the client's or the world's is done.
    fn input(&self, local: &mut Local<P>, action: Action) -> Option<Input<P>> {
        match action {
            Action::Ask(want) => {
                let command = self.rules.wants[want as usize];
                local.client.ask(command);
                local.left = local.left.map(|left| left - 1);
                Some(Input::Command(command))
            }
            Action::Leave => Some(Input::Command(local.client.leave())),
            Action::Fire(timer) => {
                let timer = self.timers[timer as usize];
                let passed = local.timers.remove(timer).expect("only what is set can fire");
                local.timers.iter_mut().for_each(|(_, left)| *left = left.saturating_sub(passed));
                Some(Input::Timer(timer))
            }
            Action::Receive(_) if local.crashed => None,
            Action::Receive(packet) => {
                let packet = &self.packets[packet as usize];
                Some(Input::Message { from: packet.from, message: packet.message.clone() })
            }
            Action::Restart => {
                local.crashed = false;
                Some(Input::Restart)
            }
            Action::Notice(node) => {
                local.told.insert(node);
                Some(Input::Crash(node))
            }
            Action::Accuse(node) => {
                local.told.insert(node);
                local.lies += 1;
                Some(Input::Crash(node))
            }
            Action::Pass | Action::Crash | Action::Lose(_) | Action::Perish(_) => None,
        }
    }

    /// What happens to a node without its noticing.
    fn befall(&mut self, mut local: Local<P>, action: Action) -> Outcome<P> {
        match action {
            Action::Crash => {
                // What it knew makes no difference any more: all who are dead are alike.
                local.node = self.rules.fresh[local.me.index()].clone();
                local.client = Client::default();
                local.left = if self.rules.restarts { local.left } else { Some(0) };
                local.timers.clear();
                local.told = NodeSet::new();
                local.crashed = true;
                local.crashes += 1;
            }
            Action::Lose(_) => local.losses += 1,
            Action::Perish(_) | Action::Pass => {}
            Action::Receive(_) => debug_assert!(local.crashed, "a living node notices what it receives"),
            Action::Ask(_)
            | Action::Leave
            | Action::Restart
            | Action::Fire(_)
            | Action::Notice(_)
            | Action::Accuse(_) => unreachable!("a node notices these"),
        }
        let local = self.intern(local);
        Outcome { local, sends: SmallVec::new(), served: false, breach: None, effects: Vec::new() }
    }

    /// A local state after some time in which nothing happened there.
    pub(super) fn later(&mut self, local: u32, passed: u64) -> u32 {
        if passed == 0 || self.facts(local).timers.is_empty() {
            return local;
        }
        if let Some(after) = self.later.get(&(local, passed)) {
            return *after;
        }
        let mut after = self.locals[local as usize].clone();
        after.timers.iter_mut().for_each(|(_, left)| *left = left.saturating_sub(passed));
        let after = self.intern(after);
        self.later.insert((local, passed), after);
        after
    }

    /// A local state after another node has come back: the failure detector may tell of its next crash.
    pub(super) fn untold(&mut self, local: u32, of: NodeId) -> u32 {
        if !self.told(local, of) {
            return local;
        }
        let mut after = self.locals[local as usize].clone();
        after.told.remove(of);
        self.intern(after)
    }

    /// Runs a handler. `script` holds answers to its choices, each with how many there were; it is continued with zeros.
    fn run(&mut self, mut local: Local<P>, input: Input<P>, script: &mut Vec<(usize, usize)>) -> Outcome<P> {
        let mut effects = Vec::new();
        let mut asked = 0;
        let mut choose = |n: usize| {
            if asked == script.len() {
                script.push((0, n));
            }
            asked += 1;
            script[asked - 1].0
        };
        let panic = quiet::catch(|| step(local.me, &mut local.node, input, &mut effects, &mut choose)).err();
        let mut breach = panic.map(Breach::Assertion);
        let mut sends = SmallVec::new();
        let mut served = false;
        for effect in &effects {
            match effect {
                Effect::Send(to, _) if !self.rules.links.link(local.me, *to) => {
                    breach = breach.or(Some(Breach::Client(local.me, "sends to a node out of its reach")));
                }
                Effect::Send(to, message) => {
                    sends.push(self.packet(Packet { from: local.me, to: *to, message: message.clone() }));
                }
                Effect::SetTimer(timer, after) => {
                    let left = match P::MODEL.timing {
                        Timing::Any => 0,
                        Timing::Bounded => thirds(after.start),
                    };
                    local.timers.set(*timer, left);
                }
                Effect::CancelTimer(timer) => {
                    local.timers.remove(*timer);
                }
                Effect::Output(output) => match local.client.hear(output) {
                    Ok(heard) => served |= matches!(heard, Heard::Entered | Heard::Finished),
                    Err(wrong) => breach = breach.or(Some(Breach::Client(local.me, wrong))),
                },
                Effect::Violation(what) => breach = breach.or(Some(Breach::Violation(local.me, what))),
            }
        }
        Outcome { local: self.intern(local), sends, served, breach, effects }
    }

    pub(super) fn intern(&mut self, local: Local<P>) -> u32 {
        let (number, new) = self.locals.insert_full(local);
        if new {
            let local = &self.locals[number];
            let mut actions = SmallVec::new();
            match local.client.phase {
                Phase::Idle if local.left != Some(0) && !local.crashed => {
                    let wants = self.rules.wants.len() as u32;
                    let usual = local.me.0 % wants;
                    actions.extend((0..wants).filter(|want| self.rules.mixed || *want == usual).map(Action::Ask));
                }
                Phase::Idle | Phase::Waiting => {}
                Phase::Inside => actions.push(Action::Leave),
            }
            let (crashed, crashes, losses, lies) = (local.crashed, local.crashes, local.losses, local.lies);
            let by_number = |(timer, left): &(P::Timer, u64)| (self.timers.insert_full(*timer).0 as u32, *left);
            let timers = local.timers.iter().map(by_number).collect();
            self.facts.push(Facts { crashed, crashes, losses, lies, actions, timers });
        }
        number as u32
    }

    pub(super) fn packet(&mut self, packet: Packet<P::Message>) -> u32 {
        let channel = packet.from.index() * self.nodes + packet.to.index();
        let (number, new) = self.packets.insert_full(packet);
        if new {
            self.channels.push(channel as u32);
        }
        number as u32
    }
}
