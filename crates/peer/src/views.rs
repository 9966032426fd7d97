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

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    const TERM: u64 = 4;

    fn views() -> Views {
        let mut views = Views::new(ClusterId(1), Charter::new(8), 100);
        let changes = vec![admit(1, 1, None), admit(2, 1, None)];
        assert_eq!(views.apply(TERM, &Command { view: 100, term: TERM, changes }), Ok(()));
        views
    }

    fn admit(id: u64, incarnation: u64, replaces: Option<u64>) -> Change {
        Change::Admit {
            id: MemberId(id),
            incarnation: Incarnation(incarnation),
            address: Address::new("somewhere"),
            join_sent: 7,
            replaces: replaces.map(Incarnation),
        }
    }

    fn remove(id: u64, incarnation: u64) -> Change {
        Change::Remove { id: MemberId(id), incarnation: Incarnation(incarnation) }
    }

    fn refused(views: &Views, command: &Command) -> Refused {
        let mut after = views.clone();
        let why = after.apply(TERM, command).expect_err("it is refused");
        assert_eq!(after, *views, "and nothing has changed");
        why
    }

    fn command(changes: Vec<Change>) -> Command {
        Command { view: 101, term: TERM, changes }
    }

    #[test]
    fn a_command_counts_in_its_view_only() {
        let views = views();
        assert_eq!(refused(&views, &Command { view: 100, ..command(vec![]) }), Refused::ViewMoved);
        assert_eq!(refused(&views, &Command { view: 102, ..command(vec![]) }), Refused::ViewMoved);
    }

    #[test]
    fn a_command_counts_in_its_term_only() {
        let views = views();
        assert_eq!(refused(&views, &Command { term: TERM - 1, ..command(vec![remove(1, 1)]) }), Refused::TermMoved);
    }

    #[test]
    fn a_process_that_was_replaced_is_not_removed() {
        let mut views = views();
        assert_eq!(views.apply(TERM, &command(vec![admit(1, 2, Some(1))])), Ok(()));
        let late = Command { view: 102, ..command(vec![remove(1, 1)]) };
        assert_eq!(refused(&views, &late), Refused::ProcessMoved);
        assert_eq!(views.members()[&MemberId(1)].joined_in, 102);
        assert_eq!(views.members()[&MemberId(2)].joined_in, 101, "who was there before stays as it is");
    }

    #[test]
    fn an_earlier_process_does_not_come_back() {
        let views = views();
        assert_eq!(refused(&views, &command(vec![admit(1, 1, Some(1))])), Refused::ProcessMoved);
        assert_eq!(refused(&views, &command(vec![admit(1, 2, None)])), Refused::ProcessMoved, "somebody is there");
    }

    #[test]
    fn a_removed_disk_never_comes_back_and_one_that_left_may() {
        let mut views = views();
        let leave = Change::Leave { id: MemberId(2), incarnation: Incarnation(1) };
        assert_eq!(views.apply(TERM, &command(vec![remove(1, 1), leave])), Ok(()));
        assert!(views.members().is_empty() && views.is_retired(MemberId(1)) && !views.is_retired(MemberId(2)));
        let back = |id| Command { view: 102, ..command(vec![admit(id, 9, None)]) };
        assert_eq!(refused(&views, &back(1)), Refused::ProcessMoved);
        assert_eq!(views.apply(TERM, &back(2)), Ok(()));
    }

    #[test]
    fn there_is_a_last_view() {
        let mut views = Views { number: LAST_VIEW - 1, ..views() };
        let next = |view| Command { view, term: TERM, changes: vec![] };
        assert_eq!(views.apply(TERM, &next(LAST_VIEW - 1)), Ok(()));
        assert_eq!(refused(&views, &next(LAST_VIEW)), Refused::NoMoreViews);
    }

    #[test]
    fn only_so_many_removed_disks_are_remembered() {
        let mut views = views();
        for id in 10..10 + MOST_RETIRED as u64 + 1 {
            for changes in [vec![admit(id, 1, None)], vec![remove(id, 1)]] {
                let view = views.number();
                assert_eq!(views.apply(TERM, &Command { view, term: TERM, changes }), Ok(()));
            }
        }
        assert_eq!(views.retired.len(), MOST_RETIRED);
        assert!(!views.is_retired(MemberId(10)) && views.is_retired(MemberId(11)));
    }
}
