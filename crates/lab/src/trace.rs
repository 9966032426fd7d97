//! A run written down as JSON Lines: one event a line. The format is described in `docs/trace.md`.

mod header;

use std::io::{self, Write};

use serde::Serialize;
use vez_algorithms::{Algorithm, Effect, Family, Input, NodeId};

pub use self::header::{FORMAT, Header, HeaderError};
use crate::{
    sim::{Event, Watch},
    stage::enters,
};

/// One line of a trace.
#[derive(Serialize)]
pub(crate) struct Line<'a, P: Algorithm> {
    time: f64,
    node: NodeId,
    kind: &'static str,
    /// The other side of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<NodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a P::Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timer: Option<&'a P::Timer>,
    /// From and to, in units of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<[f64; 2]>,
    /// What a client asks for or is told, if there is more than one thing; what a node objects to.
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<String>,
    /// What chance answered meanwhile, in order.
    #[serde(skip_serializing_if = "<[usize]>::is_empty")]
    choices: &'a [usize],
    /// What an input left the node in.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a P>,
}

/// Writes a run down.
pub struct Trace<'w, W: Write> {
    to: &'w mut W,
    result: io::Result<()>,
}

impl<'w, W: Write> Trace<'w, W> {
    /// Begins a trace with a line about the system.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(to: &'w mut W, header: &Header) -> io::Result<Self> {
        serde_json::to_writer(&mut *to, header)?;
        to.write_all(b"\n")?;
        Ok(Self::lines(to))
    }

    /// Goes on with a trace whose first line stands elsewhere, such as that of one node among several processes.
    pub fn lines(to: &'w mut W) -> Self {
        Self { to, result: Ok(()) }
    }

    /// Whether all could be written.
    ///
    /// # Errors
    /// The first error, if it could not.
    pub fn finish(self) -> io::Result<()> {
        self.result
    }
}

impl<P: Algorithm, W: Write> Watch<P> for Trace<'_, W> {
    fn see(&mut self, time: f64, node: NodeId, event: Event<'_, P>) {
        if self.result.is_ok() {
            self.result = serde_json::to_writer(&mut *self.to, &line(time, node, &event))
                .map_err(io::Error::from)
                .and_then(|()| self.to.write_all(b"\n"));
        }
    }
}

/// What is written of an event.
pub(crate) fn line<'a, P: Algorithm>(time: f64, node: NodeId, event: &'a Event<'_, P>) -> Line<'a, P> {
    let line = |kind| Line {
        time,
        node,
        kind,
        peer: None,
        message: None,
        timer: None,
        after: None,
        what: None,
        choices: &[],
        state: None,
    };
    match event {
        Event::Input(input, state, choices) => {
            let line = match input {
                Input::Start => line("start"),
                Input::Restart => line("restart"),
                Input::Command(command) if Some(*command) == P::Family::LEAVE => line("leave"),
                Input::Command(command) => Line { what: Some(format!("{command:?}")), ..line("ask") },
                Input::Message { from, message } => {
                    Line { peer: Some(*from), message: Some(message), ..line("receive") }
                }
                Input::Timer(timer) => Line { timer: Some(timer), ..line("fire") },
                Input::Crash(crashed) => Line { peer: Some(*crashed), ..line("notice") },
                Input::Internal => line("internal"),
            };
            Line { choices, state: Some(state), ..line }
        }
        Event::Effect(Effect::Send(to, message)) => Line { peer: Some(*to), message: Some(message), ..line("send") },
        Event::Effect(Effect::SetTimer(timer, after)) => {
            let after = [after.start.as_secs_f64(), after.end.as_secs_f64()];
            Line { timer: Some(timer), after: Some(after), ..line("set") }
        }
        Event::Effect(Effect::CancelTimer(timer)) => Line { timer: Some(timer), ..line("cancel") },
        Event::Effect(Effect::Output(output)) if enters::<P::Family>(output) => line("enter"),
        Event::Effect(Effect::Output(output)) => Line { what: Some(format!("{output:?}")), ..line("output") },
        Event::Effect(Effect::Violation(what)) => Line { what: Some((*what).to_owned()), ..line("object") },
        Event::Lost(to, message) => Line { peer: Some(*to), message: Some(message), ..line("lose") },
        Event::Doubled(to, message) => Line { peer: Some(*to), message: Some(message), ..line("double") },
        Event::Crashed => line("crash"),
    }
}

/// Keeps the last things that happened up to a moment, in words.
pub struct Tail {
    /// What happened earlier than this is not even looked at.
    pub from: f64,
    /// The last lines.
    pub lines: std::collections::VecDeque<String>,
}

/// How many lines are kept.
const TAIL: usize = 30;

impl<P: Algorithm> Watch<P> for Tail {
    fn see(&mut self, time: f64, node: NodeId, event: Event<'_, P>) {
        if time < self.from {
            return;
        }
        let what = match event {
            Event::Input(Input::Start, ..) => format!("{node} starts"),
            Event::Input(Input::Restart, ..) => format!("{node} is back"),
            Event::Input(Input::Command(command), ..) if Some(*command) == P::Family::LEAVE => format!("{node} leaves"),
            Event::Input(Input::Command(command), ..) => format!("{node} asks: {command:?}"),
            Event::Input(Input::Crash(crashed), ..) => format!("{node} learns that {crashed} has crashed"),
            Event::Input(Input::Message { from, message }, ..) => format!("{node} ← {from} {message:?}"),
            Event::Input(Input::Timer(timer), ..) => format!("{node}: {timer:?} fires"),
            Event::Input(Input::Internal, ..) => format!("{node}: something internal"),
            Event::Effect(effect) => format!("    {}", crate::stage::describe::<P>(node, effect)),
            Event::Lost(to, message) => format!("    lost on the way to {to}: {message:?}"),
            Event::Doubled(to, message) => format!("    doubled on the way to {to}: {message:?}"),
            Event::Crashed => format!("{node} crashes"),
        };
        if self.lines.len() == TAIL {
            self.lines.pop_front();
        }
        self.lines.push_back(format!("{time:>14.6}  {what}"));
    }
}
