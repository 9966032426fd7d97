//! A system as the checker sees it: small states, and all that can happen in each.
//!
//! A node's own state and a message are each stored once and known by a number from then on (they are *interned*), and
//! what a handler does with one in the other is computed once and remembered: a handler has no choice but to do the same
//! again. So a state of the whole system is a short list of numbers, and a step is a look-up and a little copying.

use std::collections::BTreeSet;

use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use vez_algorithms::{
    Effect, EffectOf, Input, NodeId, Order, Protocol, World,
    mutex::{Command, Mutex, Output, Phase},
    step,
};

use super::{Breach, Workload, visited::Visited};
use crate::{
    quiet,
    stage::{Packet, Step, describe},
};

/// All that concerns one node: what it knows, and where its client stands.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Local<P: Protocol> {
    me: NodeId,
    node: P,
    phase: Phase,
    /// How often the client may still ask; `None` is for ever.
    left: Option<u32>,
    timers: BTreeSet<P::Timer>,
    crashed: bool,
}

/// What the checker wants to know of a local state at a glance.
struct Facts {
    phase: Phase,
    crashed: bool,
    served: bool,
    actions: SmallVec<[Action; 2]>,
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
    local: u32,
    sends: SmallVec<[u32; 4]>,
    pub(super) entered: bool,
    pub(super) breach: Option<Breach>,
    effects: Vec<EffectOf<P>>,
}

impl<P: Protocol> Outcome<P> {
    pub(super) fn messages(&self) -> usize {
        self.sends.len()
    }
}

/// A way from one state to the next.
#[derive(Clone, Copy)]
pub(super) struct Transition {
    pub(super) actor: NodeId,
    pub(super) action: Action,
    outcome: u32,
    /// Where in the state the packet stands that is received.
    taken: u32,
}

pub(super) struct Model<P: Mutex> {
    pub(super) nodes: usize,
    order: Order,
    crashes: usize,
    canonical: bool,
    locals: IndexSet<Local<P>, FxBuildHasher>,
    facts: Vec<Facts>,
    packets: IndexSet<Packet<P::Message>, FxBuildHasher>,
    /// For each packet, its way: packets with the same sender and receiver have the same number.
    channels: Vec<u32>,
    timers: IndexSet<P::Timer, FxBuildHasher>,
    outcomes: Vec<Outcome<P>>,
    /// By local state and action: which of the outcomes.
    known: IndexMap<(u32, Action), std::ops::Range<u32>, FxBuildHasher>,
    pub(super) first: Vec<u32>,
}

impl<P: Mutex> Model<P> {
    /// A system of these nodes, and how it starts.
    pub(super) fn new(nodes: &[P], order: Order, workload: Workload, crashes: usize) -> Result<Self, Breach> {
        let left = match workload {
            Workload::Requests(requests) => Some(requests),
            Workload::Unbounded => None,
        };
        let mut model = Self {
            nodes: nodes.len(),
            order,
            crashes,
            canonical: left.is_none(),
            locals: IndexSet::default(),
            facts: Vec::new(),
            packets: IndexSet::default(),
            channels: Vec::new(),
            timers: IndexSet::default(),
            outcomes: Vec::new(),
            known: IndexMap::default(),
            first: Vec::new(),
        };
        let mut first = Vec::new();
        let mut sends = Vec::new();
        for (me, node) in NodeId::all(nodes.len()).zip(nodes) {
            let local =
                Local { me, node: node.clone(), phase: Phase::Idle, left, timers: BTreeSet::new(), crashed: false };
            let mut outcome = model.run(local, Input::Start, &mut Vec::new());
            if let Some(breach) = outcome.breach.take() {
                return Err(breach);
            }
            first.push(outcome.local);
            sends.extend(outcome.sends);
        }
        for packet in sends {
            model.insert(&mut first, packet);
        }
        model.first = first;
        Ok(model)
    }

    /// All that can happen in a state.
    pub(super) fn transitions(&mut self, state: &[u32], into: &mut Vec<Transition>) {
        into.clear();
        let may_crash = self.crashes > 0 && self.locals_of(state).filter(|facts| facts.crashed).count() < self.crashes;
        for (actor, &local) in NodeId::all(self.nodes).zip(state) {
            for at in 0..self.facts[local as usize].actions.len() {
                self.add(actor, local, self.facts[local as usize].actions[at], u32::MAX, into);
            }
            if may_crash && !self.facts[local as usize].crashed {
                self.add(actor, local, Action::Crash, u32::MAX, into);
            }
        }
        for at in self.nodes..state.len() {
            let (packet, before) = (state[at], state[at - 1]);
            let same_as_before = at > self.nodes
                && match self.order {
                    Order::Any => packet == before,
                    Order::Fifo => self.channels[packet as usize] == self.channels[before as usize],
                };
            if !same_as_before {
                let to = self.channels[packet as usize] as usize % self.nodes;
                self.add(NodeId::from_index(to), state[to], Action::Receive(packet), at as u32, into);
            }
        }
    }

    fn add(&mut self, actor: NodeId, local: u32, action: Action, taken: u32, into: &mut Vec<Transition>) {
        let outcomes = match self.known.get(&(local, action)) {
            Some(outcomes) => outcomes.clone(),
            None => self.learn(local, action),
        };
        into.extend(outcomes.map(|outcome| Transition { actor, action, outcome, taken }));
    }

    pub(super) fn outcome(&self, transition: Transition) -> &Outcome<P> {
        &self.outcomes[transition.outcome as usize]
    }

    /// The state that a transition leads to.
    pub(super) fn follow(&mut self, state: &[u32], transition: Transition, next: &mut Vec<u32>) {
        next.clear();
        next.extend_from_slice(state);
        let Transition { actor, action, outcome, taken } = transition;
        next[actor.index()] = self.outcomes[outcome as usize].local;
        if taken != u32::MAX {
            next.remove(taken as usize);
        }
        if action == Action::Crash {
            let mut at = 0;
            next.retain(|&packet| {
                at += 1;
                at <= self.nodes || self.channels[packet as usize] as usize % self.nodes != actor.index()
            });
        }
        for at in 0..self.outcomes[outcome as usize].sends.len() {
            self.insert(next, self.outcomes[outcome as usize].sends[at]);
        }
        if self.canonical && P::CANONICAL.is_some() {
            self.canonicalise(next);
        }
    }

    /// Puts a packet in its place. Nothing is ever on its way to a dead node.
    fn insert(&self, state: &mut Vec<u32>, packet: u32) {
        let channel = self.channels[packet as usize];
        if self.crashes > 0 && self.facts[state[channel as usize % self.nodes] as usize].crashed {
            return;
        }
        let in_flight = &state[self.nodes..];
        let at = match self.order {
            Order::Any => in_flight.partition_point(|&other| other < packet),
            Order::Fifo => in_flight.partition_point(|&other| self.channels[other as usize] <= channel),
        };
        state.insert(self.nodes + at, packet);
    }

    /// What a local state does with an action: one outcome, or one for each answer to what it leaves to chance.
    fn learn(&mut self, local: u32, action: Action) -> std::ops::Range<u32> {
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

    fn intern(&mut self, local: Local<P>) -> u32 {
        let (number, new) = self.locals.insert_full(local);
        if new {
            let local = &self.locals[number];
            let mut actions = SmallVec::new();
            let served = local.phase == Phase::Idle && local.left.is_none_or(|left| left == 0);
            match local.phase {
                Phase::Idle if local.left != Some(0) => actions.push(Action::Ask),
                Phase::Idle | Phase::Waiting => {}
                Phase::Inside => actions.push(Action::Leave),
            }
            actions.extend(local.timers.iter().map(|timer| Action::Fire(self.timers.insert_full(*timer).0 as u32)));
            self.facts.push(Facts { phase: local.phase, crashed: local.crashed, served, actions });
        }
        number as u32
    }

    fn packet(&mut self, packet: Packet<P::Message>) -> u32 {
        let channel = packet.from.index() * self.nodes + packet.to.index();
        let (number, new) = self.packets.insert_full(packet);
        if new {
            self.channels.push(channel as u32);
        }
        number as u32
    }

    fn canonicalise(&mut self, state: &mut Vec<u32>) {
        let rewrite = P::CANONICAL.expect("only called if there is one");
        let mut locals: Vec<Local<P>> =
            state[..self.nodes].iter().map(|&local| self.locals[local as usize].clone()).collect();
        let mut packets: Vec<Packet<P::Message>> =
            state[self.nodes..].iter().map(|&packet| self.packets[packet as usize].clone()).collect();
        let mut nodes: Vec<P> = locals.iter().map(|local| local.node.clone()).collect();
        let mut messages: Vec<P::Message> = packets.iter().map(|packet| packet.message.clone()).collect();
        rewrite(&mut nodes, &mut messages);
        state.clear();
        for (local, node) in locals.iter_mut().zip(nodes) {
            local.node = node;
            state.push(self.intern(local.clone()));
        }
        for (packet, message) in packets.iter_mut().zip(messages) {
            packet.message = message;
            let packet = self.packet(packet.clone());
            self.insert(state, packet);
        }
    }

    fn locals_of<'a>(&'a self, state: &'a [u32]) -> impl Iterator<Item = &'a Facts> {
        state[..self.nodes].iter().map(|&local| &self.facts[local as usize])
    }

    pub(super) fn phase(&self, state: &[u32], node: NodeId) -> Phase {
        self.facts[state[node.index()] as usize].phase
    }

    /// The nodes whose client stands there.
    pub(super) fn in_phase(&self, state: &[u32], phase: Phase) -> SmallVec<[NodeId; 8]> {
        NodeId::all(self.nodes).filter(|&node| self.phase(state, node) == phase).collect()
    }

    /// Whether everybody who is alive has had all that it asked for.
    pub(super) fn all_served(&self, state: &[u32]) -> bool {
        self.locals_of(state).all(|facts| facts.served)
    }

    /// The algorithm's own law about whole systems.
    pub(super) fn invariant(&self, state: &[u32]) -> Result<(), &'static str> {
        let Some(holds) = P::INVARIANT else { return Ok(()) };
        if self.crashes > 0 {
            return Ok(()); // A lemma of a paper speaks of nodes that live.
        }
        let nodes: SmallVec<[&P; 8]> =
            state[..self.nodes].iter().map(|&local| &self.locals[local as usize].node).collect();
        let packets = state[self.nodes..].iter().map(|&packet| &self.packets[packet as usize]);
        let in_flight: SmallVec<[_; 16]> = packets.map(|Packet { from, to, message }| (*from, *to, message)).collect();
        holds(&World { nodes: &nodes, in_flight: &in_flight })
    }

    /// The transitions that lead from the first state through the states of these numbers.
    pub(super) fn retrace(&mut self, numbers: &[u32], visited: &Visited) -> Vec<Transition> {
        let mut state = self.first.clone();
        let (mut next, mut transitions, mut run) = (Vec::new(), Vec::new(), Vec::new());
        for &number in numbers.iter().skip(1) {
            self.transitions(&state, &mut transitions);
            let taken = transitions.iter().find(|&&transition| {
                self.follow(&state, transition, &mut next);
                visited.is(number, &next)
            });
            run.push(*taken.expect("a state is reached from the one before it"));
            std::mem::swap(&mut state, &mut next);
        }
        run
    }

    /// A run as the commands of a transcript, each with what came of it.
    pub(super) fn tell(&self, run: &[Transition]) -> String {
        let mut told = String::new();
        for transition in run {
            let node = transition.actor;
            let step = match transition.action {
                Action::Ask => Step::<P>::Ask(node),
                Action::Leave => Step::Leave(node),
                Action::Crash => Step::Crash(node),
                Action::Fire(timer) => Step::Fire(node, self.timers[timer as usize]),
                Action::Receive(packet) => Step::Deliver(self.packets[packet as usize].clone()),
            };
            told += &format!("{step}\n");
            for effect in &self.outcome(*transition).effects {
                told += &format!("    {}\n", describe::<P>(node, effect));
            }
        }
        told
    }

    /// What must not be put off for ever if it stays possible: an action of a node, or, if messages cannot overtake each
    /// other, the next delivery on a way.
    pub(super) fn fairness_unit(&self, transition: Transition) -> (NodeId, Action) {
        match (transition.action, self.order) {
            (Action::Receive(packet), Order::Fifo) => {
                (transition.actor, Action::Receive(self.channels[packet as usize]))
            }
            (action, _) => (transition.actor, action),
        }
    }
}
