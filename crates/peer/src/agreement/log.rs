//! What a log consists of, as it is sent and written.

use alloc::{collections::BTreeSet, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{identity::MemberId, views::Command};

/// No term and no index is above this one. Whoever says so is wrong, and must not make our own overflow.
pub(super) const LAST: u64 = 1 << 62;

/// At most so many entries are sent at once.
pub const MOST_ENTRIES: usize = 64;

/// A place in the log. Of two logs the one whose last place is the larger is the more up to date, as Raft compares them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Position {
    /// The term of the leader that wrote the entry.
    pub term: u64,
    /// The how manieth entry it is, from 1.
    pub index: u64,
}

impl Position {
    /// Before the first entry.
    pub const ZERO: Self = Self { term: 0, index: 0 };

    pub(super) fn is_sound(self) -> bool {
        (self.term == 0) == (self.index == 0) && self.term <= LAST && self.index <= LAST
    }
}

/// Whose word counts.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Config {
    /// A majority of them decides.
    pub voters: BTreeSet<MemberId>,
    /// While the voters are being changed, a majority of those to come has to agree as well.
    pub new_voters: BTreeSet<MemberId>,
    /// They are told everything, and have no vote.
    pub non_voters: BTreeSet<MemberId>,
}

impl Config {
    /// Whether it has a vote, now or soon.
    #[must_use]
    pub fn is_voter(&self, id: MemberId) -> bool {
        self.voters.contains(&id) || self.new_voters.contains(&id)
    }

    /// Whether it is told everything.
    #[must_use]
    pub fn contains(&self, id: MemberId) -> bool {
        self.is_voter(id) || self.non_voters.contains(&id)
    }

    /// All who have a vote, now or soon.
    pub fn all_voters(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.voters.union(&self.new_voters).copied()
    }

    /// Whether the voters are being changed.
    #[must_use]
    pub fn is_joint(&self) -> bool {
        !self.new_voters.is_empty()
    }

    /// Whether these make a majority: of both sets of voters, if there are two.
    #[must_use]
    pub fn is_majority(&self, who: impl Fn(MemberId) -> bool) -> bool {
        self.most(|id| u8::from(who(id))) == 1
    }

    /// The largest value that a majority has at least reached: of both sets of voters, if there are two.
    pub(super) fn most<T: Ord + Copy + Default>(&self, value: impl Fn(MemberId) -> T) -> T {
        let of = |voters: &BTreeSet<MemberId>| {
            let mut values: Vec<T> = voters.iter().map(|id| value(*id)).collect();
            values.sort_unstable();
            // All but a minority have reached this one: of 3 the second, of 4 the second, of 5 the third.
            (!values.is_empty()).then(|| values[(values.len() - 1) / 2])
        };
        let old = of(&self.voters).unwrap_or_default();
        of(&self.new_voters).map_or(old, |new| old.min(new))
    }

    /// Somebody has a vote, and nobody both has one and has none.
    pub(super) fn is_sound(&self) -> bool {
        !self.voters.is_empty() && self.non_voters.iter().all(|id| !self.is_voter(*id))
    }
}

/// What stands at one place in the log.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Entry {
    /// From here on it is the log of the leader of this term.
    Term(u64),
    /// From here on, even before it is agreed on, these are the voters.
    Config(Config),
    /// A step to the next view.
    Command(Command),
}

/// Entries, and the place after which they stand. What stood there before is no longer.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Append {
    /// The last entry that stays.
    pub after: Position,
    /// What follows it.
    pub entries: Vec<Entry>,
}

impl Append {
    /// The place of each entry.
    pub fn positions(&self) -> impl Iterator<Item = Position> + '_ {
        let mut at = self.after;
        self.entries.iter().map(move |entry| {
            at = at.next(entry);
            at
        })
    }

    /// Whether a leader of `term` can have said this: terms only grow, up to its own, and nothing is out of bounds.
    pub(super) fn is_sound(&self, term: u64) -> bool {
        let mut latest = self.after.term;
        let grows = |entry: &Entry| match entry {
            Entry::Term(next) => {
                let grows = latest < *next && *next <= term;
                latest = *next;
                grows
            }
            Entry::Config(config) => config.is_sound(),
            Entry::Command(_) => true,
        };
        self.after.is_sound()
            && self.after.term <= term
            && self.entries.len() <= MOST_ENTRIES
            && self.entries.iter().all(grows)
    }
}

impl Position {
    /// Where an entry stands that follows this place.
    pub(super) fn next(self, entry: &Entry) -> Self {
        let term = if let Entry::Term(term) = entry { *term } else { self.term };
        Self { term, index: self.index + 1 }
    }
}
