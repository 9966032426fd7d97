//! The small systems that the tests explore.

use std::time::Duration;

use vez_algorithms::{Algorithm, Order, Setup};
use vez_lab::{
    check::{self, Config, Report, Workload},
    system::System,
};

pub(crate) fn setup(nodes: usize) -> Setup {
    System::of(nodes).setup(1, 0).expect("such a system can be")
}

pub(crate) fn check_on<A: Algorithm>(setup: &Setup, config: &Config) -> Report {
    check::check::<A>(setup, config, || Duration::ZERO, &mut |_| {}).expect("it can be explored")
}

pub(crate) fn check<A: Algorithm>(nodes: usize, workload: Workload, order: Order) -> Report {
    check_on::<A>(&setup(nodes), &Config::new(workload, order))
}
