//! What a process that asks to be a member is told.

use vez_peer::{
    Peer,
    agreement::{Config, Disk, Message as Agreement, Position, Snapshot},
    charter::Charter,
    frame::{Body, Frame, Membership},
    identity::{Address, ClusterId, Incarnation, MemberId},
    peer::{Effect, Identity, Input, Start},
    shard::Habits,
    views::{Change, Command, Views},
};

const CLUSTER: ClusterId = ClusterId(7);
const LEADER: MemberId = MemberId(1);
const ME: MemberId = MemberId(2);
const ASKER: MemberId = MemberId(3);

/// A process that follows a leader, which is made up; the asker was a member once and was removed, and may still vote.
fn follower(votes: bool) -> Peer {
    let charter = Charter::new(1);
    let mut views = Views::new(CLUSTER, charter.clone(), 100);
    let asker = Incarnation(1);
    let admit = Change::Admit {
        id: ASKER,
        incarnation: asker,
        address: Address::new("asker"),
        join_sent: 0,
        replaces: None,
        pledge: 0,
    };
    for (view, change) in [(100, admit), (101, Change::Remove { id: ASKER, incarnation: asker, pledge: 0 })] {
        views.apply(1, &Command { view, term: 1, changes: vec![change] }).expect("it is made for that view");
    }
    let mut voters = [LEADER].into();
    if votes {
        voters = [LEADER, ME, ASKER].into();
    }
    let config = Config { voters, ..Config::default() };
    let snapshot = Snapshot { position: Position { term: 1, index: 9 }, config, views: Some(views) };
    let me = Identity { id: ME, incarnation: Incarnation(1), address: Address::new("me") };
    let start = Start::Join { disk: Box::new(Disk::empty()), seeds: Vec::new() };
    let mut peer = Peer::start(me, charter, Habits::default(), start, 0, &mut Vec::new(), &mut |_| 0);
    hear(&mut peer, LEADER, Body::Membership(Membership::Wait));
    hear(&mut peer, LEADER, Body::Agreement(Agreement::Snapshot { term: 1, snapshot, round: 1 }));
    peer.handle(0, Input::Written, &mut Vec::new(), &mut |_| 0);
    peer
}

fn hear(peer: &mut Peer, from: MemberId, body: Body) -> Vec<Effect> {
    let (cluster, address) = (Some(CLUSTER), Address::new(&from.to_string()));
    let frame = Frame { cluster, from, incarnation: Incarnation(2), address, to: Some(ME), body };
    let mut effects = Vec::new();
    peer.handle(0, Input::Frame(Box::new(frame)), &mut effects, &mut |_| 0);
    effects
}

fn answer(peer: &mut Peer, charter: Charter) -> Membership {
    let effects = hear(peer, ASKER, Body::Membership(Membership::Join { charter, sent: 0 }));
    let answers = effects.into_iter().filter_map(|effect| match effect {
        Effect::Send(_, frame) if frame.to == Some(ASKER) => match frame.body {
            Body::Membership(answer) => Some(answer),
            _ => None,
        },
        _ => None,
    });
    answers.last().expect("there is an answer")
}

#[test]
fn whoever_was_removed_keeps_its_disk_as_long_as_its_vote_may_be_needed() {
    assert_eq!(answer(&mut follower(false), Charter::new(1)), Membership::Retired);
    let leader = Some(Address::new(&LEADER.to_string()));
    assert_eq!(answer(&mut follower(true), Charter::new(1)), Membership::NotLeader(leader));
}

#[test]
fn who_goes_by_something_else_is_refused() {
    assert_eq!(answer(&mut follower(false), Charter::new(2)), Membership::Refused(Charter::new(1)));
}

#[test]
fn a_process_that_joins_asks_a_limited_number_of_addresses() {
    let (me, address) = (Incarnation(1), |number: u32| Address::new(&format!("told {number}")));
    let me = Identity { id: ME, incarnation: me, address: Address::new("me") };
    let start = Start::Join { disk: Box::new(Disk::empty()), seeds: vec![Address::new("seed")] };
    let mut effects = Vec::new();
    let mut peer = Peer::start(me, Charter::new(1), Habits::default(), start, 0, &mut effects, &mut |_| 0);
    for number in 0..1000 {
        hear(&mut peer, LEADER, Body::Membership(Membership::NotLeader(Some(address(number)))));
    }
    effects.clear();
    peer.handle(Charter::new(1).lease, Input::Tick, &mut effects, &mut |_| 0);
    let joins = effects.iter().filter_map(|effect| match effect {
        Effect::Send(to, frame) if matches!(frame.body, Body::Membership(Membership::Join { .. })) => Some(to),
        _ => None,
    });
    let asked: Vec<_> = joins.collect();
    assert!(asked.contains(&&Address::new("seed")) && asked.contains(&&address(0)), "{asked:?}");
    // 64 seeds, and the sender of those messages.
    assert!(asked.len() <= 65, "{} addresses", asked.len());
}
