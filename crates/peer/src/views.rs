//! The sequence of views, as the log has it: a pure state machine.
//!
//! Every command names the view that it was made for, and is refused in any other: of two that were made at the same time
//! the first wins, and the second has to be thought over. Nothing here reads a clock; what was true when a command was made
//! and may no longer be is in the command, to be compared.

use alloc::{
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};

use serde::{Deserialize, Serialize};

use crate::{
    charter::Charter,
    fence::LAST_VIEW,
    identity::{Address, ClusterId, Incarnation, MemberId},
    view::{Member, View, ViewNumber},
};

/// So many removed disks are remembered, the latest.
pub const MOST_RETIRED: usize = 1024;

/// What the log says so far.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Views {
    /// Which cluster it is.
    pub cluster: ClusterId,
    /// What all members go by.
    pub charter: Charter,
    number: ViewNumber,
    members: BTreeMap<MemberId, Member>,
    /// Disks whose member was removed: they never come back.
    retired: VecDeque<MemberId>,
}

/// A step from one view to the next.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Command {
    /// The view that it was made for.
    pub view: ViewNumber,
    /// The term of the leader that made it.
    pub term: u64,
    /// What is to be different; nothing, if only a larger number is wanted.
    pub changes: Vec<Change>,
}

/// What is to be different in the next view.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Change {
    /// This process becomes a member. If another process of its disk was one, that one's lease is over.
    Admit {
        /// Its disk.
        id: MemberId,
        /// Itself.
        incarnation: Incarnation,
        /// Where it is.
        address: Address,
        /// When it sent its Join, on its own clock.
        join_sent: u64,
        /// The process that it replaces, if any.
        replaces: Option<Incarnation>,
    },
    /// This process is a member no longer: its lease is over.
    Remove {
        /// Its disk.
        id: MemberId,
        /// Itself: the generation of the lease that ran out.
        incarnation: Incarnation,
    },
    /// This process leaves: it has ended all that it held.
    Leave {
        /// Its disk.
        id: MemberId,
        /// Itself.
        incarnation: Incarnation,
    },
}

/// Why a command changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// It was made for an earlier view.
    ViewMoved,
    /// The leader that made it was no longer the leader when it was written.
    TermMoved,
    /// A member is not the process that the command is about.
    ProcessMoved,
    /// There are no more numbers.
    NoMoreViews,
}

impl Views {
    /// Before the first view: nobody is a member yet.
    #[must_use]
    pub fn new(cluster: ClusterId, charter: Charter, number: ViewNumber) -> Self {
        Self { cluster, charter, number, members: BTreeMap::new(), retired: VecDeque::new() }
    }

    /// The number of the view.
    #[must_use]
    pub fn number(&self) -> ViewNumber {
        self.number
    }

    /// The members, in the order of their ids.
    #[must_use]
    pub fn members(&self) -> &BTreeMap<MemberId, Member> {
        &self.members
    }

    /// The view.
    #[must_use]
    pub fn view(&self) -> View {
        View { number: self.number, members: self.members.values().cloned().collect() }
    }

    /// Whether a disk's member was removed, so that it never comes back.
    #[must_use]
    pub fn is_retired(&self, id: MemberId) -> bool {
        self.retired.contains(&id)
    }

    /// A command of the log, written in `term`.
    ///
    /// # Errors
    /// Why nothing has changed.
    pub fn apply(&mut self, term: u64, command: &Command) -> Result<(), Refused> {
        if command.view != self.number {
            return Err(Refused::ViewMoved);
        }
        if command.term != term {
            return Err(Refused::TermMoved);
        }
        if self.number >= LAST_VIEW {
            return Err(Refused::NoMoreViews);
        }
        if !command.changes.iter().all(|change| self.is_about_what_is(change)) {
            return Err(Refused::ProcessMoved);
        }
        self.number += 1;
        for change in &command.changes {
            self.change(change);
        }
        Ok(())
    }

    fn is_about_what_is(&self, change: &Change) -> bool {
        let incarnation = |id| self.members.get(id).map(|member| member.incarnation);
        match change {
            Change::Admit { id, incarnation: new, replaces, .. } => {
                incarnation(id) == *replaces && replaces.is_none_or(|old| old < *new) && !self.is_retired(*id)
            }
            Change::Remove { id, incarnation: old } | Change::Leave { id, incarnation: old } => {
                incarnation(id) == Some(*old)
            }
        }
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::Admit { id, incarnation, address, join_sent, .. } => {
                let member = Member {
                    id: *id,
                    incarnation: *incarnation,
                    address: address.clone(),
                    joined_in: self.number,
                    join_sent: *join_sent,
                };
                self.members.insert(*id, member);
            }
            Change::Remove { id, .. } => {
                self.members.remove(id);
                self.retired.push_back(*id);
                if self.retired.len() > MOST_RETIRED {
                    self.retired.pop_front();
                }
            }
            Change::Leave { id, .. } => {
                self.members.remove(id);
            }
        }
    }
}
