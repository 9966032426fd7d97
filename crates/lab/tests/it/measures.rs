//! What is measured besides messages and waits, where the answer is known.

use crate::load::{config, measure};
use vez_algorithms::{
    NodeId,
    mutex::{Central, Fila, RicartAgrawala},
};
use vez_lab::sim::{Arrivals, Config, DelayLaw, Fault, Faults};

fn near(value: f64, expected: f64, within: f64) -> bool {
    (value - expected).abs() <= within * expected
}

/// A client that asks at once, waits for two messages of 0.1, stays for 0.5 and pauses for 0.3 comes round every 1.0.
#[test]
fn a_periodic_client_keeps_its_time_and_a_run_its_end() {
    let alone = Config {
        askers: Some(1),
        hold: 0.5,
        delay_law: DelayLaw::Constant,
        until: Some(9.9),
        entries: 1000,
        warmup: 0,
        runs: 0..1,
        ..config(2, Arrivals::Periodic { rate: 1.0 / 0.3 })
    };
    let report = measure::<RicartAgrawala>(&alone);
    assert_eq!(report.entries, 10, "at 0.2, 1.2, … and 9.2");
    assert!(near(report.wait.mean, 0.2, 1e-9) && near(report.throughput.mean, 10.0 / 9.9, 1e-9));
    assert_eq!(measure::<RicartAgrawala>(&Config { until: Some(9.1), ..alone.clone() }).entries, 9);
    assert_eq!(measure::<RicartAgrawala>(&Config { entries: 4, ..alone }).entries, 4, "whichever comes first");
}

/// Without an end, a run in which nothing moves any more is stuck; with one, time goes by until then.
#[test]
fn nothing_may_happen_until_the_end() {
    let crash = Faults::new(vec![(1.0, Fault::Crash(NodeId(0)))]);
    let dead = Config { faults: crash, until: Some(50.0), warmup: 0, ..config(3, Arrivals::Saturated) };
    let report = measure::<Central>(&dead);
    assert!(report.throughput.mean < 1.0 && report.entries > 0, "{:?}", report.throughput);
}

/// As many wait as come in the time that each waits: of n clients that ask again at once, one is inside for 0.01 of every
/// turn, and the others wait.
#[test]
fn all_others_wait_when_all_always_ask() {
    let report = measure::<Fila>(&config(10, Arrivals::Saturated));
    let inside = report.throughput.mean * 0.01;
    assert!(near(report.waiting.mean, 10.0 - inside, 0.01), "{:?}", report.waiting);
    assert!(near(report.throughput.mean, 1.0 / 0.06, 0.02), "a stay and one message: {:?}", report.throughput);
}

/// Also those who wait behind others at their node: as many as come in the time that each waits (Little).
#[test]
fn who_waits_behind_others_waits() {
    let report = measure::<Fila>(&Config { entries: 20_000, ..config(5, Arrivals::Queued { rate: 2.5 }) });
    let expected = report.throughput.mean * report.wait.mean;
    assert!(near(report.waiting.mean, expected, 0.02), "{:?} of {expected}", report.waiting);
}

/// Of three messages the coordinator receives two; where everybody writes to everybody, nobody receives more than others.
#[test]
fn the_busiest_node_is_the_coordinator() {
    let seldom = config(20, Arrivals::Closed { rate: 0.001 });
    let busiest = |report: vez_lab::sim::Report| report.busiest.expect("messages were sent").mean;
    assert!(near(busiest(measure::<Central>(&seldom)), 2.0 / 3.0, 0.01));
    assert!(near(busiest(measure::<RicartAgrawala>(&seldom)), 1.0 / 20.0, 0.1));
}
