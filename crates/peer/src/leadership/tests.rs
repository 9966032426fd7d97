use alloc::vec;

use super::*;
use crate::{identity::ClusterId, views::Command};

const SECOND: Nanos = 1_000_000_000;
const TERM: u64 = 1;

/// A view with these members, each the first process of its disk.
fn views(members: &[u64]) -> Views {
    let mut views = Views::new(ClusterId(1), Charter::new(1), 100);
    let admit = |id: &u64| Change::Admit {
        id: MemberId(*id),
        incarnation: Incarnation(1),
        address: Address::new("somewhere"),
        join_sent: 0,
        replaces: None,
        pledge: 0,
    };
    let changes = members.iter().map(admit).collect();
    views.apply(TERM, &Command { view: 100, term: TERM, changes }).expect("it is made for that view");
    views
}

fn ids(ids: &[u64]) -> BTreeSet<MemberId> {
    ids.iter().map(|id| MemberId(*id)).collect()
}

fn heartbeat(id: u64, view: ViewNumber, unheard: &[u64]) -> Heartbeat {
    let (id, incarnation) = (MemberId(id), Incarnation(1));
    Heartbeat { id, incarnation, sent: 5, view, unheard: ids(unheard), wants_view: false, pledge: Pledge::default() }
}

fn changes(leadership: &Leadership, now: Nanos, views: &Views) -> Vec<Change> {
    leadership.changes(now, SECOND, views, &ids(&[1, 2, 3]), &|_| true)
}

fn remove(id: u64) -> Change {
    Change::Remove { id: MemberId(id), incarnation: Incarnation(1), pledge: 0 }
}

#[test]
fn nobody_is_removed_before_its_lease_is_surely_over() {
    let (mut leadership, views) = (Leadership::default(), views(&[1, 2, 3]));
    let wait = views.charter.lease_of_others();
    for id in 1..=3 {
        leadership.on_heartbeat(2 * SECOND, &views, heartbeat(id, 101, &[]), 7);
    }
    assert!(leadership.answer(2 * SECOND, 6).is_empty(), "no round was confirmed that began after they came");
    assert_eq!(changes(&leadership, SECOND + wait - 1, &views), []);
    assert_eq!(changes(&leadership, SECOND + wait, &views).len(), 3, "that they asked is nothing, if nobody answered");
    assert_eq!(leadership.answer(3 * SECOND, 7).len(), 3);
    assert_eq!(changes(&leadership, 3 * SECOND + wait - 1, &views), []);
    leadership.on_heartbeat(4 * SECOND, &views, heartbeat(2, 101, &[]), 8);
    assert_eq!(leadership.answer(4 * SECOND, 8).len(), 1);
    assert_eq!(changes(&leadership, 3 * SECOND + wait, &views), [remove(1), remove(3)]);
}

#[test]
fn who_is_being_removed_is_not_renewed() {
    let (mut leadership, views) = (Leadership::default(), views(&[1, 2]));
    leadership.proposed(vec![remove(2)]);
    for id in 1..=2 {
        leadership.on_heartbeat(2 * SECOND, &views, heartbeat(id, 101, &[]), 7);
    }
    let answered: Vec<_> = leadership.answer(2 * SECOND, 7).iter().map(|renewal| renewal.id).collect();
    assert_eq!(answered, [MemberId(1)]);
}

#[test]
fn who_stays_in_an_older_view_for_a_lease_is_not_renewed() {
    let (mut leadership, views) = (Leadership::default(), views(&[1, 2]));
    let lease = views.charter.lease;
    for (at, view, answers) in [(0, 100, 1), (lease, 100, 1), (lease + 1, 100, 0), (lease + 2, 101, 1)] {
        leadership.on_heartbeat(SECOND + at, &views, heartbeat(1, view, &[]), 7);
        assert_eq!(leadership.answer(SECOND + at, 7).len(), answers, "{at}");
    }
}

#[test]
fn of_those_who_do_not_hear_each_other_the_worst_connected_goes() {
    let (mut leadership, views) = (Leadership::default(), views(&[1, 2, 3, 4]));
    for (id, unheard) in [(1, &[3][..]), (2, &[3]), (3, &[1, 2]), (4, &[])] {
        leadership.on_heartbeat(SECOND, &views, heartbeat(id, 101, unheard), 7);
    }
    // All are to have had the time to say so.
    leadership.condemn(SECOND, MemberId(1), &views.charter);
    assert!(leadership.tenants.values().all(|tenant| !tenant.condemned));
    let later = SECOND + views.charter.lease / 4;
    leadership.condemn(later, MemberId(1), &views.charter);
    for id in 1..=4 {
        leadership.on_heartbeat(later, &views, heartbeat(id, 101, &[]), 8);
    }
    let renewed: Vec<_> = leadership.answer(later, 8).into_iter().filter(|renewal| renewal.round == 8).collect();
    assert_eq!(renewed.iter().map(|renewal| renewal.id.0).collect::<Vec<_>>(), [1, 2, 4]);
    for now in [later, later + views.charter.lease / 4] {
        leadership.on_heartbeat(now, &views, heartbeat(1, 101, &[2]), 9);
        leadership.on_heartbeat(now, &views, heartbeat(2, 101, &[]), 9);
        leadership.condemn(now, MemberId(1), &views.charter);
    }
    assert!(!leadership.tenants[&MemberId(2)].condemned, "one a lease");
}

#[test]
fn nobody_goes_because_it_does_not_hear_one_that_is_not_there() {
    let (mut leadership, views) = (Leadership::default(), views(&[1, 2, 3]));
    leadership.on_heartbeat(SECOND, &views, heartbeat(3, 101, &[]), 7);
    let lease = views.charter.lease;
    for now in (1..20).map(|ninth| SECOND + lease / 3 + ninth * lease / 9) {
        for id in 1..=2 {
            leadership.on_heartbeat(now, &views, heartbeat(id, 101, &[3]), 7);
        }
        leadership.condemn(now, MemberId(1), &views.charter);
    }
    assert!(leadership.tenants.values().all(|tenant| !tenant.condemned), "3 goes when its lease is over");
}

#[test]
fn what_was_not_heard_in_an_earlier_view_says_nothing() {
    let (mut leadership, views) = (Leadership::default(), views(&[1, 2]));
    for now in [SECOND, SECOND + views.charter.lease / 4] {
        leadership.on_heartbeat(now, &views, heartbeat(1, 100, &[2]), 7);
        leadership.on_heartbeat(now, &views, heartbeat(2, 101, &[]), 7);
        leadership.condemn(now, MemberId(1), &views.charter);
    }
    assert!(leadership.tenants.values().all(|tenant| !tenant.condemned));
}

#[test]
fn one_three_or_five_vote() {
    let leadership = Leadership::default();
    let voters = |members: &[u64], now: &[u64]| leadership.configuration(0, MemberId(1), &views(members), &ids(now)).0;
    assert_eq!(voters(&[1, 2], &[1]), ids(&[1]));
    assert_eq!(voters(&[1, 2, 3], &[1]), ids(&[1, 2, 3]));
    assert_eq!(voters(&[1, 2, 3, 4], &[1, 3, 4]), ids(&[1, 3, 4]), "who votes goes on");
    assert_eq!(voters(&[1, 2, 3, 4, 5, 6], &[1, 3, 4]), ids(&[1, 2, 3, 4, 5]));
    assert_eq!(voters(&[1, 2, 4, 5], &[1, 2, 3]), ids(&[1, 2, 4]), "who is gone is replaced");
    assert_eq!(voters(&[1, 2], &[1, 2, 3]), ids(&[1]), "the leader above all");
}

#[test]
fn who_leaves_gives_up_its_vote_first() {
    let (mut leadership, views) = (Leadership::default(), views(&[1, 2, 3, 4]));
    leadership.on_leave(&views, MemberId(2), Incarnation(9));
    leadership.on_leave(&views, MemberId(3), Incarnation(0));
    assert_eq!(leadership.configuration(0, MemberId(1), &views, &ids(&[1, 2, 3])).0, ids(&[1, 2, 3]), "not of these");
    leadership.on_leave(&views, MemberId(2), Incarnation(1));
    let (voters, others) = leadership.configuration(0, MemberId(1), &views, &ids(&[1, 2, 3]));
    assert_eq!((voters.clone(), others), (ids(&[1, 3, 4]), ids(&[2])));
    let leave = Change::Leave { id: MemberId(2), incarnation: Incarnation(1) };
    assert_eq!(leadership.changes(SECOND, SECOND, &views, &ids(&[1, 2, 3]), &|_| true), []);
    assert_eq!(leadership.changes(SECOND, SECOND, &views, &voters, &|_| true), [leave]);
}

#[test]
fn if_all_leave_they_leave_together() {
    let (mut leadership, views) = (Leadership::default(), views(&[1, 2]));
    for id in 1..=2 {
        leadership.on_leave(&views, MemberId(id), Incarnation(1));
    }
    assert_eq!(leadership.changes(SECOND, SECOND, &views, &ids(&[1]), &|_| true).len(), 2);
}

#[test]
fn a_restarted_process_waits_for_the_lease_of_the_one_before_it() {
    let (mut leadership, views) = (Leadership::default(), views(&[1, 2]));
    let wait = views.charter.lease_of_others();
    let join = |leadership: &mut Leadership, now, incarnation| {
        let process = (MemberId(2), Incarnation(incarnation));
        leadership.on_join(now, &views.charter, process, Address::new("back"), 9);
    };
    join(&mut leadership, SECOND, 2);
    leadership.on_heartbeat(SECOND, &views, heartbeat(1, 101, &[]), 7);
    leadership.answer(2 * SECOND, 7);
    assert_eq!(changes(&leadership, SECOND + wait - 1, &views), []);
    join(&mut leadership, SECOND + wait, 2);
    join(&mut leadership, SECOND + wait, 1);
    let replaces = Some(Incarnation(1));
    let (id, incarnation, address) = (MemberId(2), Incarnation(2), Address::new("back"));
    let admit = Change::Admit { id, incarnation, address, join_sent: 9, replaces, pledge: 0 };
    assert_eq!(changes(&leadership, SECOND + wait, &views), [admit]);
}

/// A second member that wishes to pledge this, and has.
fn pledged(leadership: &mut Leadership, views: &mut Views, number: u64, ttl: u64) {
    let pledge = Pledge { number, ttl };
    leadership.on_heartbeat(SECOND, views, Heartbeat { pledge, ..heartbeat(2, 101, &[]) }, 7);
    let pledges = leadership.pledges(views);
    assert_eq!(pledges, [Change::Pledge { id: MemberId(2), incarnation: Incarnation(1), pledge }]);
    views.apply(TERM, &Command { view: 101, term: TERM, changes: pledges }).expect("it is made for that view");
    assert_eq!(leadership.pledges(views), [], "once");
}

#[test]
fn who_has_pledged_something_is_waited_for_that_much_longer() {
    let (mut leadership, mut views) = (Leadership::default(), views(&[1, 2]));
    pledged(&mut leadership, &mut views, 5, 60 * SECOND);
    let (short, long) = (views.charter.lease_of_others(), views.charter.of_others(views.charter.lease + 60 * SECOND));
    let removed = |leadership: &Leadership, now| {
        let id = |change: &Change| match change {
            Change::Remove { id, pledge, .. } => (id.0, *pledge),
            change => panic!("{change:?}"),
        };
        changes(leadership, now, &views).iter().map(id).collect::<Vec<_>>()
    };
    assert_eq!(removed(&leadership, SECOND + short), [(1, 0)], "who has pledged nothing goes with its lease");
    assert_eq!(removed(&leadership, SECOND + long - 1), [(1, 0)]);
    assert_eq!(removed(&leadership, SECOND + long), [(1, 0), (2, 5)]);
    // Who leads next knows it too: it is in the log.
    assert_eq!(removed(&Leadership::default(), SECOND + long - 1), [(1, 0)]);
    leadership.answer(3 * SECOND, 7);
    assert_eq!(removed(&leadership, 3 * SECOND + long - 1), [(1, 0)]);
}

#[test]
fn who_is_to_go_pledges_nothing_more() {
    let (mut leadership, mut views) = (Leadership::default(), views(&[1, 2]));
    pledged(&mut leadership, &mut views, 1, SECOND);
    leadership.evict(MemberId(2));
    let pledge = Pledge { number: 2, ttl: 9 * SECOND };
    leadership.on_heartbeat(SECOND, &views, Heartbeat { pledge, ..heartbeat(2, 101, &[]) }, 8);
    assert_eq!(leadership.pledges(&views), []);
}

#[test]
fn what_is_pledged_without_measure_is_not_believed() {
    let (mut leadership, views) = (Leadership::default(), views(&[1, 2]));
    let pledge = Pledge { number: 1, ttl: LONGEST_PLEDGE + 1 };
    leadership.on_heartbeat(SECOND, &views, Heartbeat { pledge, ..heartbeat(2, 101, &[]) }, 8);
    assert_eq!(leadership.pledges(&views), []);
}

#[test]
fn no_view_is_made_with_one_in_it_that_is_gone_and_kept_something() {
    let (mut leadership, mut views) = (Leadership::default(), views(&[1, 2]));
    let charter = views.charter.clone();
    pledged(&mut leadership, &mut views, 1, 9 * SECOND);
    let waits = |leadership: &Leadership, now| leadership.waits_for_kept(now, SECOND, &views);
    let (gone, over) = (SECOND + charter.lease / 3, SECOND + charter.of_others(charter.lease + 9 * SECOND));
    assert!(!waits(&leadership, gone - 1) && waits(&leadership, gone), "it was heard a moment ago, or not");
    assert!(waits(&leadership, over - 1) && !waits(&leadership, over), "then it can be removed");
    assert!(waits(&Leadership::default(), gone - 1), "who leads next waits until it hears from it");
    leadership.evict(MemberId(2));
    assert!(waits(&leadership, gone - 1), "who is to go is as good as gone");
}
