//! What nodes do, written down: each local state, message and outcome once.

use std::{collections::BTreeSet, ops::Range};

use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use vez_algorithms::{
    Effect, EffectOf, Input, NodeId, Protocol,
    mutex::{Command, Mutex, Output, Phase},
    step,
};

use super::Breach;
use crate::{quiet, stage::Packet};

/// All that concerns one node: what it knows, and where its client stands.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Local<P: Protocol> {
    me: NodeId,
    pub(super) node: P,
    phase: Phase,
    /// How often the client may still ask; `None` is for ever.
    left: Option<u32>,
    timers: BTreeSet<P::Timer>,
    crashed: bool,
}

/// What the checker wants to know of a local state at a glance.
pub(super) struct Facts {
    pub(super) phase: Phase,
    pub(super) crashed: bool,
    /// What the node can do by itself.
    pub(super) actions: SmallVec<[Action; 2]>,
}

/// Something that can happen at a node. The numbers are those of interned timers and packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Action {
    Ask,
    Leave,
    Crash,
    Fire(u32),
    Receive(u32),
}

impl Action {
    /// A client may go on thinking for ever, and a node need not crash; all else happens in the end.
    pub(super) fn must_happen(self) -> bool {
        !matches!(self, Self::Ask | Self::Crash)
    }
}

/// What came of an action at a node.
pub(super) struct Outcome<P: Protocol> {
    pub(super) local: u32,
    pub(super) sends: SmallVec<[u32; 4]>,
    pub(super) entered: bool,
    pub(super) breach: Option<Breach>,
    pub(super) effects: Vec<EffectOf<P>>,
}

impl<P: Protocol> Outcome<P> {
    pub(super) fn messages(&self) -> usize {
        self.sends.len()
    }
}

/// All local states, messages and timers that were seen, by number, and what comes of every action in every local state.
pub(super) struct Book<P: Mutex> {
    nodes: usize,
    locals: IndexSet<Local<P>, FxBuildHasher>,
    facts: Vec<Facts>,
    packets: IndexSet<Packet<P::Message>, FxBuildHasher>,
    /// For each packet, its way: packets with the same sender and receiver have the same number.
    channels: Vec<u32>,
    timers: IndexSet<P::Timer, FxBuildHasher>,
    outcomes: Vec<Outcome<P>>,
    /// By local state and action: which of the outcomes.
    known: IndexMap<(u32, Action), Range<u32>, FxBuildHasher>,
}

impl<P: Mutex> Book<P> {
    /// An empty book about so many nodes.
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            nodes,
            locals: IndexSet::default(),
            facts: Vec::new(),
            packets: IndexSet::default(),
            channels: Vec::new(),
            timers: IndexSet::default(),
            outcomes: Vec::new(),
            known: IndexMap::default(),
        }
    }

    /// How a node starts.
    pub(super) fn start(&mut self, me: NodeId, node: P, left: Option<u32>) -> Outcome<P> {
        let local = Local { me, node, phase: Phase::Idle, left, timers: BTreeSet::new(), crashed: false };
        self.run(local, Input::Start, &mut Vec::new())
    }

    pub(super) fn local(&self, number: u32) -> &Local<P> {
        &self.locals[number as usize]
    }

    pub(super) fn facts(&self, number: u32) -> &Facts {
        &self.facts[number as usize]
    }

    pub(super) fn message(&self, number: u32) -> &Packet<P::Message> {
        &self.packets[number as usize]
    }

    pub(super) fn channel(&self, packet: u32) -> u32 {
        self.channels[packet as usize]
    }

    pub(super) fn receiver(&self, packet: u32) -> usize {
        self.channels[packet as usize] as usize % self.nodes
    }

    pub(super) fn timer(&self, number: u32) -> P::Timer {
        self.timers[number as usize]
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
            let input = match action {
                Action::Ask => {
                    before.phase.ask();
                    before.left = before.left.map(|left| left - 1);
                    Input::Command(Command::Request)
                }
                Action::Leave => {
                    before.phase.leave();
                    Input::Command(Command::Release)
                }
                Action::Fire(timer) => {
                    let timer = self.timers[timer as usize];
                    before.timers.remove(&timer);
                    Input::Timer(timer)
                }
                Action::Receive(packet) => {
                    let packet = &self.packets[packet as usize];
                    Input::Message { from: packet.from, message: packet.message.clone() }
                }
                Action::Crash => {
                    let outcome = self.crash(before);
                    self.outcomes.push(outcome);
                    break;
                }
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

    fn crash(&mut self, mut local: Local<P>) -> Outcome<P> {
        local.crashed = true;
        local.phase = Phase::Idle;
        local.left = Some(0);
        local.timers.clear();
        let local = self.intern(local);
        Outcome { local, sends: SmallVec::new(), entered: false, breach: None, effects: Vec::new() }
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
        let mut entered = false;
        for effect in &effects {
            match effect {
                Effect::Send(to, message) => {
                    sends.push(self.packet(Packet { from: local.me, to: *to, message: message.clone() }));
                }
                Effect::SetTimer(timer, _) => {
                    local.timers.insert(*timer);
                }
                Effect::CancelTimer(timer) => {
                    local.timers.remove(timer);
                }
                Effect::Output(Output::Entered) if local.phase == Phase::Waiting => {
                    local.phase.arrive();
                    entered = true;
                }
                Effect::Output(Output::Entered) => breach = breach.or(Some(Breach::EntersUnasked(local.me))),
                Effect::Violation(what) => breach = breach.or(Some(Breach::Violation(local.me, what))),
            }
        }
        Outcome { local: self.intern(local), sends, entered, breach, effects }
    }

    pub(super) fn intern(&mut self, local: Local<P>) -> u32 {
        let (number, new) = self.locals.insert_full(local);
        if new {
            let local = &self.locals[number];
            let mut actions = SmallVec::new();
            match local.phase {
                Phase::Idle if local.left != Some(0) => actions.push(Action::Ask),
                Phase::Idle | Phase::Waiting => {}
                Phase::Inside => actions.push(Action::Leave),
            }
            actions.extend(local.timers.iter().map(|timer| Action::Fire(self.timers.insert_full(*timer).0 as u32)));
            self.facts.push(Facts { phase: local.phase, crashed: local.crashed, actions });
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
