//! A system as a plain `stateright` model, written without our explorer: whole states, cloned and hashed by the library.

use std::{collections::BTreeSet, hash::Hash};

use stateright::{Model, Property};
use vez_algorithms::{Algorithm, Client, CommandOf, Effect, Family, Input, NodeId, Order, Phase, Scene, Setup, step};
use vez_lab::stage::Packet;

/// An algorithm's system, with so many requests a node.
pub(crate) struct Plain<A: Algorithm> {
    nodes: Vec<A>,
    wants: Vec<CommandOf<A>>,
    /// How many nodes have clients.
    clients: usize,
    limit: usize,
    order: Order,
    requests: u32,
}

/// A whole system.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct State<A: Algorithm> {
    nodes: Vec<A>,
    clients: Vec<(Client<A::Family>, u32)>,
    timers: Vec<BTreeSet<A::Timer>>,
    /// Sorted: by sender and receiver if messages cannot overtake each other, by everything otherwise.
    in_flight: Vec<Packet<A::Message>>,
    objected: bool,
}

/// Something that can happen.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Action<A: Algorithm> {
    Ask(usize),
    Leave(usize),
    Receive(usize),
    Fire(usize, A::Timer),
}

impl<A: Algorithm> Plain<A> {
    /// A system of an algorithm.
    pub(crate) fn new(setup: &Setup, order: Order, requests: u32) -> Self {
        let nodes = A::system(setup).expect("such a system can be");
        Self { nodes, wants: A::wants(setup), clients: A::clients(setup), limit: setup.k, order, requests }
    }

    fn with_scene<T>(&self, state: &State<A>, look: impl FnOnce(&Scene<'_, A::Family>) -> T) -> T {
        let inside = |node: &NodeId| state.clients[node.index()].0.phase == Phase::Inside;
        let inside: Vec<NodeId> = NodeId::all(self.nodes.len()).filter(inside).collect();
        look(&Scene {
            nodes: self.nodes.len(),
            limit: self.limit,
            inside: &inside,
            client: &|node| &state.clients[node.index()].0,
            alive: &|_| true,
            connected: &|_, _| true,
        })
    }

    fn happen(&self, state: &mut State<A>, at: usize, input: Input<A>) {
        let mut effects = Vec::new();
        let me = NodeId::from_index(at);
        step(me, &mut state.nodes[at], input, &mut effects, &mut |_| panic!("none of these algorithms draws lots"));
        for effect in effects {
            match effect {
                Effect::Send(to, message) => {
                    let packet = Packet { from: me, to, message };
                    let place = match self.order {
                        Order::Any => state.in_flight.partition_point(|other| *other < packet),
                        Order::Fifo => {
                            state.in_flight.partition_point(|other| (other.from, other.to) <= (packet.from, packet.to))
                        }
                    };
                    state.in_flight.insert(place, packet);
                }
                Effect::SetTimer(timer, _) => {
                    state.timers[at].insert(timer);
                }
                Effect::CancelTimer(timer) => {
                    state.timers[at].remove(&timer);
                }
                Effect::Output(output) => state.objected |= state.clients[at].0.hear(&output).is_err(),
                Effect::Violation(_) => state.objected = true,
            }
        }
    }
}

impl<A: Algorithm> Model for Plain<A> {
    type State = State<A>;
    type Action = Action<A>;

    fn init_states(&self) -> Vec<State<A>> {
        let n = self.nodes.len();
        let mut state = State {
            nodes: self.nodes.clone(),
            clients: (0..n).map(|at| (Client::default(), if at < self.clients { self.requests } else { 0 })).collect(),
            timers: vec![BTreeSet::new(); n],
            in_flight: Vec::new(),
            objected: false,
        };
        (0..n).for_each(|at| self.happen(&mut state, at, Input::Start));
        vec![state]
    }

    fn actions(&self, state: &State<A>, actions: &mut Vec<Action<A>>) {
        for (at, client) in state.clients.iter().enumerate() {
            match (client.0.phase, client.1) {
                (Phase::Idle, 1..) => actions.push(Action::Ask(at)),
                (Phase::Inside, _) => actions.push(Action::Leave(at)),
                (Phase::Idle | Phase::Waiting, _) => {}
            }
            actions.extend(state.timers[at].iter().map(|timer| Action::Fire(at, *timer)));
        }
        for (at, packet) in state.in_flight.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| &state.in_flight[before]);
            let is_next = match self.order {
                Order::Any => before != Some(packet),
                Order::Fifo => before.map(|other| (other.from, other.to)) != Some((packet.from, packet.to)),
            };
            if is_next {
                actions.push(Action::Receive(at));
            }
        }
    }

    fn next_state(&self, last: &State<A>, action: Action<A>) -> Option<State<A>> {
        let mut state = last.clone();
        match action {
            Action::Ask(at) => {
                let command = self.wants[at % self.wants.len()];
                state.clients[at].0.ask(command);
                state.clients[at].1 -= 1;
                self.happen(&mut state, at, Input::Command(command));
            }
            Action::Leave(at) => {
                let command = state.clients[at].0.leave();
                self.happen(&mut state, at, Input::Command(command));
            }
            Action::Fire(at, timer) => {
                state.timers[at].remove(&timer);
                self.happen(&mut state, at, Input::Timer(timer));
            }
            Action::Receive(at) => {
                let Packet { from, to, message } = state.in_flight.remove(at);
                self.happen(&mut state, to.index(), Input::Message { from, message });
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("the law of the family", |model: &Self, state: &State<A>| {
                model.with_scene(state, |scene| A::Family::law(scene).is_ok())
            }),
            Property::always("nobody objects", |_: &Self, state: &State<A>| !state.objected),
            Property::always("no deadlock", |model: &Self, state: &State<A>| {
                let mut actions = Vec::new();
                model.actions(state, &mut actions);
                let goes_on = actions.iter().any(|action| !matches!(action, Action::Ask(_)));
                let waits = |scene: &Scene<'_, A::Family>| {
                    NodeId::all(model.nodes.len()).any(|node| A::Family::waits(scene, node))
                };
                goes_on || !model.with_scene(state, waits)
            }),
            Property::sometimes("two wait at once", |_: &Self, state: &State<A>| {
                state.clients.iter().filter(|client| client.0.phase == Phase::Waiting).count() >= 2
            }),
        ]
    }
}
