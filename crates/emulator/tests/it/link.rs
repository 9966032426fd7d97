//! What a link owes: on a network that loses, doubles and reorders, by chance and, for small systems, in every way there is.

use std::collections::{BTreeMap, BTreeSet};

use vez_algorithms::{
    NodeId,
    link::{Link, OutOfWindow, Service},
};
use vez_lab::random::{Purpose, Stream};

const MILLISECOND: u64 = 1_000_000;

/// A frame on its way, to the second end of the link or back to the first.
#[derive(Clone)]
enum Frame {
    Message(u64, u32),
    Ack(u64),
}

/// Sends so many messages over a bad network, and says what arrived, in order.
fn transfer(service: Service, messages: u32, seed: u64) -> Vec<u32> {
    let mut chance = Stream::new(seed, 0, NodeId(0), Purpose::Faults);
    let (mut here, mut there) = (Link::new(service), Link::new(service));
    let mut on_their_way: Vec<Frame> = Vec::new();
    let mut arrived = Vec::new();
    let (mut sent, mut now) = (0, 0);
    let quiet = |sent: u32, on_their_way: &[Frame], here: &Link<u32>| {
        sent == messages && on_their_way.is_empty() && here.deadline().is_none()
    };
    while !quiet(sent, &on_their_way, &here) {
        now += MILLISECOND;
        assert!(now < 1000 * 1000 * MILLISECOND, "after a quarter of an hour not everything has arrived");
        let mut frames = Vec::new();
        if sent < messages {
            frames.push(Frame::Message(here.send(now, &sent), sent));
            sent += 1;
        }
        frames.extend(here.resend(now).into_iter().map(|(number, message)| Frame::Message(number, message)));
        if !on_their_way.is_empty() {
            let any = chance.below(on_their_way.len());
            match on_their_way.swap_remove(any) {
                Frame::Message(number, message) => {
                    let arrival = there.receive(number, message).expect("within the window");
                    arrived.extend(arrival.messages);
                    frames.extend(arrival.acknowledge.then_some(Frame::Ack(number)));
                }
                Frame::Ack(number) => here.acknowledged(now, number),
            }
        }
        for frame in frames {
            let copies = [0, 0, 1, 1, 1, 1, 1, 1, 2, 3][chance.below(10)];
            on_their_way.extend(vec![frame; copies]);
        }
    }
    assert_eq!(there.unanswered_since(), None, "nothing was sent there");
    arrived
}

#[test]
fn in_order_everything_arrives_once_in_order() {
    for seed in 0..50 {
        assert_eq!(transfer(Service::InOrder, 200, seed), (0..200).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn reliably_everything_arrives_once() {
    let mut out_of_order = 0;
    for seed in 0..50 {
        let mut arrived = transfer(Service::Reliable, 200, seed);
        out_of_order += usize::from(!arrived.is_sorted());
        arrived.sort_unstable();
        assert_eq!(arrived, (0..200).collect::<Vec<_>>(), "seed {seed}");
    }
    assert!(out_of_order > 25, "what need not wait does not");
}

#[test]
fn once_nothing_arrives_twice() {
    let mut missing = 0;
    for seed in 0..50 {
        let arrived = transfer(Service::Once, 200, seed);
        let different: BTreeSet<u32> = arrived.iter().copied().collect();
        assert_eq!(different.len(), arrived.len(), "seed {seed}");
        missing += 200 - arrived.len();
    }
    assert!(missing > 0, "what is lost is not sent again");
}

#[test]
fn a_number_far_ahead_changes_nothing() {
    for service in [Service::Once, Service::Reliable, Service::InOrder] {
        let mut link = Link::new(service);
        link.receive(0, 'a').expect("the first");
        let before = link.clone();
        assert_eq!(link.receive(1 << 40, 'x'), Err(OutOfWindow));
        assert_eq!(link, before);
        assert_eq!(link.receive(1, 'b').expect("the next").messages, ['b']);
    }
}

#[test]
fn an_acknowledgement_of_nothing_changes_nothing() {
    let mut link = Link::new(Service::Reliable);
    link.send(0, &'a');
    let before = link.clone();
    link.acknowledged(5, 77);
    assert_eq!(link, before);
}

#[test]
fn what_is_not_acknowledged_is_sent_again_and_ever_more_seldom() {
    let mut link = Link::new(Service::Reliable);
    link.send(0, &'a');
    let mut pauses = Vec::new();
    let mut last = 0;
    for _ in 0..14 {
        let due = link.deadline().expect("nobody has answered");
        assert!(link.resend(due - 1).is_empty(), "not before its time");
        assert_eq!(link.resend(due), [(0, 'a')]);
        pauses.push((due - last) / MILLISECOND);
        last = due;
    }
    assert_eq!(pauses, [20, 20, 20, 20, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000, 1000]);
    assert_eq!(link.labour().resent, 14);
}

#[test]
fn the_pace_follows_the_round_trips() {
    let mut link = Link::new(Service::Reliable);
    let pace = |link: &mut Link<char>, now: u64, took: u64| {
        let number = link.send(now, &'a');
        link.acknowledged(now + took, number);
        let number = link.send(now + took, &'b');
        let timeout = link.deadline().expect("it waits") - (now + took);
        link.acknowledged(now + took, number);
        timeout
    };
    let quick: Vec<u64> = (0..50).map(|at| pace(&mut link, at * 100 * MILLISECOND, MILLISECOND / 10)).collect();
    assert_eq!(quick[49], 2 * MILLISECOND, "a busy processor needs that long: {quick:?}");
    let slow: Vec<u64> = (50..100).map(|at| pace(&mut link, at * 100 * MILLISECOND, 30 * MILLISECOND)).collect();
    assert!((15 * MILLISECOND..100 * MILLISECOND).contains(&slow[49]), "{slow:?}");
}

#[test]
fn a_window_is_kept_of_what_came() {
    let mut link = Link::new(Service::Once);
    let mut seen = BTreeMap::new();
    // Every second message is lost, for ever: memory must not grow with them.
    for number in (0..400_000_u64).step_by(2) {
        let arrival = link.receive(number, ()).expect("the next");
        *seen.entry(arrival.messages.len()).or_insert(0) += 1;
    }
    assert_eq!(seen, BTreeMap::from([(1, 200_000)]));
    assert!(link.receive(10, ()).expect("long ago").messages.is_empty());
    assert!(link.receive(399_998, ()).expect("just now").messages.is_empty());
    assert_eq!(link.receive(399_997, ()).expect("late").messages.len(), 1);
}
