//! How fast the lab is: messages that the simulator delivers, and states that the checker visits beside `stateright`.
#![allow(missing_docs, reason = "criterion's macros make functions without any")]

#[path = "../tests/it/plain.rs"]
mod plain;

use std::{cmp::Reverse, collections::BinaryHeap, hint::black_box, time::Duration};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use stateright::{Checker, Model};
use vez_algorithms::{
    Order, Protocol as _,
    mutex::{Nxr, RicartAgrawala},
};
use vez_lab::{
    check::{self, Workload},
    sim::{self, Arrivals, Config},
    system::System,
};

#[expect(clippy::disallowed_methods, reason = "the lab has no clock of its own: this is the one it is lent")]
fn stopwatch() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

/// Messages a second, with handlers, metrics and random numbers.
fn simulator(c: &mut Criterion) {
    let mut group = c.benchmark_group("simulator, messages");
    for (nodes, rate) in [(31, 0.1), (31, 1.0), (1000, 0.01)] {
        let config = Config {
            entries: 50_000,
            runs: 0..1,
            order: Nxr::MODEL.order,
            ..Config::new(System::of(nodes), Arrivals::Closed { rate })
        };
        let measure = || sim::run::<Nxr>(&config, || Duration::ZERO, &|_| {}).expect("it can be simulated");
        let deliveries = measure().deliveries;
        group.throughput(Throughput::Elements(deliveries));
        group.bench_function(format!("nxr, {nodes} nodes, rate {rate}"), |b| {
            b.iter(|| black_box(measure()));
        });
    }
    for entries in [31, 1000] {
        group.throughput(Throughput::Elements(BARE_EVENTS));
        group.bench_function(format!("an agenda of {entries} and random numbers alone"), |b| {
            b.iter(|| black_box(bare_loop(entries)));
        });
    }
    group.finish();
}

const BARE_EVENTS: u64 = 200_000;

/// What no simulation can do without: take what is due next, draw a random number, put something on the agenda.
fn bare_loop(entries: u64) -> u64 {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut agenda: BinaryHeap<Reverse<(u64, u64)>> =
        (0..entries).map(|sequence| Reverse((random.next_u64() >> 8, sequence))).collect();
    let mut now = 0;
    for sequence in entries..entries + BARE_EVENTS {
        let Some(Reverse((time, _))) = agenda.pop() else { break };
        now = time;
        agenda.push(Reverse((now + (random.next_u64() >> 8), sequence)));
    }
    now
}

/// States a second: the exploration with laws and deadlock, without the later passes, which `stateright` does not have.
fn checker(c: &mut Criterion) {
    let mut group = c.benchmark_group("checker, states of ricart-agrawala, 4 nodes, 1 request each, any order");
    group.sample_size(10).warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_secs(1));
    let setup = System::of(4).setup(1, 0).expect("such a system can be");
    let config = check::Config::new(Workload::Requests(1), Order::Any);
    let explore =
        || check::check::<RicartAgrawala>(&setup, &config, stopwatch, &mut |_| {}).expect("it can be explored");
    let states = explore().states;
    group.throughput(Throughput::Elements(states as u64));
    group.bench_function("vez", |b| {
        b.iter_custom(|times| (0..times).map(|_| explore().elapsed).sum());
    });
    group.bench_function("stateright, depth first, one thread", |b| {
        b.iter(|| {
            let plain = plain::Plain::<RicartAgrawala>::new(&setup, Order::Any, 1);
            let checker = plain.checker().threads(1).spawn_dfs().join();
            assert_eq!(checker.unique_state_count(), states);
        });
    });
    group.finish();
}

criterion_group!(benches, simulator, checker);
criterion_main!(benches);
