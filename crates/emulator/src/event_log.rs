//! The events of a node: as lines of a trace, and as texts for a terminal.

use vez_algorithms::{Algorithm, Effect, Input, NodeId};
use vez_lab::{
    sim::{Event, Watch},
    trace::Trace,
};

/// Collects trace lines and event texts until the driver takes them.
pub(crate) struct EventLog {
    trace: Option<Vec<u8>>,
    words: Option<EventText>,
}

/// The last event as text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct EventText {
    /// The message that arrived, or the timer that was due.
    pub(crate) cause: String,
    /// What was sent, and to whom.
    pub(crate) sent: Vec<(NodeId, String)>,
}

impl EventLog {
    /// Collects trace lines, event texts, both or neither.
    pub(crate) fn new(trace: bool, words: bool) -> Self {
        Self { trace: trace.then(Vec::new), words: words.then(EventText::default) }
    }

    /// The lines of the trace, if there are any.
    pub(crate) fn lines(&mut self) -> Option<String> {
        let lines = self.trace.as_mut().filter(|lines| !lines.is_empty())?;
        Some(String::from_utf8(std::mem::take(lines)).expect("JSON is text"))
    }

    /// The last event as text; empty if texts are not collected.
    pub(crate) fn words(&mut self) -> EventText {
        self.words.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Records the input before the handler runs, so that it can be printed if the handler panics.
    pub(crate) fn describe<A: Algorithm>(&mut self, input: &Input<A>) {
        if let Some(words) = &mut self.words {
            words.cause = match input {
                Input::Message { message, .. } => format!("{message:?}"),
                Input::Timer(timer) => format!("{timer:?}"),
                Input::Start | Input::Restart | Input::Command(_) | Input::Crash(_) | Input::Internal => String::new(),
            };
        }
    }
}

impl<A: Algorithm> Watch<A> for EventLog {
    fn see(&mut self, time: f64, node: NodeId, event: Event<'_, A>) {
        if let (Some(words), Event::Effect(Effect::Send(to, message))) = (&mut self.words, &event) {
            words.sent.push((*to, format!("{message:?}")));
        }
        if let Some(lines) = &mut self.trace {
            Trace::lines(lines).see(time, node, event);
        }
    }

    fn watches(&self) -> bool {
        self.trace.is_some() || self.words.is_some()
    }
}
