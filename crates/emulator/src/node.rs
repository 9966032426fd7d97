//! A node of any algorithm, behind a `dyn` pointer.
//!
//! What depends on the algorithm is here and in [`EventLog`](crate::event_log::EventLog), and is compiled once for each of them. The
//! rest of this crate sees messages as JSON, requests as indices, and outputs as [`Heard`]; only the referee is generic over the
//! family, whose law it applies.

use serde::Deserialize;
use serde_json::Value;
use vez_algorithms::{
    self as algorithms, Algorithm, CommandOf, Effect, Family, Heard, Message, Monitored, NodeId, Setup, SetupError,
    catalog::{self, Entry, Job},
    link::Nanos,
    step,
};
use vez_lab::{
    quiet,
    sim::{Event, Watch},
};

use crate::{
    frame::{self, Malformed},
    host::{Breach, Environment, Wire},
};

/// The nodes of a system, and what drivers need to know about it.
pub(crate) struct System {
    pub(crate) entry: Entry,
    /// How many of the nodes have a client: the first ones.
    pub(crate) clients: usize,
    /// How many things there are to ask for.
    pub(crate) wants: usize,
    pub(crate) nodes: Vec<Box<dyn Node>>,
}

/// A system of the algorithm of that name. One that needs a failure detector has it.
///
/// # Errors
/// If the algorithm cannot run on such a system.
///
/// # Panics
/// If there is no such algorithm.
pub(crate) fn system(name: &str, setup: &Setup) -> Result<System, SetupError> {
    catalog::visit(name, Build(setup)).expect("it is in the catalog")
}

struct Build<'a>(&'a Setup);

impl Job for Build<'_> {
    type Done = Result<System, SetupError>;

    fn with<A: Algorithm>(self) -> Self::Done {
        let wants = A::wants(self.0);
        let boxed =
            |node| -> Box<dyn Node> { Box::new(NodeOf::<A> { node, wants: wants.clone(), timers: Vec::new() }) };
        let nodes = A::system(self.0)?.into_iter().map(boxed).collect();
        Ok(System { entry: Entry::of::<A>(), clients: A::clients(self.0), wants: wants.len(), nodes })
    }

    fn with_detector<A: Algorithm>(self) -> Self::Done {
        self.with::<Monitored<A>>()
    }
}

/// A timer of a node: its place in the order in which the timers of this node were first set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Timer(usize);

/// What happens to a node.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Input {
    Start,
    Internal,
    /// Its client asks for one of the things that there are to ask for.
    Ask(usize),
    /// Its client leaves.
    Leave,
    Timer(Timer),
    /// A message that it [understands](Node::understands).
    Message {
        from: NodeId,
        says: Value,
    },
}

/// One node.
pub(crate) trait Node {
    /// Whether this is a message of the algorithm.
    fn understands(&self, says: &Value) -> Result<(), Malformed>;

    /// Lets something happen to it, and does what it wants done. What its client hears comes back.
    fn happen(
        &mut self,
        now: Nanos,
        input: Input,
        environment: &mut Environment,
        wire: &mut dyn Wire,
    ) -> Result<Vec<Heard>, Breach>;
}

struct NodeOf<A: Algorithm> {
    node: A,
    wants: Vec<CommandOf<A>>,
    timers: Vec<A::Timer>,
}

impl<A: Algorithm> NodeOf<A> {
    fn typed(&self, input: Input) -> algorithms::Input<A> {
        match input {
            Input::Start => algorithms::Input::Start,
            Input::Internal => algorithms::Input::Internal,
            Input::Ask(want) => algorithms::Input::Command(self.wants[want]),
            Input::Leave => algorithms::Input::Command(A::Family::LEAVE.expect("whoever can enter can leave")),
            Input::Timer(Timer(at)) => algorithms::Input::Timer(self.timers[at]),
            Input::Message { from, says } => {
                let message = A::Message::deserialize(&says).expect("it was understood when it arrived");
                algorithms::Input::Message { from, message }
            }
        }
    }

    fn number(&mut self, timer: A::Timer) -> Timer {
        let known = self.timers.iter().position(|known| *known == timer);
        Timer(known.unwrap_or_else(|| {
            self.timers.push(timer);
            self.timers.len() - 1
        }))
    }
}

impl<A: Algorithm> Node for NodeOf<A> {
    fn understands(&self, says: &Value) -> Result<(), Malformed> {
        frame::message::<A::Message>(says).map(drop)
    }

    fn happen(
        &mut self,
        now: Nanos,
        input: Input,
        environment: &mut Environment,
        wire: &mut dyn Wire,
    ) -> Result<Vec<Heard>, Breach> {
        let input = self.typed(input);
        environment.event_log.describe(&input);
        let seen = Watch::<A>::watches(&environment.event_log).then(|| input.clone());
        let mut effects = Vec::new();
        let mut chosen = Vec::new();
        let choices = &mut environment.choices;
        let mut choose = |n: usize| {
            chosen.push(choices.below(n));
            chosen[chosen.len() - 1]
        };
        let (me, node) = (environment.me, &mut self.node);
        quiet::catch(|| step(me, node, input, &mut effects, &mut choose))
            .map_err(|panic| Breach::Assertion(me, panic))?;
        let time = environment.time(now);
        if let Some(input) = seen {
            environment.event_log.see(time, me, Event::Input(&input, &self.node, &chosen));
        }
        let mut heard = Vec::new();
        for effect in effects {
            environment.event_log.see(time, me, Event::Effect::<A>(&effect));
            match effect {
                Effect::Send(to, message) => {
                    let says = serde_json::to_value(&message).expect("a message has a text");
                    if !environment.send(now, to, message.kind(), says, wire)? {
                        environment.event_log.see(time, me, Event::Lost::<A>(to, &message));
                    }
                }
                Effect::SetTimer(timer, after) => environment.set_timer(now, self.number(timer), &after),
                Effect::CancelTimer(timer) => environment.cancel_timer(self.number(timer)),
                Effect::Output(output) => heard.push(A::Family::hear(&mut Default::default(), &output)),
                Effect::Violation(what) => return Err(Breach::Objection(me, what)),
            }
        }
        Ok(heard)
    }
}
