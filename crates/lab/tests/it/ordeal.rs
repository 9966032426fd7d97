//! Every algorithm under the faults that it claims to survive: a share of what `vez lab ordeal` runs.

use crate::sized;
use vez_algorithms::{
    NodeId, Order, catalog,
    mutex::{Nxr, RicartAgrawala},
};
use vez_lab::{
    named::{self, Detector},
    ordeal::{self, Ordeals},
    sim::{Fault, Faults},
};

#[test]
fn everything_survives_what_it_claims_to() {
    let share = sized(50, 200);
    let ordeals = Ordeals { numbers: 0..share, seed: 1 };
    for entry in catalog::ALL {
        let model = entry.assumptions;
        // Told of crashes by the simulator, and by a detector of its own.
        for detector in [Detector::Oracle, Detector::HiAdsd] {
            let result = named::ordeal(entry.name, detector, &ordeals, &|| {}).expect("it is in the catalog");
            let summary = result.unwrap_or_else(|error| panic!("{}: {error}", entry.name));
            assert!(summary.entries > share, "{} does something", entry.name);
            assert_eq!(summary.crashes > share, model.survives_crashes, "{} crashes now and then", entry.name);
            assert_eq!(summary.restarts > 0, model.survives_crashes && model.survives_restarts, "{}", entry.name);
            if !model.detector {
                break;
            }
        }
    }
}

/// The same number is the same ordeal, another number another.
#[test]
fn an_ordeal_can_be_repeated() {
    let draw = |number| format!("{:?}", ordeal::draw::<Nxr>(7, number));
    assert_eq!(draw(3), draw(3));
    assert_ne!(draw(3), draw(4));
}

/// An ordeal is one: what does not survive crashes does not survive it.
#[test]
fn who_cannot_do_it_fails() {
    let mut config = ordeal::draw::<RicartAgrawala>(1, 0);
    assert_eq!(config.order, Order::Any);
    config.faults = Faults::new(vec![(0.1, Fault::Crash(NodeId(0)))]);
    let result = vez_lab::sim::run::<RicartAgrawala>(&config, || std::time::Duration::ZERO, &|_| {});
    assert!(result.expect_err("nobody answers").to_string().contains("stuck"));
}
