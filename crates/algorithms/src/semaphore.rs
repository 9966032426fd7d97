//! k-exclusion: the weights of those inside add up to at most k, and whoever asks gets in.

mod ledger;
mod raymond_k;
mod robust_k;

use alloc::{format, string::String, vec, vec::Vec};

pub use ledger::LedgerSemaphore;
pub use raymond_k::RaymondK;
pub use robust_k::{RobustK, RobustKDirect, RobustKTree};

use crate::{Entered, Family, Heard, Scene, Setup};

/// What a client of a semaphore asks of its node. It takes turns: Acquire, then, once inside, Release.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Let me in, with so many of the k units.
    Acquire(u32),
    /// I am leaving, and give them back.
    Release,
    /// Let there be so many units from now on.
    Resize(u32),
}

/// What a client of a semaphore is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Output {
    /// You are inside.
    Entered,
    /// There are so many units from now on.
    Resized(u32),
}

impl From<Entered> for Output {
    fn from(_: Entered) -> Self {
        Self::Entered
    }
}

/// The family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Semaphore {}

impl Family for Semaphore {
    const NAME: &'static str = "semaphore";
    const LAW: &'static str = "at most k inside";
    type Command = Command;
    type Output = Output;
    /// The largest number of units that this client knows there to have been; 0 if it was never told.
    type News = u32;
    const LEAVE: Option<Command> = Some(Command::Release);

    fn wants(_setup: &Setup) -> Vec<Command> {
        vec![Command::Acquire(1)]
    }

    /// Any weight, and any number of units.
    fn command(words: &str) -> Option<Command> {
        let number = |before| words.strip_prefix(before)?.strip_suffix(')')?.parse().ok();
        number("Acquire(").map(Command::Acquire).or_else(|| number("Resize(").map(Command::Resize))
    }

    fn hear(most: &mut u32, output: &Output) -> Heard {
        match output {
            Output::Entered => Heard::Entered,
            Output::Resized(units) => {
                *most = (*most).max(*units);
                Heard::Finished
            }
        }
    }

    /// At most k are inside, counted by weight. Whoever entered before k was made smaller may stay.
    fn law(scene: &Scene<'_, Self>) -> Result<(), String> {
        let weight = |node| match scene.client(node).asked {
            Some(Command::Acquire(units)) => units as usize,
            Some(Command::Release | Command::Resize(_)) | None => 0,
        };
        let inside: usize = scene.inside.iter().map(|node| weight(*node)).sum();
        if inside <= scene.limit {
            return Ok(());
        }
        let units = |client: &crate::Client<Self>| match client.asked {
            // It may be done, and the client not told yet.
            Some(Command::Resize(units)) => client.news.max(units) as usize,
            Some(Command::Acquire(_) | Command::Release) | None => client.news as usize,
        };
        let most = scene.living().map(|(_, client)| units(client)).max().unwrap_or(0).max(scene.limit);
        if inside <= most {
            return Ok(());
        }
        Err(format!("{} are inside together with {inside} of {most} units", crate::family::names(scene.inside)))
    }
}
