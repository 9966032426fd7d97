//! What the lock table says to those who try, wait too long, take a name for something else, or release what is not theirs.

use std::collections::VecDeque;

use crate::cluster::{Cluster, name, session};
use vez_algorithms::{NodeId, mutex::fila};
use vez_peer::{
    ask::{Ask, Failure, Kind, Label, Patience, RequestId},
    charter::{Algorithms, LockAlgorithm},
    fence::{Fence, LAST_COUNTER, LATE_COUNTER},
    shard::{Effect, Habits, Message, Reason, Shard, TurnMessage, Waiter},
};

const SECOND: u64 = 1_000_000_000;

/// The home of the name, and the two others.
fn nodes(cluster: &Cluster) -> [usize; 3] {
    let home = cluster.home(&name());
    [home, (home + 1) % 3, (home + 2) % 3]
}

#[test]
fn a_try_is_busy_where_somebody_is_inside() {
    for holder in 0..3 {
        for trier in 0..3 {
            let mut cluster = Cluster::new();
            let nodes = nodes(&cluster);
            let fence = cluster.ask(nodes[holder], &name(), Ask::Lock).expect("nobody else is there");
            let tried = cluster.ask_for(nodes[trier], &name(), Ask::Lock, Patience::Try);
            assert_eq!(cluster.failure_of(tried), Some(&Failure::Busy(name())), "{holder} {trier}");
            cluster.leave(nodes[holder], &name(), fence);
            let tried = cluster.ask_for(nodes[trier], &name(), Ask::Lock, Patience::Try);
            assert!(cluster.fence_of(tried).is_some(), "{holder} {trier}: nobody is inside any more");
        }
    }
}

#[test]
fn a_wait_that_times_out_leaves_nothing_behind() {
    for ask in [Ask::Lock, Ask::Semaphore { units: 1, weight: 1 }, Ask::Write] {
        let mut cluster = Cluster::new();
        let [_, one, other] = nodes(&cluster);
        let fence = cluster.ask(one, &name(), ask.clone()).expect("nobody else is there");
        let waits = cluster.ask_for(other, &name(), ask.clone(), Patience::Until(SECOND));
        cluster.pass(SECOND - 1);
        assert_eq!(cluster.failure_of(waits), None, "not a moment too early");
        cluster.pass(1);
        assert_eq!(cluster.failure_of(waits), Some(&Failure::TimedOut(name())));
        cluster.leave(one, &name(), fence);
        let next = cluster.ask(one, &name(), ask).expect("the one that gave up is not let in");
        cluster.leave(one, &name(), next);
        cluster.pass(60 * SECOND);
        cluster.pass(60 * SECOND);
        assert!(cluster.shards.iter().all(|shard| shard.names() == (0, 0)));
    }
}

#[test]
fn a_name_is_one_thing_at_a_time() {
    let asks = [Ask::Lock, Ask::Semaphore { units: 3, weight: 1 }, Ask::Semaphore { units: 4, weight: 1 }, Ask::Read];
    for is in &asks {
        for asked in asks.iter().filter(|asked| asked.kind() != is.kind()) {
            for asker in 0..3 {
                let mut cluster = Cluster::new();
                let nodes = nodes(&cluster);
                let fence = cluster.ask(nodes[1], &name(), is.clone()).expect("nobody else is there");
                let refused = cluster.ask_for(nodes[asker], &name(), asked.clone(), Patience::Endless);
                let mismatch = Failure::Mismatch { name: name(), is: is.kind(), asked: asked.kind() };
                assert_eq!(cluster.failure_of(refused), Some(&mismatch), "{is:?} {asked:?} {asker}");
                cluster.leave(nodes[1], &name(), fence);
                cluster.pass(60 * SECOND);
                cluster.pass(60 * SECOND);
                assert!(cluster.ask(nodes[asker], &name(), asked.clone()).is_some(), "it is forgotten what it was");
            }
        }
    }
}

#[test]
fn a_late_or_doubled_release_frees_nothing_newer() {
    let mut cluster = Cluster::new();
    let [_, one, other] = nodes(&cluster);
    let old = cluster.ask(one, &name(), Ask::Lock).expect("nobody else is there");
    cluster.leave(one, &name(), old);
    let new = cluster.ask(one, &name(), Ask::Lock).expect("nobody else is there");
    let mut release = |node: usize, session, fence| {
        let mut result = Ok(());
        cluster.happen(node, |shard, out| result = shard.release(0, session, &name(), fence, out));
        result
    };
    assert_eq!(release(one, session(one), old), Err(Failure::NotYours(name())), "it was released before");
    assert_eq!(release(one, session(other), new), Err(Failure::NotYours(name())), "it is another's");
    assert_eq!(release(one, session(one), new), Ok(()));
}

#[test]
fn a_visit_of_the_token_is_long_but_not_endless() {
    let mut cluster = Cluster::new();
    let [_, one, other] = nodes(&cluster);
    let mut fence = cluster.ask(one, &name(), Ask::Lock).expect("nobody else is there");
    let here: Vec<_> = (0..20).map(|_| cluster.ask_for(one, &name(), Ask::Lock, Patience::Endless)).collect();
    let elsewhere = cluster.ask_for(other, &name(), Ask::Lock, Patience::Endless);
    for request in &here[..16] {
        cluster.leave(one, &name(), fence);
        fence = cluster.fence_of(*request).expect("its turn");
    }
    cluster.leave(one, &name(), fence);
    fence = cluster.fence_of(elsewhere).expect("after sixteen it is somebody else's turn");
    assert_eq!(cluster.fence_of(here[16]), None);
    cluster.leave(other, &name(), fence);
    assert!(cluster.fence_of(here[16]).is_some(), "and then ours again");
}

#[test]
fn what_can_never_be_given_is_refused() {
    let mut cluster = Cluster::new();
    let heavy = cluster.ask_for(0, &name(), Ask::Semaphore { units: 2, weight: 3 }, Patience::Endless);
    let failure = Failure::TooHeavy { name: name(), units: 2, weight: 3 };
    assert_eq!(cluster.failure_of(heavy), Some(&failure));
    assert_eq!(failure.to_string(), "orders has 2 units and can never give 3; ask for at most 2");
}

/// The token of a lock that was granted so often in this view comes to somebody who waits for it.
fn with_counter(counter: u64) -> (Cluster, usize, Option<Fence>, RequestId) {
    let mut cluster = Cluster::new();
    let [home, one, _] = nodes(&cluster);
    // Somebody holds it, so that our own request waits, and what comes can be made up.
    cluster.ask(home, &name(), Ask::Lock).expect("nobody else is there");
    let request = cluster.ask_for(one, &name(), Ask::Lock, Patience::Endless);
    let token = TurnMessage::Fila(fila::Message::Token([].into()));
    let message = Message::Lock { name: name(), message: token, counter: Some(counter) };
    cluster.happen(one, |shard, out| shard.message(0, NodeId::from_index(home), message, out));
    let fence = cluster.fence_of(request);
    (cluster, one, fence, request)
}

#[test]
fn the_counter_never_carries_into_the_view() {
    let (cluster, _, fence, _) = with_counter(LATE_COUNTER - 2);
    assert!(fence.is_some() && !cluster.wants_view);
    let (cluster, _, fence, _) = with_counter(LATE_COUNTER);
    assert_eq!(fence.map(Fence::view), Some(7));
    assert!(cluster.wants_view, "half of all numbers are used");
    let (cluster, one, fence, request) = with_counter(LAST_COUNTER);
    assert_eq!(fence, None);
    assert_eq!(cluster.failure_of(request), Some(&Failure::NoMoreFences));
    assert_eq!(cluster.shards[one].names().1, 0, "nobody is left");
}

#[test]
fn why_one_waits() {
    let mut cluster = Cluster::new();
    let [home, one, other] = nodes(&cluster);
    let id = |node: usize| cluster.view.members[node].id;
    let (home_id, one_id) = (id(home), id(one));
    let fence = cluster.ask(one, &name(), Ask::Lock).expect("nobody else is there");
    cluster.ask_for(other, &name(), Ask::Lock, Patience::Endless);
    let here = cluster.shards[one].why(&name());
    assert_eq!((here.kind, here.reason), (Some(Kind::Lock), Reason::HeldHere));
    assert_eq!((here.holders[0].fence, here.holders[0].session), (Some(fence), Some(session(one))));
    assert_eq!(here.line, [cluster.view.members[other].id]);
    let there = cluster.shards[other].why(&name());
    assert_eq!((there.waiting.len(), there.reason), (1, Reason::AskedHome(home_id)));
    let at_home = cluster.shards[home].why(&name());
    assert_ne!(at_home.reason, Reason::TokenAt(one_id), "the home knows who asked last");
    assert_eq!(at_home.reason, Reason::TokenAt(cluster.view.members[other].id));
}

/// A client that takes a name for something else while it is looked at whether that is idle.
#[test]
fn a_lock_is_forgotten_whatever_else_it_is_taken_for_meanwhile() {
    let mut cluster = Cluster::new();
    let [_, one, _] = nodes(&cluster);
    let fence = cluster.ask(one, &name(), Ask::Lock).expect("nobody else is there");
    cluster.leave(one, &name(), fence);
    cluster.now = 30 * SECOND;
    let ask = Ask::Semaphore { units: 3, weight: 1 };
    let (request, patience) = (RequestId(77), Patience::Endless);
    let waiter = Waiter { session: session(one), request, ask: ask.clone(), patience, since: 0 };
    cluster.happen(one, |shard, out| {
        shard.acquire(30 * SECOND, &name(), waiter, out);
        shard.tick(30 * SECOND, out); // The answer is still on its way.
    });
    assert!(matches!(cluster.failure_of(request), Some(Failure::Mismatch { .. })));
    cluster.pass(60 * SECOND);
    cluster.pass(60 * SECOND);
    assert!(cluster.ask(one, &name(), ask).is_some(), "nobody has used the lock for minutes");
}

#[test]
fn where_the_token_has_gone_nothing_is_left_whatever_else_the_name_is_taken_for() {
    let mut cluster = Cluster::new();
    let [_, one, other] = nodes(&cluster);
    let fence = cluster.ask(one, &name(), Ask::Lock).expect("nobody else is there");
    cluster.leave(one, &name(), fence);
    let ask = Ask::Semaphore { units: 3, weight: 1 };
    let waiter = Waiter { session: session(one), request: RequestId(77), ask, patience: Patience::Endless, since: 0 };
    let (mut delayed, mut flying) = (Vec::new(), VecDeque::new());
    cluster.shards[one].acquire(0, &name(), waiter, &mut delayed);
    let fence = cluster.ask(other, &name(), Ask::Lock).expect("it is idle");
    cluster.sort(one, delayed, &mut flying);
    cluster.deliver(flying);
    cluster.leave(other, &name(), fence);
    cluster.pass(60 * SECOND);
    cluster.pass(60 * SECOND);
    assert!(cluster.shards.iter().all(|shard| shard.names() == (0, 0)));
}

#[test]
fn where_there_is_nothing_to_look_at_nobody_looks() {
    let mut cluster = Cluster::new();
    let [_, one, other] = nodes(&cluster);
    for node in [one, other, one, other] {
        cluster.now += 1000;
        let fence = cluster.ask(node, &name(), Ask::Lock).expect("it is idle");
        cluster.leave(node, &name(), fence);
    }
    assert_eq!(cluster.shards[one].deadline(), None, "the token is elsewhere");
    assert_eq!(cluster.shards[other].deadline(), Some(cluster.now + 30 * SECOND));
}

#[test]
fn why_promises_nothing_that_it_does_not_know() {
    for ask in [Ask::Lock, Ask::Write] {
        let mut cluster = Cluster::new();
        let [home, one, other] = nodes(&cluster);
        let home_id = cluster.view.members[home].id;
        assert_eq!(cluster.shards[home].why(&name()).reason, Reason::Nothing);
        assert_eq!(cluster.shards[one].why(&name()).reason, Reason::HomeKnows(home_id));
        cluster.ask(one, &name(), ask.clone()).expect("nobody else is there");
        assert_eq!(cluster.shards[one].why(&name()).reason, Reason::HeldHere);
        assert_eq!(cluster.shards[other].why(&name()).reason, Reason::HomeKnows(home_id));
        let (member, at_home) = (cluster.view.members[one].id, cluster.shards[home].why(&name()));
        if ask == Ask::Lock {
            assert_eq!(at_home.reason, Reason::TokenAt(member));
        } else {
            assert!(matches!(at_home.reason, Reason::Inside { count: 1, label: Label::Writer(_), waiting: 0, .. }));
        }
    }
    let mut cluster = Cluster::new();
    let [home, one, other] = nodes(&cluster);
    let take = |weight| Ask::Semaphore { units: 3, weight };
    cluster.ask(one, &name(), take(1)).expect("nobody else is there");
    cluster.ask(other, &name(), take(2)).expect("two are left");
    cluster.ask_for(one, &name(), take(1), Patience::Endless);
    let line = Reason::InLineAt(cluster.view.members[home].id);
    assert_eq!(cluster.shards[one].why(&name()).reason, line, "others have what it waits for");
    let inside = Reason::Inside { count: 2, label: Label::Anybody, taken: 3, waiting: 1 };
    assert_eq!(cluster.shards[home].why(&name()).reason, inside);
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let algorithms = Algorithms(vec![(b"or".to_vec(), LockAlgorithm::Raymond)]);
    let mut cluster = Cluster::new();
    let words = |cluster: &mut Cluster, ask| {
        let refused = cluster.ask_for(0, &name(), ask, Patience::Endless);
        cluster.failure_of(refused).expect("it is refused").to_string()
    };
    let nothing = "orders cannot have 0 units, and nobody can take 0 of them; say at least 1";
    assert_eq!(words(&mut cluster, Ask::Semaphore { units: 2, weight: 0 }), nothing);
    assert_eq!(words(&mut cluster, Ask::Semaphore { units: 0, weight: 0 }), nothing);
    for ask in [Ask::Group { label: vec![0; 1025] }, Ask::Elect { value: vec![0; 1025] }] {
        let long = "a label, a value, or what a leader wants to be seen, has at most 1024 bytes, this one has 1025";
        assert_eq!(words(&mut cluster, ask), long);
    }
    let mut shard = Shard::new(Habits::default(), algorithms);
    let mut effects = Vec::new();
    shard.install(0, cluster.view, NodeId::from_index(0), &mut effects);
    let (request, patience) = (RequestId(1), Patience::Endless);
    let waiter = Waiter { session: session(0), request, ask: Ask::Read, patience, since: 0 };
    shard.acquire(0, &name(), waiter, &mut effects);
    let Some(Effect::Failed { failure, .. }) = effects.last() else { panic!("{effects:?}") };
    let only = "orders can be nothing but a lock, not a lock of readers and writers, for what begins so runs on an \
                algorithm for locks; take another name";
    assert_eq!(failure.to_string(), only);
}

#[test]
fn a_ledger_is_written_anew_however_many_are_inside() {
    let mut cluster = Cluster::new();
    let [_, one, other] = nodes(&cluster);
    let fences: Vec<_> = (0..100).map(|_| cluster.ask(one, &name(), Ask::Read).expect("all read")).collect();
    let writer = cluster.ask_for(other, &name(), Ask::Write, Patience::Endless);
    cluster.next_view();
    for fence in fences {
        assert_eq!(cluster.fence_of(writer), None, "somebody still reads");
        cluster.leave(one, &name(), fence);
    }
    assert!(cluster.fence_of(writer).is_some());
}

#[test]
fn a_session_that_holds_a_lock_and_waits_for_it_can_end_while_a_view_is_being_settled() {
    for node in 0..3 {
        let mut cluster = Cluster::new();
        let node = nodes(&cluster)[node];
        cluster.ask(node, &name(), Ask::Lock).expect("nobody else is there");
        cluster.ask_for(node, &name(), Ask::Lock, Patience::Endless);
        cluster.view.number += 1;
        // Nothing that it sends arrives, and nobody says a word.
        cluster.lost = |_| true;
        let view = cluster.view.clone();
        cluster.happen(node, |shard, out| shard.install(0, view, NodeId::from_index(node), out));
        cluster.happen(node, |shard, out| shard.end_session(0, session(node), out));
        assert_eq!(cluster.shards[node].names().1, 0);
    }
}
