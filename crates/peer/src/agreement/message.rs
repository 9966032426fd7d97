//! What members say to each other about the log.
//!
//! ```text
//!   asker     → voters     PreVote          would you vote for me?      (nothing is written)
//!   voter     → asker      PreVoteAnswer
//!   candidate → voters     Vote             I stand in this term
//!   voter     → candidate  VoteAnswer       (its vote is on its disk)
//!   leader    → all        Append           entries, or none: I lead; and what is agreed on
//!   all       → leader     AppendAnswer     so far goes my log (it is on my disk); the round that you asked in
//!   leader    → one        Snapshot         what the entries came to that you lack and I no longer have
//!   that one  → leader     AppendAnswer
//! ```

use serde::{Deserialize, Serialize};

use super::{
    disk::Snapshot,
    log::{Append, LAST, Position},
};

/// What members say to each other about the log. Who says it is told beside it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Would you vote for me?
    PreVote {
        /// The term that it would stand in.
        term: u64,
        /// The end of its log.
        last: Position,
    },
    /// The answer to it.
    PreVoteAnswer {
        /// If granted, the term of the question; if not, that of the one who answers, which may be news.
        term: u64,
        /// Whether it would.
        granted: bool,
    },
    /// I stand for election.
    Vote {
        /// In this term.
        term: u64,
        /// The end of its log.
        last: Position,
    },
    /// The answer to it.
    VoteAnswer {
        /// The term of the one who answers.
        term: u64,
        /// Whether it gave its vote.
        granted: bool,
    },
    /// I lead; have these entries.
    Append {
        /// The term of the leader.
        term: u64,
        /// So far is agreed on.
        commit: u64,
        /// The entries; often none.
        append: Append,
        /// The latest round of confirmation that the leader had begun when it sent this.
        round: u64,
    },
    /// The answer to it, and to a snapshot.
    AppendAnswer {
        /// The term of the one who answers.
        term: u64,
        /// The end of its log.
        last: Position,
        /// The round of what is answered, if that was said in this same term; otherwise 0.
        round: u64,
    },
    /// What the entries came to that you lack and I no longer have.
    Snapshot {
        /// The term of the leader.
        term: u64,
        /// What they came to.
        snapshot: Snapshot,
        /// As in Append.
        round: u64,
    },
}

impl Message {
    /// Whether a member that keeps to the rules can have said this. Nothing else is let in.
    pub(super) fn is_sound(&self) -> bool {
        match self {
            Self::PreVote { term, last } | Self::Vote { term, last } | Self::AppendAnswer { term, last, .. } => {
                *term <= LAST && last.is_sound()
            }
            Self::PreVoteAnswer { term, .. } | Self::VoteAnswer { term, .. } => *term <= LAST,
            Self::Append { term, append, .. } => *term <= LAST && append.is_sound(*term),
            Self::Snapshot { term, snapshot, .. } => {
                let position = snapshot.position;
                let is_some = position != Position::ZERO && snapshot.views.is_some();
                *term <= LAST && position.is_sound() && position.term <= *term && is_some && snapshot.config.is_sound()
            }
        }
    }
}
