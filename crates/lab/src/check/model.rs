//! A system as the checker sees it: small states, and all that can happen in each.
//!
//! A node's own state and a message are each stored once and known by a number from then on (they are *interned*), and
//! what a handler does with one in the other is computed once and remembered: a handler has no choice but to do the same
//! again. So a state of the whole system is a short list of numbers, and a step is a look-up and a little copying.

mod tell;
mod time;

use smallvec::SmallVec;
use vez_algorithms::{
    Algorithm, Client, Family, NodeId, NodeSet, Order, Phase, Scene, Setup, SetupError, Timing, World,
};

use super::{
    Breach, Config, Workload,
    action::Action,
    book::{Book, Facts, LATE, Outcome, THIRDS, thirds},
};
use crate::{quiet, reach::Links, stage::Packet};

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
pub(super) struct Model<P: Algorithm> {
    pub(super) nodes: usize,
    /// How many nodes have clients that ask.
    pub(super) askers: usize,
    /// How many may be inside.
    pub(super) limit: usize,
    config: Config,
    /// How far a step of time goes.
    moment: u64,
    /// Whether numbers that only ever grow are moved down.
    pub(super) canonical: bool,
    book: Book<P>,
    pub(super) first: Vec<u32>,
}

impl<P: Algorithm> Model<P> {
    /// A system, and how it starts.
    pub(super) fn new(setup: &Setup, config: &Config) -> Result<Result<Self, Breach>, SetupError> {
        let nodes = P::system(setup)?;
        let wants = P::wants(setup);
        let clients = if wants.is_empty() { 0 } else { P::clients(setup) };
        let askers = clients.min(config.askers.unwrap_or(clients));
        let mut model = Self {
            nodes: nodes.len(),
            askers,
            limit: setup.k,
            config: config.clone(),
            moment: thirds(setup.patience) / THIRDS,
            // Whoever comes back starts from numbers that have not been moved down.
            canonical: P::CANONICAL.is_some()
                && config.restarts == 0
                && (config.workload == Workload::Unbounded || askers == 0),
            book: Book::new(&nodes, Links::of::<P>(setup), wants, askers, config),
            first: Vec::new(),
        };
        Ok(model.start().map(|()| model))
    }

    fn start(&mut self) -> Result<(), Breach> {
        let mut first = Vec::new();
        let mut sends = Vec::new();
        for me in NodeId::all(self.nodes) {
            let mut outcome = self.book.start(me);
            if let Some(breach) = outcome.breach.take() {
                return Err(breach);
            }
            first.push(outcome.local);
            sends.extend(outcome.sends);
        }
        for packet in sends {
            self.insert(&mut first, packet);
        }
        self.first = first;
        Ok(())
    }

    /// All that can happen in a state.
    pub(super) fn transitions(&mut self, state: &[u32], into: &mut Vec<Transition>) {
        into.clear();
        let due = self.due(state);
        for (actor, &local) in NodeId::all(self.nodes).zip(state) {
            for at in 0..self.book.facts(local).actions.len() {
                self.add(actor, local, self.book.facts(local).actions[at], u32::MAX, into);
            }
            for at in 0..self.book.facts(local).timers.len() {
                let (timer, left) = self.book.facts(local).timers[at];
                if Some(left) == due {
                    self.add(actor, local, Action::Fire(timer), u32::MAX, into);
                }
            }
        }
        if self.pause(state).is_some() {
            self.add(NodeId(0), state[0], Action::Pass, u32::MAX, into);
        }
        self.go_wrong(state, into);
        let mortal = self.config.crashes > 0;
        let lossy = self.config.losses > 0 && self.spent(state, |facts| facts.losses) < self.config.losses;
        for at in self.nodes..state.len() {
            let packet = state[at];
            let same = |other: Option<&u32>| {
                other.is_some_and(|&other| match self.config.order {
                    Order::Any => packet == other,
                    Order::Fifo => self.book.channel(packet) == self.book.channel(other),
                })
            };
            let first = !same(state[self.nodes..at].last());
            // A node may crash in the midst of its sending, and so what it sent last is lost first.
            let perishable = mortal && !same(state.get(at + 1)) && {
                let sender = state[self.book.sender(packet)];
                self.book.facts(sender).crashed
            };
            let to = self.book.receiver(packet);
            let mut may = |action| self.add(NodeId::from_index(to), state[to], action, at as u32, into);
            if first {
                may(Action::Receive(packet));
            }
            if first && lossy {
                may(Action::Lose(packet));
            }
            if perishable {
                may(Action::Perish(packet));
            }
        }
    }

    /// Crashes, returns, and what the failure detector says of them.
    fn go_wrong(&mut self, state: &[u32], into: &mut Vec<Transition>) {
        if self.config.crashes == 0 && self.config.false_suspicions == 0 {
            return;
        }
        let crashes = self.spent(state, |facts| facts.crashes);
        let dead = self.locals_of(state).filter(|facts| facts.crashed).count();
        let (may_crash, may_return) = (crashes < self.config.crashes, self.may_return(state));
        let may_lie = P::MODEL.detector && self.spent(state, |facts| facts.lies) < self.config.false_suspicions;
        if !may_crash && dead == 0 && !may_lie {
            return;
        }
        for (actor, &local) in NodeId::all(self.nodes).zip(state) {
            if self.book.facts(local).crashed {
                if may_return {
                    self.add(actor, local, Action::Restart, u32::MAX, into);
                }
                continue;
            }
            if may_crash {
                self.add(actor, local, Action::Crash, u32::MAX, into);
            }
            for (other, &theirs) in NodeId::all(self.nodes).zip(state) {
                if !P::MODEL.detector || other == actor || self.book.told(local, other) {
                    continue;
                }
                if self.book.facts(theirs).crashed {
                    self.add(actor, local, Action::Notice(other), u32::MAX, into);
                } else if may_lie {
                    self.add(actor, local, Action::Accuse(other), u32::MAX, into);
                }
            }
        }
    }

    fn spent(&self, state: &[u32], of: impl Fn(&Facts) -> u8) -> usize {
        self.locals_of(state).map(|facts| usize::from(of(facts))).sum()
    }

    fn add(&mut self, actor: NodeId, local: u32, action: Action, taken: u32, into: &mut Vec<Transition>) {
        let outcomes = self.book.outcomes(local, action.in_time());
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
        if let (Action::Fire(timer), Timing::Bounded) = (action, P::MODEL.timing) {
            let passed = self.book.facts(state[actor.index()]).timers.iter().find(|(other, _)| *other == timer);
            let passed = passed.expect("only what is set can fire").1;
            next.iter_mut().take(self.nodes).for_each(|local| *local = self.book.later(*local, passed));
        }
        next[actor.index()] = self.book.outcome(outcome).local;
        if action == Action::Pass {
            let passed = self.pause(state).expect("only if it may");
            next.iter_mut().take(self.nodes).for_each(|local| *local = self.book.later(*local, passed));
            next.iter_mut().skip(self.nodes).for_each(|packet| *packet |= LATE);
        }
        if taken != u32::MAX {
            next.remove(taken as usize);
        }
        match action {
            Action::Crash | Action::Restart if !self.may_return(next) => self.forget_the_dead(next),
            _ => {}
        }
        if action == Action::Restart && P::MODEL.detector {
            next.iter_mut().take(self.nodes).for_each(|local| *local = self.book.untold(*local, actor));
        }
        for at in 0..self.book.outcome(outcome).sends.len() {
            self.insert(next, self.book.outcome(outcome).sends[at]);
        }
        if self.canonical {
            self.canonicalise(next);
        }
    }

    /// Whether somebody who is dead may still come back.
    fn may_return(&self, state: &[u32]) -> bool {
        let dead = self.locals_of(state).filter(|facts| facts.crashed).count();
        self.config.restarts > self.spent(state, |facts| facts.crashes) - dead
    }

    /// What is on its way to those who are dead for good makes no difference any more.
    fn forget_the_dead(&self, state: &mut Vec<u32>) {
        let dead: NodeSet =
            NodeId::all(self.nodes).filter(|node| self.book.facts(state[node.index()]).crashed).collect();
        let mut at = 0;
        state.retain(|&packet| {
            at += 1;
            at <= self.nodes || !dead.contains(NodeId::from_index(self.book.receiver(packet)))
        });
    }

    /// Puts a packet in its place, unless it is for somebody who is dead for good.
    fn insert(&self, state: &mut Vec<u32>, packet: u32) {
        let channel = self.book.channel(packet);
        if self.config.crashes > 0
            && self.book.facts(state[self.book.receiver(packet)]).crashed
            && !self.may_return(state)
        {
            return;
        }
        let in_flight = &state[self.nodes..];
        let at = match self.config.order {
            Order::Any => in_flight.partition_point(|&other| other < packet),
            Order::Fifo => in_flight.partition_point(|&other| self.book.channel(other) <= channel),
        };
        state.insert(self.nodes + at, packet);
    }

    fn canonicalise(&mut self, state: &mut Vec<u32>) {
        let rewrite = P::CANONICAL.expect("only called if there is one");
        let mut locals: Vec<_> = state[..self.nodes].iter().map(|&local| self.book.local(local).clone()).collect();
        let mut packets: Vec<(u32, Packet<P::Message>)> =
            state[self.nodes..].iter().map(|&packet| (packet & LATE, self.book.message(packet).clone())).collect();
        // The clocks of the dead say nothing, and would keep those of the living from being moved down.
        let living: Vec<usize> = (0..self.nodes).filter(|&at| !self.book.facts(state[at]).crashed).collect();
        let mut nodes: Vec<P> = living.iter().map(|&at| locals[at].node.clone()).collect();
        let mut messages: Vec<P::Message> = packets.iter().map(|(_, packet)| packet.message.clone()).collect();
        rewrite(&mut nodes, &mut messages);
        for (at, node) in living.into_iter().zip(nodes) {
            locals[at].node = node;
        }
        state.clear();
        for local in locals {
            state.push(self.book.intern(local));
        }
        for ((late, packet), message) in packets.iter_mut().zip(messages) {
            packet.message = message;
            let packet = self.book.packet(packet.clone());
            self.insert(state, packet | *late);
        }
    }

    fn locals_of<'a>(&'a self, state: &'a [u32]) -> impl Iterator<Item = &'a Facts> {
        state[..self.nodes].iter().map(|&local| self.book.facts(local))
    }

    fn client(&self, state: &[u32], node: NodeId) -> &Client<P::Family> {
        self.book.client(state[node.index()])
    }

    /// The nodes whose client stands there.
    pub(super) fn in_phase(&self, state: &[u32], phase: Phase) -> SmallVec<[NodeId; 8]> {
        NodeId::all(self.nodes).filter(|&node| self.client(state, node).phase == phase).collect()
    }

    /// The law of the family, and the algorithm's own law about whole systems.
    pub(super) fn laws(&self, state: &[u32]) -> Result<(), Breach> {
        self.with_scene(state, P::Family::law).map_err(Breach::Law)?;
        let Some(holds) = P::INVARIANT else { return Ok(()) };
        if self.config.crashes > 0 && !P::MODEL.survives_crashes {
            return Ok(()); // A lemma of such a paper speaks of nodes that live.
        }
        let nodes: SmallVec<[&P; 8]> = state[..self.nodes].iter().map(|&local| &self.book.local(local).node).collect();
        let packets = state[self.nodes..].iter().map(|&packet| self.book.message(packet));
        let in_flight: SmallVec<[_; 16]> = packets.map(|Packet { from, to, message }| (*from, *to, message)).collect();
        let alive = self.locals_of(state).map(|facts| !facts.crashed);
        let crashed: NodeSet =
            NodeId::all(self.nodes).zip(alive).filter(|(_, alive)| !alive).map(|(node, _)| node).collect();
        let world = World { nodes: &nodes, crashed: &crashed, in_flight: &in_flight };
        quiet::catch(|| holds(&world)).map_err(Breach::Assertion)?.map_err(Breach::Invariant)
    }

    /// The living nodes to whose clients something is still owed.
    pub(super) fn waiting(&self, state: &[u32]) -> SmallVec<[NodeId; 8]> {
        self.with_scene(state, |scene| {
            let living = NodeId::all(self.nodes).filter(|node| (scene.alive)(*node));
            living.filter(|node| P::Family::waits(scene, *node)).collect()
        })
    }

    fn with_scene<T>(&self, state: &[u32], look: impl FnOnce(&Scene<'_, P::Family>) -> T) -> T {
        look(&Scene {
            nodes: self.nodes,
            limit: self.limit,
            inside: &self.in_phase(state, Phase::Inside),
            client: &|node| self.client(state, node),
            alive: &|node| !self.book.facts(state[node.index()]).crashed,
            connected: &|one, other| {
                let alive = |node: NodeId| !self.book.facts(state[node.index()]).crashed;
                self.book.rules.links.connected(one, other, &alive)
            },
        })
    }

    /// What must not be put off for ever if it stays possible: an action of a node, or, if messages cannot overtake each
    /// other, the next delivery on a way.
    pub(super) fn fairness_unit(&self, transition: Transition) -> (NodeId, Action) {
        match (transition.action, self.config.order) {
            (Action::Receive(packet), Order::Fifo) => (transition.actor, Action::Receive(self.book.channel(packet))),
            (action, _) => (transition.actor, action),
        }
    }
}
