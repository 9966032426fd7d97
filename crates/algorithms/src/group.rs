//! Group exclusion: all who are inside have asked for the same session, and whoever asks gets in.

mod group_quorum;
mod ledger_group;

use alloc::{format, string::String, vec::Vec};

pub use group_quorum::GroupQuorum;
pub use ledger_group::LedgerGroup;

use serde::{Deserialize, Serialize};

use crate::{Entered, Family, Heard, Scene, Setup, setup::MAX_GROUPS};

/// The name of a session: those who ask for the same one may be inside together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Session(pub u32);

/// What a client of group exclusion asks of its node. It takes turns: Enter, then, once inside, Leave.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Let me in, together with others of this session.
    Enter(Session),
    /// I am leaving.
    Leave,
}

/// What a client of group exclusion is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Output {
    /// You are inside.
    Entered,
}

impl From<Entered> for Output {
    fn from(_: Entered) -> Self {
        Self::Entered
    }
}

/// The family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Group {}

impl Family for Group {
    const NAME: &'static str = "group";
    const LAW: &'static str = "only one session inside";
    type Command = Command;
    type Output = Output;
    type News = ();
    const LEAVE: Option<Command> = Some(Command::Leave);

    fn wants(setup: &Setup) -> Vec<Command> {
        (0..setup.groups.min(MAX_GROUPS)).map(|session| Command::Enter(Session(session as u32))).collect()
    }

    /// Any session.
    fn command(words: &str) -> Option<Command> {
        let session = words.strip_prefix("Enter(Session(")?.strip_suffix("))")?;
        session.parse().ok().map(|session| Command::Enter(Session(session)))
    }

    fn hear(_news: &mut (), output: &Output) -> Heard {
        match output {
            Output::Entered => Heard::Entered,
        }
    }

    /// All who are inside have asked for the same session.
    fn law(scene: &Scene<'_, Self>) -> Result<(), String> {
        let [first, rest @ ..] = scene.inside else { return Ok(()) };
        let asked = |node| scene.client(node).asked;
        match rest.iter().find(|other| asked(**other) != asked(*first)) {
            Some(other) => Err(format!("{first} and {other} are inside together, of two sessions")),
            None => Ok(()),
        }
    }
}
