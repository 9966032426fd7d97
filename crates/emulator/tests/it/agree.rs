//! Every lock, semaphore and group algorithm over real sockets: the law holds, and it sends as many messages an entry as the
//! simulator says, within a tenth.

use std::{thread, time::Duration};

use crate::thorough;

use vez_algorithms::catalog::{self, Entry};
use vez_emulator::{Outcome, Settings, Transport, emulate};
use vez_lab::system::System;

/// What one run of the simulator differs from the next, at most, for one run to be enough.
const STEADY: f64 = 0.02;
/// More runs than this are not needed to average out what chance does.
const MOST_RUNS: u64 = 16;

/// So many attempts.
const ATTEMPTS: u64 = 4;

fn settings(transport: Transport, loss: f64, seed: u64) -> Settings {
    let system = System {
        // Long beside how late a slow machine wakes who waits: with a millisecond, voting over UDP sent 0.84 of what is simulated.
        retry: Duration::from_millis(4)..Duration::from_millis(12),
        // A machine that runs other tests, too, may keep a node waiting for long.
        patience: Duration::from_millis(400),
        period: Duration::from_millis(4000),
        ..System::of(8)
    };
    Settings {
        system,
        transport,
        entries: 1000,
        askers: None,
        hold: 0.001,
        think: 0.005,
        loss,
        seed,
        crashes: Vec::new(),
        trace: false,
    }
}

fn run(name: &str, settings: &Settings) -> Outcome {
    let outcome = emulate(name, settings, None, &()).expect("it is in the catalog").expect("a run");
    assert_eq!(outcome.failure, None, "{name} over {}", settings.transport);
    assert_eq!(outcome.report.entries, settings.entries, "{name}");
    assert_eq!(outcome.emulation.refused, [].into(), "{name}: all that arrives is ours");
    outcome
}

/// Messages an entry, as a multiple of what the simulator says; and by how much of them its own runs differ. Nothing, if messages
/// took so long that the simulation breaks its law.
fn ratio(outcome: &Outcome) -> Option<(f64, f64)> {
    let simulated = outcome.emulation.simulated?;
    let mean = simulated.messages_per_entry.mean;
    Some((outcome.report.messages_per_entry.mean / mean, simulated.spread / mean))
}

/// Whether runs agree with the simulator, within a tenth.
fn agrees(name: &str, ratios: &[f64]) -> bool {
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    eprintln!("{name:24} {mean:.3} of what is simulated, {} runs", ratios.len());
    (0.9..=1.1).contains(&mean)
}

fn exclusion() -> impl Iterator<Item = &'static Entry> {
    catalog::ALL.iter().filter(|entry| ["mutex", "semaphore", "group"].contains(&entry.family))
}

/// As many runs as it takes to average out what chance does, one after the other. A machine that is busy with something else may
/// hold up some nodes and not others, which no simulation knows of: of some attempts, one is not disturbed.
fn one_after_the_other(name: &str, transport: Transport, loss: f64, adjust: impl Fn(&mut Settings)) {
    let with = |seed| {
        let mut settings = settings(transport, loss, seed);
        adjust(&mut settings);
        ratio(&run(name, &settings)).expect("the simulation comes to an end")
    };
    let attempt = |attempt: u64| {
        let seed = 1 + attempt * MOST_RUNS;
        let (first, spread) = with(seed);
        let runs = ((spread / STEADY).powi(2).ceil() as u64).clamp(1, MOST_RUNS);
        let ratios: Vec<f64> = [first].into_iter().chain((1..runs).map(|run| with(seed + run).0)).collect();
        agrees(name, &ratios)
    };
    assert!((0..ATTEMPTS).any(attempt), "{name} does not do what the simulator says");
}

/// A short run of every algorithm, several at a time: too busy a machine to compare costs, but the law holds.
#[test]
fn every_algorithm_keeps_its_law_over_sockets() {
    let names: Vec<&str> = exclusion().map(|entry| entry.name).collect();
    assert_eq!(names.len(), 24, "all that there are");
    thread::scope(|scope| {
        for names in names.chunks(names.len() / 4) {
            scope.spawn(move || {
                for name in names {
                    run(name, &Settings { entries: 200, ..settings(Transport::Tcp, 0.0, 1) });
                }
            });
        }
    });
}

/// Without `VEZ_THOROUGH`, one of each family agrees.
const REPRESENTATIVES: [&str; 3] = ["ricart-agrawala", "raymond-k", "group-quorum"];

/// Over sockets, one algorithm after the other: what else the machine does shows in the delays.
#[test]
fn every_algorithm_agrees_with_its_simulation() {
    if !thorough() {
        for name in REPRESENTATIVES {
            one_after_the_other(name, Transport::Tcp, 0.0, |_| {});
        }
        return;
    }
    for entry in exclusion() {
        one_after_the_other(entry.name, Transport::Tcp, 0.0, |_| {});
    }
    for entry in exclusion().filter(|entry| entry.name != "token-ring-regenerating") {
        one_after_the_other(entry.name, Transport::Udp, 0.1, |settings| {
            if entry.assumptions.survives_loss {
                // It waits that long for every message that is lost.
                settings.system.patience = Duration::from_millis(20);
            }
        });
    }
    a_ring_that_loses_its_token();
}

/// Whenever the token is lost everybody waits for 72 times `patience`: the runs have time for each other.
fn a_ring_that_loses_its_token() {
    let runs: Vec<_> = (1..=MOST_RUNS)
        .map(|seed| {
            let mut settings = settings(Transport::Udp, 0.1, seed);
            settings.system.patience = Duration::from_millis(15);
            thread::spawn(move || ratio(&run("token-ring-regenerating", &settings)))
        })
        .collect();
    let ratios: Vec<f64> =
        runs.into_iter().filter_map(|run| run.join().expect("a run")).map(|(ratio, _)| ratio).collect();
    assert!(ratios.len() as u64 >= MOST_RUNS / 4, "the machine is too slow for most of them");
    assert!(agrees("token-ring-regenerating", &ratios));
}
