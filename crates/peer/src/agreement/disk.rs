//! What has to survive a crash, and what writing it means.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::log::{Append, Config, Entry, Position};
use crate::{identity::MemberId, views::Views};

/// What was agreed on up to some place in the log: it stands for all entries up to there.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// The last entry that it stands for.
    pub position: Position,
    /// Who had a vote there.
    pub config: Config,
    /// The views up to there. `None` on a disk that has heard of no cluster yet.
    pub views: Option<Views>,
}

/// The term, and whom this member has given its vote in it (or has taken for its leader, which excludes the others too).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Ballot {
    /// The term.
    pub term: u64,
    /// Whom.
    pub vote: Option<MemberId>,
}

/// What is to be written, all of it or nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Batch {
    /// Term and vote, if they have changed.
    pub ballot: Option<Ballot>,
    /// A snapshot in the place of the log up to its position. It comes before `append`.
    pub snapshot: Option<Snapshot>,
    /// Entries in the place of whatever the log has there.
    pub append: Option<Append>,
}

impl Batch {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ballot.is_none() && self.snapshot.is_none() && self.append.is_none()
    }
}

/// What a disk holds. It is also what a batch means: whatever stores it must read back what [`Disk::write`] makes of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Disk {
    /// Term and vote.
    pub ballot: Ballot,
    /// What the beginning of the log came to.
    pub snapshot: Snapshot,
    /// The log after that.
    pub entries: Vec<Entry>,
}

impl Disk {
    /// The disk of one who has never heard of the others.
    #[must_use]
    pub fn empty() -> Self {
        let snapshot = Snapshot { position: Position::ZERO, config: Config::default(), views: None };
        Self { ballot: Ballot::default(), snapshot, entries: Vec::new() }
    }

    /// A batch is written.
    ///
    /// # Panics
    /// If it is not a batch for this disk: its entries do not follow what is there.
    pub fn write(&mut self, batch: &Batch) {
        if let Some(ballot) = batch.ballot {
            self.ballot = ballot;
        }
        if let Some(snapshot) = &batch.snapshot {
            // A log that does not have the place is another one, or too short: it is replaced as a whole.
            let gone = self.length_up_to(snapshot.position).unwrap_or(self.entries.len());
            self.entries.drain(..gone);
            self.snapshot = snapshot.clone();
        }
        if let Some(append) = &batch.append {
            let kept = self.length_up_to(append.after).expect("entries are appended to a log that has the place");
            self.entries.truncate(kept);
            self.entries.extend_from_slice(&append.entries);
        }
    }

    /// How many entries there are up to and with a place that the log has.
    fn length_up_to(&self, position: Position) -> Option<usize> {
        let length = usize::try_from(position.index.checked_sub(self.snapshot.position.index)?).ok()?;
        let entries = self.entries.get(..length)?;
        let there = entries.iter().fold(self.snapshot.position, |at, entry| at.next(entry));
        (there == position).then_some(length)
    }
}
