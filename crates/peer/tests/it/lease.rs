//! One process, alone with its clock: from when its lease counts, and what it does when that is over.

use crate::lone::{JOINED, Lone};
use vez_peer::{
    ask::{Ask, Patience, RequestId, SessionId},
    charter::Charter,
    frame::{Body, Membership},
    identity::Incarnation,
    name::Name,
    peer::{Call, Effect, Input, Stopped},
};

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
