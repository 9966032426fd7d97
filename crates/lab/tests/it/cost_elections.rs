//! What elections cost, to the message: beside the formulas on the pages of `bully`, `ring` and `central-failover`.

use std::collections::BTreeMap;

use crate::load::{config, scripted};
use vez_algorithms::{
    Algorithm, Effect, Input, Message, NodeId,
    election::{Bully, Ring},
    mutex::CentralFailover,
};
use vez_lab::sim::{self, Arrivals, Config, DelayLaw, Event, Fault, Faults, Script, Watch};

/// How many messages of each kind were sent, and how many arrived.
#[derive(Default, Debug, PartialEq)]
struct Counts {
    sent: BTreeMap<&'static str, u64>,
    received: BTreeMap<&'static str, u64>,
}

impl<A: Algorithm> Watch<A> for Counts {
    fn see(&mut self, _: f64, _: NodeId, event: Event<'_, A>) {
        match event {
            Event::Effect(Effect::Send(_, message)) => *self.sent.entry(message.kind()).or_default() += 1,
            Event::Input(Input::Message { message, .. }, ..) => {
                *self.received.entry(message.kind()).or_default() += 1;
            }
            _ => {}
        }
    }
}

/// What is sent and what arrives if these nodes are dead from the start and these call, or ask, at time 1.
fn count<A: Algorithm>(nodes: usize, dead: &[usize], asks: &[usize], run: u64) -> Counts {
    let asks = asks.iter().map(|node| (1.0, NodeId::from_index(*node)));
    let mut faults: Vec<(f64, Fault)> =
        dead.iter().map(|node| (0.0, Fault::Crash(NodeId::from_index(*node)))).collect();
    faults.push((1000.0, Fault::Heal)); // Nothing to heal: the run is not over before.
    let faults = Faults::new(faults);
    watched::<A>(&Config { faults, ..config(nodes, Arrivals::Scripted(Script::of(asks.collect()))) }, run)
}

fn watched<A: Algorithm>(config: &Config, run: u64) -> Counts {
    let mut counts = Counts::default();
    let config = Config { runs: run..run + 1, ..config.clone() };
    sim::watch::<A>(&config, run, &mut counts).unwrap_or_else(|error| panic!("{}: {error}", A::NAME));
    counts
}

fn of(counts: impl IntoIterator<Item = (&'static str, usize)>) -> BTreeMap<&'static str, u64> {
    counts.into_iter().filter(|(_, count)| *count > 0).map(|(kind, count)| (kind, count as u64)).collect()
}

#[test]
fn bully_costs_what_its_page_says() {
    for n in 2..=8 {
        for d in 1..n {
            let h = n - 1 - d;
            for i in 0..=h {
                let dead: Vec<usize> = (h + 1..n).collect();
                let m = h - i + 1;
                let counts = count::<Bully>(n, &dead, &[i], i as u64);
                let pairs = m * (m - 1) / 2;
                let sent = of([("Election", pairs + m * d), ("Ok", pairs), ("Coordinator", n - 1)]);
                let received = of([("Election", pairs), ("Ok", pairs), ("Coordinator", n - 1 - d)]);
                assert_eq!(counts, Counts { sent, received }, "n={n} d={d} i={i}");
            }
        }
    }
}

#[test]
fn the_best_and_the_worst_case_of_the_bully() {
    let total = |counts: &BTreeMap<&str, u64>| counts.values().sum::<u64>() as usize;
    for n in [2, 3, 5, 10, 40] {
        let best = count::<Bully>(n, &[n - 1], &[n - 2], 0);
        assert_eq!((total(&best.sent), total(&best.received)), (n, n - 2));
        let worst = count::<Bully>(n, &[n - 1], &[0], 0);
        assert_eq!((total(&worst.sent), total(&worst.received)), (n * (n - 1), n * (n - 2)));
    }
}

#[test]
fn ring_costs_2n_less_the_dead() {
    for n in 2..=6_usize {
        for dead in 0..1_usize << n {
            let dead: Vec<usize> = (0..n).filter(|node| dead >> node & 1 == 1).collect();
            let d = dead.len();
            for caller in (0..n).filter(|node| n - d >= 2 && !dead.contains(node)) {
                let counts = count::<Ring>(n, &dead, &[caller], caller as u64);
                let acknowledged = [("Ack", n - d), ("Told", n - d)];
                let sent = of([("Election", n), ("Coordinator", n - d)].into_iter().chain(acknowledged));
                let received = of([("Election", n - d), ("Coordinator", n - d)].into_iter().chain(acknowledged));
                assert_eq!(counts, Counts { sent, received }, "n={n} dead={dead:?} caller={caller}");
            }
        }
    }
}

#[test]
fn two_elections_on_a_ring_cost_at_most_twice_as_much() {
    for run in 0..100 {
        let n = 6;
        let counts = count::<Ring>(n, &[5], &[0, 3], run);
        let costs = (counts.sent["Election"] + counts.sent["Coordinator"]) as usize;
        assert!((2 * n..=4 * n).contains(&costs), "{counts:?}");
    }
}

#[test]
fn a_coordinator_that_lives_costs_three_messages() {
    for nodes in [2, 3, 10] {
        let counts = watched::<CentralFailover>(&config(nodes, scripted(10.0, (0..nodes).map(NodeId::from_index))), 0);
        let others = nodes - 1;
        let expected = of([("Request", others), ("Grant", others), ("Release", others)]);
        assert_eq!(counts.sent, expected);
    }
}

#[test]
fn watching_costs_two_messages_a_period() {
    // n1 is inside for a long time and n2 waits. A Ping goes out a period, 2.5, after the Pong before it, and every message
    // takes 0.1. So in the 270 of the stay the coordinator pings n1 100 times; and n2, which waits 0.2 longer, the coordinator.
    let asks = Script::of(vec![(1.0, NodeId(1)), (1.0, NodeId(2))]);
    let stay = Config { hold: 270.0, delay_law: DelayLaw::Constant, ..config(3, Arrivals::Scripted(asks)) };
    let counts = watched::<CentralFailover>(&stay, 0);
    assert_eq!((counts.sent["Ping"], counts.received["Pong"]), (300, 300));
}

#[test]
fn a_crash_costs_an_election_and_the_reports() {
    for n in [3, 4, 10] {
        // The first coordinator, n0, is dead, and n1 notices. All others report to the one who is elected.
        let counts = count::<CentralFailover>(n, &[0], &[1], 0);
        assert_eq!((counts.sent["Ping"], counts.sent.get("Pong")), (1, None));
        assert_eq!(counts.sent["Report"] as usize, n - 2);
        let elections = counts.sent["Election"] as usize;
        assert!((n..=n * n).contains(&elections), "{elections} messages for an election among {n}");
    }
}
