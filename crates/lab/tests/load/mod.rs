//! The loads that the tests simulate.

#![allow(dead_code, reason = "each test uses what it needs")]

use std::time::Duration;

use vez_algorithms::{Algorithm, NodeId, Order};
use vez_lab::{
    sim::{self, Arrivals, Config, DelayLaw, Faults, Report, Script},
    system::System,
};

/// The setting of the papers, with fewer entries: T = 0.1, C = 0.01.
pub(crate) fn config(nodes: usize, arrivals: Arrivals) -> Config {
    let warmup = if matches!(arrivals, Arrivals::Scripted(_)) { 0 } else { 1000 };
    Config {
        system: System::of(nodes),
        arrivals,
        hot: None,
        askers: None,
        hold: 0.01,
        delay: 0.1,
        delay_law: DelayLaw::Uniform,
        order: Order::Any,
        faults: Faults::default(),
        keep_going: false,
        until: None,
        entries: 5000,
        warmup,
        runs: 0..10,
        seed: 1,
    }
}

/// These nodes ask one after the other.
pub(crate) fn scripted(interval: f64, nodes: impl IntoIterator<Item = NodeId>) -> Arrivals {
    Arrivals::Scripted(Script::every(interval, nodes))
}

/// The report of all runs, on the weakest network that the algorithm allows.
pub(crate) fn measure<A: Algorithm>(config: &Config) -> Report {
    let config = Config { order: A::MODEL.order, ..config.clone() };
    sim::run::<A>(&config, || Duration::ZERO, &|_| {}).unwrap_or_else(|error| panic!("{}: {error}", A::NAME))
}
