//! The tables of the README, measured. `VEZ_THOROUGH=1 UPDATE_GOLDENFILES=1` writes them anew.

use std::{fmt::Write, path::Path, time::Duration};

use crate::{
    load::{config, measure},
    sized, thorough,
};
use vez_algorithms::{
    Model, Order, Timing, catalog,
    mutex::{Fila, NaimiTrehel, Nxr},
};
use vez_lab::{
    named::{self, Detector},
    sim::{Arrivals, Config},
};

const NODES: usize = 31;

/// The nodes of the systems in the second table.
const FEW: usize = 8;

/// Messages an entry under this load, on the weakest network that the algorithm allows.
fn cost(entry: &catalog::Entry, nodes: usize, arrivals: Arrivals) -> f64 {
    let config = Config { order: entry.assumptions.order, ..config(nodes, arrivals) };
    let report = named::run(entry.name, Detector::Oracle, &config, || Duration::ZERO, &|_| {});
    report.expect("it is in the catalog").expect(entry.name).messages_per_entry.mean
}

#[test]
fn the_table_of_locks() {
    let mut table = String::from(
        "| algorithm | messages an entry | seldom | always | network | paper |\n|---|---|---:|---:|---|---|\n",
    );
    let survives_nothing = |entry: &&catalog::Entry| entry.family == "mutex" && entry.assumptions == reliable(entry);
    for entry in catalog::ALL.iter().filter(survives_nothing).step_by(sized(5, 1)) {
        let [seldom, always] =
            [Arrivals::Closed { rate: 0.001 }, Arrivals::Saturated].map(|load| cost(entry, NODES, load));
        let network = if entry.assumptions.order == Order::Fifo { "FIFO" } else { "any order" };
        let (name, cost, paper) = (entry.name, entry.cost, entry.paper);
        let _ = writeln!(
            table,
            "| [`{name}`](docs/algorithms/{name}.md) | {cost} | {seldom:.2} | {always:.2} | {network} | {paper} |",
        );
    }
    compare("locks", &table);
}

/// The same order of messages, and nothing may go wrong.
fn reliable(entry: &catalog::Entry) -> Model {
    Model { order: entry.assumptions.order, ..Model::RELIABLE }
}

#[test]
fn the_table_of_the_rest() {
    let mut table = String::from(
        "| algorithm | family | messages an entry | measured | survives | paper |\n|---|---|---|---:|---|---|\n",
    );
    let rest = |entry: &&catalog::Entry| entry.family != "mutex" || entry.assumptions != reliable(entry);
    for entry in catalog::ALL.iter().filter(rest).step_by(sized(5, 1)) {
        let model = entry.assumptions;
        let measured = cost(entry, FEW, Arrivals::Closed { rate: 0.01 });
        let all =
            [(model.survives_loss, "loss"), (model.survives_crashes, "crashes"), (model.survives_restarts, "returns")];
        let survives: Vec<&str> = all.iter().filter(|(survives, _)| *survives).map(|(_, what)| *what).collect();
        let survives = match (survives.is_empty(), model.detector, model.timing) {
            (true, ..) => "—".to_owned(),
            (false, true, _) => format!("{}, with a detector", survives.join(", ")),
            (false, false, Timing::Bounded) => format!("{}, with bounded delays", survives.join(", ")),
            (false, false, Timing::Any) => survives.join(", "),
        };
        let (name, family, cost, paper) = (entry.name, entry.family, entry.cost, entry.paper);
        let _ = writeln!(
            table,
            "| [`{name}`](docs/algorithms/{name}.md) | {family} | {cost} | {measured:.2} | {survives} | {paper} |"
        );
    }
    compare("rest", &table);
}

#[test]
fn the_table_of_fila() {
    let mut table = String::from(
        "| λ | messages: `fila` | `nxr` | `naimi-trehel` | wait: `fila` | `nxr` | `naimi-trehel` |\n\
         |---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for rate in [0.01, 0.05, 0.1, 0.2, 0.5, 1.0].into_iter().step_by(sized(6, 1)) {
        let config = Config { entries: 20_000, ..config(NODES, Arrivals::Closed { rate }) };
        let all = [measure::<Fila>(&config), measure::<Nxr>(&config), measure::<NaimiTrehel>(&config)];
        let messages = all.each_ref().map(|report| format!("{:.2}", report.messages_per_entry));
        let waits = all.each_ref().map(|report| {
            let ci95 = report.wait.ci95.expect("ten runs have an interval");
            format!("{:.3} ± {ci95:.3}", report.wait.mean)
        });
        let _ = writeln!(table, "| {rate} | {} | {} |", messages.join(" | "), waits.join(" | "));
    }
    compare("fila", &table);
}

/// Compares with what stands in the README between two marks, or writes it there.
fn compare(mark: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(&path).expect("there is a README");
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
    let start = readme.find(&begin).expect("the mark") + begin.len();
    let stop = readme.find(&end).expect("the end mark");
    if thorough() && std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        let text = format!("{}{found}{}", &readme[..start], &readme[stop..]);
        std::fs::write(&path, text).expect("the README can be written");
    } else {
        // Without VEZ_THOROUGH some rows are measured, and each must be there.
        let is_there = |line: &str| readme[start..stop].lines().any(|known| known == line);
        assert!(
            if thorough() { readme[start..stop] == *found } else { found.lines().all(is_there) },
            "the table has changed; found:\n{found}\n(UPDATE_GOLDENFILES=1 writes it)"
        );
    }
}
