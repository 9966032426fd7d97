//! The lines of a trace, as they come about.

use vez_algorithms::{Algorithm, NodeId};
use vez_lab::{
    sim::{Event, Watch},
    trace::Trace,
};

/// Keeps the lines until somebody takes them.
pub(crate) struct Chronicle {
    lines: Option<Vec<u8>>,
}

impl Chronicle {
    /// Keeps nothing, unless somebody wants it.
    pub(crate) fn new(wanted: bool) -> Self {
        Self { lines: wanted.then(Vec::new) }
    }

    /// What there is, if anything.
    pub(crate) fn take(&mut self) -> Option<String> {
        let lines = self.lines.as_mut().filter(|lines| !lines.is_empty())?;
        Some(String::from_utf8(std::mem::take(lines)).expect("JSON is text"))
    }
}

impl<P: Algorithm> Watch<P> for Chronicle {
    fn see(&mut self, time: f64, node: NodeId, event: Event<'_, P>) {
        if let Some(lines) = &mut self.lines {
            Trace::lines(lines).see(time, node, event);
        }
    }

    fn watches(&self) -> bool {
        self.lines.is_some()
    }
}
