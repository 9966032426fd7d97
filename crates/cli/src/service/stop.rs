//! How a program that runs nodes is told to stop: Ctrl-C, or TERM.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both signals, heeded from when this is made.
pub(super) struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("cannot heed TERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot heed Ctrl-C")?,
        })
    }

    /// Waits until it is told.
    pub(super) async fn told(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
