//! One process and what the log brings it: two views at once, snapshots that come late, votes of those who were removed, and
//! removals that are not yet agreed on.

use crate::lone::{CLUSTER, JOINED, LEADER, Lone, ME};
use vez_peer::{
    Peer,
    agreement::{Append, Ballot, Config, Disk, Entry, Message as Agreement, Position, Snapshot},
    ask::{Ask, Patience, RequestId, SessionId},
    charter::Charter,
    fence::Fence,
    frame::{Body, Frame, Item, Membership},
    identity::{Address, Incarnation, MemberId},
    name::Name,
    peer::{Call, Effect, Identity, Input, Start},
    shard::{Habits, Message},
    views::{Change, Command, Pledge, Views},
};

const OTHER: MemberId = MemberId(3);

/// Steps to the next views, in which nothing is different.
fn steps(views: impl IntoIterator<Item = u64>) -> Vec<Entry> {
    views.into_iter().map(|view| Entry::Command(Command { view, term: 1, changes: Vec::new() })).collect()
}

fn append(entries: Vec<Entry>, commit: u64) -> Body {
    let append = Append { after: Position { term: 1, index: 9 }, entries };
    Body::Agreement(Agreement::Append { term: 1, commit, append, round: 1 })
}

fn written(lone: &mut Lone, mut effects: Vec<Effect>) -> Vec<Effect> {
    while let Some(at) = effects.iter().position(|effect| matches!(effect, Effect::Persist(_))) {
        effects.remove(at);
        effects.extend(lone.handle(JOINED, Input::Written));
    }
    effects
}

#[test]
fn of_two_views_that_come_at_once_only_the_last_is_spoken_in() {
    let (mut lone, _) = Lone::learns(JOINED);
    let say = |lone: &mut Lone, shard, number, message| {
        lone.hear(JOINED, Body::Shard { view: 102, shard, items: vec![Item::Message(number, message)] })
    };
    for shard in 0..2 {
        say(&mut lone, shard, 0, Message::Settled);
    }
    // What it holds, the leader keeps the ledger of.
    let names = (0..100_u8).map(|letter| Name::new(&[letter]).expect("short"));
    let name = names.into_iter().find(|name| lone.peer.why(name).home == Some(LEADER)).expect("one of two");
    let (session, request, ask) = (SessionId(1), RequestId(1), Ask::Read);
    lone.handle(JOINED, Input::Call(Call::Open { session, ttl: None }));
    let call = Call::Acquire { session, request, name: name.clone(), ask, patience: Patience::Endless };
    lone.handle(JOINED, Input::Call(call));
    let fence = Fence::new(102, 1).expect("small");
    let grant = Message::Grant { name: name.clone(), request, fence, floor: fence, size: None };
    let effects = say(&mut lone, name.shard(2), 1, grant);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Granted { .. })));
    let effects = lone.hear(JOINED, append(steps([102, 103]), 11));
    let effects = written(&mut lone, effects);
    assert!(effects.contains(&Effect::Entered(103)) && effects.contains(&Effect::Entered(104)));
    let mut reentries = 0;
    for effect in &effects {
        if let Effect::Send(_, frame) = effect
            && let Body::Shard { view, items, .. } = &frame.body
        {
            assert_eq!(*view, 104);
            let is_reentry = |item: &&Item| matches!(item, Item::Message(_, Message::Reenter { .. }));
            reentries += items.iter().filter(is_reentry).count();
        }
    }
    assert_eq!(reentries, 1);
}

#[test]
fn a_snapshot_of_what_is_known_changes_nothing() {
    let (mut lone, _) = Lone::learns(JOINED);
    let effects = lone.hear(JOINED, append(steps([102, 103]), 11));
    written(&mut lone, effects);
    let mut views = lone.views();
    views.apply(1, &Command { view: 102, term: 1, changes: Vec::new() }).expect("it is made for that view");
    let config = Config { voters: [LEADER].into(), non_voters: [ME].into(), ..Config::default() };
    let snapshot = Snapshot { position: Position { term: 1, index: 10 }, config, views: Some(views) };
    let effects = lone.hear(JOINED, Body::Agreement(Agreement::Snapshot { term: 1, snapshot, round: 1 }));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Persist(_) | Effect::Stopped(_))), "{effects:?}");
    assert_eq!(lone.peer.status().view, Some(104));
}

#[test]
fn whoever_was_removed_keeps_its_disk_if_only_the_end_of_the_log_gives_it_a_vote() {
    let remove = |id, incarnation| Change::Remove { id, incarnation: Incarnation(incarnation), pledge: 0 };
    let admit = Change::Admit {
        id: OTHER,
        incarnation: Incarnation(1),
        address: Address::new("other"),
        join_sent: 0,
        replaces: None,
        pledge: 0,
    };
    for votes in [false, true] {
        let (mut lone, _) = Lone::learns(JOINED);
        let command = |view, change| Entry::Command(Command { view, term: 1, changes: vec![change] });
        let mut entries = vec![command(102, admit.clone()), command(103, remove(OTHER, 1))];
        if votes {
            let config =
                Config { voters: [LEADER].into(), new_voters: [LEADER, ME, OTHER].into(), ..Config::default() };
            entries.push(Entry::Config(config));
        }
        let effects = lone.hear(JOINED, append(entries, 11));
        written(&mut lone, effects);
        let (charter, address) = (lone.charter.clone(), Address::new("other"));
        let body = Body::Membership(Membership::Join { charter, sent: 0 });
        let (cluster, incarnation) = (Some(CLUSTER), Incarnation(2));
        let frame = Frame { cluster, from: OTHER, incarnation, address, to: Some(ME), body };
        let effects = lone.handle(JOINED, Input::Frame(Box::new(frame)));
        let is_it = |frame: &Frame| matches!(frame.body, Body::Membership(Membership::Retired));
        let retired = effects.iter().any(|effect| matches!(effect, Effect::Send(_, frame) if is_it(frame)));
        assert_eq!(retired, !votes);
    }
}

/// A leader whose log says that another is removed, and that does not know yet whether that is agreed on.
#[test]
fn a_leader_renews_nobody_before_it_knows_what_was_agreed_on_before_it() {
    let (charter, me, other) = (Charter::new(1), MemberId(1), MemberId(2));
    let admit = |id: MemberId| {
        let address = Address::new(&id.to_string());
        Change::Admit { id, incarnation: Incarnation(1), address, join_sent: 0, replaces: None, pledge: 0 }
    };
    let remove = Change::Remove { id: OTHER, incarnation: Incarnation(1), pledge: 0 };
    let mut views = Views::new(CLUSTER, charter.clone(), 100);
    let all = Command { view: 100, term: 1, changes: vec![admit(me), admit(other), admit(OTHER)] };
    views.apply(1, &all).expect("it is made for that view");
    let config = Config { voters: [me, other, OTHER].into(), ..Config::default() };
    let position = Position { term: 1, index: 1 };
    let snapshot = Snapshot { position, config, views: Some(views) };
    let entries = vec![Entry::Command(Command { view: 101, term: 1, changes: vec![remove] })];
    let disk = Box::new(Disk { ballot: Ballot { term: 1, vote: Some(me) }, snapshot, entries });
    let identity = Identity { id: me, incarnation: Incarnation(2), address: Address::new("me") };
    let start = Start::Join { disk, seeds: Vec::new() };
    let mut peer = Peer::start(identity, charter.clone(), Habits::default(), start, 0, &mut Vec::new(), &mut |_| 0);
    let happen = |peer: &mut Peer, input| {
        let mut effects = Vec::new();
        peer.handle(charter.lease, input, &mut effects, &mut |_| 0);
        while let Some(at) = effects.iter().position(|effect| matches!(effect, Effect::Persist(_))) {
            effects.remove(at);
            peer.handle(charter.lease, Input::Written, &mut effects, &mut |_| 0);
        }
        effects
    };
    let say = |peer: &mut Peer, from: MemberId, body| {
        let (cluster, address) = (Some(CLUSTER), Address::new(&from.to_string()));
        let frame = Frame { cluster, from, incarnation: Incarnation(1), address, to: Some(me), body };
        happen(peer, Input::Frame(Box::new(frame)))
    };
    let renews = |frame: &Frame| matches!(frame.body, Body::Membership(Membership::Renewed { .. }));
    let is_renewal = |effect: &Effect| matches!(effect, Effect::Send(_, frame) if renews(frame));
    happen(&mut peer, Input::Tick);
    say(&mut peer, other, Body::Agreement(Agreement::PreVoteAnswer { term: 2, granted: true }));
    say(&mut peer, other, Body::Agreement(Agreement::VoteAnswer { term: 2, granted: true }));
    assert!({
        let status = peer.status();
        status.leader == Some(status.id)
    });
    let mut renewed = false;
    let answer = |last, round| Body::Agreement(Agreement::AppendAnswer { term: 2, last, round });
    // The other says again and again that it follows, but not yet how far.
    for round in 1..20 {
        let heartbeat = Membership::Heartbeat {
            sent: 5,
            view: 101,
            unheard: Vec::new(),
            wants_view: false,
            pledge: Pledge::default(),
        };
        let effects = say(&mut peer, OTHER, Body::Membership(heartbeat));
        renewed |= effects.iter().any(is_renewal);
        let effects = say(&mut peer, other, answer(position, round));
        renewed |= effects.iter().any(is_renewal);
    }
    assert!(!renewed, "its removal may have been agreed on long ago");
}
