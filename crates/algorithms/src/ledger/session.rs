//! Those who are inside together. Steps: docs/algorithms/ledger-group.md.
//!
//! Whoever finds nobody inside opens a session, and gives it its label. Others of that label join it. As long as nobody of
//! another label waits, they join as they come; otherwise they would pass one who waits, and may do so only while the one
//! who opened the session is inside (the leader rule of Cenci and Ardenghi), and only so many of them a session.

use alloc::collections::BTreeMap;

use serde::Serialize;

/// G: how many of a session may pass those of other labels who wait.
pub const MOST_PASSERS: u32 = 64;

/// Those who are inside together: at least one, but for the moment in which the last one leaves.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Session<Id, Label> {
    label: Label,
    /// Who opened it, as long as that one is inside.
    opener: Option<Id>,
    /// How many have joined it past one of another label who waits.
    passed: u32,
    /// Who is inside, each with its weight.
    holders: BTreeMap<Id, u32>,
    /// How many units they have together.
    used: u64,
}

impl<Id: Copy + Ord, Label: Eq> Session<Id, Label> {
    /// LEDGER:g2 Whoever finds nobody inside opens a session of its label.
    pub(super) fn open(opener: Id, weight: u32, label: Label) -> Self {
        Self { opener: Some(opener), ..Self::reopen(opener, weight, label) }
    }

    /// LEDGER:g7 Who opened it is not known any more.
    pub(super) fn reopen(id: Id, weight: u32, label: Label) -> Self {
        Self { label, opener: None, passed: 0, holders: BTreeMap::from([(id, weight)]), used: weight.into() }
    }

    pub(super) fn join(&mut self, id: Id, weight: u32, passing: bool) {
        let earlier = self.holders.insert(id, weight);
        assert!(earlier.is_none(), "nobody is inside twice");
        self.used += u64::from(weight);
        self.passed += u32::from(passing); // LEDGER:g4
    }

    /// Somebody leaves; false if it was not inside.
    pub(super) fn remove(&mut self, id: Id) -> bool {
        self.opener.take_if(|opener| *opener == id); // LEDGER:g5
        let weight = self.holders.remove(&id);
        self.used -= weight.map_or(0, u64::from);
        weight.is_some()
    }

    /// LEDGER:g4 Whether one more of this label may pass those of other labels who wait.
    pub(super) const fn may_pass(&self) -> bool {
        self.opener.is_some() && self.passed < MOST_PASSERS
    }

    pub(super) const fn label(&self) -> &Label {
        &self.label
    }

    pub(super) fn is_of(&self, label: &Label) -> bool {
        self.label == *label
    }

    pub(super) fn contains(&self, id: Id) -> bool {
        self.holders.contains_key(&id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.holders.is_empty()
    }

    /// Who is inside, each with its weight.
    pub(super) fn holders(&self) -> impl Iterator<Item = (Id, u32)> + '_ {
        self.holders.iter().map(|(id, weight)| (*id, *weight))
    }

    /// How many units those inside have together.
    pub(super) const fn used(&self) -> u64 {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use alloc::{vec, vec::Vec};

    use super::MOST_PASSERS;
    use crate::ledger::Ledger;

    fn ledger() -> Ledger<u32, char> {
        Ledger::new(u32::MAX)
    }

    #[test]
    fn those_of_one_label_join_as_they_come() {
        let mut ledger = ledger();
        for id in 1..=100 {
            assert_eq!(ledger.ask(id, 1, 'a'), Ok(vec![id]));
        }
        assert_eq!(ledger.release(1), Ok(vec![]));
        assert_eq!(ledger.ask(1, 1, 'a'), Ok(vec![1]), "nobody of another label waits");
    }

    #[test]
    fn nobody_passes_when_the_opener_has_left() {
        let mut ledger = ledger();
        assert_eq!(ledger.ask(1, 1, 'a'), Ok(vec![1]));
        assert_eq!(ledger.ask(2, 1, 'b'), Ok(vec![]));
        assert_eq!(ledger.ask(3, 1, 'a'), Ok(vec![3]), "1 opened it and is inside");
        assert_eq!(ledger.release(1), Ok(vec![]));
        assert_eq!(ledger.ask(4, 1, 'a'), Ok(vec![]));
        assert_eq!(ledger.release(3), Ok(vec![2]));
        assert_eq!(ledger.release(2), Ok(vec![4]));
    }

    #[test]
    fn an_opener_that_comes_back_is_one_like_others() {
        let mut ledger = ledger();
        assert_eq!(ledger.ask(1, 1, 'a'), Ok(vec![1]));
        assert_eq!(ledger.ask(2, 1, 'a'), Ok(vec![2]));
        assert_eq!(ledger.release(1), Ok(vec![]));
        assert_eq!(ledger.ask(1, 1, 'a'), Ok(vec![1]));
        assert_eq!(ledger.ask(3, 1, 'b'), Ok(vec![]));
        assert_eq!(ledger.ask(4, 1, 'a'), Ok(vec![]));
    }

    #[test]
    fn only_so_many_pass() {
        let mut ledger = ledger();
        assert_eq!(ledger.ask(0, 1, 'a'), Ok(vec![0]));
        assert_eq!(ledger.ask(1000, 1, 'a'), Ok(vec![1000]), "nobody is passed yet");
        assert_eq!(ledger.ask(2000, 1, 'b'), Ok(vec![]));
        for id in 1..=MOST_PASSERS {
            assert_eq!(ledger.ask(id, 1, 'a'), Ok(vec![id]));
            assert_eq!(ledger.release(id), Ok(vec![]));
        }
        assert_eq!(ledger.ask(3000, 1, 'a'), Ok(vec![]));
        assert_eq!(ledger.release(1000), Ok(vec![]));
        assert_eq!(ledger.release(0), Ok(vec![2000]));
        assert_eq!(ledger.ask(1, 1, 'b'), Ok(vec![1]), "the next session counts anew");
    }

    #[test]
    fn the_first_in_line_opens_and_takes_along_those_of_its_label() {
        let mut ledger = ledger();
        assert_eq!(ledger.ask(1, 1, 'a'), Ok(vec![1]));
        assert_eq!(ledger.ask(2, 1, 'b'), Ok(vec![]));
        assert_eq!(ledger.ask(3, 1, 'c'), Ok(vec![]));
        for id in 4..4 + 100 {
            assert_eq!(ledger.ask(id, 1, 'b'), Ok(vec![]));
        }
        let entering: Vec<u32> = [2].into_iter().chain(4..4 + MOST_PASSERS).collect();
        assert_eq!(ledger.release(1), Ok(entering), "as many as may pass 3");
    }

    #[test]
    fn whom_the_units_do_not_suffice_for_is_not_passed_by_its_own_label() {
        let mut ledger = Ledger::new(2);
        assert_eq!(ledger.ask(1, 1, 'a'), Ok(vec![1]));
        assert_eq!(ledger.ask(2, 2, 'a'), Ok(vec![]));
        assert_eq!(ledger.ask(3, 1, 'a'), Ok(vec![]));
        assert_eq!(ledger.ask(4, 1, 'b'), Ok(vec![]));
        assert_eq!(ledger.release(1), Ok(vec![2]));
        assert_eq!(ledger.release(2), Ok(vec![3]));
        assert_eq!(ledger.release(3), Ok(vec![4]));
    }
    #[test]
    fn nobody_passes_in_a_session_of_those_who_were_inside_before() {
        let mut ledger = ledger();
        assert_eq!(ledger.readmit(1, 1, 'a'), Ok(()));
        assert_eq!(ledger.readmit(2, 1, 'b'), Err("a re-entry beside those of another label"));
        assert_eq!(ledger.ask(3, 1, 'a'), Ok(vec![3]), "nobody is passed");
        assert_eq!(ledger.ask(4, 1, 'b'), Ok(vec![]));
        assert_eq!(ledger.ask(5, 1, 'a'), Ok(vec![]));
        assert_eq!(ledger.readmit(6, 1, 'a'), Ok(()), "but this one was inside before");
        assert_eq!([1, 3].map(|id| ledger.release(id)), [Ok(vec![]), Ok(vec![])]);
        assert_eq!(ledger.release(6), Ok(vec![4]));
        assert_eq!(ledger.release(4), Ok(vec![5]));
    }

    #[test]
    fn when_the_only_one_of_another_label_gives_up_all_behind_it_join() {
        let mut ledger = ledger();
        assert_eq!(ledger.readmit(1, 1, 'a'), Ok(()));
        assert_eq!(ledger.ask(2, 1, 'b'), Ok(vec![]));
        assert_eq!(ledger.ask(3, 1, 'a'), Ok(vec![]));
        assert_eq!(ledger.ask(4, 1, 'a'), Ok(vec![]));
        assert_eq!(ledger.cancel(2), Ok(vec![3, 4]));
    }
}
