//! What the checker says of every algorithm. Each line of `expected/check` is one exploration; `UPDATE_GOLDENFILES=1` writes
//! them anew.

mod systems;

use std::{fmt::Write, path::Path};

use rayon::prelude::*;
use systems::{check, check_on, config, setup};
use vez_algorithms::{
    Order,
    catalog::{self, Job},
    mutex::{self, Mutex},
};
use vez_lab::check::{Bound, Breach, Report, Verdict, Workload};

/// The algorithms whose states remain few however long they run.
const UNBOUNDED: [&str; 10] = [
    "central",
    "token-ring",
    "ricart-agrawala",
    "ricart-agrawala-clock",
    "raymond",
    "raymond-piggyback",
    "naimi-trehel",
    "nxr",
    "fila",
    "fila-forest",
];

struct Explore {
    nodes: usize,
    workload: Workload,
    order: Order,
}

impl Job for Explore {
    type Done = (String, Report);

    fn mutex<A: Mutex>(self) -> (String, Report) {
        let Self { nodes, workload, order } = self;
        let report = check::<A>(nodes, workload, order);
        let workload = match workload {
            Workload::Requests(requests) => format!("{requests} each"),
            Workload::Unbounded => "for ever".to_owned(),
        };
        let verdict = match &report.verdict {
            Verdict::Holds(worst) => {
                let messages = match worst.messages_per_entry {
                    Bound::AtMost(most) => format!("{most:.3}"),
                    Bound::Unbounded => "∞".to_owned(),
                    Bound::Unknown => "?".to_owned(),
                };
                let bypasses = match worst.bypasses {
                    Bound::AtMost(most) => most.to_string(),
                    Bound::Unbounded => "∞".to_owned(),
                    Bound::Unknown => "?".to_owned(),
                };
                format!("holds, at worst {messages} messages an entry, {bypasses} bypasses")
            }
            Verdict::Violated(counterexample) => {
                format!("violated in {} steps: {}", counterexample.steps, counterexample.breach)
            }
        };
        let (name, order) = (A::NAME, format!("{order:?}").to_lowercase());
        let line = format!("{name:22} n={nodes} {workload:8} {order:4} {:>9} states  {verdict}\n", report.states);
        (line, report)
    }
}

/// The lines of one algorithm, on every network that it allows.
fn all_sizes(entry: &catalog::Entry) -> String {
    // The clock that counts every event has too many states for the larger systems.
    let every_event = entry.name == "ricart-agrawala-clock";
    let sizes = if every_event { [(1, 2), (3, 1), (2, 3)] } else { [(1, 2), (3, 2), (4, 1)] };
    let bounded = sizes.into_iter().map(|(nodes, requests)| (nodes, Workload::Requests(requests)));
    let for_ever = UNBOUNDED.contains(&entry.name).then_some((3, Workload::Unbounded));
    let mut lines = String::new();
    for (nodes, workload) in bounded.chain(for_ever) {
        let orders = [Order::Fifo, Order::Any];
        for order in orders.into_iter().filter(|order| *order == Order::Fifo || entry.assumptions.order == Order::Any) {
            let explore = Explore { nodes, workload, order };
            let (line, report) = catalog::visit(entry.name, explore).expect("it is in the catalog");
            assert!(matches!(report.verdict, Verdict::Holds(_)), "{line}");
            lines += &line;
        }
    }
    lines
}

#[test]
fn every_algorithm_keeps_its_laws() {
    let lines: Vec<String> = catalog::ALL.par_iter().map(all_sizes).collect();
    compare("check", &lines.concat());
}

#[test]
fn what_needs_more_than_it_is_given_breaks() {
    let mut table = String::new();
    let mut explore = |name: &str, nodes, workload, order| {
        let (line, report) = catalog::visit(name, Explore { nodes, workload, order }).expect("it is in the catalog");
        let Verdict::Violated(counterexample) = report.verdict else { panic!("{line}") };
        let _ = writeln!(table, "{line}{}", counterexample.transcript);
        counterexample.breach
    };
    // Without FIFO two are inside together.
    let breach = explore("lamport", 2, Workload::Requests(1), Order::Any);
    assert!(matches!(breach, Breach::Together(..)));
    explore("maekawa", 3, Workload::Requests(2), Order::Any);
    // A coordinator that keeps no line promises nobody a turn.
    let breach = explore("central-denying", 2, Workload::Unbounded, Order::Fifo);
    assert!(matches!(breach, Breach::Starvation(_)));
    compare("breaks", &table);
}

#[test]
fn a_crash_stops_those_that_assume_none() {
    let config = vez_lab::check::Config { crashes: 1, ..config(Workload::Requests(1), Order::Any) };
    for report in [
        check_on::<mutex::Central>(&setup(3), &config),
        check_on::<mutex::RicartAgrawala>(&setup(3), &config),
        check_on::<mutex::Fila>(&setup(3), &config),
    ] {
        let Verdict::Violated(counterexample) = report.verdict else { panic!("nobody survives the coordinator") };
        assert!(matches!(counterexample.breach, Breach::Deadlock(_)), "{}", counterexample.breach);
        assert!(counterexample.transcript.contains("crash n"), "{}", counterexample.transcript);
    }
}

#[test]
fn fingerprints_and_whole_states_count_the_same() {
    for order in [Order::Fifo, Order::Any] {
        let config = config(Workload::Requests(2), order);
        let exact = vez_lab::check::Config { exact: true, ..config.clone() };
        let (one, other) =
            (check_on::<mutex::SuzukiKasami>(&setup(3), &config), check_on::<mutex::SuzukiKasami>(&setup(3), &exact));
        assert_eq!((one.states, one.transitions, one.verdict), (other.states, other.transitions, other.verdict));
    }
}

#[test]
fn too_many_states_are_an_error() {
    let config = vez_lab::check::Config { max_states: 1000, ..config(Workload::Requests(2), Order::Any) };
    let result =
        vez_lab::check::check::<mutex::RicartAgrawala>(&setup(3), &config, || std::time::Duration::ZERO, &mut |_| {});
    let error = result.expect_err("there are more than a thousand").to_string();
    assert_eq!(error, "there are more than 1000 states; take fewer nodes or requests, or raise --max-states");
}

/// Compares with a file under `tests/expected`, or writes it anew.
fn compare(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(name);
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        std::fs::write(&path, found).expect("the file can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == found, "{name} has changed; found:\n{found}\n(UPDATE_GOLDENFILES=1 writes it anew)");
}
