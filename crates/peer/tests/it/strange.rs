//! A member hears the strangest things, in any state and any order. It is a member of a view of three; the others are made up.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;
use vez_algorithms::NodeId;
use vez_peer::{
    ask::{Ask, Kind, Leader, Patience, RequestId, SessionId, Size},
    charter::{Algorithms, LockAlgorithm},
    fence::Fence,
    identity::{Address, Incarnation, MemberId},
    name::Name,
    shard::{Effect, Habits, Message, Reentry, Shard, TurnMessage, Waiter},
    view::{Member, View},
};

/// What happens to it.
#[derive(Clone, Debug)]
enum Happening {
    Acquire(Name, Ask, Patience),
    Observe(Name),
    Resize(Name, u32),
    Cancel(Name, RequestId),
    /// Whatever it holds of a name, and was granted last.
    Release(Name),
    EndSession(SessionId),
    Message(NodeId, Message),
    Tick,
    /// And the others say that they are settled, or not.
    NewView(bool),
}

const PREFIXES: [(&[u8], LockAlgorithm); 5] = [
    (b"b", LockAlgorithm::FilaForest),
    (b"c", LockAlgorithm::NaimiTrehel),
    (b"d", LockAlgorithm::Nxr),
    (b"e", LockAlgorithm::Raymond),
    (b"f", LockAlgorithm::SuzukiKasami),
];

fn name() -> impl Strategy<Value = Name> {
    select(vec![b"a1", b"a2", b"b1", b"c1", b"d1", b"e1", b"f1"]).prop_map(|name| Name::new(name).expect("short"))
}

fn number() -> impl Strategy<Value = u64> {
    select(vec![0, 1, 2, 3, (1 << 40) - 1, 1 << 40, u64::MAX])
}

fn request() -> impl Strategy<Value = RequestId> {
    (0..12_u64).prop_map(RequestId)
}

fn fence() -> impl Strategy<Value = Fence> {
    (0..9_u64, 0..9_u64).prop_map(|(view, counter)| Fence::new(view, counter).expect("small"))
}

fn ask() -> impl Strategy<Value = Ask> {
    let units = select(vec![0, 1, 2, u32::MAX]);
    prop_oneof![
        4 => Just(Ask::Lock),
        2 => (units.clone(), units).prop_map(|(units, weight)| Ask::Semaphore { units, weight }),
        1 => vec(0..2_u8, 0..2).prop_map(|label| Ask::Group { label }),
        1 => Just(Ask::Read),
        1 => Just(Ask::Write),
        1 => vec(0..2_u8, 0..2).prop_map(|value| Ask::Elect { value }),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    ask().prop_map(|ask| ask.kind())
}

fn size() -> impl Strategy<Value = Size> {
    (fence(), select(vec![0, 1, u32::MAX])).prop_map(|(since, units)| Size { since, units })
}

/// A message of one of the algorithms, written as what it is sent as.
fn turn() -> impl Strategy<Value = TurnMessage> {
    let node = || (0..4_u32).prop_map(|node| json!(node));
    let line = || vec(0..4_u32, 0..4).prop_map(|line| json!(line));
    let served = vec(number(), 2..4);
    let token = (served, vec(0..4_u32, 0..4)).prop_map(|(served, line)| json!({ "served": served, "line": line }));
    let lender = proptest::option::of(0..4_u32).prop_map(|lender| json!(lender));
    let one = |algorithm: &'static str, what: &'static str| move |content| json!({ algorithm: { what: content } });
    let tries = (0..4_u32, number()).prop_map(|(asker, number)| json!({ "asker": asker, "number": number }));
    let any = prop_oneof![
        node().prop_map(one("Fila", "Request")),
        line().prop_map(one("Fila", "Token")),
        tries.prop_map(one("Fila", "Try")),
        number().prop_map(|number| json!({ "Fila": { "Busy": number } })),
        number().prop_map(|number| json!({ "Fila": { "Refused": number } })),
        node().prop_map(one("FilaForest", "Request")),
        line().prop_map(one("FilaForest", "Token")),
        node().prop_map(one("NaimiTrehel", "Request")),
        Just(json!({ "NaimiTrehel": "Token" })),
        node().prop_map(one("Nxr", "Request")),
        lender.prop_map(one("Nxr", "Token")),
        select(vec!["Request", "Privilege", "PrivilegeAndRequest"]).prop_map(|what| json!({ "Raymond": what })),
        number().prop_map(|number| json!({ "SuzukiKasami": { "Request": number } })),
        token.prop_map(one("SuzukiKasami", "Token")),
    ];
    any.prop_map(|json| serde_json::from_value(json).expect("a message"))
}

fn message() -> impl Strategy<Value = Message> {
    let option = proptest::option::of::<std::ops::Range<u64>>;
    let counter = || proptest::option::of(number());
    let size_or_none = || proptest::option::of(size());
    let leader = || proptest::option::of((fence(), vec(0..2_u8, 0..2)));
    let reentry = || (request(), ask(), fence()).prop_map(|(request, ask, fence)| Reentry { request, ask, fence });
    prop_oneof![
        2 => Just(Message::Settled),
        12 => (name(), turn(), counter())
            .prop_map(|(name, message, counter)| Message::Lock { name, message, counter }),
        2 => name().prop_map(|name| Message::Idle { name }),
        3 => (name(), request(), ask(), any::<bool>())
            .prop_map(|(name, request, ask, now_or_never)| Message::Ask { name, request, ask, now_or_never }),
        3 => (name(), request(), fence(), fence(), size_or_none())
            .prop_map(|(name, request, fence, floor, size)| Message::Grant { name, request, fence, floor, size }),
        1 => (name(), request()).prop_map(|(name, request)| Message::Busy { name, request }),
        1 => (name(), request()).prop_map(|(name, request)| Message::Exhausted { name, request }),
        2 => (name(), option(0..12), kind()).prop_map(|(name, request, is)| {
            Message::Mismatch { name, request: request.map(RequestId), is }
        }),
        2 => (name(), request()).prop_map(|(name, request)| Message::Release { name, request }),
        2 => (name(), kind(), size_or_none(), vec(reentry(), 0..3))
            .prop_map(|(name, kind, size, holds)| Message::Reenter { name, kind, size, holds }),
        2 => (name(), vec(request(), 0..3)).prop_map(|(name, requests)| Message::Reentered { name, requests }),
        1 => (name(), request()).prop_map(|(name, request)| Message::Observe { name, request }),
        1 => (name(), vec(request(), 0..3), number(), leader()).prop_map(|(name, requests, counter, leader)| {
            let leader = leader.map(|(fence, value)| Leader { fence, value });
            Message::Observed { name, requests, counter, leader }
        }),
        1 => (name(), request(), 0..3_u32).prop_map(|(name, request, units)| Message::Resize { name, request, units }),
        1 => (name(), size()).prop_map(|(name, size)| Message::Sized { name, size }),
        1 => (name(), fence()).prop_map(|(name, since)| Message::SizeNoted { name, since }),
        1 => (name(), request(), size()).prop_map(|(name, request, size)| Message::Resized { name, request, size }),
        1 => (name(), request()).prop_map(|(name, request)| Message::NotInUse { name, request }),
    ]
}

fn happening() -> impl Strategy<Value = Happening> {
    let patience = select(vec![Patience::Try, Patience::Endless, Patience::Until(20)]);
    prop_oneof![
        6 => (name(), ask(), patience).prop_map(|(name, ask, patience)| Happening::Acquire(name, ask, patience)),
        1 => name().prop_map(Happening::Observe),
        1 => (name(), 0..3_u32).prop_map(|(name, units)| Happening::Resize(name, units)),
        1 => (name(), request()).prop_map(|(name, request)| Happening::Cancel(name, request)),
        2 => name().prop_map(Happening::Release),
        1 => (1..4_u64).prop_map(|session| Happening::EndSession(SessionId(session))),
        20 => (1..3_usize, message()).prop_map(|(from, message)| Happening::Message(NodeId::from_index(from), message)),
        1 => Just(Happening::Tick),
        1 => any::<bool>().prop_map(Happening::NewView),
    ]
}

fn view(number: u64) -> View {
    let member = |id| Member {
        id: MemberId(id),
        incarnation: Incarnation(1),
        address: Address::new("somewhere"),
        joined_in: 1,
        join_sent: 0,
    };
    View { number, members: (1..=3).map(member).collect() }
}

/// A settled shard with one message heard from a member.
fn effects_of(message: Message) -> Vec<Effect> {
    let algorithms = PREFIXES.iter().map(|(prefix, algorithm)| (prefix.to_vec(), *algorithm)).collect();
    let mut shard = Shard::new(Habits::default(), Algorithms(algorithms));
    let mut effects = Vec::new();
    shard.install(0, view(2), NodeId::from_index(0), &mut effects);
    for other in [1, 2] {
        shard.message(0, NodeId::from_index(other), Message::Settled, &mut effects);
    }
    effects.clear();
    shard.message(0, NodeId::from_index(1), message, &mut effects);
    effects
}

#[test]
fn a_message_that_no_member_can_send_is_a_violation_and_nothing_else() {
    let name = |name: &[u8]| Name::new(name).expect("short");
    let request = RequestId(1);
    let reenter = |kind, ask| {
        let holds = vec![Reentry { request, ask, fence: Fence::FIRST }];
        Message::Reenter { name: name(b"a1"), kind, size: None, holds }
    };
    let unsound = [
        reenter(Kind::Lock, Ask::Lock),
        reenter(Kind::Group, Ask::Read),
        reenter(Kind::ReadWrite, Ask::Group { label: b"x".to_vec() }),
        reenter(Kind::Semaphore { units: 1 }, Ask::Semaphore { units: 1, weight: 0 }),
        Message::Ask { name: name(b"a1"), request, ask: Ask::Lock, now_or_never: false },
        Message::Ask { name: name(b"a1"), request, ask: Ask::Semaphore { units: 0, weight: 1 }, now_or_never: false },
        Message::Idle { name: name(b"b1") },
        Message::Resize { name: name(b"a1"), request, units: 0 },
        Message::Sized { name: name(b"a1"), size: Size { since: Fence::FIRST, units: 0 } },
    ];
    for message in unsound {
        let text = format!("{message:?}");
        let effects = effects_of(message);
        assert!(matches!(effects[..], [Effect::Violation(from, _)] if from.index() == 1), "{text}: {effects:?}");
    }
    let violates = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Violation(..)));
    // A semaphore may have shrunk since the permit was granted.
    let sound = [
        reenter(Kind::ReadWrite, Ask::Read),
        reenter(Kind::Semaphore { units: 1 }, Ask::Semaphore { units: 1, weight: 2 }),
    ];
    for message in sound {
        let text = format!("{message:?}");
        let effects = effects_of(message);
        assert!(!violates(&effects), "{text}: {effects:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::sized(2_000, 20_000), ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_a_member_says_brings_another_down(happenings in vec(happening(), 1..40)) {
        let algorithms = PREFIXES.iter().map(|(prefix, algorithm)| (prefix.to_vec(), *algorithm)).collect();
        let mut shard = Shard::new(Habits { visit: 2, idle: 5, ..Habits::default() }, Algorithms(algorithms));
        let me = NodeId::from_index(0);
        let (mut number, mut requests) = (2, 0);
        let mut effects = Vec::new();
        let mut held: BTreeMap<Name, (SessionId, Fence)> = BTreeMap::new();
        let install = |shard: &mut Shard, now, number, settles, effects: &mut _| {
            shard.install(now, view(number), me, effects);
            for other in [1, 2].into_iter().filter(|_| settles) {
                shard.message(now, NodeId::from_index(other), Message::Settled, effects);
            }
        };
        install(&mut shard, 0, number, true, &mut effects);
        for (now, happening) in (0..).zip(happenings) {
            requests += 1;
            let (session, request) = (SessionId(1 + requests % 3), RequestId(requests));
            match happening {
                Happening::Acquire(name, ask, patience) => {
                    let waiter = Waiter { session, request, ask, patience, since: now };
                    shard.acquire(now, &name, waiter, &mut effects);
                }
                Happening::Observe(name) => shard.observe(now, &name, session, request, &mut effects),
                Happening::Resize(name, units) => shard.resize(now, &name, session, request, units, &mut effects),
                Happening::Cancel(name, request) => {
                    shard.cancel(now, &name, request, &mut effects);
                }
                Happening::Release(name) => {
                    if let Some((session, fence)) = held.remove(&name) {
                        let _ = shard.release(now, session, &name, fence, &mut effects);
                    }
                }
                Happening::EndSession(session) => shard.end_session(now, session, &mut effects),
                Happening::Message(from, message) => shard.message(now, from, message, &mut effects),
                Happening::Tick => shard.tick(now, &mut effects),
                Happening::NewView(settles) => {
                    number += 1;
                    install(&mut shard, now, number, settles, &mut effects);
                }
            }
            for effect in effects.drain(..) {
                match effect {
                    Effect::Granted { session, name, fence, .. } => {
                        held.insert(name, (session, fence));
                    }
                    Effect::Send(to, message) => prop_assert!(to.index() < 3 && to != me, "{to:?} {message:?}"),
                    _ => {}
                }
            }
            let why = shard.why(&Name::new(b"a1").expect("short"));
            prop_assert_eq!(why.view, Some(number));
        }
        for session in 1..4 {
            shard.end_session(100, SessionId(session), &mut effects);
        }
        install(&mut shard, 101, number + 1, false, &mut effects);
        prop_assert_eq!(shard.names(), (0, 0), "nothing is left of what it heard");
    }
}
