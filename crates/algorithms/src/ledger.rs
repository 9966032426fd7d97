//! A ledger: who is inside with how many units, and who waits. Steps: docs/algorithms/ledger.md.
//!
//! It serves one name, wherever that name's home is, and knows neither nodes nor messages. A request has an id, a weight (how
//! many of the units it takes) and a label (those of another label cannot be inside at the same time). Whoever keeps the
//! ledger tells it of requests, releases and resizes, and is told whom to let in now. A ledger that was lost with its home is
//! written anew from what those inside say.
//!
//! The line is first come, first served, by weight: who does not fit yet holds up all who come after it, so that a large
//! request is not starved by small ones. Two may be passed: one that asks for more units than there are at all, and one of
//! another label than those inside, within the bounds that the session sets (`ledger/session.rs`).

mod session;

use alloc::{collections::VecDeque, vec::Vec};

use serde::Serialize;
pub use session::MOST_PASSERS;
use session::Session;

/// Who is inside, and who waits. An id stands for at most one request that waits and one that is inside.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Ledger<Id, Label> {
    /// k: how many units there are.
    units: u32,
    /// Those inside, if anybody is.
    inside: Option<Session<Id, Label>>,
    /// Those who wait, the first to come first.
    line: VecDeque<Request<Id, Label>>,
}

/// What somebody waits for.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Request<Id, Label> {
    id: Id,
    weight: u32,
    label: Label,
}

/// What the line comes to for one who stands in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    /// It enters.
    Enters,
    /// It waits, and so do all after it.
    HoldsUp,
    /// It waits, and who comes after it does not wait for it.
    StandsAside,
    /// It waits, and those of the label inside may pass it.
    IsPassed,
}

impl<Id: Copy + Ord, Label: Eq> Ledger<Id, Label> {
    /// Nobody is inside or waits, and there are so many units.
    #[must_use]
    pub const fn new(units: u32) -> Self {
        Self { units, inside: None, line: VecDeque::new() }
    }

    /// Somebody wants in. What comes back is whom to let in now, in their order.
    ///
    /// # Errors
    /// If that id waits already; nothing has changed then.
    pub fn ask(&mut self, id: Id, weight: u32, label: Label) -> Result<Vec<Id>, &'static str> {
        if self.waits(id) {
            return Err("an Ask by one who waits already");
        }
        self.line.push_back(Request { id, weight, label }); // LEDGER:2
        Ok(self.admit())
    }

    /// Somebody has left. What comes back is whom to let in now.
    ///
    /// # Errors
    /// If that id is not inside; nothing has changed then.
    pub fn release(&mut self, id: Id) -> Result<Vec<Id>, &'static str> {
        if !self.inside.as_mut().is_some_and(|session| session.remove(id)) {
            return Err("a Release by one who is not inside");
        }
        self.inside.take_if(|session| session.is_empty());
        Ok(self.admit()) // LEDGER:6
    }

    /// One who waits gives up. What comes back is whom to let in now.
    ///
    /// # Errors
    /// If that id does not wait; nothing has changed then.
    pub fn cancel(&mut self, id: Id) -> Result<Vec<Id>, &'static str> {
        let at = self.line.iter().position(|request| request.id == id).ok_or("a Cancel by one who does not wait")?;
        self.line.remove(at);
        Ok(self.admit()) // LEDGER:8
    }

    /// Somebody was inside before this ledger was written, and is so still, whatever the units say.
    ///
    /// # Errors
    /// If that id is inside already, or somebody of another label is; nothing has changed then.
    pub fn readmit(&mut self, id: Id, weight: u32, label: Label) -> Result<(), &'static str> {
        match &mut self.inside {
            Some(session) if session.contains(id) => return Err("a re-entry by one who is inside already"),
            Some(session) if !session.is_of(&label) => return Err("a re-entry beside those of another label"),
            Some(session) => session.join(id, weight, false), // LEDGER:9
            None => self.inside = Some(Session::reopen(id, weight, label)), // LEDGER:9
        }
        Ok(())
    }

    /// Let there be so many units from now on. What comes back is whom to let in now. Whoever is inside stays.
    pub fn resize(&mut self, units: u32) -> Vec<Id> {
        self.units = units; // LEDGER:7
        self.admit()
    }

    /// How many units there are.
    #[must_use]
    pub const fn units(&self) -> u32 {
        self.units
    }

    /// Whether that id is inside, as far as the ledger knows.
    #[must_use]
    pub fn holds(&self, id: Id) -> bool {
        self.inside.as_ref().is_some_and(|session| session.contains(id))
    }

    /// Whether that id waits.
    #[must_use]
    pub fn waits(&self, id: Id) -> bool {
        self.line.iter().any(|request| request.id == id)
    }

    /// Those inside, each with its weight.
    pub fn holders(&self) -> impl Iterator<Item = (Id, u32)> + '_ {
        self.inside.iter().flat_map(Session::holders)
    }

    /// Those who wait, each with its weight and label, the first to come first.
    pub fn waiting(&self) -> impl Iterator<Item = (Id, u32, &Label)> + '_ {
        self.line.iter().map(|request| (request.id, request.weight, &request.label))
    }

    /// The label of those inside, if anybody is.
    #[must_use]
    pub fn label(&self) -> Option<&Label> {
        self.inside.as_ref().map(Session::label)
    }

    /// Whether nobody is inside and nobody waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.inside.is_none() && self.line.is_empty()
    }

    /// Goes through the line, and takes out of it whoever enters.
    fn admit(&mut self) -> Vec<Id> {
        let mut admitted = Vec::new();
        let (mut at, mut passing) = (0, false);
        while let Some(request) = self.line.get(at) {
            match self.turn(request, passing) {
                Turn::Enters => {
                    let request = self.line.remove(at).expect("it stands in the line");
                    admitted.push(request.id);
                    self.enter(request, passing);
                }
                Turn::HoldsUp => break,
                Turn::StandsAside => at += 1,
                Turn::IsPassed => (at, passing) = (at + 1, true),
            }
        }
        let used = self.inside.as_ref().map_or(0, Session::used);
        assert!(admitted.is_empty() || used <= u64::from(self.units), "whoever is let in fits");
        admitted
    }

    fn turn(&self, request: &Request<Id, Label>, passing: bool) -> Turn {
        // LEDGER:4 It does not fit even if everybody leaves: only a resize can help it, and nobody else need wait for that.
        if request.weight > self.units {
            return Turn::StandsAside;
        }
        let Some(session) = &self.inside else { return Turn::Enters };
        if !session.is_of(&request.label) {
            return if session.may_pass() { Turn::IsPassed } else { Turn::HoldsUp };
        }
        let fits = session.used() + u64::from(request.weight) <= u64::from(self.units); // LEDGER:3
        // LEDGER:5 Its Ask may have overtaken its own last Release.
        let gone = !session.contains(request.id);
        if fits && gone && (!passing || session.may_pass()) { Turn::Enters } else { Turn::HoldsUp }
    }

    fn enter(&mut self, request: Request<Id, Label>, passing: bool) {
        match &mut self.inside {
            Some(session) => session.join(request.id, request.weight, passing),
            None => self.inside = Some(Session::open(request.id, request.weight, request.label)),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn ledger(units: u32) -> Ledger<u32, ()> {
        Ledger::new(units)
    }

    #[test]
    fn a_large_request_holds_up_the_small_ones_behind_it() {
        let mut ledger = ledger(3);
        assert_eq!(ledger.ask(1, 2, ()), Ok(vec![1]));
        assert_eq!(ledger.ask(2, 3, ()), Ok(vec![]));
        assert_eq!(ledger.ask(3, 1, ()), Ok(vec![]), "one unit is free, but 2 came first");
        assert_eq!(ledger.release(1), Ok(vec![2]));
        assert_eq!(ledger.release(2), Ok(vec![3]));
    }

    #[test]
    fn all_who_fit_enter_at_once() {
        let mut ledger = ledger(3);
        assert_eq!(ledger.ask(1, 3, ()), Ok(vec![1]));
        for id in 2..=5 {
            assert_eq!(ledger.ask(id, 1, ()), Ok(vec![]));
        }
        assert_eq!(ledger.release(1), Ok(vec![2, 3, 4]));
    }

    #[test]
    fn shrinking_admits_nobody_until_it_fits() {
        let mut ledger = ledger(3);
        for id in 1..=3 {
            assert_eq!(ledger.ask(id, 1, ()), Ok(vec![id]));
        }
        assert_eq!(ledger.ask(4, 1, ()), Ok(vec![]));
        assert_eq!(ledger.resize(1), vec![]);
        assert_eq!(ledger.release(1), Ok(vec![]));
        assert_eq!(ledger.release(2), Ok(vec![]));
        assert_eq!(ledger.release(3), Ok(vec![4]));
        assert_eq!(ledger.units(), 1);
    }

    #[test]
    fn growing_admits_those_who_fit_now() {
        let mut ledger = ledger(1);
        assert_eq!(ledger.ask(1, 1, ()), Ok(vec![1]));
        for id in 2..=4 {
            assert_eq!(ledger.ask(id, 1, ()), Ok(vec![]));
        }
        assert_eq!(ledger.resize(3), vec![2, 3]);
    }

    #[test]
    fn who_asks_for_more_than_there_is_waits_aside_and_keeps_its_place() {
        let mut ledger = ledger(2);
        assert_eq!(ledger.ask(1, 3, ()), Ok(vec![]));
        assert_eq!(ledger.ask(2, 1, ()), Ok(vec![2]));
        assert_eq!(ledger.resize(3), vec![], "from now on 1 is the first again");
        assert_eq!(ledger.ask(3, 1, ()), Ok(vec![]));
        assert_eq!(ledger.release(2), Ok(vec![1]));
        // A resize that sends the first in line aside lets in who stood behind it.
        assert_eq!(ledger.resize(4), vec![3]);
        assert_eq!(ledger.ask(4, 4, ()), Ok(vec![]));
        assert_eq!(ledger.release(1), Ok(vec![]));
        assert_eq!(ledger.ask(5, 1, ()), Ok(vec![]));
        assert_eq!(ledger.resize(3), vec![5]);
    }

    #[test]
    fn who_asks_again_before_its_release_has_come_waits_for_it() {
        let mut ledger = ledger(2);
        assert_eq!(ledger.ask(1, 1, ()), Ok(vec![1]));
        assert_eq!(ledger.ask(1, 1, ()), Ok(vec![]), "a unit is free, but the last stay of 1 is not over");
        assert_eq!(ledger.ask(2, 1, ()), Ok(vec![]), "first come, first served");
        assert_eq!(ledger.release(1), Ok(vec![1, 2]));
    }

    #[test]
    fn what_makes_no_sense_changes_nothing() {
        let mut ledger = ledger(1);
        assert_eq!(ledger.ask(1, 1, ()), Ok(vec![1]));
        assert_eq!(ledger.ask(2, 1, ()), Ok(vec![]));
        let before = ledger.clone();
        assert_eq!(ledger.ask(2, 1, ()), Err("an Ask by one who waits already"));
        assert_eq!(ledger.release(2), Err("a Release by one who is not inside"));
        assert_eq!(ledger, before);
        assert!(ledger.holds(1) && !ledger.holds(2) && ledger.waits(2));
    }

    #[test]
    fn weights_do_not_overflow() {
        let mut ledger = ledger(u32::MAX);
        assert_eq!(ledger.ask(1, u32::MAX, ()), Ok(vec![1]));
        assert_eq!(ledger.ask(2, u32::MAX, ()), Ok(vec![]));
        assert_eq!(ledger.ask(3, 0, ()), Ok(vec![]), "nothing is asked for, but not out of turn");
        assert_eq!(ledger.release(1), Ok(vec![2, 3]));
    }
    #[test]
    fn when_a_large_request_gives_up_the_small_ones_behind_it_enter() {
        let mut ledger = ledger(3);
        assert_eq!(ledger.ask(1, 2, ()), Ok(vec![1]));
        assert_eq!(ledger.ask(2, 3, ()), Ok(vec![]));
        assert_eq!(ledger.ask(3, 1, ()), Ok(vec![]));
        assert_eq!(ledger.ask(4, 1, ()), Ok(vec![]));
        assert_eq!(ledger.cancel(4), Ok(vec![]), "2 is still before all others");
        assert_eq!(ledger.cancel(2), Ok(vec![3]));
        let before = ledger.clone();
        assert_eq!(ledger.cancel(2), Err("a Cancel by one who does not wait"));
        assert_eq!(ledger.cancel(1), Err("a Cancel by one who does not wait"), "whoever is inside leaves by a Release");
        assert_eq!(ledger, before);
    }

    #[test]
    fn whoever_was_inside_is_so_at_once_and_nobody_else_until_it_fits() {
        let mut ledger = ledger(2);
        for id in 1..=3 {
            assert_eq!(ledger.readmit(id, 1, ()), Ok(()));
        }
        assert_eq!(ledger.ask(4, 1, ()), Ok(vec![]));
        assert_eq!(ledger.ask(5, 0, ()), Ok(vec![]), "not even one who asks for nothing");
        assert_eq!(ledger.readmit(6, 1, ()), Ok(()), "also past those who wait");
        assert_eq!(ledger.cancel(5), Ok(vec![]));
        assert_eq!([1, 2].map(|id| ledger.release(id)), [Ok(vec![]), Ok(vec![])]);
        assert_eq!(ledger.release(3), Ok(vec![4]));
        let before = ledger.clone();
        assert_eq!(ledger.readmit(4, 1, ()), Err("a re-entry by one who is inside already"));
        assert_eq!(ledger, before);
    }

    #[test]
    fn whoever_was_inside_may_have_asked_anew() {
        let mut ledger = ledger(2);
        assert_eq!(ledger.ask(1, 2, ()), Ok(vec![1]));
        assert_eq!(ledger.ask(2, 1, ()), Ok(vec![]));
        assert_eq!(ledger.readmit(2, 1, ()), Ok(()));
        assert_eq!(ledger.release(1), Ok(vec![]), "the last stay of 2 is not over");
        assert_eq!(ledger.release(2), Ok(vec![2]));
    }

    #[test]
    fn a_ledger_can_be_read() {
        let mut ledger: Ledger<u32, char> = Ledger::new(3);
        assert!(ledger.is_idle() && ledger.label().is_none());
        assert_eq!(ledger.ask(2, 2, 'a'), Ok(vec![2]));
        assert_eq!(ledger.ask(1, 1, 'a'), Ok(vec![1]));
        assert_eq!(ledger.ask(4, 1, 'b'), Ok(vec![]));
        assert_eq!(ledger.ask(3, 1, 'a'), Ok(vec![]));
        assert_eq!(ledger.holders().collect::<Vec<_>>(), [(1, 1), (2, 2)]);
        assert_eq!(ledger.waiting().collect::<Vec<_>>(), [(4, 1, &'b'), (3, 1, &'a')]);
        assert_eq!(ledger.label(), Some(&'a'));
        assert_eq!([3, 4].map(|id| ledger.cancel(id)), [Ok(vec![]), Ok(vec![])]);
        assert!(!ledger.is_idle(), "two are inside");
        assert_eq!([1, 2].map(|id| ledger.release(id)), [Ok(vec![]), Ok(vec![])]);
        assert!(ledger.is_idle() && ledger.holders().next().is_none() && ledger.waiting().next().is_none());
    }
}
