//! A system as a plain `stateright` model, written without our explorer: whole states, cloned and hashed by the library.

use std::{collections::BTreeSet, hash::Hash};

use stateright::{Model, Property};
use vez_algorithms::{
    Effect, Input, NodeId, Order,
    mutex::{Command, Mutex, Output, Phase},
    step,
};
use vez_lab::stage::Packet;

/// An algorithm's system, with so many requests a node.
pub(crate) struct Plain<A: Mutex> {
    pub(crate) nodes: Vec<A>,
    pub(crate) order: Order,
    pub(crate) requests: u32,
}

/// A whole system.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct State<A: Mutex> {
    nodes: Vec<A>,
    clients: Vec<(Phase, u32)>,
    timers: Vec<BTreeSet<A::Timer>>,
    /// Sorted: by sender and receiver if messages cannot overtake each other, by everything otherwise.
    in_flight: Vec<Packet<A::Message>>,
    objected: bool,
}

/// Something that can happen.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Action<A: Mutex> {
    Ask(usize),
    Leave(usize),
    Receive(usize),
    Fire(usize, A::Timer),
}

impl<A: Mutex> Plain<A> {
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
                Effect::Output(Output::Entered) => state.clients[at].0 = Phase::Inside,
                Effect::Violation(_) => state.objected = true,
            }
        }
    }
}

impl<A: Mutex> Model for Plain<A> {
    type State = State<A>;
    type Action = Action<A>;

    fn init_states(&self) -> Vec<State<A>> {
        let n = self.nodes.len();
        let mut state = State {
            nodes: self.nodes.clone(),
            clients: vec![(Phase::Idle, self.requests); n],
            timers: vec![BTreeSet::new(); n],
            in_flight: Vec::new(),
            objected: false,
        };
        (0..n).for_each(|at| self.happen(&mut state, at, Input::Start));
        vec![state]
    }

    fn actions(&self, state: &State<A>, actions: &mut Vec<Action<A>>) {
        for (at, client) in state.clients.iter().enumerate() {
            match client {
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
                state.clients[at] = (Phase::Waiting, last.clients[at].1 - 1);
                self.happen(&mut state, at, Input::Command(Command::Request));
            }
            Action::Leave(at) => {
                state.clients[at].0 = Phase::Idle;
                self.happen(&mut state, at, Input::Command(Command::Release));
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
            Property::always("at most one inside", |_: &Self, state: &State<A>| {
                state.clients.iter().filter(|client| client.0 == Phase::Inside).count() <= 1
            }),
            Property::always("nobody objects", |_: &Self, state: &State<A>| !state.objected),
            Property::always("no deadlock", |model: &Self, state: &State<A>| {
                let mut actions = Vec::new();
                model.actions(state, &mut actions);
                let goes_on = actions.iter().any(|action| !matches!(action, Action::Ask(_)));
                goes_on || state.clients.iter().all(|client| client.0 == Phase::Idle)
            }),
            Property::sometimes("two wait at once", |_: &Self, state: &State<A>| {
                state.clients.iter().filter(|client| client.0 == Phase::Waiting).count() >= 2
            }),
        ]
    }
}
