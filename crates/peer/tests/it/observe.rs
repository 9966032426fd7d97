//! Whoever wants to see who leads is told: at once, at every change, and again after a view change.

use std::collections::VecDeque;

use crate::cluster::{Cluster, name, session};
use vez_algorithms::NodeId;
use vez_peer::{
    ask::{Ask, Failure, Kind, Leader, Patience, RequestId},
    shard::{Effect, Message},
};

const SECOND: u64 = 1_000_000_000;

fn lead(value: &[u8]) -> Ask {
    Ask::Elect { value: value.to_vec() }
}

/// The home of the name, and the two others.
fn nodes(cluster: &Cluster) -> [usize; 3] {
    let home = cluster.home(&name());
    [home, (home + 1) % 3, (home + 2) % 3]
}

/// What an observer was told, in its order: the value of who leads.
fn seen(cluster: &Cluster, observer: RequestId) -> Vec<Option<&str>> {
    let told = cluster.observed.iter().filter(|(told, _)| *told == observer);
    told.map(|(_, leader)| leader.as_ref().map(|leader| str::from_utf8(&leader.value).unwrap())).collect()
}

#[test]
fn an_observer_sees_who_leads_and_every_change() {
    for observer in 0..3 {
        let mut cluster = Cluster::new();
        let nodes = nodes(&cluster);
        let early = cluster.observe(nodes[observer], &name());
        let blue = cluster.ask(nodes[1], &name(), lead(b"blue")).expect("nobody else is there");
        let green = cluster.ask_for(nodes[2], &name(), lead(b"green"), Patience::Endless);
        let late = cluster.observe(nodes[observer], &name());
        cluster.leave(nodes[1], &name(), blue);
        let fence = cluster.fence_of(green).expect("its turn");
        cluster.leave(nodes[2], &name(), fence);
        assert_eq!(seen(&cluster, early), [None, Some("blue"), Some("green"), None], "{observer}");
        assert_eq!(seen(&cluster, late), [Some("blue"), Some("green"), None], "{observer}");
        let told = cluster.observed.iter().rev().find_map(|(_, leader)| leader.clone());
        assert_eq!(told, Some(Leader { fence, value: b"green".to_vec() }), "with the fence of its grant");
    }
}

#[test]
fn a_new_view_is_no_news_but_a_new_leader_is() {
    let mut cluster = Cluster::new();
    let [home, one, other] = nodes(&cluster);
    let observer = cluster.observe(other, &name());
    let blue = cluster.ask(one, &name(), lead(b"blue")).expect("nobody else is there");
    cluster.next_view();
    assert_eq!(seen(&cluster, observer), [None, Some("blue")], "it leads still");
    cluster.leave(one, &name(), blue);
    cluster.ask(home, &name(), lead(b"green")).expect("nobody else is there");
    assert_eq!(seen(&cluster, observer), [None, Some("blue"), None, Some("green")]);
}

#[test]
fn an_older_word_that_comes_later_is_no_news() {
    let mut cluster = Cluster::new();
    let [home, one, other] = nodes(&cluster);
    let observer = cluster.observe(other, &name());
    let blue = cluster.ask(one, &name(), lead(b"blue")).expect("nobody else is there");
    // Whatever the home says now arrives in the opposite order.
    let mut words = Vec::new();
    let mut release = Vec::new();
    cluster.shards[one].release(0, session(one), &name(), blue, &mut release).expect("it is held");
    let mut at_home = |cluster: &mut Cluster, message| {
        let mut effects = Vec::new();
        cluster.shards[home].message(0, NodeId::from_index(one), message, &mut effects);
        words.extend(effects.into_iter().filter_map(|effect| match effect {
            Effect::Send(to, message @ Message::Observed { .. }) => {
                Some((to.index(), NodeId::from_index(home), message))
            }
            _ => None,
        }));
    };
    for effect in release {
        let Effect::Send(_, message) = effect else { panic!("{effect:?}") };
        at_home(&mut cluster, message);
    }
    let (request, ask) = (RequestId(100), lead(b"green"));
    at_home(&mut cluster, Message::Ask { name: name(), request, ask, now_or_never: false });
    assert_eq!(words.len(), 2);
    cluster.deliver(words.into_iter().rev().collect::<VecDeque<_>>());
    assert_eq!(
        seen(&cluster, observer),
        [None, Some("blue"), Some("green")],
        "that the one before is gone goes without saying"
    );
}

#[test]
fn whoever_looks_away_hears_nothing_and_leaves_nothing_behind() {
    for observer in 0..3 {
        let mut cluster = Cluster::new();
        let nodes = nodes(&cluster);
        let (one, other) = (cluster.observe(nodes[observer], &name()), cluster.observe(nodes[1], &name()));
        cluster.pass(60 * SECOND);
        cluster.pass(60 * SECOND);
        assert!(cluster.forgotten.is_empty(), "a name that is observed is in use");
        cluster.happen(nodes[observer], |shard, out| assert!(shard.cancel(0, &name(), one, out)));
        assert_eq!(cluster.failure_of(one), Some(&Failure::Cancelled(name())));
        cluster.happen(nodes[1], |shard, out| shard.end_session(0, session(nodes[1]), out));
        let fence = cluster.ask(nodes[2], &name(), lead(b"blue")).expect("nobody else is there");
        cluster.leave(nodes[2], &name(), fence);
        assert_eq!((seen(&cluster, one), seen(&cluster, other)), (vec![None], vec![None]));
        cluster.pass(60 * SECOND);
        cluster.pass(60 * SECOND);
        assert!(cluster.shards.iter().all(|shard| shard.names() == (0, 0)), "{observer}");
    }
}

#[test]
fn an_observer_that_is_gone_before_its_word_arrives_is_forgotten() {
    let mut cluster = Cluster::new();
    let [home, one, _] = nodes(&cluster);
    // The word that it is gone overtakes the word that it is there.
    cluster.lost = |message| matches!(message, Message::Observe { .. });
    let request = cluster.observe(one, &name());
    cluster.happen(one, |shard, out| assert!(shard.cancel(0, &name(), request, out)));
    cluster.lost = |_| false;
    let observe = Message::Observe { name: name(), request };
    cluster.happen(home, |shard, out| shard.message(0, NodeId::from_index(one), observe, out));
    cluster.pass(60 * SECOND);
    cluster.pass(60 * SECOND);
    assert!(cluster.shards.iter().all(|shard| shard.names() == (0, 0)));
}

#[test]
fn only_an_election_can_be_observed() {
    for observer in 0..3 {
        for is in [Ask::Lock, Ask::Write] {
            let mut cluster = Cluster::new();
            let nodes = nodes(&cluster);
            cluster.ask(nodes[1], &name(), is.clone()).expect("nobody else is there");
            let refused = cluster.observe(nodes[observer], &name());
            let mismatch = Failure::Mismatch { name: name(), is: is.kind(), asked: Kind::Election };
            assert_eq!(cluster.failure_of(refused), Some(&mismatch), "{is:?} {observer}");
        }
    }
}
