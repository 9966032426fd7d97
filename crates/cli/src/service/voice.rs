//! What is said to people while a lock is at stake.
//!
//! A terminal or a pipe takes what is written to it when somebody reads, and that may be never. Who holds a lock renews it, and
//! ends its command when it is lost, whether anybody reads or not: so a thread of its own does the writing.

use std::{
    fmt::Display,
    sync::mpsc::{Receiver, SyncSender, channel, sync_channel},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};

use crate::output::tell;

/// So many lines wait for somebody to read them; more are not said.
const MOST_LINES: usize = 64;
/// So long the process stays for those that were not read yet.
const PATIENCE: Duration = Duration::from_millis(500);

/// Says lines, one after the other, and waits for nobody.
pub(super) struct Voice {
    lines: Option<SyncSender<String>>,
    said: Receiver<()>,
}

impl Voice {
    pub(super) fn new() -> Result<Self> {
        let (lines, to_say) = sync_channel::<String>(MOST_LINES);
        let (done, said) = channel();
        let speak = move || {
            to_say.iter().for_each(tell);
            drop(done);
        };
        thread::Builder::new().name("vez-voice".into()).spawn(speak).context("cannot begin")?;
        Ok(Self { lines: Some(lines), said })
    }

    pub(super) fn say(&self, line: impl Display) {
        if let Some(lines) = &self.lines {
            let _ = lines.try_send(format!("vez: {line}")); // Nobody has read for long.
        }
    }
}

impl Drop for Voice {
    fn drop(&mut self) {
        self.lines = None;
        let _ = self.said.recv_timeout(PATIENCE); // Done, or nobody reads.
    }
}
