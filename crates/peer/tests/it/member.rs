//! One process or two, whose messages and writes take no time: sessions, joining, leaving, and what cannot be.

use std::collections::{BTreeMap, VecDeque};

use vez_algorithms::{NodeId, mutex::fila};
use vez_peer::{
    Peer,
    agreement::Disk,
    ask::{Ask, Failure, Patience, RequestId, SessionId},
    charter::{Algorithms, Charter, LockAlgorithm},
    fence::Fence,
    frame::{Body, Frame, Item, Membership},
    identity::{Address, ClusterId, Incarnation, MemberId},
    name::Name,
    peer::{Call, Effect, Identity, Input, Start, Stopped},
    shard::{Habits, Message, TurnMessage},
};

const SECOND: u64 = 1_000_000_000;
const CLUSTER: ClusterId = ClusterId(7);

/// Processes, each with what it wanted done.
#[derive(Default)]
struct Few {
    now: u64,
    peers: BTreeMap<u64, Peer>,
    effects: BTreeMap<u64, Vec<Effect>>,
    disks: BTreeMap<u64, Disk>,
}

fn address(id: u64) -> Address {
    Address::new(&id.to_string())
}

impl Few {
    /// One process, which is a cluster.
    fn one(charter: Charter) -> Self {
        charter.check().expect("a good one");
        let mut few = Self { now: SECOND, ..Self::default() };
        few.start(1, 1, charter, Start::Found { cluster: CLUSTER, first_view: 100 });
        few.pass(3 * SECOND);
        assert!(few.peers[&1].is_settled());
        few
    }

    /// Another has joined it.
    fn two(charter: &Charter) -> Self {
        let mut few = Self::one(charter.clone());
        few.join(2, charter.clone());
        few.pass(5 * SECOND);
        assert!(few.peers.values().all(|peer| peer.is_settled()));
        few
    }

    fn start(&mut self, id: u64, incarnation: u64, charter: Charter, start: Start) {
        let me = Identity { id: MemberId(id), incarnation: Incarnation(incarnation), address: address(id) };
        let mut effects = Vec::new();
        let peer = Peer::start(me, charter, Habits::default(), start, self.now, &mut effects, &mut |_| 0);
        self.peers.insert(id, peer);
        self.carry_out(id, effects);
    }

    fn join(&mut self, id: u64, charter: Charter) {
        self.start(id, 1, charter, Start::Join { disk: Box::new(Disk::empty()), seeds: vec![address(1)] });
    }

    fn handle(&mut self, id: u64, input: Input) {
        let mut effects = Vec::new();
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.handle(self.now, input, &mut effects, &mut |_| 0);
        self.carry_out(id, effects);
    }

    fn carry_out(&mut self, id: u64, effects: Vec<Effect>) {
        let mut next = VecDeque::new();
        for effect in effects {
            match &effect {
                Effect::Send(to, frame) => {
                    next.push_back((to.as_str().parse().expect("a number"), Input::Frame(frame.clone())));
                }
                Effect::Persist(batch) => {
                    self.disks.entry(id).or_insert_with(Disk::empty).write(batch);
                    next.push_back((id, Input::Written));
                }
                _ => {}
            }
            self.effects.entry(id).or_default().push(effect);
        }
        for (to, input) in next {
            self.handle(to, input);
        }
    }

    /// What a process says to a client.
    fn call(&mut self, id: u64, call: Call) -> Vec<Effect> {
        self.effects.clear();
        self.handle(id, Input::Call(call));
        self.effects.remove(&id).unwrap_or_default()
    }

    fn open(&mut self, id: u64, session: u64, ttl: Option<u64>) -> Vec<Effect> {
        self.call(id, Call::Open { session: SessionId(session), ttl })
    }

    fn ask(&mut self, id: u64, (session, request): (u64, u64), name: &Name, ask: Ask) -> Option<Fence> {
        let (session, request) = (SessionId(session), RequestId(request));
        let call = Call::Acquire { session, request, name: name.clone(), ask, patience: Patience::Endless };
        self.call(id, call).iter().find_map(|effect| match effect {
            Effect::Granted { fence, .. } => Some(*fence),
            _ => None,
        })
    }

    /// Something comes from another process, which is made up.
    fn hear(&mut self, from: u64, cluster: Option<ClusterId>, body: Body) {
        let to = cluster.map(|_| MemberId(1));
        let (incarnation, address) = (Incarnation(1), address(from));
        let frame = Frame { cluster, from: MemberId(from), incarnation, address, to, body };
        self.handle(1, Input::Frame(Box::new(frame)));
    }

    fn pass(&mut self, time: u64) {
        let end = self.now + time;
        while let Some((due, id)) = self.peers.iter().map(|(id, peer)| (peer.deadline(), *id)).min()
            && due <= end
        {
            self.now = self.now.max(due);
            self.handle(id, Input::Tick);
        }
        self.now = end;
    }

    fn stopped(&self, id: u64) -> Option<&Stopped> {
        self.effects.get(&id)?.iter().find_map(|effect| match effect {
            Effect::Stopped(why) => Some(why),
            _ => None,
        })
    }

    /// A name whose home is the first process.
    fn name_at_first(&self, prefix: &str) -> Name {
        let names = (0..1000).map(|number| Name::new(format!("{prefix}{number}").as_bytes()).expect("short"));
        names.into_iter().find(|name| self.peers[&1].why(name).home == Some(MemberId(1))).expect("one of two")
    }
}

fn name() -> Name {
    Name::new(b"orders").expect("short")
}

fn take(units: u32, weight: u32) -> Ask {
    Ask::Semaphore { units, weight }
}

#[test]
fn what_a_session_gives_up_when_it_ends_is_not_granted_to_itself() {
    let mut few = Few::one(Charter::new(1));
    few.open(1, 1, None);
    few.open(1, 2, None);
    let fence = few.ask(1, (1, 1), &name(), take(2, 1));
    assert!(fence.is_some());
    assert_eq!(few.ask(1, (2, 2), &name(), take(2, 2)), None, "it does not fit");
    assert_eq!(few.ask(1, (2, 3), &name(), take(2, 1)), None, "it would fit, were it not for the one before it");
    let effects = few.call(1, Call::End(SessionId(2)));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Granted { .. })), "{effects:?}");
    assert!(few.ask(1, (1, 4), &name(), take(2, 1)).is_some(), "nothing of it is left");
}

#[test]
fn a_session_whose_time_is_over_is_not_renewed_and_releases_nothing() {
    for late in 0..3 {
        let mut few = Few::one(Charter::new(1));
        few.open(1, 1, Some(SECOND));
        let fence = few.ask(1, (1, 1), &name(), Ask::Lock).expect("nobody else is there");
        few.now += 4 * SECOND; // It was asleep, and the first that it sees is a call.
        let session = SessionId(1);
        let effects = match late {
            0 => few.call(1, Call::Renew(session)),
            1 => few.call(1, Call::Release { session, name: name(), fence }),
            _ => few.open(1, 2, None),
        };
        assert_eq!(effects[..2].iter().filter(|effect| matches!(effect, Effect::Ended(_))).count(), [2, 1, 1][late]);
        let not_yours = Err(Failure::NotYours(name()));
        let released = effects.iter().find_map(|effect| match effect {
            Effect::Released { result, .. } => Some(result.clone()),
            _ => None,
        });
        assert_eq!(released, (late == 1).then_some(not_yours));
        few.open(1, 3, None);
        assert!(few.ask(1, (3, 9), &name(), Ask::Lock).is_some(), "it is free again");
    }
}

#[test]
fn an_extension_is_told_and_ends_with_the_lease() {
    let mut few = Few::one(Charter::new(1));
    let (now, session) = (few.now, SessionId(1));
    let stop = few.peers[&1].stops_at().expect("a member");
    few.open(1, 1, Some(SECOND));
    let extend = |by| Call::Extend { session, by };
    let renewed = |deadline| vec![Effect::Renewed { session, deadline }];
    assert_eq!(few.call(1, extend(2 * SECOND)), renewed(now + 2 * SECOND));
    assert_eq!(few.call(1, extend(SECOND)), renewed(now + 2 * SECOND), "never shorter");
    assert_eq!(few.call(1, extend(3600 * SECOND)), renewed(stop), "never past the lease");
    assert_eq!(few.call(1, Call::Extend { session: SessionId(2), by: SECOND }), [Effect::Ended(SessionId(2))]);
}

#[test]
fn one_that_is_evicted_loses_its_lease_and_only_that_one() {
    for whom_to_tell in [1, 2] {
        let mut few = Few::two(&Charter::new(1));
        few.handle(whom_to_tell, Input::Evict(MemberId(2)));
        few.pass(20 * SECOND);
        assert_eq!(few.stopped(2), Some(&Stopped::LeaseOver));
        assert!(few.peers[&1].is_settled(), "the other goes on");
        let status = few.peers[&1].status();
        assert_eq!(status.members.iter().map(|member| member.id).collect::<Vec<_>>(), [MemberId(1)]);
    }
}

#[test]
fn names_in_use_are_told_in_order_and_in_parts() {
    let mut few = Few::one(Charter::new(8));
    few.open(1, 1, None);
    let name = |text: &str| Name::new(text.as_bytes()).expect("short");
    for (request, text) in (1..).zip(["b/2", "a", "b/10", "b/1", "c", "b"]) {
        assert!(few.ask(1, (1, request), &name(text), Ask::Lock).is_some());
    }
    let peer = &few.peers[&1];
    let told = |prefix: &str, after: Option<&str>, most| {
        let names = peer.used_names(prefix.as_bytes(), after.map(name).as_ref(), most);
        names.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(told("", None, 9), ["a", "b", "b/1", "b/10", "b/2", "c"]);
    assert_eq!(told("b/", None, 9), ["b/1", "b/10", "b/2"]);
    assert_eq!(told("b/", None, 2), ["b/1", "b/10"]);
    assert_eq!(told("b/", Some("b/10"), 9), ["b/2"]);
    assert_eq!(told("d", None, 9), [""; 0]);
}

#[test]
fn a_client_that_is_not_taken_is_told_why() {
    let mut few = Few { now: SECOND, ..Few::default() };
    few.join(2, Charter::new(1));
    let refused = |failure| vec![Effect::NotOpened { session: SessionId(1), failure }];
    assert_eq!(few.open(2, 1, None), refused(Failure::NoMember));
    let mut few = Few::two(&Charter::new(1));
    few.open(2, 5, None);
    few.ask(2, (5, 1), &name(), Ask::Lock).expect("nobody else is there");
    few.handle(2, Input::Leave);
    assert_eq!(few.open(2, 1, None), refused(Failure::Leaving));
    let again = few.open(2, 5, None);
    assert!(matches!(again[..], [Effect::Renewed { .. }, ..]), "who is there already may stay for a while: {again:?}");
}

#[test]
fn a_view_is_settled_once() {
    let mut few = Few::one(Charter::new(8));
    few.effects.clear();
    few.join(2, Charter::new(8));
    few.pass(5 * SECOND);
    let said = |settled: bool| {
        few.effects[&1].iter().filter(move |effect| match effect {
            Effect::Settled(_) => settled,
            Effect::Entered(_) => !settled,
            _ => false,
        })
    };
    assert!(said(false).count() > 0);
    assert_eq!(said(true).count(), said(false).count());
}

#[test]
fn who_waits_is_turned_away_by_one_that_leaves_and_who_holds_is_waited_for() {
    let mut few = Few::two(&Charter::new(1));
    for session in 1..=3 {
        few.open(2, session, None);
    }
    let fence = few.ask(2, (1, 1), &name(), Ask::Lock).expect("nobody else is there");
    assert_eq!(few.ask(2, (2, 2), &name(), Ask::Lock), None);
    few.effects.clear();
    few.handle(2, Input::Leave);
    let failure = Failure::Leaving;
    assert!(few.effects[&2].contains(&Effect::Failed { session: SessionId(2), request: RequestId(2), failure }));
    few.pass(60 * SECOND);
    assert_eq!(few.stopped(2), None, "somebody holds something");
    let effects = few.call(2, Call::Release { session: SessionId(1), name: name(), fence });
    assert_eq!(
        effects.last(),
        Some(&Effect::Stopped(Stopped::Left)),
        "at once, and that sessions are open does not matter"
    );
}

#[test]
fn who_is_told_to_leave_before_it_has_joined_does_not_join() {
    let mut few = Few::one(Charter::new(1));
    let first = few.peers.remove(&1).expect("it is there");
    few.join(2, Charter::new(1));
    few.handle(2, Input::Leave);
    few.peers.insert(1, first);
    few.pass(60 * SECOND);
    assert_eq!(few.stopped(2), Some(&Stopped::Left));
    assert_eq!(few.peers[&1].status().view, Some(101), "there was no view with it");
}

#[test]
fn those_who_came_and_went_do_not_keep_others_from_joining() {
    for (strangers, cluster) in [(64, None), (4096, None), (4096, Some(CLUSTER))] {
        let mut few = Few::one(Charter::new(1));
        for id in 10_000..10_000 + strangers {
            let message = match cluster {
                None => Membership::Join { charter: Charter::new(1), sent: 0 },
                Some(_) => Membership::Wait,
            };
            few.hear(id, cluster, Body::Membership(message));
        }
        few.effects.clear();
        few.peers.retain(|id, _| *id == 1);
        few.pass(60 * SECOND);
        few.join(2, Charter::new(1));
        few.pass(60 * SECOND);
        assert!(few.peers[&2].view().is_some(), "after {strangers} others, long ago");
    }
}

#[test]
fn a_single_process_that_goes_by_something_else_than_before_says_so() {
    let before = Charter::new(1);
    let mut few = Few::one(before.clone());
    let disk = Box::new(few.disks[&1].clone());
    few.effects.clear();
    let charter = Charter { lease: 6 * SECOND, margin: SECOND, ..before.clone() };
    few.start(1, 2, charter, Start::Join { disk, seeds: Vec::new() });
    few.pass(60 * SECOND);
    assert_eq!(few.stopped(1), Some(&Stopped::Refused(before)));
}

#[test]
fn a_lease_does_not_count_from_the_future() {
    let mut few = Few::two(&Charter::new(1));
    few.effects.clear();
    let renewed = Membership::Renewed { process: Incarnation(1), sent: u64::MAX };
    few.hear(2, Some(CLUSTER), Body::Membership(renewed));
    few.now += 100 * SECOND;
    few.handle(1, Input::Tick);
    assert_eq!(few.stopped(1), Some(&Stopped::LeaseOver));
}

#[test]
fn what_no_member_can_have_said_is_blamed_on_it_and_changes_nothing() {
    let algorithms = Algorithms(vec![(b"raymond/".to_vec(), LockAlgorithm::Raymond)]);
    let mut few = Few::two(&Charter { algorithms, ..Charter::new(1) });
    let (fila, raymond) = (few.name_at_first("fila/"), few.name_at_first("raymond/"));
    let lock = |name: &Name, message, counter| {
        let (name, message) = (name.clone(), TurnMessage::Fila(message));
        Message::Lock { name, message, counter }
    };
    let nobody = NodeId::from_index(9);
    let token = || fila::Message::Token([].into());
    let senseless = [
        lock(&fila, fila::Message::Request(nobody), None),
        lock(&fila, fila::Message::Token([nobody].into()), Some(1)),
        lock(&fila, token(), Some(u64::MAX)),
        lock(&fila, token(), None),
        lock(&raymond, token(), Some(1)),
        Message::Idle { name: raymond },
    ];
    // Each waits for the other's token to come; whose counter is what it should be afterwards.
    for (id, request) in [(2, 1), (1, 2)] {
        few.open(id, 1, None);
        few.ask(id, (1, request), &fila, Ask::Lock);
    }
    let view = few.peers[&1].status().view.expect("a member");
    for (number, message) in (5000..).zip(senseless) {
        few.effects.clear();
        let items = vec![Item::Message(number, message.clone())];
        few.hear(2, Some(CLUSTER), Body::Shard { view, shard: 0, items });
        let blamed = few.effects[&1].iter().any(|effect| matches!(effect, Effect::Violation(MemberId(2), _)));
        assert!(blamed, "{message:?}: {:?}", few.effects[&1]);
    }
}
