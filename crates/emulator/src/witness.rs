//! What a node says about itself: lines of a trace, and words for a terminal.

use vez_algorithms::{Algorithm, Effect, Input, NodeId};
use vez_lab::{
    sim::{Event, Watch},
    trace::Trace,
};

/// Keeps what there is to say until somebody takes it.
pub(crate) struct Witness {
    trace: Option<Vec<u8>>,
    words: Option<Words>,
}

/// What happened last, in words.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Words {
    /// The message that arrived, or the timer that was due.
    pub(crate) cause: String,
    /// What was sent, and to whom.
    pub(crate) sent: Vec<(NodeId, String)>,
}

impl Witness {
    /// Keeps what is wanted.
    pub(crate) fn new(trace: bool, words: bool) -> Self {
        Self { trace: trace.then(Vec::new), words: words.then(Words::default) }
    }

    /// The lines of the trace, if there are any.
    pub(crate) fn lines(&mut self) -> Option<String> {
        let lines = self.trace.as_mut().filter(|lines| !lines.is_empty())?;
        Some(String::from_utf8(std::mem::take(lines)).expect("JSON is text"))
    }

    /// What happened, if words are wanted.
    pub(crate) fn words(&mut self) -> Words {
        self.words.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes what is about to happen, which may be the end of the node.
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

impl<A: Algorithm> Watch<A> for Witness {
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
