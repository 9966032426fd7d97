//! A semaphore gets more units, or fewer, while it is in use; and keeps them through views, and the death of its home.

use crate::cluster::{Cluster, name, session};
use vez_algorithms::NodeId;
use vez_peer::{
    ask::{Ask, Failure, Kind, Patience, RequestId, Size},
    fence::Fence,
    shard::Message,
};

const SECOND: u64 = 1_000_000_000;

fn take(units: u32, weight: u32) -> Ask {
    Ask::Semaphore { units, weight }
}

/// The home of the name, and the two others.
fn nodes(cluster: &Cluster) -> [usize; 3] {
    let home = cluster.home(&name());
    [home, (home + 1) % 3, (home + 2) % 3]
}

fn was_resized(cluster: &Cluster, request: RequestId) -> Option<u32> {
    cluster.resized.iter().find(|(resized, _)| *resized == request).map(|(_, size)| size.units)
}

#[test]
fn more_units_let_in_who_waits_and_fewer_let_in_nobody_until_it_fits() {
    for resizer in 0..3 {
        let mut cluster = Cluster::new();
        let nodes = nodes(&cluster);
        let first = cluster.ask(nodes[1], &name(), take(1, 1)).expect("nobody else is there");
        let second = cluster.ask_for(nodes[2], &name(), take(1, 1), Patience::Endless);
        assert_eq!(cluster.fence_of(second), None);
        let more = cluster.resize(nodes[resizer], &name(), 2);
        assert_eq!(was_resized(&cluster, more), Some(2), "{resizer}");
        let second = cluster.fence_of(second).expect("now it fits");
        let fewer = cluster.resize(nodes[resizer], &name(), 1);
        assert_eq!(was_resized(&cluster, fewer), Some(1));
        let third = cluster.ask_for(nodes[1], &name(), take(1, 1), Patience::Endless);
        cluster.leave(nodes[1], &name(), first);
        assert_eq!(cluster.fence_of(third), None, "one of two has left, and there is one unit");
        cluster.leave(nodes[2], &name(), second);
        assert!(cluster.fence_of(third).is_some());
    }
}

#[test]
fn whoever_takes_it_for_its_old_size_is_told_the_new_one() {
    let mut cluster = Cluster::new();
    let [home, one, other] = nodes(&cluster);
    cluster.ask(one, &name(), take(1, 1)).expect("nobody else is there");
    cluster.resize(other, &name(), 3);
    for asker in [home, one, other] {
        let old = cluster.ask_for(asker, &name(), take(1, 1), Patience::Endless);
        let (is, asked) = (Kind::Semaphore { units: 3 }, Kind::Semaphore { units: 1 });
        assert_eq!(cluster.failure_of(old), Some(&Failure::Mismatch { name: name(), is, asked }));
    }
    assert!(cluster.ask(other, &name(), take(3, 2)).is_some());
}

#[test]
fn a_size_outlives_the_view_whoever_knows_it() {
    for (holder, waiter) in [(1, 2), (2, 0), (0, 1)] {
        let mut cluster = Cluster::new();
        let nodes = nodes(&cluster);
        let fence = cluster.ask(nodes[holder], &name(), take(2, 2)).expect("nobody else is there");
        let waits = cluster.ask_for(nodes[waiter], &name(), take(2, 2), Patience::Endless);
        cluster.resize(nodes[waiter], &name(), 4);
        assert!(cluster.fence_of(waits).is_some(), "there is room for both");
        let heavy = cluster.ask_for(nodes[waiter], &name(), take(4, 4), Patience::Endless);
        cluster.next_view();
        assert_eq!(
            (cluster.failure_of(heavy), cluster.fence_of(heavy)),
            (None, None),
            "it asks for the new size again"
        );
        let old = cluster.ask_for(nodes[0], &name(), take(2, 1), Patience::Endless);
        assert!(matches!(cluster.failure_of(old), Some(Failure::Mismatch { is: Kind::Semaphore { units: 4 }, .. })));
        cluster.leave(nodes[holder], &name(), fence);
        let fence = cluster.fence_of(waits).expect("it is inside");
        cluster.leave(nodes[waiter], &name(), fence);
        assert!(cluster.fence_of(heavy).is_some());
    }
}

#[test]
fn where_a_resize_is_cut_short_the_later_size_wins_and_it_is_asked_for_again() {
    let mut cluster = Cluster::new();
    let [home, one, other] = nodes(&cluster);
    for node in [home, one] {
        cluster.ask(node, &name(), take(2, 1)).expect("there is room for both");
    }
    let waits = cluster.ask_for(other, &name(), take(2, 1), Patience::Endless);
    // The home tells nobody but itself, and so the resize is not done.
    cluster.lost = |message| matches!(message, Message::Sized { .. });
    let resize = cluster.resize(one, &name(), 3);
    assert_eq!(was_resized(&cluster, resize), None, "two have not taken note");
    assert!(cluster.fence_of(waits).is_some(), "but the units are there");
    cluster.lost = |_| false;
    cluster.next_view();
    assert_eq!(was_resized(&cluster, resize), Some(3));
    let next = cluster.ask_for(other, &name(), take(3, 1), Patience::Endless);
    assert_eq!((cluster.failure_of(next), cluster.fence_of(next)), (None, None), "three are inside");
}

/// Whoever re-enters first, and whether it knows the new size or not.
#[test]
fn of_those_who_re_enter_the_one_who_knows_the_later_size_is_right() {
    for knows in [1, 2] {
        let mut cluster = Cluster::new();
        let nodes = nodes(&cluster);
        for node in [nodes[1], nodes[2]] {
            cluster.ask(node, &name(), take(2, 1)).expect("there is room for both");
        }
        // The home dies when it has told one of them, and whoever wanted it does not ask again.
        cluster.lost = |message| matches!(message, Message::Sized { .. });
        cluster.resize(nodes[0], &name(), 3);
        cluster.happen(nodes[0], |shard, out| shard.end_session(0, session(nodes[0]), out));
        cluster.lost = |_| false;
        let size = Size { since: Fence::new(7, 3).expect("small"), units: 3 };
        let home = NodeId::from_index(nodes[0]);
        cluster.happen(nodes[knows], |shard, out| shard.message(0, home, Message::Sized { name: name(), size }, out));
        cluster.next_view();
        assert!(cluster.ask(nodes[0], &name(), take(3, 1)).is_some(), "{knows}");
    }
}

#[test]
fn a_word_of_an_older_size_changes_nothing() {
    let mut cluster = Cluster::new();
    let [_, one, other] = nodes(&cluster);
    cluster.ask(one, &name(), take(1, 1)).expect("nobody else is there");
    let (three, five) = (cluster.resize(other, &name(), 3), cluster.resize(other, &name(), 5));
    let size_of =
        |cluster: &Cluster, request| cluster.resized.iter().find(|(resized, _)| *resized == request).unwrap().1;
    assert!(size_of(&cluster, three).since < size_of(&cluster, five).since);
    let (late, home) = (size_of(&cluster, three), NodeId::from_index(cluster.home(&name())));
    cluster.happen(one, |shard, out| shard.message(0, home, Message::Sized { name: name(), size: late }, out));
    cluster.next_view();
    assert!(cluster.ask(other, &name(), take(5, 4)).is_some());
}

#[test]
fn who_is_told_that_there_is_nothing_to_resize_is_told_if_it_may_have_begun() {
    let mut cluster = Cluster::new();
    let [_, one, other] = nodes(&cluster);
    let fence = cluster.ask(one, &name(), take(1, 1)).expect("nobody else is there");
    cluster.lost = |message| matches!(message, Message::Sized { .. });
    let resize = cluster.resize(other, &name(), 2);
    // The only one that was inside is gone when the view changes.
    cluster.lost = |_| true;
    cluster.leave(one, &name(), fence);
    cluster.lost = |_| false;
    cluster.next_view();
    assert_eq!(cluster.failure_of(resize), Some(&Failure::Interrupted(name())));
}

#[test]
fn what_is_not_in_use_or_no_semaphore_cannot_be_resized() {
    for resizer in 0..3 {
        let mut cluster = Cluster::new();
        let nodes = nodes(&cluster);
        let resize = cluster.resize(nodes[resizer], &name(), 3);
        assert_eq!(cluster.failure_of(resize), Some(&Failure::NotInUse(name())));
        assert!(cluster.shards.iter().all(|shard| shard.names() == (0, 0)));
        let fence = cluster.ask(nodes[1], &name(), take(1, 1)).expect("nobody else is there");
        cluster.leave(nodes[1], &name(), fence);
        let resize = cluster.resize(nodes[resizer], &name(), 1);
        assert_eq!(cluster.failure_of(resize), Some(&Failure::NotInUse(name())), "nobody is there any more");
        let resize = cluster.resize(nodes[resizer], &name(), 0);
        assert_eq!(cluster.failure_of(resize), Some(&Failure::NoUnits(name())));
        for is in [Ask::Lock, Ask::Read] {
            let mut cluster = Cluster::new();
            cluster.ask(nodes[1], &name(), is.clone()).expect("nobody else is there");
            let resize = cluster.resize(nodes[resizer], &name(), 3);
            let mismatch = Failure::Mismatch { name: name(), is: is.kind(), asked: Kind::Semaphore { units: 3 } };
            assert_eq!(cluster.failure_of(resize), Some(&mismatch), "{is:?} {resizer}");
        }
    }
}

#[test]
fn a_resize_whose_client_is_gone_leaves_nothing_behind() {
    let mut cluster = Cluster::new();
    let [_, one, other] = nodes(&cluster);
    let fence = cluster.ask(one, &name(), take(1, 1)).expect("nobody else is there");
    cluster.lost = |message| matches!(message, Message::Resized { .. });
    let resize = cluster.resize(other, &name(), 2);
    cluster.happen(other, |shard, out| shard.end_session(0, session(other), out));
    cluster.lost = |_| false;
    cluster.leave(one, &name(), fence);
    cluster.pass(60 * SECOND);
    cluster.pass(60 * SECOND);
    assert_eq!(was_resized(&cluster, resize), None);
    assert!(cluster.shards.iter().all(|shard| shard.names() == (0, 0)));
}

#[test]
fn who_has_given_up_is_not_waited_for_although_it_could_never_enter() {
    let mut cluster = Cluster::new();
    let [_, one, other] = nodes(&cluster);
    let fence = cluster.ask(one, &name(), take(6, 6)).expect("nobody else is there");
    let heavy = cluster.ask_for(other, &name(), take(6, 6), Patience::Endless);
    // The word that it has given up overtakes what it asked for, and so says nothing to the home.
    cluster.lost = |message| matches!(message, Message::Release { .. });
    let now = cluster.now;
    cluster.happen(other, |shard, out| assert!(shard.cancel(now, &name(), heavy, out)));
    cluster.lost = |_| false;
    let fewer = cluster.resize(one, &name(), 5);
    assert_eq!(was_resized(&cluster, fewer), Some(5));
    cluster.leave(one, &name(), fence);
    cluster.pass(60 * SECOND);
    assert_eq!(cluster.forgotten, [name()], "nobody wants it any more");
}
