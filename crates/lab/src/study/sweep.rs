//! Grids of simulations: every algorithm under every load on every system that a file names, several times.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use rayon::prelude::*;
use vez_algorithms::catalog::{self, Entry};

use super::{
    Study, StudyError,
    table::{RUN, Row, Table, Value},
};
use crate::{
    named,
    sim::{CannotReport, Config, Report},
    wanted::Wanted,
};

/// More runs than this are surely a slip of the keyboard.
const MOST_UNITS: usize = 10_000_000;

/// The columns that every row has: with them, a row says all that it takes to repeat it.
const KEYS: [&str; 10] =
    ["algorithm", "nodes", "topology", "arrivals", "rate", "hold", "delay", "entries", "warmup", "seed"];

/// The columns of what is measured, but for the kinds of messages and what went wrong.
const MEASURES: [&str; 14] = [
    "messages",
    "wait",
    "wait_p50",
    "wait_p95",
    "wait_p99",
    "wait_max",
    "sync_delay",
    "waiting",
    "throughput",
    "bypasses",
    "most_bypasses",
    "fairness",
    "busiest",
    "violations",
];

/// One simulation of a sweep.
#[derive(Clone, Debug)]
pub struct Unit {
    /// What it is, in the columns of the key and the number of the run.
    pub key: Row,
    algorithm: &'static Entry,
    detector: named::Detector,
    config: Config,
}

/// All simulations of a study, in order.
#[derive(Clone, Debug)]
pub struct Work {
    /// The columns of the key, the run not among them.
    pub keys: Vec<String>,
    /// The simulations.
    pub units: Vec<Unit>,
}

/// What a sweep is run with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Whether to do less, as the file says what that is.
    pub quick: bool,
    /// Where all randomness comes from, instead of what the file says.
    pub seed: Option<u64>,
}

impl Study {
    /// What there is to simulate.
    ///
    /// # Errors
    /// If a sweep has a mistake.
    pub fn work(&self, options: Options) -> Result<Work, StudyError> {
        let mut work = Work { keys: KEYS.map(str::to_owned).to_vec(), units: Vec::new() };
        for (number, sweep) in (1..).zip(&self.sweeps) {
            let wrong = |what: String| StudyError::Sweep { number, what };
            let seed = options.seed.or(self.seed).unwrap_or(1);
            work.add(sweep, options.quick, seed).map_err(wrong)?;
        }
        if !work.units.is_empty() {
            self.foresee(&work)?;
        }
        Ok(work)
    }
}

impl Study {
    /// Looks for mistakes in plots and claims about a sweep before it is run: afterwards may be hours later.
    fn foresee(&self, work: &Work) -> Result<(), StudyError> {
        let row = |unit: &Unit| {
            let mut row = unit.key.clone();
            MEASURES.into_iter().for_each(|column| row.set(column, 1.0));
            row
        };
        let table = Table { name: String::new(), keys: work.keys.clone(), rows: work.units.iter().map(row).collect() };
        let tables = [table];
        for chart in self.charts.iter().filter(|chart| chart.table.is_none()) {
            chart.draw("", 0, &tables)?;
        }
        for claim in self.claims.iter().filter(|claim| claim.table.is_none()) {
            claim.judge(&tables)?;
        }
        Ok(())
    }
}

impl Work {
    fn add(&mut self, sweep: &toml::Table, quick: bool, seed: u64) -> Result<(), String> {
        let mut sweep = sweep.clone();
        let less = sweep.remove("quick");
        if let Some(less) = less {
            let less = less.as_table().cloned().ok_or("quick is what is different in a quick run: a table")?;
            if quick {
                sweep.extend(less);
            }
        }
        if sweep.contains_key("seed") {
            return Err("a seed is for the whole study; write it above the sweeps".to_owned());
        }
        let axes: Vec<(String, Vec<toml::Value>)> =
            sweep.into_iter().map(|(name, value)| (name, listed(value))).collect();
        let cells = axes.iter().try_fold(1_usize, |cells, (_, values)| cells.checked_mul(values.len()));
        if cells.is_none_or(|cells| cells > MOST_UNITS) {
            return Err(format!("more than {MOST_UNITS} combinations; take fewer values"));
        }
        if let Some((name, _)) = axes.iter().find(|(_, values)| values.is_empty()) {
            return Err(format!("{name} has no value; give at least one"));
        }
        for (name, _) in &axes {
            if name != "runs" && !self.keys.contains(name) {
                self.keys.push(name.clone());
            }
        }
        (0..cells.unwrap_or(0)).try_for_each(|cell| self.add_cell(&axes, cell, seed))
    }

    /// One combination; the last axis changes fastest.
    fn add_cell(&mut self, axes: &[(String, Vec<toml::Value>)], mut cell: usize, seed: u64) -> Result<(), String> {
        let mut given = toml::Table::new();
        for (name, values) in axes.iter().rev() {
            given.insert(name.clone(), values[cell % values.len()].clone());
            cell /= values.len();
        }
        let algorithm = given.remove("algorithm").ok_or("algorithm is missing; name one or several")?;
        let name = algorithm.as_str().ok_or("an algorithm is named by a text")?;
        let algorithm = catalog::find(name).ok_or_else(|| format!("unknown algorithm \"{name}\"; see vez lab list"))?;
        let mut key = Row::default();
        let others: Vec<(String, Value)> = given
            .iter()
            .filter(|(name, _)| !KEYS.contains(&name.as_str()) && *name != "runs")
            .map(|(name, value)| (name.clone(), plain(value)))
            .collect();
        let wanted: Wanted = given.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
        let wanted = Wanted { seed, ..wanted };
        let config = wanted.config(algorithm).map_err(|error| format!("{name}: {error}"))?;
        for (column, value) in KEYS.into_iter().zip(basics(algorithm, &wanted, &config)) {
            key.set(column, value);
        }
        others.into_iter().for_each(|(name, value)| key.set(name, value));
        for run in config.runs.clone() {
            let mut key = key.clone();
            key.set(RUN, run);
            let config = Config { runs: run..run + 1, ..config.clone() };
            self.units.push(Unit { key, algorithm, detector: wanted.detector, config });
        }
        if self.units.len() > MOST_UNITS {
            return Err(format!("more than {MOST_UNITS} runs; take fewer"));
        }
        Ok(())
    }

    /// What tells a row from all others: its key and its run. A row read from a file has the same name as its unit.
    #[must_use]
    pub fn name(&self, row: &Row) -> String {
        let columns = self.keys.iter().map(String::as_str).chain([RUN]).map(|column| (column, row.get(column)));
        let told = columns.filter(|(_, value)| **value != Value::Missing);
        told.map(|(column, value)| format!("{column}={value}")).collect::<Vec<_>>().join(" ")
    }

    /// Every n-th unit, from the i-th on: the shards 1/n to n/n are the whole.
    #[must_use]
    pub fn shard(&self, (i, n): (usize, usize)) -> Self {
        let units = self.units.iter().skip(i.saturating_sub(1)).step_by(n.max(1)).cloned();
        Self { keys: self.keys.clone(), units: units.collect() }
    }

    /// How many entries there are in all, those of the warm-up included, without what is already there.
    #[must_use]
    pub fn entries(&self, done: &BTreeMap<String, Row>) -> u64 {
        let left = self.units.iter().filter(|unit| !done.contains_key(&self.name(&unit.key)));
        left.map(|unit| unit.config.entries + unit.config.warmup).sum()
    }

    /// Simulates what is not already there, in parallel. Each row goes to `keep` as soon as it is there; `progress` is told of
    /// entries. All rows, the old ones too, come back in order.
    pub fn run(
        &self,
        done: &BTreeMap<String, Row>,
        keep: &(dyn Fn(&Row) + Sync),
        progress: &(dyn Fn(u64) + Sync),
    ) -> Table {
        let row = |unit: &Unit| {
            if let Some(row) = done.get(&self.name(&unit.key)) {
                return row.clone();
            }
            let row = unit.run(progress);
            keep(&row);
            row
        };
        let rows = self.units.par_iter().map(row).collect();
        Table { name: String::new(), keys: self.keys.clone(), rows }
    }
}

impl Unit {
    fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> Row {
        let told = AtomicU64::new(0);
        let step = |entries: u64| progress(entries - told.swap(entries, Ordering::Relaxed));
        let report = named::run(self.algorithm.name, self.detector, &self.config, || Duration::ZERO, &step);
        let all = self.config.entries + self.config.warmup;
        progress(all.saturating_sub(told.load(Ordering::Relaxed)));
        let mut row = self.key.clone();
        match report.expect("it is in the catalog") {
            Ok(report) => measures(&report, &mut row),
            Err(CannotReport::Failure(failure)) => row.set("failure", failure.to_string()),
            Err(CannotReport::Config(error)) => row.set("failure", error.to_string()),
        }
        row
    }
}

fn basics(algorithm: &Entry, wanted: &Wanted, config: &Config) -> [Value; 10] {
    [
        algorithm.name.into(),
        wanted.nodes.into(),
        wanted.topology.to_string().into(),
        config.arrivals.name().into(),
        config.arrivals.rate().into(),
        wanted.hold.into(),
        wanted.delay.into(),
        config.entries.into(),
        config.warmup.into(),
        wanted.seed.into(),
    ]
}

/// What came out of one run.
fn measures(report: &Report, row: &mut Row) {
    let values: [Value; 14] = [
        report.messages_per_entry.mean.into(),
        report.wait.mean.into(),
        report.wait.p50.into(),
        report.wait.p95.into(),
        report.wait.p99.into(),
        report.wait.max.into(),
        report.synchronisation_delay.map(|delay| delay.mean).into(),
        report.waiting.mean.into(),
        report.throughput.mean.into(),
        report.bypasses.mean.into(),
        report.most_bypasses.into(),
        report.fairness.mean.into(),
        report.busiest.map(|busiest| busiest.mean).into(),
        report.violations.into(),
    ];
    MEASURES.into_iter().zip(values).for_each(|(column, value)| row.set(column, value));
    for (kind, count) in &report.messages_by_type {
        row.set(format!("sent.{kind}"), *count as f64 / report.entries.max(1) as f64);
    }
    row.0.retain(|_, value| *value != Value::Missing);
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
        toml::Value::String(text) => text.trim().replace('\n', "; ").into(),
        other => other.to_string().into(),
    }
}
