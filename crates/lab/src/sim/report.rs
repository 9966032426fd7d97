//! What came out of all runs together.

use std::{borrow::Cow, collections::BTreeMap};

use hdrhistogram::Histogram;
use serde::Serialize;
use vez_algorithms::{NodeId, Order, catalog::Entry};

use super::{
    Config, DelayLaw, Hot,
    metrics::{Measured, TICKS},
};
use crate::{stats::Interval, system::Topology};

/// What came out of all runs together. An interval is over the means of the runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Which algorithm.
    pub algorithm: &'static str,
    /// How many nodes.
    pub nodes: usize,
    /// How they were arranged.
    pub topology: Topology,
    /// What the algorithm was told besides.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// When clients ask: `closed`, `periodic`, `queued`, `saturated` or `scripted`.
    pub arrivals: &'static str,
    /// How often a node's client asks; nothing where no rate says so.
    pub rate: Option<f64>,
    /// Which nodes have more than their share of clients, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hot: Option<Hot>,
    /// How many of the clients ask, the first ones, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub askers: Option<usize>,
    /// How long a client stays inside.
    pub hold: f64,
    /// How long a message takes at most, on average or always.
    pub delay: f64,
    /// Which of these.
    pub delay_law: DelayLaw,
    /// Whether messages may overtake each other.
    pub network: Order,
    /// What goes wrong, and when, as it stands in a script.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// Where all randomness came from.
    pub seed: u64,
    /// How many entries of a run came before those that were measured.
    pub warmup: u64,
    /// How many runs.
    pub runs: usize,
    /// How many entries of each run were measured.
    pub entries: u64,
    /// Messages an entry.
    pub messages_per_entry: Interval,
    /// From asking to entering.
    pub wait: Wait,
    /// Who at the end of a run had waited for longer than anybody who was served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starving: Option<Starving>,
    /// From one client's leaving to the next one's entering, if that one was waiting.
    pub synchronisation_delay: Option<Interval>,
    /// How often a later request entered before an earlier one, an entry: in the order in which their nodes asked.
    pub bypasses: Interval,
    /// How often the request that suffered most was passed.
    pub most_bypasses: u64,
    /// Jain's index of the entries of all nodes: 1 if all have the same, 1/n if one has them all.
    pub fairness: Interval,
    /// How many waited on average, over the time that was measured.
    pub waiting: Interval,
    /// Entries in a unit of time.
    pub throughput: Interval,
    /// The share of all messages that went to the node that received most of them.
    pub busiest: Option<Interval>,
    /// Measured messages by their kind, of all runs.
    pub messages_by_type: BTreeMap<Cow<'static, str>, u64>,
    /// How often a law was broken. A run stops at the first time, unless it was told to keep going.
    pub violations: u64,
    /// From a crash to the moment at which a living node knows of it, and the longest that this took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detection: Option<Detection>,
    /// What else the algorithm has to measure at the end of a run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<&'static str, Interval>,
    /// Messages delivered in all runs, those of the warm-up included.
    pub deliveries: u64,
    /// Messages lost on the way in all runs.
    pub losses: u64,
    /// Messages that arrived twice in all runs.
    pub doubles: u64,
    /// Crashes in all runs.
    pub crashes: u64,
    /// Returns in all runs.
    pub restarts: u64,
    /// How long the simulation loops of all runs took.
    pub seconds: f64,
}

/// How long it took until crashes were known.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Detection {
    /// On average.
    pub mean: f64,
    /// Half the width of the 95 % interval of that.
    pub ci95: Option<f64>,
    /// At most.
    pub worst: f64,
}

/// How long clients waited.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Wait {
    /// On average.
    pub mean: f64,
    /// Half the width of the 95 % interval of that.
    pub ci95: Option<f64>,
    /// Half of all waits are at most this.
    pub p50: f64,
    /// 95 of 100.
    pub p95: f64,
    /// 99 of 100.
    pub p99: f64,
    /// All.
    pub max: f64,
}

/// Somebody who was not served.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Starving {
    /// Who.
    pub node: NodeId,
    /// For how long.
    pub waited: f64,
    /// In which run.
    pub run: u64,
}

impl Report {
    /// What came out of the runs of a configuration, or of something that was done as it says.
    #[must_use]
    pub fn new(entry: &Entry, config: &Config, runs: Vec<Measured>) -> Self {
        let over = |value: fn(&Measured) -> f64| Interval::of(&runs.iter().map(value).collect::<Vec<_>>());
        let mut waits = Histogram::<u64>::new(3).expect("three digits can be had");
        let mut messages_by_type = BTreeMap::new();
        for run in &runs {
            waits.add(&run.waits).expect("the histogram grows");
            for (kind, count) in &run.messages {
                *messages_by_type.entry(kind.clone()).or_default() += count;
            }
        }
        let hand_overs: Vec<f64> = runs.iter().filter_map(|run| run.hand_over).collect();
        let busiest: Vec<f64> = runs.iter().filter_map(|run| run.busiest).collect();
        let percentile = |p: f64| waits.value_at_quantile(p) as f64 / TICKS;
        let wait = over(|run| run.mean_wait);
        Self {
            algorithm: entry.name,
            nodes: config.system.nodes,
            topology: config.system.topology,
            settings: config.system.settings(entry.settings),
            arrivals: config.arrivals.name(),
            rate: config.arrivals.rate(),
            hot: config.hot,
            askers: config.askers,
            hold: config.hold,
            delay: config.delay,
            delay_law: config.delay_law.clone(),
            network: config.order,
            faults: config.faults.all().iter().map(|(time, fault)| format!("{time} {fault}")).collect(),
            seed: config.seed,
            warmup: config.warmup,
            runs: runs.len(),
            entries: runs.first().map_or(0, |run| run.entries),
            messages_per_entry: over(Measured::messages_per_entry),
            wait: Wait {
                mean: wait.mean,
                ci95: wait.ci95,
                p50: percentile(0.50),
                p95: percentile(0.95),
                p99: percentile(0.99),
                max: waits.max() as f64 / TICKS,
            },
            starving: starving(config, &runs, waits.max() as f64 / TICKS),
            synchronisation_delay: (!hand_overs.is_empty()).then(|| Interval::of(&hand_overs)),
            bypasses: over(|run| run.bypasses),
            most_bypasses: runs.iter().map(|run| run.most_bypasses).max().unwrap_or(0),
            fairness: over(|run| run.fairness),
            waiting: over(|run| run.mean_waiting),
            throughput: over(|run| run.throughput),
            busiest: (!busiest.is_empty()).then(|| Interval::of(&busiest)),
            messages_by_type,
            violations: runs.iter().map(|run| run.violations).sum(),
            detection: detection(&runs),
            measures: measures(&runs),
            deliveries: runs.iter().map(|run| run.deliveries).sum(),
            losses: runs.iter().map(|run| run.losses).sum(),
            doubles: runs.iter().map(|run| run.doubles).sum(),
            crashes: runs.iter().map(|run| run.crashes).sum(),
            restarts: runs.iter().map(|run| run.restarts).sum(),
            seconds: runs.iter().map(|run| run.elapsed.as_secs_f64()).sum(),
        }
    }
}

fn detection(runs: &[Measured]) -> Option<Detection> {
    let means: Vec<f64> = runs.iter().filter_map(|run| run.detection).collect();
    (!means.is_empty()).then(|| {
        let Interval { mean, ci95 } = Interval::of(&means);
        Detection { mean, ci95, worst: runs.iter().map(|run| run.worst_detection).fold(0.0, f64::max) }
    })
}

fn starving(config: &Config, runs: &[Measured], longest: f64) -> Option<Starving> {
    let waiting = config.runs.clone().zip(runs).filter_map(|(run, measured)| Some((run, measured.waiting?)));
    let all = waiting.map(|(run, (node, waited))| Starving { node, waited, run });
    all.filter(|starving| starving.waited > longest).max_by(|one, other| one.waited.total_cmp(&other.waited))
}

fn measures(runs: &[Measured]) -> BTreeMap<&'static str, Interval> {
    let mut values: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for (name, value) in runs.iter().flat_map(|run| &run.measures) {
        values.entry(name).or_default().push(*value);
    }
    values.into_iter().map(|(name, values)| (name, Interval::of(&values))).collect()
}
