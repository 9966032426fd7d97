//! The simulator: a system in virtual time, with random loads, delays and faults, measured.
//!
//! A run is a loop over events in the order of their time, and of their making where the time is the same. Everything random
//! in it comes from streams that are keyed by (seed, run, node, purpose), so a run can be repeated to the last byte, and two
//! algorithms under the same seed meet clients who would ask at the same times. At every entry the law of the family is
//! applied; if it is broken the run stops, and [`Failure`] says which run it was.

mod agenda;
mod clients;
mod engine;
mod faults;
mod metrics;
mod network;
mod report;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde_json::{Map, json};
use vez_algorithms::{Algorithm, Order, SetupError, catalog::Entry};

use self::engine::Engine;
pub use self::{
    clients::{Arrivals, Hot, Script},
    engine::{Event, Watch},
    faults::{Fault, Faults, ScriptError},
    metrics::{Measured, Metrics},
    network::DelayLaw,
    report::{Detection, Report, Starving, Wait},
};
use crate::{
    named::Detector,
    parallel, quiet,
    system::{MESSAGE_DELAY, System},
    trace::Header,
};

/// More entries than this take years.
const MAX_ENTRIES: u64 = 1_000_000_000_000;

/// More runs than this do not fit into memory.
const MAX_RUNS: u64 = 1_000_000;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Config {
    /// The nodes, and how they are arranged.
    pub system: System,
    /// When clients ask.
    pub arrivals: Arrivals,
    /// Which nodes have more than their share of clients.
    pub hot: Option<Hot>,
    /// How many of the clients ask, the first ones; all if none is given.
    pub askers: Option<usize>,
    /// How long a client stays inside.
    pub hold: f64,
    /// How long a message takes at most, on average or always, as the law says.
    pub delay: f64,
    /// How that varies.
    pub delay_law: DelayLaw,
    /// Whether messages may overtake each other.
    pub order: Order,
    /// What goes wrong, and when.
    pub faults: Faults,
    /// Whether to count how often the law is broken, instead of stopping at the first time.
    pub keep_going: bool,
    /// When a run ends, even if there were fewer entries.
    pub until: Option<f64>,
    /// How many entries of a run are measured.
    pub entries: u64,
    /// How many entries come before them and are not.
    pub warmup: u64,
    /// The runs, by number: each has randomness of its own.
    pub runs: std::ops::Range<u64>,
    /// Where all randomness comes from.
    pub seed: u64,
}

impl Config {
    /// The setting of the papers: a message takes up to 0.1 time units, a client stays inside for 0.01. Ten runs of 5,000 entries.
    #[must_use]
    pub fn new(system: System, arrivals: Arrivals) -> Self {
        let warmup = if matches!(arrivals, Arrivals::Scripted(_)) { 0 } else { 1000 };
        Self {
            system,
            arrivals,
            hot: None,
            askers: None,
            hold: 0.01,
            delay: MESSAGE_DELAY,
            delay_law: DelayLaw::Uniform,
            order: Order::Any,
            faults: Faults::default(),
            keep_going: false,
            until: None,
            entries: 5000,
            warmup,
            runs: 0..10,
            seed: 1,
        }
    }
}

/// A mistake in a [`Config`]. Nothing was run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// There can be no such system.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A number that makes no sense.
    #[error("{name} is {value}; {fix}")]
    Number {
        /// What it is called.
        name: &'static str,
        /// What it is.
        value: String,
        /// What it should be.
        fix: &'static str,
    },
    /// A script of requests for an algorithm that works by itself.
    #[error("nobody asks {0}, which works by itself; take away --script")]
    NobodyAsks(&'static str),
    /// A script speaks of a node that is not there.
    #[error("the {script} speaks of n{node}, but the last of {nodes} nodes is n{}", nodes.saturating_sub(1))]
    NoSuchNode {
        /// Which script.
        script: &'static str,
        /// The node.
        node: usize,
        /// How many there are.
        nodes: usize,
    },
}

impl Config {
    /// Looks for mistakes.
    ///
    /// # Errors
    /// The first one found.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let number = |name, value: String, fix| Err(ConfigError::Number { name, value, fix });
        self.system.setup(self.seed, 0)?;
        if let Some(rate) = self.arrivals.rate()
            && !(1e-9..=1e9).contains(&rate)
        {
            let fix = if rate > 0.0 { "take one from 1e-9 to 1e9" } else { "it must be above 0, such as --rate 0.1" };
            return number("rate", rate.to_string(), fix);
        }
        if !(1e-6..=1e6).contains(&self.delay) {
            let fix =
                if self.delay > 0.0 { "take one from 1e-6 to 1e6" } else { "it must be above 0, such as --delay 0.1" };
            return number("delay", self.delay.to_string(), fix);
        }
        if matches!(&self.delay_law, DelayLaw::Measured(delays) if delays.is_empty()) {
            return number(
                "delay",
                "measured nowhere".to_owned(),
                "there must be at least one message to measure it by",
            );
        }
        if !(0.0..=1e6).contains(&self.hold) {
            let fix = if self.hold > 0.0 { "take at most 1e6" } else { "it must be 0 or above, such as --hold 0.01" };
            return number("hold", self.hold.to_string(), fix);
        }
        if let Some(until) = self.until.filter(|until| !(0.0..=1e9).contains(until)) {
            return number("until", until.to_string(), "take a time from 0 to 1e9, such as 100");
        }
        if !(1..=MAX_ENTRIES).contains(&self.entries) {
            let fix = "there must be something to measure, and an end to it, such as --entries 100000";
            return number("entries", self.entries.to_string(), fix);
        }
        if self.warmup > MAX_ENTRIES {
            return number("warmup", self.warmup.to_string(), "there must be an end to it, such as --warmup 1000");
        }
        let runs = self.runs.end.saturating_sub(self.runs.start);
        if !(1..=MAX_RUNS).contains(&runs) {
            return number(
                "runs",
                runs.to_string(),
                "there must be at least one, and an end to them, such as --runs 10",
            );
        }
        if let Arrivals::Scripted(script) = &self.arrivals
            && script.asks().len() as u64 <= self.warmup
            && (self.warmup > 0 || self.faults.all().is_empty())
        {
            let fix = "there must be requests in it, and more than --warmup leaves out";
            return number("script", format!("{} requests long", script.asks().len()), fix);
        }
        let nodes = self.system.nodes;
        let in_script = if let Arrivals::Scripted(script) = &self.arrivals { script.last_node() } else { None };
        if let Some(node) = in_script.filter(|node| *node >= nodes) {
            return Err(ConfigError::NoSuchNode { script: "script", node, nodes });
        }
        if let Some(Hot { nodes: hot, share }) = self.hot
            && (hot == 0 || hot >= nodes || !(share > 0.0 && share < 1.0))
        {
            let fix = "give NODES:SHARE, with at least one node that is not hot, and a share between 0 and 1";
            return number("hot", format!("{hot}:{share}"), fix);
        }
        Ok(())
    }

    /// The first line of the trace of a run.
    #[must_use]
    pub fn header<A: Algorithm>(&self, run: u64, detector: Option<Detector>) -> Header {
        let world = [
            ("driver", json!("simulator")),
            ("network", json!(self.order)),
            ("delay", json!(self.delay)),
            ("delay_law", json!(self.delay_law)),
            ("hold", json!(self.hold)),
        ];
        let world: Map<_, _> = world.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Header::new(A::NAME, &self.system, (self.seed, run), detector, world)
    }
}

/// A run that went wrong.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{what} (run {run}, at time {time:.6})")]
pub struct Failure {
    /// What happened.
    pub what: String,
    /// In which run.
    pub run: u64,
    /// When, in virtual time.
    pub time: f64,
    /// Whether a law was broken. Otherwise the run is merely stuck.
    pub law_broken: bool,
}

/// Why there is no report.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum CannotReport {
    /// The configuration has a mistake.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A run went wrong: the first one, by number.
    #[error(transparent)]
    Failure(#[from] Failure),
}

/// Simulates all runs, in parallel. `stopwatch` tells the time since any fixed moment; `progress` is told now and then how many
/// entries there have been in all runs together.
///
/// # Errors
/// If the configuration has a mistake, or a run went wrong.
pub fn run<A: Algorithm>(
    config: &Config,
    stopwatch: fn() -> Duration,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Report, CannotReport> {
    config.validate()?;
    let entered = AtomicU64::new(0);
    let step = |more: u64| progress(entered.fetch_add(more, Ordering::Relaxed) + more);
    let runs: Vec<_> = parallel::map(config.runs.clone(), &|run| one::<A>(config, run, stopwatch, &step, None));
    let measured = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Report::new(&Entry::of::<A>(), config, measured))
}

/// Simulates one run and lets somebody watch.
///
/// # Errors
/// If the configuration has a mistake, or the run went wrong.
pub fn watch<A: Algorithm>(config: &Config, run: u64, watch: &mut dyn Watch<A>) -> Result<(), CannotReport> {
    config.validate()?;
    one::<A>(config, run, || Duration::ZERO, &|_| {}, Some(watch)).map(|_| ())
}

fn one<'a, A: Algorithm>(
    config: &'a Config,
    run: u64,
    stopwatch: fn() -> Duration,
    progress: &dyn Fn(u64),
    watch: Option<&'a mut dyn Watch<A>>,
) -> Result<Measured, CannotReport> {
    let mut engine = Engine::<A>::new(config, run, watch)?;
    let started = stopwatch();
    let done = quiet::catch(|| engine.run(progress));
    let elapsed = stopwatch() - started;
    match done {
        Ok(Ok(())) => Ok(engine.measured(elapsed)),
        Ok(Err(stopped)) => Err(engine.failure(run, stopped.what, stopped.law_broken).into()),
        Err(panic) => Err(engine.failure(run, format!("an assertion failed: {panic}"), true).into()),
    }
}
