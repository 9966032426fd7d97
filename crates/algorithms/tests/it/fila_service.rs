//! Fila as a lock service uses it: clients that try and that give up, a home that pulls. Three nodes, every interleaving,
//! messages in any order.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    thread,
};

use vez_algorithms::{
    Effect, EffectOf, NodeId, NodeSet, Phase, Protocol, World, act,
    mutex::{
        Command, Output,
        fila::{Fila, Message},
    },
};

const NODES: usize = 3;
const HOME: NodeId = NodeId(0);

/// What may still happen that no message makes happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Script {
    /// How many clients each node has that are ready to wait.
    requests: [u8; NODES],
    /// How many clients each node has that are not.
    tries: [u8; NODES],
    /// How many of all of them give up.
    cancels: u8,
    /// How often the home pulls.
    pulls: u8,
}

/// The client of a node, as the service has it that keeps the node. There is one at a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Client {
    Nobody,
    Waits,
    Tries,
    Inside,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    nodes: Vec<Fila>,
    /// From, to, and what it says; sorted, since any may be the next to arrive.
    in_flight: Vec<(NodeId, NodeId, Message)>,
    clients: [Client; NODES],
    /// The number of each node's next try.
    numbers: [u64; NODES],
    /// Whether anybody was ever inside.
    entered: bool,
    left: Script,
}

/// Something that can happen to a node.
#[derive(Clone, Debug)]
enum Event {
    Request,
    Try,
    GiveUp,
    Leave,
    Pull,
    Message { from: NodeId, message: Message },
}

impl State {
    fn new(left: Script) -> Self {
        let nodes = NodeId::all(NODES).map(|me| Fila::new(me, HOME)).collect();
        let (clients, numbers) = ([Client::Nobody; NODES], [0; NODES]);
        Self { nodes, in_flight: Vec::new(), clients, numbers, entered: false, left }
    }

    fn possible(&self) -> Vec<(NodeId, Event)> {
        let mut possible = Vec::new();
        for (node, (client, fila)) in NodeId::all(NODES).zip(self.clients.iter().zip(&self.nodes)) {
            let idle = *client == Client::Nobody;
            let waits = matches!(client, Client::Waits | Client::Tries);
            // While a request goes on for nobody, the service answers a try itself.
            let may_try = idle && !fila.is_for_nobody();
            let may_pull = node == HOME && fila.phase() == Phase::Idle && !fila.has_token();
            let own = [
                (idle && self.left.requests[node.index()] > 0, Event::Request),
                (may_try && self.left.tries[node.index()] > 0, Event::Try),
                (waits && self.left.cancels > 0, Event::GiveUp),
                (*client == Client::Inside, Event::Leave),
                (may_pull && self.left.pulls > 0, Event::Pull),
            ];
            possible.extend(own.into_iter().filter_map(|(can, event)| can.then_some((node, event))));
        }
        let distinct: BTreeSet<_> = self.in_flight.iter().cloned().collect();
        possible.extend(distinct.into_iter().map(|(from, to, message)| (to, Event::Message { from, message })));
        possible
    }

    /// Lets it happen. What comes back is what the node wants done.
    fn happen(&mut self, node: NodeId, event: Event) -> Vec<EffectOf<Fila>> {
        let i = node.index();
        let number = self.numbers[i];
        match &event {
            Event::Request => (self.left.requests[i], self.clients[i]) = (self.left.requests[i] - 1, Client::Waits),
            Event::Try => (self.left.tries[i], self.clients[i]) = (self.left.tries[i] - 1, Client::Tries),
            Event::GiveUp => (self.left.cancels, self.clients[i]) = (self.left.cancels - 1, Client::Nobody),
            Event::Leave => self.clients[i] = Client::Nobody,
            Event::Pull => self.left.pulls -= 1,
            Event::Message { from, message } => {
                let arrived =
                    |other: &(NodeId, NodeId, Message)| (other.0, other.1, &other.2) == (*from, node, message);
                let position = self.in_flight.iter().position(arrived).expect("it is in flight");
                self.in_flight.remove(position);
            }
        }
        self.numbers[i] += u64::from(matches!(event, Event::Try | Event::Pull));
        let mut effects = Vec::new();
        let mut choose = |_| unreachable!("fila leaves nothing to chance");
        act(node, &mut self.nodes[i], &mut effects, &mut choose, |fila, cx| match event {
            Event::Request if fila.phase() == Phase::Idle => fila.on_command(Command::Request, cx),
            Event::Request => fila.adopt(cx),
            Event::Try => fila.attempt(number, cx),
            Event::GiveUp => fila.forsake(),
            Event::Leave => fila.on_command(Command::Release, cx),
            Event::Pull => fila.pull(number, cx),
            Event::Message { from, message } => fila.on_message(from, message, cx),
        });
        effects
    }

    fn carry_out(&mut self, node: NodeId, effects: &[EffectOf<Fila>]) {
        let client = &mut self.clients[node.index()];
        for effect in effects {
            match effect {
                Effect::Send(to, message) => self.in_flight.push((node, *to, message.clone())),
                Effect::Output(Output::Entered) => {
                    assert!(matches!(client, Client::Waits | Client::Tries), "{node}: {client:?} enters");
                    *client = Client::Inside;
                    self.entered = true;
                }
                Effect::Output(Output::Busy) => {
                    assert_eq!(*client, Client::Tries, "{node}: only who tries is told that it takes long");
                    *client = Client::Nobody;
                }
                Effect::Violation(what) => panic!("{node} objects: {what}"),
                Effect::SetTimer(..) | Effect::CancelTimer(_) => unreachable!("fila has no timers"),
            }
        }
        self.in_flight.sort_unstable();
    }

    /// What is true in every state.
    fn obey(&self) {
        let nodes: Vec<&Fila> = self.nodes.iter().collect();
        let in_flight: Vec<_> = self.in_flight.iter().map(|(from, to, message)| (*from, *to, message)).collect();
        let world = World { nodes: &nodes, crashed: &NodeSet::new(), in_flight: &in_flight };
        Fila::INVARIANT.expect("fila has one")(&world).expect("the invariant holds");
        let inside = self.clients.iter().filter(|client| **client == Client::Inside).count();
        assert!(inside <= 1, "two are inside");
        for (node, (client, fila)) in NodeId::all(NODES).zip(self.clients.iter().zip(&self.nodes)) {
            let clientless = fila.phase() == Phase::Idle || fila.is_for_nobody() || fila.is_pulling();
            assert_eq!(clientless, *client == Client::Nobody, "{node}: {fila:?} for {client:?}");
            assert_eq!(fila.phase() == Phase::Inside, *client == Client::Inside, "{node}: {fila:?} for {client:?}");
            assert!(!fila.knows_nothing() || *fila == Fila::new(node, HOME), "{node} remembers something: {fila:?}");
            // Whoever is inside may stay for as long as it likes: no answer may wait for that.
            let owed = *client == Client::Tries || fila.is_pulling();
            assert!(!owed || !self.in_flight.is_empty(), "{node}: a try without an answer, and nothing is in flight");
        }
    }

    /// What is true where nothing can happen any more.
    fn is_over(&self) {
        assert!(self.nodes.iter().all(|fila| fila.phase() == Phase::Idle && !fila.others_wait()), "somebody waits");
        assert!(self.in_flight.is_empty(), "a message does not arrive");
        assert!(self.entered, "nobody was ever let in");
    }
}

/// What a step was an example of, if anything.
fn instance(before: &Fila, event: &Event, tries: bool, effects: &[EffectOf<Fila>], after: &Fila) -> Vec<&'static str> {
    let says = |output| effects.contains(&Effect::Output(output));
    let sends = |wanted: fn(&Message) -> bool| {
        effects.iter().any(|effect| matches!(effect, Effect::Send(_, message) if wanted(message)))
    };
    let arrives = |wanted: fn(&Message) -> bool| matches!(event, Event::Message { message, .. } if wanted(message));
    let busy = arrives(|message| matches!(message, Message::Busy(_)));
    let refused = arrives(|message| matches!(message, Message::Refused(_)));
    let token = arrives(|message| matches!(message, Message::Token(_)));
    let tells_busy = sends(|message| matches!(message, Message::Busy(_)));
    let of = [
        (tries && says(Output::Entered), "a try entered"),
        (busy && says(Output::Busy), "a try was busy"),
        (refused && says(Output::Busy), "a try was refused"),
        (refused && before.is_for_nobody(), "a try was refused when nobody waited for it"),
        (refused && after.phase() == Phase::Waiting, "a try that was taken over was refused"),
        (busy && before == after, "a Busy came too late"),
        (before.is_for_nobody() && token && !after.has_token(), "a token for nobody moved on"),
        (before.is_for_nobody() && token && after.has_token(), "a token for nobody stayed"),
        (before.is_pulling() && token && after.has_token(), "a pull came home"),
        (before.is_pulling() && token && !after.has_token(), "a pull found somebody in line"),
        (before.is_pulling() && busy && after.is_for_nobody(), "a pull was busy"),
        (before.is_pulling() && busy && tells_busy, "a busy pull told who had tried"),
        (before.is_pulling() && matches!(event, Event::Request), "a pull was taken over"),
        (before.is_pulling() && matches!(event, Event::Try), "a pull became a try"),
        (before.is_pulling() && !busy && !after.is_pulling() && tells_busy, "who took a pull over told who had tried"),
        (before.is_for_nobody() && matches!(event, Event::Request), "what went on for nobody was taken over"),
    ];
    of.into_iter().filter_map(|(is, what)| is.then_some(what)).collect()
}

/// What happened so far, to be told if something goes wrong.
#[derive(Default)]
struct Path(Vec<(NodeId, Event)>);

impl Drop for Path {
    fn drop(&mut self) {
        if thread::panicking() {
            for (node, event) in &self.0 {
                eprintln!("{node}: {event:?}");
            }
        }
    }
}

#[derive(Default)]
struct Explorer {
    seen: HashSet<State>,
    path: Path,
    sometimes: BTreeMap<&'static str, u64>,
}

impl Explorer {
    fn explore(&mut self, state: State) {
        state.obey();
        let possible = state.possible();
        if possible.is_empty() {
            state.is_over();
        }
        for (node, event) in possible {
            self.path.0.push((node, event.clone()));
            let mut next = state.clone();
            let effects = next.happen(node, event.clone());
            let tries = next.clients[node.index()] == Client::Tries;
            next.carry_out(node, &effects);
            let (before, after) = (&state.nodes[node.index()], &next.nodes[node.index()]);
            for what in instance(before, &event, tries, &effects, after) {
                *self.sometimes.entry(what).or_default() += 1;
            }
            if !self.seen.contains(&next) {
                self.seen.insert(next.clone());
                self.explore(next);
            }
            self.path.0.pop();
        }
    }
}

/// Goes through everything that can happen, and sees that each of these does.
fn check(state: State, sometimes: &[&str]) -> Explorer {
    let mut explorer = Explorer::default();
    explorer.explore(state);
    for what in sometimes {
        assert!(explorer.sometimes.contains_key(what), "never: {what}");
    }
    explorer
}

/// The token is idle at the last node, and this may happen.
fn idle_elsewhere(script: Script) -> State {
    let owner = NodeId::from_index(NODES - 1);
    let mut state = State::new(Script { requests: [0, 0, 1], ..Script::default() });
    while let Some((node, event)) = state.possible().pop() {
        let effects = state.happen(node, event);
        state.carry_out(node, &effects);
    }
    assert!(state.nodes[owner.index()].has_token());
    State { left: script, entered: false, ..state }
}

#[test]
fn one_of_each() {
    let script = Script { requests: [1; 3], tries: [1; 3], cancels: 1, pulls: 1 };
    check(
        State::new(script),
        &[
            "a try entered",
            "a try was busy",
            "a try was refused",
            "a try was refused when nobody waited for it",
            "a try that was taken over was refused",
            "a Busy came too late",
            "a token for nobody moved on",
            "a token for nobody stayed",
            "what went on for nobody was taken over",
            "a pull came home",
            "a pull found somebody in line",
            "a pull was busy",
            "a busy pull told who had tried",
            "a pull was taken over",
            "a pull became a try",
            "who took a pull over told who had tried",
        ],
    );
}

#[test]
fn two_pulls() {
    let script = Script { requests: [0, 1, 1], tries: [0, 1, 1], cancels: 0, pulls: 2 };
    check(State::new(script), &["a pull came home", "a pull was busy", "a busy pull told who had tried"]);
}

#[test]
fn clients_that_give_up_and_others_that_take_over() {
    let script = Script { requests: [1, 2, 1], tries: [0, 1, 1], cancels: 2, pulls: 0 };
    check(
        State::new(script),
        &[
            "what went on for nobody was taken over",
            "a try that was taken over was refused",
            "a token for nobody moved on",
        ],
    );
}

#[test]
fn tries_one_after_another() {
    let script = Script { requests: [1, 0, 0], tries: [1, 2, 2], cancels: 1, pulls: 0 };
    check(State::new(script), &["a try was busy", "a try was refused", "a Busy came too late"]);
}

#[test]
fn of_those_who_only_try_one_enters() {
    let script = Script { tries: [1; 3], pulls: 2, ..Script::default() };
    check(idle_elsewhere(script), &["a try was busy", "a busy pull told who had tried", "a pull became a try"]);
}

#[test]
fn a_pull_alone_makes_no_try_busy() {
    for tries in [[1, 0, 0], [0, 1, 0], [0, 0, 1]] {
        let explorer = check(idle_elsewhere(Script { tries, pulls: 2, ..Script::default() }), &["a try entered"]);
        let failed = ["a try was busy", "a try was refused"].map(|what| explorer.sometimes.contains_key(what));
        assert_eq!(failed, [false; 2], "{tries:?}");
    }
}
