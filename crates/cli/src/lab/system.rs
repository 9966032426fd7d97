//! The options that say which system, and under which load.

use std::{fs, path::PathBuf, str::FromStr};

use anyhow::{Context, Result};
use vez_algorithms::{Order, Setting, catalog::Entry};
use vez_lab::{
    named::Detector,
    sim::{Config, DelayLaw, Hot},
    system::{SystemOptions, Topology},
    wanted::{ArrivalKind, Network, Wanted},
};

use crate::output::counted;

#[derive(clap::Args)]
pub(crate) struct SystemArgs {
    #[command(flatten)]
    pub(crate) options: SystemOptions,
    /// How many of the clients ask, the first ones; by default all.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) askers: Option<usize>,
}

/// The network of those who imagine one.
#[derive(clap::Args)]
pub(crate) struct NetworkArgs {
    /// Whether messages may overtake each other: fifo, or any. By default any if the algorithm allows it.
    #[arg(long, value_name = "ORDER")]
    pub(crate) network: Option<Network>,
}

impl NetworkArgs {
    /// The network asked for, or the weakest that the algorithm allows.
    pub(crate) fn order(&self, entry: &Entry) -> Order {
        self.network.map_or(entry.assumptions.order, Order::from)
    }
}

impl SystemArgs {
    /// All of it, on so many nodes.
    pub(crate) fn wanted(&self, nodes: usize) -> Wanted {
        Wanted { nodes, system: self.options.clone(), askers: self.askers, ..Wanted::default() }
    }
}

/// An algorithm, and the nodes that it runs on: how a header begins.
pub(crate) fn arranged(
    entry: &Entry,
    nodes: usize,
    askers: Option<usize>,
    topology: Topology,
    settings: &serde_json::Map<String, serde_json::Value>,
) -> String {
    let stand_in_one = entry.settings.contains(&Setting::Topology);
    let topology = if stand_in_one { format!(", {topology}") } else { String::new() };
    let askers = askers.map_or(String::new(), |askers| format!(" of which {askers} may ask"));
    format!("{}: {}{askers}{topology}{}", entry.name, counted(nodes, "node", "nodes"), in_words(settings))
}

/// Further settings of an algorithm, to append to its description.
pub(crate) fn in_words(settings: &serde_json::Map<String, serde_json::Value>) -> String {
    let value = |value: &serde_json::Value| value.as_str().map_or(value.to_string(), str::to_owned);
    settings.iter().map(|(name, set)| format!(", {name} = {}", value(set))).collect()
}

#[derive(clap::Args)]
pub(crate) struct LoadArgs {
    /// How many nodes.
    #[arg(long, default_value_t = 31)]
    nodes: usize,
    #[command(flatten)]
    pub(crate) system: SystemArgs,
    #[command(flatten)]
    network: NetworkArgs,
    /// How often a node's client asks in a unit of time, λ.
    #[arg(long, default_value_t = 0.1, allow_negative_numbers = true, conflicts_with = "script")]
    rate: f64,
    /// How long a client stays inside.
    #[arg(long, default_value_t = 0.01, allow_negative_numbers = true)]
    hold: f64,
    /// How long a message takes, T.
    #[arg(long, default_value_t = 0.1, allow_negative_numbers = true)]
    delay: f64,
    /// How that varies: uniform (T times a number between 0 and 1), constant, or exponential (mean T).
    #[arg(long, default_value = "uniform", value_name = "LAW")]
    delay_law: DelayLaw,
    /// closed: a client thinks, asks, stays, leaves. periodic: it asks at once, and again 1/λ after it has left. queued: clients
    /// come whether or not others wait. saturated: a client asks again at once.
    #[arg(long, default_value = "closed", value_name = "KIND")]
    arrivals: ArrivalKind,
    /// Play requests from a file instead: lines of TIME NODE, such as 0.5 n3.
    #[arg(long, value_name = "FILE", conflicts_with = "arrivals")]
    script: Option<PathBuf>,
    /// Give some nodes more than their share of the load: with 1:0.9 node 0 asks nine times as often, while
    /// it thinks, as all others together.
    #[arg(long, value_name = "NODES:SHARE")]
    hot: Option<Hot>,
    /// What goes wrong: lines of TIME FAULT, such as 10 crash n3, 15 crash n2 sending, 20 restart n3,
    /// 5 partition n0 n1 | n2, 6 heal, 0 loss 0.1, 0 duplicate 0.1, 0 resets 0.5 n3 n4. See docs/faults.md.
    #[arg(long, value_name = "FILE")]
    faults: Option<PathBuf>,
    /// Who tells of crashes, for algorithms that must be told: hi-adsd, which runs beside the algorithm on every node, and
    /// whose messages count; or oracle, the simulator, which tells each node after between one patience and two.
    #[arg(long, default_value = "hi-adsd", value_name = "WHO")]
    pub(crate) detector: Detector,
    /// When a run ends, even if there were fewer entries.
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<f64>,
    /// Where all randomness comes from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl LoadArgs {
    /// Who tells of crashes, and what concerns it.
    pub(crate) fn detection(&self, config: &Config) -> serde_json::Map<String, serde_json::Value> {
        let mut settings = config.system.settings(&[Setting::Patience, Setting::Period]);
        settings.insert("detector".to_owned(), self.detector.to_string().into());
        settings
    }

    /// All of it. What is read from files is read here.
    pub(crate) fn wanted(&self) -> Result<Wanted> {
        Ok(Wanted {
            network: self.network.network,
            arrivals: self.arrivals,
            rate: self.rate,
            script: self.script.as_ref().map(read).transpose()?,
            hot: self.hot,
            hold: self.hold,
            delay: self.delay,
            delay_law: self.delay_law.clone(),
            faults: self.faults.as_ref().map(read).transpose()?.unwrap_or_default(),
            detector: self.detector,
            until: self.until,
            seed: self.seed,
            ..self.system.wanted(self.nodes)
        })
    }

    /// The network, the stay and the faults in words.
    pub(crate) fn describe_world(&self, entry: &Entry, config: &Config) -> String {
        let delay = match &self.delay_law {
            DelayLaw::Uniform => format!("up to {}", self.delay),
            DelayLaw::Constant => format!("{}", self.delay),
            DelayLaw::Exponential | DelayLaw::Measured(_) => format!("{} on average", self.delay),
        };
        let order = match config.order {
            Order::Fifo => "in order",
            Order::Any => "in any order",
        };
        let leaves = matches!(entry.family, "mutex" | "semaphore" | "group");
        let stay = if leaves { format!("; {} inside", self.hold) } else { String::new() };
        let faults = match config.faults.all().len() {
            0 => String::new(),
            faults => format!("; a script of {}", counted(faults, "fault", "faults")),
        };
        format!("messages {order}, each takes {delay}{stay}{faults}; seed {}", self.seed)
    }

    /// The load in words.
    pub(crate) fn describe(&self, entry: &Entry) -> String {
        let hot = self.hot.map_or(String::new(), |Hot { nodes, share }| {
            format!(" on average, {} of all from {}", share, counted(nodes, "node", "nodes"))
        });
        match (&self.script, self.arrivals) {
            _ if entry.family == "detector" => "no clients".to_owned(),
            (Some(path), _) => format!("as {} says", path.display()),
            (None, ArrivalKind::Closed) => format!("each asks {} times a unit of time while it thinks{hot}", self.rate),
            (None, ArrivalKind::Periodic) => format!("each asks {} after it was served{hot}", 1.0 / self.rate),
            (None, ArrivalKind::Queued) => format!("{} clients a unit of time come to each{hot}", self.rate),
            (None, ArrivalKind::Saturated) => "each asks again at once".to_owned(),
        }
    }
}

fn read<T: FromStr>(path: &PathBuf) -> Result<T>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse().with_context(|| path.display().to_string())
}
