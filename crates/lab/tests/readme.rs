//! The tables of the README, measured. `UPDATE_GOLDENFILES=1` writes them anew.

mod load;

use std::{fmt::Write, path::Path};

use load::{config, measure};
use vez_algorithms::{
    Algorithm, Order,
    catalog::{self, Job},
    mutex::{Fila, NaimiTrehel, Nxr},
};
use vez_lab::sim::{Arrivals, Config, Report};

const NODES: usize = 31;

struct Cost;

impl Job for Cost {
    type Done = [Report; 2];

    fn with<A: Algorithm>(self) -> [Report; 2] {
        [Arrivals::Closed { rate: 0.001 }, Arrivals::Saturated].map(|arrivals| measure::<A>(&config(NODES, arrivals)))
    }
}

#[test]
fn the_table_of_algorithms() {
    let mut table = String::from(
        "| algorithm | messages an entry | seldom | always | network | paper |\n|---|---|---:|---:|---|---|\n",
    );
    for entry in catalog::ALL {
        let [seldom, always] = catalog::visit(entry.name, Cost).expect("it is in the catalog");
        let network = if entry.assumptions.order == Order::Fifo { "FIFO" } else { "any order" };
        let (name, cost, paper) = (entry.name, entry.cost, entry.paper);
        let _ = writeln!(
            table,
            "| [`{name}`](docs/algorithms/{name}.md) | {cost} | {:.2} | {:.2} | {network} | {paper} |",
            seldom.messages_per_entry.mean, always.messages_per_entry.mean
        );
    }
    compare("algorithms", &table);
}

#[test]
fn the_table_of_fila() {
    let mut table = String::from(
        "| λ | messages: `fila` | `nxr` | `naimi-trehel` | wait: `fila` | `nxr` | `naimi-trehel` |\n\
         |---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for rate in [0.01, 0.05, 0.1, 0.2, 0.5, 1.0] {
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
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        let text = format!("{}{found}{}", &readme[..start], &readme[stop..]);
        std::fs::write(&path, text).expect("the README can be written");
    } else {
        assert!(
            readme[start..stop] == *found,
            "the table has changed; found:\n{found}\n(UPDATE_GOLDENFILES=1 writes it)"
        );
    }
}
