//! A system as the checker sees it: small states, and all that can happen in each.
//!
//! A node's own state and a message are each stored once and known by a number from then on (they are *interned*), and
//! what a handler does with one in the other is computed once and remembered: a handler has no choice but to do the same
//! again. So a state of the whole system is a short list of numbers, and a step is a look-up and a little copying.

use smallvec::SmallVec;
use vez_algorithms::{
    NodeId, Order, World,
    mutex::{Mutex, Phase},
};

pub(super) use super::book::Action;
use super::{
    Breach, Workload,
    book::{Book, Facts, Outcome},
    visited::Visited,
};
use crate::{
    quiet,
    stage::{Packet, Step, describe},
};

/// A way from one state to the next.
#[derive(Clone, Copy)]
pub(super) struct Transition {
    pub(super) actor: NodeId,
    pub(super) action: Action,
    outcome: u32,
    /// Where in the state the packet stands that is received.
    taken: u32,
}

/// A state is a list of numbers: the local state of each node, then the messages in flight. If messages cannot overtake
/// each other, those with the same sender and receiver stand in the order of their sending; otherwise all are sorted.
pub(super) struct Model<P: Mutex> {
    pub(super) nodes: usize,
    order: Order,
    crashes: usize,
    canonical: bool,
    book: Book<P>,
    pub(super) first: Vec<u32>,
}

impl<P: Mutex> Model<P> {
    /// A system of these nodes, and how it starts.
    pub(super) fn new(nodes: &[P], order: Order, workload: Workload, crashes: usize) -> Result<Self, Breach> {
        let left = match workload {
            Workload::Requests(requests) => Some(requests),
            Workload::Unbounded => None,
        };
        let (book, canonical) = (Book::new(nodes.len()), left.is_none());
        let mut model = Self { nodes: nodes.len(), order, crashes, canonical, book, first: Vec::new() };
        let mut first = Vec::new();
        let mut sends = Vec::new();
        for (me, node) in NodeId::all(nodes.len()).zip(nodes) {
            let mut outcome = model.book.start(me, node.clone(), left);
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
            for at in 0..self.book.facts(local).actions.len() {
                self.add(actor, local, self.book.facts(local).actions[at], u32::MAX, into);
            }
            if may_crash && !self.book.facts(local).crashed {
                self.add(actor, local, Action::Crash, u32::MAX, into);
            }
        }
        for at in self.nodes..state.len() {
            let (packet, before) = (state[at], state[at - 1]);
            let same_as_before = at > self.nodes
                && match self.order {
                    Order::Any => packet == before,
                    Order::Fifo => self.book.channel(packet) == self.book.channel(before),
                };
            if !same_as_before {
                let to = self.book.receiver(packet);
                self.add(NodeId::from_index(to), state[to], Action::Receive(packet), at as u32, into);
            }
        }
    }

    fn add(&mut self, actor: NodeId, local: u32, action: Action, taken: u32, into: &mut Vec<Transition>) {
        let outcomes = self.book.outcomes(local, action);
        into.extend(outcomes.map(|outcome| Transition { actor, action, outcome, taken }));
    }

    pub(super) fn outcome(&self, transition: Transition) -> &Outcome<P> {
        self.book.outcome(transition.outcome)
    }

    /// The state that a transition leads to.
    pub(super) fn follow(&mut self, state: &[u32], transition: Transition, next: &mut Vec<u32>) {
        next.clear();
        next.extend_from_slice(state);
        let Transition { actor, action, outcome, taken } = transition;
        next[actor.index()] = self.book.outcome(outcome).local;
        if taken != u32::MAX {
            next.remove(taken as usize);
        }
        if action == Action::Crash {
            let mut at = 0;
            next.retain(|&packet| {
                at += 1;
                at <= self.nodes || self.book.receiver(packet) != actor.index()
            });
        }
        for at in 0..self.book.outcome(outcome).sends.len() {
            self.insert(next, self.book.outcome(outcome).sends[at]);
        }
        if self.canonical && P::CANONICAL.is_some() {
            self.canonicalise(next);
        }
    }

    /// Puts a packet in its place. Nothing is ever on its way to a dead node.
    fn insert(&self, state: &mut Vec<u32>, packet: u32) {
        let channel = self.book.channel(packet);
        if self.crashes > 0 && self.book.facts(state[self.book.receiver(packet)]).crashed {
            return;
        }
        let in_flight = &state[self.nodes..];
        let at = match self.order {
            Order::Any => in_flight.partition_point(|&other| other < packet),
            Order::Fifo => in_flight.partition_point(|&other| self.book.channel(other) <= channel),
        };
        state.insert(self.nodes + at, packet);
    }

    fn canonicalise(&mut self, state: &mut Vec<u32>) {
        let rewrite = P::CANONICAL.expect("only called if there is one");
        let mut locals: Vec<_> = state[..self.nodes].iter().map(|&local| self.book.local(local).clone()).collect();
        let mut packets: Vec<Packet<P::Message>> =
            state[self.nodes..].iter().map(|&packet| self.book.message(packet).clone()).collect();
        let mut nodes: Vec<P> = locals.iter().map(|local| local.node.clone()).collect();
        let mut messages: Vec<P::Message> = packets.iter().map(|packet| packet.message.clone()).collect();
        rewrite(&mut nodes, &mut messages);
        state.clear();
        for (local, node) in locals.iter_mut().zip(nodes) {
            local.node = node;
            state.push(self.book.intern(local.clone()));
        }
        for (packet, message) in packets.iter_mut().zip(messages) {
            packet.message = message;
            let packet = self.book.packet(packet.clone());
            self.insert(state, packet);
        }
    }

    fn locals_of<'a>(&'a self, state: &'a [u32]) -> impl Iterator<Item = &'a Facts> {
        state[..self.nodes].iter().map(|&local| self.book.facts(local))
    }

    pub(super) fn phase(&self, state: &[u32], node: NodeId) -> Phase {
        self.book.facts(state[node.index()]).phase
    }

    /// The nodes whose client stands there.
    pub(super) fn in_phase(&self, state: &[u32], phase: Phase) -> SmallVec<[NodeId; 8]> {
        NodeId::all(self.nodes).filter(|&node| self.phase(state, node) == phase).collect()
    }

    /// The algorithm's own law about whole systems.
    pub(super) fn invariant(&self, state: &[u32]) -> Result<(), Breach> {
        let Some(holds) = P::INVARIANT else { return Ok(()) };
        if self.crashes > 0 {
            return Ok(()); // A lemma of a paper speaks of nodes that live.
        }
        let nodes: SmallVec<[&P; 8]> = state[..self.nodes].iter().map(|&local| &self.book.local(local).node).collect();
        let packets = state[self.nodes..].iter().map(|&packet| self.book.message(packet));
        let in_flight: SmallVec<[_; 16]> = packets.map(|Packet { from, to, message }| (*from, *to, message)).collect();
        let world = World { nodes: &nodes, in_flight: &in_flight };
        quiet::catch(|| holds(&world)).map_err(Breach::Assertion)?.map_err(Breach::Invariant)
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
                Action::Fire(timer) => Step::Fire(node, self.book.timer(timer)),
                Action::Receive(packet) => Step::Deliver(self.book.message(packet).clone()),
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
            (Action::Receive(packet), Order::Fifo) => (transition.actor, Action::Receive(self.book.channel(packet))),
            (action, _) => (transition.actor, action),
        }
    }
}
