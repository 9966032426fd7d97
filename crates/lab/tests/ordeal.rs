//! Every algorithm under the faults that it claims to survive: a share of what `vez lab ordeal` runs.

use vez_algorithms::{
    Algorithm, Order,
    catalog::{self, Job},
};
use vez_lab::{
    ordeal::{self, CannotSummarise, Ordeals, Summary},
    sim::{Fault, Faults},
};

/// How many ordeals of each algorithm a test run has time for.
const SHARE: u64 = 50;

struct Endure;

impl Job for Endure {
    type Done = Result<Summary, CannotSummarise>;

    fn with<A: Algorithm>(self) -> Self::Done {
        ordeal::run::<A>(&Ordeals { numbers: 0..SHARE, seed: 1 }, &|| {})
    }
}

#[test]
fn everything_survives_what_it_claims_to() {
    for entry in catalog::ALL {
        let model = entry.assumptions;
        let result = catalog::visit(entry.name, Endure).expect("it is in the catalog");
        let summary = result.unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        assert!(summary.entries > SHARE, "{} does something", entry.name);
        assert_eq!(summary.crashes > SHARE, model.survives_crashes, "{} crashes now and then", entry.name);
        assert_eq!(summary.restarts > 0, model.survives_crashes && model.survives_restarts, "{}", entry.name);
    }
}

/// The same number is the same ordeal, another number another.
#[test]
fn an_ordeal_can_be_repeated() {
    use vez_algorithms::mutex::Nxr;
    let draw = |number| format!("{:?}", ordeal::draw::<Nxr>(7, number));
    assert_eq!(draw(3), draw(3));
    assert_ne!(draw(3), draw(4));
}

/// An ordeal is one: what does not survive crashes does not survive it.
#[test]
fn who_cannot_do_it_fails() {
    use vez_algorithms::mutex::RicartAgrawala;
    let mut config = ordeal::draw::<RicartAgrawala>(1, 0);
    assert_eq!(config.order, Order::Any);
    config.faults = Faults::new(vec![(0.1, Fault::Crash(vez_algorithms::NodeId(0)))]);
    let result = vez_lab::sim::run::<RicartAgrawala>(&config, || std::time::Duration::ZERO, &|_| {});
    assert!(result.expect_err("nobody answers").to_string().contains("stuck"));
}
