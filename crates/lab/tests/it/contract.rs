//! The contract between an algorithm and its driver, for every algorithm.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use crate::load::config;
use proptest::prelude::*;
use vez_algorithms::{
    Algorithm, CommandOf, Effect, Family, Input, NodeId,
    catalog::{self, Job},
    step,
};
use vez_lab::{
    named::{self, Detector},
    sim::{Arrivals, CannotReport, Config, Fault, Faults},
    system::System,
};

/// How a driver can get it wrong.
#[derive(Clone, Copy)]
enum Misuse {
    AskTwice,
    LeaveUnasked,
}

impl Job for Misuse {
    type Done = Option<String>;

    /// What a node says to that, if anybody ever asks it or leaves. Nothing is ever answered.
    fn with<A: Algorithm>(self) -> Option<String> {
        let setup = System::of(3).setup(1, 0).expect("a system");
        // The last client's node has nothing at first: it enters only after an answer. What it can answer itself does not count.
        let me = NodeId::from_index(A::clients(&setup) - 1);
        let is_left_waiting = |want: &CommandOf<A>| {
            let mut effects = Vec::new();
            let node = &mut A::system(&setup).expect("a system")[me.index()];
            step(me, node, Input::Command(*want), &mut effects, &mut |_| 0);
            !effects.iter().any(|effect| matches!(effect, Effect::Output(_)))
        };
        let ask = A::wants(&setup).into_iter().find(is_left_waiting)?;
        let commands = match self {
            // Whoever is never inside may be asked again.
            Self::AskTwice => A::Family::LEAVE.map(|_| vec![ask, ask])?,
            Self::LeaveUnasked => vec![A::Family::LEAVE?],
        };
        let panic = catch_unwind(AssertUnwindSafe(|| {
            let mut nodes = A::system(&setup).expect("a system");
            for command in commands {
                step(me, &mut nodes[me.index()], Input::Command(command), &mut Vec::new(), &mut |_| 0);
            }
        }))
        .expect_err(A::NAME);
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned())
    }
}

/// Whoever drives an algorithm takes turns: a second request, or leaving without having entered, is the driver's fault.
#[test]
fn a_client_takes_turns() {
    for entry in catalog::ALL {
        let misuse = |how: Misuse| catalog::visit(entry.name, how).expect("it is in the catalog");
        if let Some(said) = misuse(Misuse::AskTwice) {
            assert!(said.contains("one request at a time"), "{}: {said}", entry.name);
        }
        if let Some(said) = misuse(Misuse::LeaveUnasked) {
            assert!(said.contains("only who is inside may leave"), "{}: {said}", entry.name);
        }
    }
}

/// How a run ended, if it did not end well.
fn suffer(entry: &catalog::Entry, config: Config) -> Option<String> {
    let config = Config { order: entry.assumptions.order, ..config };
    let result = named::run(entry.name, Detector::HiAdsd, &config, || Duration::ZERO, &|_| {});
    match result.expect("it is in the catalog") {
        Ok(_) => None,
        Err(CannotReport::Failure(failure)) => Some(failure.what),
        Err(CannotReport::Config(error)) => panic!("{error}"),
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
            (4.0, Fault::CrashSending(NodeId(restart))),
            (5.0, Fault::Restart(NodeId(restart))),
        ]);
        for entry in catalog::ALL {
            let config = Config { faults: faults.clone(), seed, entries: 200, warmup: 0, runs: 0..1, ..config(nodes, Arrivals::Closed { rate: 1.0 }) };
            if let Some(what) = suffer(entry, config) {
                prop_assert!(!what.contains("assertion"), "{}: {what}", entry.name);
            }
        }
    }
}
