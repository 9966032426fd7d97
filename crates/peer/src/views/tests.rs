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
        pledge: 0,
    }
}

fn remove(id: u64, incarnation: u64) -> Change {
    Change::Remove { id: MemberId(id), incarnation: Incarnation(incarnation), pledge: 0 }
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

fn pledge(id: u64, incarnation: u64, number: u64, ttl: u64) -> Change {
    let pledge = Pledge { number, ttl };
    Change::Pledge { id: MemberId(id), incarnation: Incarnation(incarnation), pledge }
}

/// Two members, of which the first has pledged something.
fn pledged() -> Views {
    let mut views = views();
    assert_eq!(views.apply(TERM, &command(vec![pledge(1, 1, 3, 60)])), Ok(()));
    views
}

#[test]
fn a_pledge_makes_no_view() {
    let views = pledged();
    assert_eq!((views.number(), views.view()), (101, self::views().view()));
    assert_eq!(views.pledge(MemberId(1), Incarnation(1)), Pledge { number: 3, ttl: 60 });
    assert_eq!(views.pledge(MemberId(1), Incarnation(2)), Pledge::default(), "it is that of a process");
    assert_eq!(views.pledge(MemberId(2), Incarnation(1)), Pledge::default());
}

#[test]
fn of_two_pledges_the_later_counts_and_only_of_a_member() {
    let mut views = pledged();
    for number in [2, 3] {
        assert_eq!(refused(&views, &command(vec![pledge(1, 1, number, 90)])), Refused::PledgeMoved);
    }
    assert_eq!(refused(&views, &command(vec![pledge(1, 1, 4, LONGEST_PLEDGE + 1)])), Refused::PledgeMoved);
    assert_eq!(refused(&views, &command(vec![pledge(1, 2, 4, 90)])), Refused::ProcessMoved);
    assert_eq!(refused(&views, &command(vec![pledge(9, 1, 4, 90)])), Refused::ProcessMoved);
    assert_eq!(views.apply(TERM, &command(vec![pledge(1, 1, 4, 0)])), Ok(()), "it may be less");
}

#[test]
fn a_removal_that_counted_on_another_pledge_is_refused() {
    let mut views = pledged();
    let replace = |pledge| Change::Admit {
        id: MemberId(1),
        incarnation: Incarnation(2),
        address: Address::new("somewhere"),
        join_sent: 7,
        replaces: Some(Incarnation(1)),
        pledge,
    };
    let remove = |pledge| Change::Remove { id: MemberId(1), incarnation: Incarnation(1), pledge };
    for early in [remove(0), remove(2), replace(0), replace(2)] {
        assert_eq!(refused(&views, &command(vec![early])), Refused::PledgeMoved);
    }
    assert_eq!(views.clone().apply(TERM, &command(vec![remove(3)])), Ok(()));
    assert_eq!(views.apply(TERM, &command(vec![replace(3)])), Ok(()));
    assert_eq!(views.pledge(MemberId(1), Incarnation(2)), Pledge::default(), "the next has pledged nothing");
}

#[test]
fn nothing_is_pledged_by_one_that_goes_in_the_same_breath() {
    for gone in [Change::Leave { id: MemberId(1), incarnation: Incarnation(1) }, admit(1, 2, Some(1))] {
        for first in [true, false] {
            let mut views = views();
            let mut changes = vec![gone.clone(), pledge(1, 1, 1, 60)];
            if first {
                changes.reverse();
            }
            assert_eq!(views.apply(TERM, &command(changes)), Ok(()));
            assert!(views.pledges.is_empty());
        }
    }
}
