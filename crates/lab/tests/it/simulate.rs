//! Runs that nobody thought of: any algorithm, seed, load, network and fault. Safety must hold whenever the algorithm's model
//! allows what happens, and the same seed must give the same run.

use std::time::Duration;

use crate::{
    load::{config, measure},
    sized,
};
use proptest::prelude::*;
use vez_algorithms::{
    Algorithm, NodeId, Order, Timing, catalog,
    mutex::{Central, CentralFailover, Nxr, RicartAgrawala, RicartAgrawalaRobust, TokenRingRegenerating},
};
use vez_lab::{
    named::{self, Detector},
    sim::{self, Arrivals, CannotReport, Config, DelayLaw, Fault, Faults, Hot, Script},
    system::{Quorum, Topology},
    trace::Trace,
};

/// A run on that network, or on the weakest that the algorithm allows, with delays as it allows them.
fn measure_any(entry: &catalog::Entry, config: Config) -> Result<sim::Report, String> {
    let model = entry.assumptions;
    let order = if model.order == Order::Fifo { Order::Fifo } else { config.order };
    let bounded = model.timing == Timing::Bounded || model.detector;
    let delay_law = if bounded { DelayLaw::Uniform } else { config.delay_law.clone() };
    let config = Config { order, delay_law, ..config };
    let result = named::run(entry.name, Detector::HiAdsd, &config, || Duration::ZERO, &|_| {});
    result.expect("it is in the catalog").map_err(|error| {
        let seed = config.seed;
        format!("{error}\n{config:#?}\nin short: vez lab run {} --seed {seed}", entry.name)
    })
}

fn any_config() -> impl Strategy<Value = Config> {
    let topology = prop_oneof![
        (1..4_usize).prop_map(Topology::Tree),
        Just(Topology::Line),
        Just(Topology::Star),
        Just(Topology::Random),
        Just(Topology::Hypercube),
        Just(Topology::Grid),
    ];
    let arrivals = prop_oneof![
        (0.01..5.0).prop_map(|rate| Arrivals::Closed { rate }),
        (0.001..0.05).prop_map(|rate| Arrivals::Queued { rate }),
        Just(Arrivals::Saturated),
    ];
    let law = prop_oneof![Just(DelayLaw::Uniform), Just(DelayLaw::Constant), Just(DelayLaw::Exponential)];
    let order = prop_oneof![Just(Order::Fifo), Just(Order::Any)];
    (1..40_usize, topology, arrivals, law, order, 0.0..0.2, any::<u64>()).prop_map(
        |(nodes, topology, arrivals, delay_law, order, hold, seed)| {
            let mut config =
                Config { delay_law, order, hold, seed, entries: 300, warmup: 0, runs: 0..1, ..config(nodes, arrivals) };
            config.system.topology = topology;
            config
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: sized(8, 40), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everybody_gets_a_turn_and_nobody_two_at_once(config in any_config()) {
        for entry in catalog::ALL {
            let report = measure_any(entry, config.clone()).map_err(TestCaseError::fail)?;
            prop_assert_eq!(report.entries, 300);
        }
    }

    #[test]
    fn the_same_seed_is_the_same_run(config in any_config()) {
        for entry in catalog::ALL {
            let run = || measure_any(entry, config.clone());
            prop_assert_eq!(run(), run());
        }
    }
}

#[test]
fn a_trace_is_the_same_byte_for_byte_and_another_seed_another() {
    let trace = |seed| {
        let config = Config { entries: 50, warmup: 0, seed, ..config(7, Arrivals::Closed { rate: 1.0 }) };
        let mut bytes = Vec::new();
        let mut trace = Trace::new(&mut bytes, &config.header::<Nxr>(0, None)).expect("memory is not full");
        sim::watch::<Nxr>(&config, 0, &mut trace).expect("nothing goes wrong");
        trace.finish().expect("memory is not full");
        bytes
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}

#[test]
fn large_systems() {
    for entry in catalog::ALL {
        let broadcasts = ["lamport", "ricart-agrawala", "ricart-agrawala-clock", "suzuki-kasami"].contains(&entry.name);
        let tolerant = entry.family != "mutex" || entry.assumptions.survives_crashes;
        let (nodes, entries) = match (tolerant, broadcasts) {
            (true, _) => sized((100, 50), (200, 100)),
            (false, true) => sized((300, 100), (1000, 200)),
            (false, false) => sized((3000, 600), (10_000, 2000)),
        };
        let config = Config { entries, warmup: 0, runs: 0..1, ..config(nodes, Arrivals::Closed { rate: 0.01 }) };
        let report = measure_any(entry, config).expect(entry.name);
        assert_eq!(report.entries, entries, "{}", entry.name);
    }
}

#[test]
fn planes_and_stars_of_quorums() {
    for (quorum, nodes) in [(Quorum::Plane, 31), (Quorum::Plane, 57), (Quorum::Star, 31), (Quorum::Grid, 30)] {
        let mut config = Config { order: Order::Fifo, ..config(nodes, Arrivals::Saturated) };
        config.system.quorum = quorum;
        let report = measure::<vez_algorithms::mutex::Maekawa>(&config);
        assert_eq!(report.violations, 0);
    }
}

fn fails<A: Algorithm>(config: &Config) -> sim::Failure {
    match sim::run::<A>(config, || Duration::ZERO, &|_| {}) {
        Err(CannotReport::Failure(failure)) => failure,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("{} survived", A::NAME),
    }
}

#[test]
fn a_dead_coordinator_leaves_the_rest_stuck() {
    let faults = Faults::new(vec![(5.0, Fault::Crash(NodeId(0)))]);
    let config = Config { faults, ..config(5, Arrivals::Closed { rate: 1.0 }) };
    let failure = fails::<Central>(&config);
    assert!(!failure.law_broken, "{failure}");
    assert!(failure.what.ends_with("n1, n2, n3, n4 wait and nothing lets them in"), "{failure}");
}

#[test]
fn lost_and_doubled_messages_and_partitions_are_noticed() {
    let config = config(5, Arrivals::Closed { rate: 1.0 });
    let with = |fault| Config { faults: Faults::new(vec![(0.0, fault)]), ..config.clone() };
    let stuck = fails::<RicartAgrawala>(&with(Fault::Loss(0.1)));
    assert!(!stuck.law_broken, "{stuck}");
    let stuck = fails::<RicartAgrawala>(&with(Fault::Partition(vec![vec![NodeId(0), NodeId(1)]])));
    assert!(!stuck.law_broken, "{stuck}");
    let broken = fails::<RicartAgrawala>(&with(Fault::Duplicate(0.5)));
    assert!(broken.law_broken && broken.what.contains("a Reply that nobody waits for"), "{broken}");
}

#[test]
fn a_node_that_forgets_brings_a_second_token() {
    // Node 0 lends the token, forgets it, and starts with the token that it had in the beginning.
    let faults = Faults::new(vec![(1.0, Fault::Crash(NodeId(0))), (1.5, Fault::Restart(NodeId(0)))]);
    let script: Script = "0.5 n1\n2.0 n2\n2.0 n0\n".parse().expect("a good script");
    let config = Config { faults, hold: 2.0, runs: 0..1, ..config(3, Arrivals::Scripted(script)) };
    let failure = fails::<Nxr>(&config);
    assert!(failure.law_broken, "{failure}");
    assert!(failure.what.ends_with("are inside together"), "{failure}");
}

#[test]
fn a_partition_that_heals_in_time_does_no_harm() {
    let faults = Faults::new(vec![(1.0, Fault::Partition(vec![vec![NodeId(0)]])), (2.0, Fault::Heal)]);
    let script: Script = "0.5 n1\n3.0 n2\n".parse().expect("a good script");
    let config = Config { faults, ..config(3, Arrivals::Scripted(script)) };
    assert_eq!(measure::<Nxr>(&config).entries, 2);
}

#[test]
fn hot_nodes_enter_more_often() {
    let fair = measure::<Nxr>(&config(10, Arrivals::Closed { rate: 0.01 })).fairness.mean;
    let hot = Config { hot: Some(Hot { nodes: 1, share: 0.9 }), ..config(10, Arrivals::Closed { rate: 0.01 }) };
    let skewed = measure::<Nxr>(&hot).fairness.mean;
    assert!(fair > 0.99 && skewed < 0.2, "{fair} {skewed}");
}

#[test]
fn who_restarts_takes_up_the_script_again() {
    let faults = Faults::new(vec![(2.0, Fault::Crash(NodeId(1))), (3.0, Fault::Restart(NodeId(1)))]);
    let script: Script = "1 n1\n2.5 n1\n10 n1\n20 n2\n".parse().expect("a good script");
    let config = Config { faults, ..config(3, Arrivals::Scripted(script)) };
    assert_eq!(measure::<Central>(&config).entries, 3, "only the request while it was down is lost");
}

#[test]
fn a_long_stay_and_a_large_crowd_are_not_stuck() {
    let stays = Config {
        hold: 10.0,
        delay: 0.001,
        entries: 50,
        runs: 0..1,
        warmup: 0,
        ..config(31, Arrivals::Closed { rate: 0.1 })
    };
    assert_eq!(measure::<vez_algorithms::mutex::CentralDenying>(&stays).entries, 50);
    let crowd = Config { entries: 5, runs: 0..1, warmup: 0, ..config(1000, Arrivals::Saturated) };
    assert_eq!(measure::<vez_algorithms::mutex::Lamport>(&crowd).entries, 5);
}

#[test]
fn a_hand_over_is_to_somebody_who_waited() {
    // Node 1 asks long after node 0 has left: that is nobody's delay. Node 2 waits while node 1 is inside: that is.
    let script = |text: &str| Arrivals::Scripted(text.parse().expect("a good script"));
    let alone = measure::<Central>(&config(3, script("1 n0\n9 n1\n")));
    assert_eq!(alone.synchronisation_delay, None);
    let queued = measure::<Central>(&Config { hold: 1.0, ..config(3, script("1 n1\n1.5 n2\n")) });
    assert!(queued.synchronisation_delay.is_some_and(|delay| delay.mean > 0.0 && delay.mean < 0.2));
}

/// Whoever crashes while it tells others that it leaves asks no more: nobody else is ever inside with it.
#[test]
fn who_crashes_in_the_midst_of_leaving_is_dead() {
    for at in 1..20 {
        let faults = Faults::new(vec![(f64::from(at) / 4.0, Fault::CrashSending(NodeId(1)))]);
        let config =
            Config { faults, hold: 0.3, entries: 200, warmup: 0, runs: 0..4, ..config(3, Arrivals::Saturated) };
        for report in [
            measure::<CentralFailover>(&config),
            measure::<RicartAgrawalaRobust>(&config),
            measure::<TokenRingRegenerating>(&config),
        ] {
            assert_eq!((report.crashes, report.violations), (4, 0));
        }
    }
}
