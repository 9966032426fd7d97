//! What the paper on robust k-exclusion says of its failure detector: how many messages it takes, and how long until all
//! know of a crash. And the detector below an algorithm that needs one, in every interleaving.

use std::time::Duration;

use crate::{
    load::{config, measure},
    systems::{self, check_on},
};
use vez_algorithms::{
    Monitored, NodeId, Order, Setup, detector::HiAdsd, hypercube::dimension, semaphore::RobustKDirect,
};
use vez_lab::{
    check::{self, Verdict, Workload},
    sim::{Arrivals, Config, DelayLaw, Fault, Faults, Report},
    system::System,
};

/// Rounds every 1.0, a message takes 0.01, and 0.04 without an answer is a crash.
fn diagnosis(nodes: usize, crashes: &[(f64, usize)], entries: u64) -> Report {
    let system = System { patience: Duration::from_millis(40), period: Duration::from_secs(1), ..System::of(nodes) };
    let crash = |(at, node): &(f64, usize)| (*at, Fault::Crash(NodeId::from_index(*node)));
    let faults = Faults::new(crashes.iter().map(crash).collect());
    let (delay, delay_law, warmup, runs) = (0.01, DelayLaw::Constant, 0, 0..1);
    let arrivals = Arrivals::Closed { rate: 1.0 };
    measure::<HiAdsd>(&Config { system, faults, delay, delay_law, entries, warmup, runs, ..config(nodes, arrivals) })
}

/// 16 nodes, rounds from t = 0 to the one at t = 100, and a crash every 5.0, from node 15 down to node 1. A crash comes
/// after what is sent at the same instant.
#[test]
fn figure_6_of_the_paper() {
    let crashes: Vec<(f64, usize)> = (1..16).map(|node| (5.0 * (16 - node) as f64 + 0.001, node)).collect();
    // Node 0 ends 101 rounds, node 15 five, node 14 ten, and so on.
    let rounds = 101 + (1..16).map(|node| 5 * (16 - node)).sum::<u64>();
    let report = diagnosis(16, &crashes, rounds);
    assert_eq!(report.messages_by_type["AreYouAlive"], 5100);
    assert_eq!(report.messages_by_type["IAmAlive"], 2348);
}

/// The paper says that it takes log² n rounds at most. There a round tests one cluster; ours tests all log n of them, so
/// that it takes log n periods, and the rest of the round in which the news arrives.
#[test]
fn everybody_knows_within_log_n_rounds() {
    for nodes in [2, 4, 8, 16] {
        let bound = f64::from(dimension(nodes)) + 0.04 * (nodes - 1) as f64;
        for (first, at) in (0..nodes).flat_map(|first| [5.005, 5.015, 5.5].map(|at| (first, at))) {
            let dead = first..nodes.min(first + nodes / 2);
            let living = nodes - dead.len();
            let report = diagnosis(nodes, &dead.map(|node| (at, node)).collect::<Vec<_>>(), 30 * living as u64);
            let detection = report.detection.expect("somebody finds out");
            assert!(detection.worst <= bound, "{nodes} nodes, n{first} at {at}: {}", detection.worst);
        }
    }
}

#[test]
fn a_detector_of_its_own_is_as_good() {
    for (nodes, crashes, askers) in [(2, 1, 2), (3, 2, 1)] {
        let setup = Setup { k: 1, ..systems::setup(nodes) };
        let config = check::Config::new(Workload::Requests(1), Order::Any);
        let config = check::Config { crashes, askers: Some(askers), ..config };
        let report = check_on::<Monitored<RobustKDirect>>(&setup, &config);
        assert!(matches!(report.verdict, Verdict::Holds(_)), "{:?}", report.verdict);
    }
}
