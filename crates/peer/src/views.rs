//! The sequence of views, as the log has it: a pure state machine.
//!
//! Every command names the view that it was made for, and is refused in any other: of two that were made at the same time
//! the first wins, and the second has to be thought over. Nothing here reads a clock; what was true when a command was made
//! and may no longer be is in the command, to be compared.
//!
//! Beside the views the log has what members have pledged: how long they may keep what outlives them ([`crate::keep`]). A
//! pledge changes nothing that members settle, so it makes no view.

use alloc::{
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};

use serde::{Deserialize, Serialize};

use crate::{
    charter::{Charter, LONGEST_LEASE},
    fence::LAST_VIEW,
    identity::{Address, ClusterId, Incarnation, MemberId},
    view::{Member, View, ViewNumber},
};

/// So many removed disks are remembered, the latest.
pub const MOST_RETIRED: usize = 1024;
/// No pledge is longer: for as long a dead member is not removed.
pub const LONGEST_PLEDGE: u64 = LONGEST_LEASE;

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
    /// What members have pledged; nothing of those who are gone.
    pledges: BTreeMap<MemberId, Pledge>,
}

/// A member's word that nothing which it keeps outlives its lease by more than this.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Pledge {
    /// A later pledge of a process has a larger one; 0 if it has pledged nothing yet.
    pub number: u64,
    /// How long, in nanoseconds on anybody's clock.
    pub ttl: u64,
}

/// A step from one view to the next, or what members pledge.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Command {
    /// The view that it was made for.
    pub view: ViewNumber,
    /// The term of the leader that made it.
    pub term: u64,
    /// What is to be different; nothing, if only a larger number is wanted.
    pub changes: Vec<Change>,
}

impl Command {
    /// Whether there is a new view by it.
    fn makes_view(&self) -> bool {
        let pledges = |change: &Change| matches!(change, Change::Pledge { .. });
        self.changes.is_empty() || !self.changes.iter().all(pledges)
    }
}

/// What is to be different from then on.
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
        /// The number of that one's pledge that was waited for.
        pledge: u64,
    },
    /// This process is a member no longer: its lease is over.
    Remove {
        /// Its disk.
        id: MemberId,
        /// Itself: the generation of the lease that ran out.
        incarnation: Incarnation,
        /// The number of its pledge that was waited for.
        pledge: u64,
    },
    /// This process leaves: it has ended all that it held.
    Leave {
        /// Its disk.
        id: MemberId,
        /// Itself.
        incarnation: Incarnation,
    },
    /// This process keeps nothing for longer than that. The view stays as it is.
    Pledge {
        /// Its disk.
        id: MemberId,
        /// Itself.
        incarnation: Incarnation,
        /// What it pledges.
        pledge: Pledge,
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
    /// What a member has pledged is not what the command counted on.
    PledgeMoved,
    /// There are no more numbers.
    NoMoreViews,
}

impl Views {
    /// Before the first view: nobody is a member yet.
    #[must_use]
    pub fn new(cluster: ClusterId, charter: Charter, number: ViewNumber) -> Self {
        let (members, retired, pledges) = (BTreeMap::new(), VecDeque::new(), BTreeMap::new());
        Self { cluster, charter, number, members, retired, pledges }
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

    /// What a process has pledged, if it is a member; nothing, if it has pledged nothing.
    #[must_use]
    pub fn pledge(&self, id: MemberId, incarnation: Incarnation) -> Pledge {
        let is_member = self.members.get(&id).is_some_and(|member| member.incarnation == incarnation);
        self.pledges.get(&id).filter(|_| is_member).copied().unwrap_or_default()
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
        if command.makes_view() && self.number >= LAST_VIEW {
            return Err(Refused::NoMoreViews);
        }
        if !command.changes.iter().all(|change| self.is_about_what_is(change)) {
            return Err(Refused::ProcessMoved);
        }
        if !command.changes.iter().all(|change| self.counts_on_what_is_pledged(change)) {
            return Err(Refused::PledgeMoved);
        }
        self.number += u64::from(command.makes_view());
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
            Change::Remove { id, incarnation: old, .. }
            | Change::Leave { id, incarnation: old }
            | Change::Pledge { id, incarnation: old, .. } => incarnation(id) == Some(*old),
        }
    }

    /// Whoever is not waited for any more was waited for as long as it has pledged (L4), and of two pledges the later counts.
    fn counts_on_what_is_pledged(&self, change: &Change) -> bool {
        let number = |id| self.pledges.get(id).map_or(0, |pledge| pledge.number);
        match change {
            Change::Admit { id, pledge, .. } | Change::Remove { id, pledge, .. } => *pledge == number(id),
            Change::Pledge { id, pledge, .. } => pledge.number > number(id) && pledge.ttl <= LONGEST_PLEDGE,
            Change::Leave { .. } => true,
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
                self.pledges.remove(id);
            }
            Change::Remove { id, .. } => {
                self.members.remove(id);
                self.pledges.remove(id);
                self.retired.push_back(*id);
                if self.retired.len() > MOST_RETIRED {
                    self.retired.pop_front();
                }
            }
            Change::Leave { id, .. } => {
                self.members.remove(id);
                self.pledges.remove(id);
            }
            Change::Pledge { id, incarnation, pledge } => {
                // The same command may have made it another's.
                if self.members.get(id).is_some_and(|member| member.incarnation == *incarnation) {
                    self.pledges.insert(*id, *pledge);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
