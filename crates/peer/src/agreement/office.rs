//! What a member is in its term, beyond what `noraft` knows of it.

use alloc::collections::{BTreeMap, BTreeSet};

use super::Nanos;
use crate::identity::MemberId;

/// What a member is in its term.
#[derive(Clone, Debug)]
pub(super) enum Office {
    /// Neither leads nor wants to.
    Follower {
        /// The leader of the term, and when it was last heard.
        leader: Option<(MemberId, Nanos)>,
    },
    /// Asks whether it would be elected.
    Asking {
        /// Who would vote for it, itself included.
        granted: BTreeSet<MemberId>,
    },
    /// Stands for election.
    Candidate,
    /// Leads, and that it may is on disk.
    Leader(Leadership),
}

/// What a leader knows of those who follow it.
#[derive(Clone, Debug)]
pub(super) struct Leadership {
    /// Where the first entry of its term stands.
    pub(super) first: u64,
    /// When that one was agreed on.
    pub(super) since: Option<Nanos>,
    /// When it began.
    pub(super) began: Nanos,
    /// The latest round before it: its own are above.
    pub(super) rounds_before: u64,
    /// The latest round that it has sent out.
    pub(super) sent: u64,
    /// The latest round that a majority has answered.
    pub(super) confirmed: u64,
    /// What each of them last answered.
    pub(super) answers: BTreeMap<MemberId, Answer>,
    /// When each of them was last sent a snapshot.
    pub(super) snapshots: BTreeMap<MemberId, Nanos>,
    /// Where its command stands that is not yet agreed on.
    pub(super) proposed: Option<u64>,
    /// Who is to be given a vote, and the round that began when that was wished for.
    pub(super) wished: Option<(BTreeSet<MemberId>, u64)>,
}

/// What one who follows last answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    /// When.
    pub(super) at: Nanos,
    /// The highest round of anything that it answered.
    pub(super) round: u64,
}

impl Office {
    /// Follows nobody yet.
    pub(super) const NONE: Self = Self::Follower { leader: None };

    pub(super) fn leadership(&self) -> Option<&Leadership> {
        if let Self::Leader(leadership) = self { Some(leadership) } else { None }
    }

    pub(super) fn leadership_mut(&mut self) -> Option<&mut Leadership> {
        if let Self::Leader(leadership) = self { Some(leadership) } else { None }
    }
}

impl Leadership {
    pub(super) fn new(now: Nanos, first: u64, rounds: u64) -> Self {
        Self {
            first,
            since: None,
            began: now,
            rounds_before: rounds,
            // The first thing that it sends is a round of its own.
            sent: rounds,
            confirmed: rounds,
            answers: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            proposed: None,
            wished: None,
        }
    }

    /// An answer in its own term.
    pub(super) fn answered(&mut self, now: Nanos, from: MemberId, round: u64) {
        let answer = self.answers.entry(from).or_insert(Answer { at: now, round: 0 });
        answer.at = now;
        // A round that was never sent is nobody's answer.
        answer.round = answer.round.max(round.min(self.sent));
    }

    /// When a member was last heard; who has never been, when the leadership began.
    pub(super) fn heard(&self, id: MemberId) -> Nanos {
        self.answers.get(&id).map_or(self.began, |answer| answer.at)
    }

    /// The latest round that a member has answered.
    pub(super) fn round_of(&self, id: MemberId) -> u64 {
        self.answers.get(&id).map_or(0, |answer| answer.round)
    }
}
