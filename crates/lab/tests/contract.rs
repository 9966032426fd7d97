//! The contract between an algorithm and its driver, for every algorithm.

mod load;

use std::{panic::catch_unwind, time::Duration};

use load::config;
use proptest::prelude::*;
use vez_algorithms::{
    Input, NodeId,
    catalog::{self, Job},
    mutex::{Command, Mutex},
    step,
};
use vez_lab::{
    sim::{self, Arrivals, CannotReport, Config, Fault, Faults},
    system::System,
};

struct Misuse(&'static [Command]);

impl Job for Misuse {
    type Done = String;

    /// What the first node says to these commands, none of which is ever answered.
    fn mutex<A: Mutex>(self) -> String {
        let panic = catch_unwind(|| {
            let mut nodes = A::system(&System::of(3).setup(1, 0).expect("a system")).expect("a system");
            for command in self.0 {
                // The last node has nothing at first: it enters only after an answer.
                step(NodeId(2), &mut nodes[2], Input::Command(*command), &mut Vec::new(), &mut |_| 0);
            }
        })
        .expect_err(A::NAME);
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).expect("a panic has a message")
    }
}

/// Whoever drives an algorithm takes turns: a second request, or leaving without having entered, is the driver's fault.
#[test]
fn a_client_takes_turns() {
    for entry in catalog::ALL {
        let misuse = |commands| catalog::visit(entry.name, Misuse(commands)).expect("it is in the catalog");
        let said = misuse(&[Command::Request, Command::Request]);
        assert!(said.contains("one request at a time"), "{}: {said}", entry.name);
        let said = misuse(&[Command::Release]);
        assert!(said.contains("only who is inside may leave"), "{}: {said}", entry.name);
    }
}

struct Suffer(Config);

impl Job for Suffer {
    type Done = Option<String>;

    /// How it ended, if it did not end well.
    fn mutex<A: Mutex>(self) -> Option<String> {
        let config = Config { order: A::MODEL.order, ..self.0 };
        match sim::run::<A>(&config, || Duration::ZERO, &|_| {}) {
            Ok(_) => None,
            Err(CannotReport::Failure(failure)) => Some(failure.what),
            Err(CannotReport::Config(error)) => panic!("{error}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// What a peer or the network does wrong is objected to, or breaks the law, or stops everything. It never trips an
    /// assertion: those are about ourselves.
    #[test]
    fn a_peers_fault_is_never_an_assertion(
        seed in any::<u64>(),
        nodes in 2..8_usize,
        duplicate in 0.0..0.5,
        loss in 0.0..0.1,
        restart in 0..2_u32,
    ) {
        let faults = Faults::new(vec![
            (0.0, Fault::Duplicate(duplicate)),
            (1.0, Fault::Loss(loss)),
            (2.0, Fault::Crash(NodeId(restart))),
            (3.0, Fault::Restart(NodeId(restart))),
        ]);
        for entry in catalog::ALL {
            let config = Config { faults: faults.clone(), seed, entries: 200, warmup: 0, runs: 0..1, ..config(nodes, Arrivals::Closed { rate: 1.0 }) };
            let end = catalog::visit(entry.name, Suffer(config)).expect("it is in the catalog");
            if let Some(what) = end {
                prop_assert!(!what.contains("assertion"), "{}: {what}", entry.name);
            }
        }
    }
}
