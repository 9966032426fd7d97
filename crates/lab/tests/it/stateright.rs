//! Our checker beside `stateright`: the same number of states, the same verdict, for every algorithm
//! that neither counts on time nor draws lots, without faults.

use crate::{plain, systems};
use stateright::{Checker, HasDiscoveries, Model};
use vez_algorithms::{
    Algorithm, Order, Timing,
    catalog::{self, Job},
};
use vez_lab::check::{Verdict, Workload};

struct Compare {
    order: Order,
    requests: u32,
}

impl Job for Compare {
    type Done = ();

    fn with<A: Algorithm>(self) {
        let Self { order, requests } = self;
        let plain = plain::Plain::<A>::new(&systems::setup(3), order, requests);
        // Not until the first example is found: until all states are seen, or a law is broken.
        let theirs = plain.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let ours = systems::check::<A>(3, Workload::Requests(requests), order);
        let broken: Vec<_> =
            theirs.discoveries().into_keys().filter(|property| *property != "two wait at once").collect();
        match ours.verdict {
            Verdict::Holds(_) => {
                assert_eq!(broken, Vec::<&str>::new(), "{} {order:?}", A::NAME);
                assert_eq!(theirs.unique_state_count(), ours.states, "{} {order:?}", A::NAME);
            }
            Verdict::Violated(counterexample) => {
                assert!(!broken.is_empty(), "{} {order:?}: only we say {}", A::NAME, counterexample.breach);
            }
        }
    }
}

/// The plain model draws no lots.
const DRAWS_LOTS: &str = "superpeers-by-repulsion";

#[test]
fn same_states_and_same_verdict() {
    // Nor does it know what clocks mean for timers.
    let plain = |entry: &&catalog::Entry| entry.assumptions.timing == Timing::Any && entry.name != DRAWS_LOTS;
    for entry in catalog::ALL.iter().filter(plain) {
        for order in [Order::Fifo, Order::Any] {
            // With a clock that counts every event two requests each have ten million states.
            let few = entry.family == "mutex" && entry.name != "ricart-agrawala-clock";
            let requests = if few { 2 } else { 1 };
            catalog::visit(entry.name, Compare { order, requests }).expect("it is in the catalog");
        }
    }
}
