//! The loads that the tests simulate.

use std::time::Duration;

use vez_algorithms::{Algorithm, NodeId};
use vez_lab::{
    sim::{self, Arrivals, Config, Report, Script},
    system::System,
};

/// The setting of the papers, with fewer entries.
pub(crate) fn config(nodes: usize, arrivals: Arrivals) -> Config {
    Config::new(System::of(nodes), arrivals)
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
