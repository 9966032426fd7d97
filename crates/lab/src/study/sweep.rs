//! Grids of simulations: every algorithm under every load on every system that a file names, several times.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use rayon::prelude::*;
use vez_algorithms::catalog::{self, Entry};

use super::table::{FAILURE, RUN, Row, Table, Value};
use crate::{
    named,
    sim::{CannotReport, Config, Report},
    wanted::Wanted,
};

/// More runs than this are surely a slip of the keyboard.
const MOST_RUNS: usize = 1_000_000;

/// The columns that every row has: with them, a row says all that it takes to repeat it.
const KEYS: [&str; 11] =
    ["version", "algorithm", "nodes", "topology", "arrivals", "rate", "hold", "delay", "entries", "warmup", "seed"];

/// The columns of what is measured, but for the kinds of messages and what went wrong.
pub(super) const MEASURES: [&str; 15] = [
    "entered",
    "messages",
    "wait",
    "wait_p50",
    "wait_p95",
    "wait_p99",
    "wait_max",
    "sync_delay",
    "bypasses",
    "most_bypasses",
    "fairness",
    "busiest",
    "waiting",
    "throughput",
    "violations",
];

/// One combination of values.
#[derive(Clone, Debug)]
struct Cell {
    /// What it is, in the columns of the key.
    key: Row,
    algorithm: &'static Entry,
    detector: named::Detector,
    config: Config,
}

/// All simulations of a study, in order.
#[derive(Clone, Debug, Default)]
pub struct Work {
    keys: Vec<String>,
    cells: Vec<Cell>,
    /// Which cell, and which run of it.
    units: Vec<(usize, u64)>,
}

/// What a study is run with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Whether to do less, as the file says what that is.
    pub quick: bool,
    /// Where all randomness comes from, instead of what the file says.
    pub seed: Option<u64>,
}

impl Work {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self { keys: KEYS.map(str::to_owned).to_vec(), ..Self::default() }
    }

    /// Adds a sweep. What is there already is not there twice.
    pub(super) fn add(&mut self, sweep: &toml::Table, quick: bool, seed: u64) -> Result<(), String> {
        let mut sweep = sweep.clone();
        if let Some(less) = sweep.remove("quick") {
            let less = less.as_table().cloned().ok_or("quick is what is different in a quick run: a table")?;
            if quick {
                sweep.extend(less);
            }
        }
        if sweep.contains_key("seed") {
            return Err("a seed is for the whole study; write it above the sweeps".to_owned());
        }
        if sweep.get("runs").is_some_and(toml::Value::is_array) {
            return Err("runs is one number: each combination is simulated so many times".to_owned());
        }
        let axes: Vec<(String, Vec<toml::Value>)> =
            sweep.into_iter().map(|(name, value)| (name, listed(value))).collect();
        let cells = axes.iter().try_fold(1_usize, |cells, (_, values)| cells.checked_mul(values.len()));
        let cells = cells.filter(|cells| *cells <= MOST_RUNS);
        let cells = cells.ok_or_else(|| format!("more than {MOST_RUNS} combinations; take fewer values"))?;
        if let Some((name, _)) = axes.iter().find(|(_, values)| values.is_empty()) {
            return Err(format!("{name} has no value; give at least one"));
        }
        for (name, _) in &axes {
            if name != "runs" && !self.keys.contains(name) {
                self.keys.push(name.clone());
            }
        }
        let mut known: BTreeSet<String> = self.units.iter().map(|unit| self.name_of(*unit)).collect();
        (0..cells).try_for_each(|cell| self.add_cell(&axes, cell, seed, &mut known))
    }

    /// One combination; the last axis changes fastest.
    fn add_cell(
        &mut self,
        axes: &[(String, Vec<toml::Value>)],
        mut cell: usize,
        seed: u64,
        known: &mut BTreeSet<String>,
    ) -> Result<(), String> {
        let mut given = toml::Table::new();
        for (name, values) in axes.iter().rev() {
            given.insert(name.clone(), values[cell % values.len()].clone());
            cell /= values.len();
        }
        let algorithm = given.remove("algorithm").ok_or("algorithm is missing; name one or several")?;
        let name = algorithm.as_str().ok_or("an algorithm is named by a text")?;
        let algorithm = catalog::find(name).ok_or_else(|| format!("unknown algorithm \"{name}\"; see vez lab list"))?;
        let special = |name: &str| !KEYS.contains(&name) && name != "runs";
        let others: Vec<(String, Value)> =
            given.iter().filter(|(name, _)| special(name)).map(|(name, value)| (name.clone(), plain(value))).collect();
        let wanted: Wanted = given.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
        let wanted = Wanted { seed, ..wanted };
        let config = wanted.config(algorithm).map_err(|error| format!("{name}: {error}"))?;
        let mut key = Row::default();
        for (column, value) in KEYS.into_iter().zip(basics(algorithm, &wanted, &config)) {
            key.set(column, value);
        }
        others.into_iter().for_each(|(name, value)| key.set(name, value));
        let runs = config.runs.clone();
        self.cells.push(Cell { key, algorithm, detector: wanted.detector, config });
        for run in runs {
            let unit = (self.cells.len() - 1, run);
            if known.insert(self.name_of(unit)) {
                self.units.push(unit);
            }
        }
        if self.units.len() > MOST_RUNS {
            return Err(format!("more than {MOST_RUNS} runs; take fewer"));
        }
        Ok(())
    }

    /// How many simulations there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// The names of all simulations, in order.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.units.iter().map(|unit| self.name_of(*unit))
    }

    fn name_of(&self, (cell, run): (usize, u64)) -> String {
        self.name_with(&self.cells[cell].key, &run.to_string())
    }

    /// What tells a row from all others: its key and its run. A row read from a file has the same name as its simulation.
    #[must_use]
    pub fn name(&self, row: &Row) -> String {
        self.name_with(row, &row.get(RUN).to_string())
    }

    fn name_with(&self, key: &Row, run: &str) -> String {
        let columns = self.keys.iter().map(|column| (column, key.get(column)));
        let told = columns.filter(|(_, value)| **value != Value::Missing);
        let told = told.map(|(column, value)| format!("{column}={value}"));
        told.chain([format!("run={run}")]).collect::<Vec<_>>().join(" ")
    }

    /// Every n-th simulation, from the i-th on: the shards 1/n to n/n are the whole.
    #[must_use]
    pub fn shard(&self, (i, n): (usize, usize)) -> Self {
        let units = self.units.iter().skip(i.saturating_sub(1)).step_by(n.max(1)).copied();
        Self { units: units.collect(), ..self.clone() }
    }

    /// How many entries there are in all, those of the warm-up included, without what is already there.
    #[must_use]
    pub fn entries(&self, done: &BTreeMap<String, Row>) -> u64 {
        let left = self.units.iter().filter(|unit| !done.contains_key(&self.name_of(**unit)));
        left.map(|(cell, _)| self.cells[*cell].entries()).sum()
    }

    /// Simulates what is not already there, in parallel. Each row goes to `keep` as soon as it is there; `progress` is told of
    /// entries. All rows, the old ones too, come back in order.
    ///
    /// # Errors
    /// If a row could not be kept. What has not been simulated by then is not.
    pub fn run(
        &self,
        done: &BTreeMap<String, Row>,
        keep: &(dyn Fn(&Row) -> io::Result<()> + Sync),
        progress: &(dyn Fn(u64) + Sync),
    ) -> io::Result<Table> {
        let row = |unit: &(usize, u64)| {
            if let Some(row) = done.get(&self.name_of(*unit)) {
                return Ok(row.clone());
            }
            let row = self.cells[unit.0].run(unit.1, progress);
            keep(&row).map(|()| row)
        };
        Ok(self.table(self.units.par_iter().map(row).collect::<io::Result<_>>()?))
    }

    /// What rows will look like: one for each combination, as if everything had been 1.
    pub(super) fn foreseen(&self) -> Table {
        let row = |cell: &Cell| {
            let mut row = cell.key.clone();
            row.set(RUN, 0_u64);
            MEASURES.into_iter().for_each(|column| row.set(column, 1.0));
            row
        };
        self.table(self.cells.iter().map(row).collect())
    }

    fn table(&self, rows: Vec<Row>) -> Table {
        Table { name: String::new(), keys: self.keys.clone(), rows }
    }
}

impl Cell {
    fn entries(&self) -> u64 {
        if self.config.until.is_some() { 1 } else { self.config.entries + self.config.warmup }
    }

    fn run(&self, run: u64, progress: &(dyn Fn(u64) + Sync)) -> Row {
        let told = AtomicU64::new(0);
        let step = |entries: u64| {
            let before = told.swap(entries.min(self.entries()), Ordering::Relaxed);
            progress(entries.min(self.entries()) - before);
        };
        let config = Config { runs: run..run + 1, ..self.config.clone() };
        let report = named::run(self.algorithm.name, self.detector, &config, || Duration::ZERO, &step);
        progress(self.entries().saturating_sub(told.load(Ordering::Relaxed)));
        let mut row = self.key.clone();
        row.set(RUN, run);
        match report.expect("it is in the catalog") {
            Ok(report) => measures(&report, &mut row),
            Err(CannotReport::Failure(failure)) => row.set(FAILURE, failure.to_string()),
            Err(CannotReport::Config(error)) => row.set(FAILURE, error.to_string()),
        }
        row
    }
}

fn basics(algorithm: &Entry, wanted: &Wanted, config: &Config) -> [Value; 11] {
    // A run that ends at some time has as many entries as there are until then.
    let entries = if config.until.is_some() { wanted.entries } else { Some(config.entries) };
    [
        env!("CARGO_PKG_VERSION").into(),
        algorithm.name.into(),
        config.system.nodes.into(),
        config.system.topology.to_string().into(),
        config.arrivals.name().into(),
        config.arrivals.rate().into(),
        wanted.hold.into(),
        wanted.delay.into(),
        entries.map_or(Value::Missing, Value::from),
        config.warmup.into(),
        wanted.seed.into(),
    ]
}

/// What came out of one run. What is told of each entry is not told where there was none.
fn measures(report: &Report, row: &mut Row) {
    let of_entries: [Value; 11] = [
        report.messages_per_entry.mean.into(),
        report.wait.mean.into(),
        report.wait.p50.into(),
        report.wait.p95.into(),
        report.wait.p99.into(),
        report.wait.max.into(),
        report.synchronisation_delay.map(|delay| delay.mean).into(),
        report.bypasses.mean.into(),
        report.most_bypasses.into(),
        report.fairness.mean.into(),
        report.busiest.map(|busiest| busiest.mean).into(),
    ];
    let of_entries = of_entries.map(|value| if report.entries == 0 { Value::Missing } else { value });
    let of_time = [report.waiting.mean.into(), report.throughput.mean.into(), report.violations.into()];
    let all = [report.entries.into()].into_iter().chain(of_entries).chain(of_time);
    MEASURES.into_iter().zip(all).for_each(|(column, value)| row.set(column, value));
    for (kind, count) in report.messages_by_type.iter().filter(|_| report.entries > 0) {
        row.set(format!("sent.{kind}"), *count as f64 / report.entries as f64);
    }
}

fn listed(value: toml::Value) -> Vec<toml::Value> {
    match value {
        toml::Value::Array(values) => values,
        one => vec![one],
    }
}

fn plain(value: &toml::Value) -> Value {
    match value {
        toml::Value::Integer(number) => (*number as f64).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::String(text) if text.trim().is_empty() => Value::Missing,
        toml::Value::String(text) => text.trim().replace('\n', "; ").into(),
        other => other.to_string().into(),
    }
}
