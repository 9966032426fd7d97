//! Links in the checker: an algorithm that needs a reliable network in order, on one that loses and reorders, in every
//! interleaving of a small system. The link is the one that runs over sockets.

use serde::{Deserialize, Serialize};
use vez_algorithms::{
    Algorithm, CommandOf, Context, Effect, Input, Model, NodeId, Order, Protocol, Setup, SetupError, Timing,
    link::{Link, Service},
    mutex::{Fila, Lamport},
    step,
};
use vez_lab::{
    check::{self, CannotCheck, Config, Report, Verdict, Workload},
    system::System,
};

/// Time enough for everything that was sent to be due again.
const LATER: u64 = 1 << 40;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
enum Message<M> {
    Message(u64, M),
    Ack(u64),
}

impl<M> From<&Message<M>> for &'static str {
    fn from(message: &Message<M>) -> Self {
        match message {
            Message::Message(..) => "Message",
            Message::Ack(_) => "Ack",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
enum Timer<T> {
    Above(T),
    /// Something that was sent to this node has not been acknowledged in time.
    Resend(NodeId),
}

/// One node of an algorithm, with its links.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Linked<P: Protocol> {
    me: NodeId,
    above: P,
    links: Vec<Link<P::Message>>,
    patience: std::time::Duration,
}

impl<P: Algorithm> Algorithm for Linked<P> {
    const NAME: &'static str = P::NAME;
    const COST: &'static str = P::COST;
    const PAPER: &'static str = P::PAPER;

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let (n, patience) = (setup.nodes(), setup.patience);
        let links = vec![Link::new(Service::for_model(&P::MODEL)); n];
        let linked = |(me, above)| Self { me, above, links: links.clone(), patience };
        Ok(NodeId::all(n).zip(P::system(setup)?).map(linked).collect())
    }
}

impl<P: Algorithm> Protocol for Linked<P> {
    const MODEL: Model = Model { order: Order::Any, timing: Timing::Bounded, survives_loss: true, ..P::MODEL };
    type Message = Message<P::Message>;
    type Timer = Timer<P::Timer>;
    type Family = P::Family;

    fn on_start(&mut self, cx: &mut Context<'_, Self>) {
        self.happen(Input::Start, cx);
    }

    fn on_command(&mut self, command: CommandOf<Self>, cx: &mut Context<'_, Self>) {
        self.happen(Input::Command(command), cx);
    }

    fn on_message(&mut self, from: NodeId, message: Self::Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Message(number, message) => {
                let arrival = self.links[from.index()].receive(number, message).expect("within the window");
                if arrival.acknowledge {
                    cx.send(from, Message::Ack(number));
                }
                for message in arrival.messages {
                    self.happen(Input::Message { from, message }, cx);
                }
            }
            Message::Ack(number) => {
                self.links[from.index()].acknowledged(0, number);
                if self.links[from.index()].deadline().is_none() {
                    cx.cancel_timer(Timer::Resend(from));
                }
            }
        }
    }

    fn on_timer(&mut self, timer: Self::Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Above(timer) => self.happen(Input::Timer(timer), cx),
            Timer::Resend(to) => {
                let link = &mut self.links[to.index()];
                for (number, message) in link.resend(LATER * (1 + link.labour().resent)) {
                    cx.send(to, Message::Message(number, message));
                }
                cx.set_timer(timer, self.patience..self.patience);
            }
        }
    }
}

impl<P: Algorithm> Linked<P> {
    fn happen(&mut self, input: Input<P>, cx: &mut Context<'_, Self>) {
        let mut effects = Vec::new();
        step(self.me, &mut self.above, input, &mut effects, &mut |n| cx.choose(n));
        for effect in effects {
            match effect {
                Effect::Send(to, message) => {
                    let number = self.links[to.index()].send(0, &message);
                    cx.send(to, Message::Message(number, message));
                    if self.links[to.index()].deadline().is_some() {
                        cx.set_timer(Timer::Resend(to), self.patience..self.patience);
                    }
                }
                Effect::SetTimer(timer, after) => cx.set_timer(Timer::Above(timer), after),
                Effect::CancelTimer(timer) => cx.cancel_timer(Timer::Above(timer)),
                Effect::Output(output) => cx.output(output),
                Effect::Violation(what) => cx.violation(what),
            }
        }
    }
}

fn explore<A: Algorithm>(nodes: usize, requests: u32, losses: usize) -> Result<Report, CannotCheck> {
    let setup = System::of(nodes).setup(1, 0).expect("a system");
    let config = Config { losses, ..Config::new(Workload::Requests(requests), Order::Any) };
    check::check::<A>(&setup, &config, || std::time::Duration::ZERO, &mut |_| {})
}

fn holds<A: Algorithm>(nodes: usize, requests: u32, losses: usize) {
    let report = explore::<A>(nodes, requests, losses).expect("small enough");
    assert!(matches!(report.verdict, Verdict::Holds(_)), "{} with {losses} losses: {:?}", A::NAME, report.verdict);
    assert!(report.states > 100, "{} states are no network", report.states);
}

#[test]
fn order_and_reliability_are_made_up_for() {
    holds::<Linked<Lamport>>(2, 1, 1);
    holds::<Linked<Lamport>>(2, 1, 2);
    holds::<Linked<Fila>>(2, 1, 2);
    holds::<Linked<Fila>>(2, 2, 1);
}

#[test]
fn without_a_link_they_are_missed() {
    let report = explore::<Lamport>(2, 1, 0).expect("small enough");
    assert!(matches!(report.verdict, Verdict::Violated(_)), "messages overtake each other: {:?}", report.verdict);
}
