//! What runs of the laboratory need from the terminal and the clock.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context;

/// Becomes true with Ctrl-C, or when the process is asked to end.
pub(crate) fn interruption() -> anyhow::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let interrupt = Arc::clone(&interrupted);
    ctrlc::set_handler(move || interrupt.store(true, Ordering::Relaxed)).context("cannot heed Ctrl-C")?;
    Ok(interrupted)
}

/// The time since the first call.
pub(crate) fn stopwatch() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
