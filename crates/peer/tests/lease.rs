//! One process, alone with its clock: from when its lease counts, and what it does when that is over.

use vez_peer::{
    Peer,
    agreement::{Config, Disk, Message as Agreement, Position, Snapshot},
    ask::{Ask, Patience, RequestId, SessionId},
    charter::Charter,
    frame::{Body, Frame, Membership},
    identity::{Address, ClusterId, Incarnation, MemberId},
    name::Name,
    peer::{Call, Effect, Identity, Input, Start, Stopped},
    shard::Habits,
    views::{Change, Command, Views},
};

const CLUSTER: ClusterId = ClusterId(7);
const LEADER: MemberId = MemberId(1);
const ME: MemberId = MemberId(2);
/// When our Join was sent, by our own clock.
const JOINED: u64 = 1_000_000_000;

/// A process that was let in by a leader, which is made up, and learns it at some moment.
struct Lone {
    peer: Peer,
    charter: Charter,
}

impl Lone {
    /// What it says when it learns that it is a member.
    fn learns(now: u64) -> (Self, Vec<Effect>) {
        let charter = Charter::new(2);
        let me = Identity { id: ME, incarnation: Incarnation(3), address: Address::new("me") };
        let start = Start::Join { disk: Box::new(Disk::empty()), seeds: vec![Address::new("leader")] };
        let mut effects = Vec::new();
        let peer = Peer::start(me, charter.clone(), Habits::default(), start, JOINED, &mut effects, &mut |_| 0);
        let mut lone = Self { peer, charter };
        lone.hear(JOINED, Body::Membership(Membership::Wait));
        let snapshot = Snapshot {
            position: Position { term: 1, index: 9 },
            config: Config { voters: [LEADER].into(), non_voters: [ME].into(), ..Config::default() },
            views: Some(lone.views()),
        };
        let effects = lone.hear(now, Body::Agreement(Agreement::Snapshot { term: 1, snapshot, round: 1 }));
        assert!(effects.iter().any(|effect| matches!(effect, Effect::Persist(_))), "first it is written");
        let effects = lone.handle(now, Input::Written);
        (lone, effects)
    }

    /// A view of the leader and us.
    fn views(&self) -> Views {
        let mut views = Views::new(CLUSTER, self.charter.clone(), 100);
        let admit = |id, incarnation, join_sent| Change::Admit {
            id,
            incarnation: Incarnation(incarnation),
            address: Address::new("somewhere"),
            join_sent,
            replaces: None,
        };
        for (view, change) in [(100, admit(LEADER, 1, 0)), (101, admit(ME, 3, JOINED))] {
            views.apply(1, &Command { view, term: 1, changes: vec![change] }).expect("it is made for that view");
        }
        views
    }

    fn hear(&mut self, now: u64, body: Body) -> Vec<Effect> {
        let (cluster, address) = (Some(CLUSTER), Address::new("leader"));
        let frame = Frame { cluster, from: LEADER, incarnation: Incarnation(1), address, to: Some(ME), body };
        self.handle(now, Input::Frame(Box::new(frame)))
    }

    fn handle(&mut self, now: u64, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.peer.handle(now, input, &mut effects, &mut |_| 0);
        effects
    }

    /// Until when a client is told that what it holds is its own.
    fn deadline(&mut self, now: u64) -> u64 {
        let effects = self.handle(now, Input::Call(Call::Open { session: SessionId(1), ttl: None }));
        let told = effects.iter().find_map(|effect| match effect {
            Effect::Renewed { deadline, .. } => Some(*deadline),
            _ => None,
        });
        told.expect("it is told")
    }
}

#[test]
fn a_first_lease_counts_from_the_join() {
    let charter = Charter::new(2);
    let (mut lone, effects) = Lone::learns(JOINED + charter.lease / 2);
    assert!(effects.contains(&Effect::Entered(102)));
    assert_eq!(lone.deadline(JOINED + charter.lease / 2), JOINED + charter.stop());
}

#[test]
fn who_learns_too_late_that_it_is_a_member_is_none() {
    let charter = Charter::new(2);
    let (lone, effects) = Lone::learns(JOINED + charter.stop());
    assert!(effects.contains(&Effect::Stopped(Stopped::LeaseOver)));
    assert!(lone.peer.has_stopped());
}

#[test]
fn a_renewal_counts_from_its_sending_and_an_older_one_changes_nothing() {
    let (mut lone, _) = Lone::learns(JOINED);
    let (now, stop) = (JOINED + 3_000_000_000, lone.charter.stop());
    lone.hear(now, Body::Membership(Membership::Renewed { process: Incarnation(3), sent: JOINED + 2_000_000_000 }));
    assert_eq!(lone.deadline(now), JOINED + 2_000_000_000 + stop);
    lone.hear(now, Body::Membership(Membership::Renewed { process: Incarnation(3), sent: JOINED + 1_000_000_000 }));
    assert_eq!(lone.deadline(now), JOINED + 2_000_000_000 + stop);
    // A renewal of an earlier process on this disk, perhaps before the machine was started anew and its clock with it.
    lone.hear(now, Body::Membership(Membership::Renewed { process: Incarnation(2), sent: JOINED + 9_000_000_000_000 }));
    assert_eq!(lone.deadline(now), JOINED + 2_000_000_000 + stop);
}

type Happening = fn(&mut Lone, u64, &Call, Membership) -> Vec<Effect>;

#[test]
fn whatever_comes_when_the_lease_is_over_finds_it_stopped() {
    let name = Name::new(b"orders").expect("short");
    let acquire = Call::Acquire {
        session: SessionId(1),
        request: RequestId(1),
        name,
        ask: Ask::Lock,
        patience: Patience::Endless,
    };
    let renewed = |lone: &Lone| Membership::Renewed { process: Incarnation(3), sent: JOINED + lone.charter.stop() - 1 };
    let happenings: [Happening; 4] = [
        |lone, now, _, _| lone.handle(now, Input::Tick),
        |lone, now, _, _| lone.handle(now, Input::Leave),
        |lone, now, call, _| lone.handle(now, Input::Call(call.clone())),
        // Even if what was waiting for it would have renewed its lease.
        |lone, now, _, renewed| lone.hear(now, Body::Membership(renewed)),
    ];
    for happen in happenings {
        let (mut lone, _) = Lone::learns(JOINED);
        let (stop, renewed) = (JOINED + lone.charter.stop(), renewed(&lone));
        let effects = happen(&mut lone, stop, &acquire, renewed);
        assert_eq!(effects, [Effect::Stopped(Stopped::LeaseOver)], "it says that, and sends nothing");
        assert_eq!(lone.handle(stop, Input::Tick), [], "and nothing more");
    }
}

#[test]
fn holders_are_warned_once() {
    let (mut lone, _) = Lone::learns(JOINED);
    let (danger, stop) = (JOINED + lone.charter.danger(), JOINED + lone.charter.stop());
    let warns = |effects: Vec<Effect>| effects.contains(&Effect::Danger(stop));
    assert!(!warns(lone.handle(danger - 1, Input::Tick)));
    assert!(warns(lone.handle(danger, Input::Tick)));
    assert!(!warns(lone.handle(danger + 1, Input::Tick)));
}
