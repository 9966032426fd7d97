//! The options that say which system, and under which load.

use std::{fs, path::PathBuf, str::FromStr, time::Duration};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use vez_algorithms::{
    Order, Setting,
    catalog::{self, Entry},
};
use vez_lab::{
    named::Detector,
    sim::{Arrivals, Config, DelayLaw, Hot},
    system::{Quorum, System, Topology},
};

use crate::output::{counted, in_words};

#[derive(clap::Args)]
pub(crate) struct SystemArgs {
    /// The tree or graph that algorithms with one start with: binary, tree:K, line, star, random, hypercube, grid or
    /// geometric.
    #[arg(long, default_value = "binary", value_name = "SHAPE")]
    pub(crate) topology: Topology,
    /// Whether messages may overtake each other; by default if the algorithm allows it.
    #[arg(long, value_name = "ORDER")]
    pub(crate) network: Option<Network>,
    /// The quorums of algorithms that vote: grid, plane or star. By default grid.
    #[arg(long, value_name = "KIND")]
    quorum: Option<Quorum>,
    /// How many may be inside together, for semaphores; how many superpeers there are. By default 2.
    #[arg(long)]
    k: Option<usize>,
    /// How many groups or sessions there are to choose from. By default 3.
    #[arg(long)]
    groups: Option<usize>,
    /// How many replicas of the resource vote. By default 5.
    #[arg(long)]
    replicas: Option<usize>,
    /// How many of them must agree; by default more than half.
    #[arg(long)]
    majority: Option<usize>,
    /// How many bits an identifier has. By default 16.
    #[arg(long)]
    bits: Option<u32>,
    /// How many of them, the first ones, name a superpeer. By default 2.
    #[arg(long)]
    prefix: Option<u32>,
    /// How many of the clients ask, the first ones; by default all.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) askers: Option<usize>,
    /// How long a node waits for an answer before it takes the other for dead; by default longer than two messages take.
    #[arg(long, value_name = "TIME")]
    patience: Option<f64>,
    /// How long a node pauses between two rounds of what it does again and again; by default ten times that.
    #[arg(long, value_name = "TIME")]
    period: Option<f64>,
}

/// Who tells an algorithm of crashes, if it must be told.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DetectorName {
    /// The algorithm of that name, which runs beside it on every node; its messages count.
    HiAdsd,
    /// The simulator, which knows: each node after a time of its own between one patience and two.
    Oracle,
}

impl DetectorName {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::HiAdsd => "hi-adsd",
            Self::Oracle => "oracle",
        }
    }
}

impl From<DetectorName> for Detector {
    fn from(name: DetectorName) -> Self {
        match name {
            DetectorName::HiAdsd => Self::HiAdsd,
            DetectorName::Oracle => Self::Oracle,
        }
    }
}

/// The order of messages from one node to another.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Network {
    /// As they were sent.
    Fifo,
    /// Any.
    Any,
}

impl SystemArgs {
    /// The network asked for, or the weakest that the algorithm allows.
    pub(crate) fn order(&self, entry: &Entry) -> Order {
        match self.network {
            Some(Network::Fifo) => Order::Fifo,
            Some(Network::Any) => Order::Any,
            None => entry.assumptions.order,
        }
    }

    /// Whoever sets what does not concern the algorithm would be misled by what comes out.
    fn refuse_idle_settings(&self, entry: &Entry) -> Result<()> {
        let given = [
            (Setting::Quorum, self.quorum.is_some()),
            (Setting::K, self.k.is_some()),
            (Setting::Groups, self.groups.is_some()),
            (Setting::Replicas, self.replicas.is_some()),
            (Setting::Majority, self.majority.is_some()),
            (Setting::Bits, self.bits.is_some()),
            (Setting::Prefix, self.prefix.is_some()),
            (Setting::Patience, self.patience.is_some()),
            (Setting::Period, self.period.is_some()),
        ];
        let is_idle = |setting: &Setting| !entry.settings.contains(setting) && !is_the_detectors(*setting, entry);
        match given.into_iter().find(|(setting, given)| *given && is_idle(setting)) {
            Some((setting, _)) => bail!("{} has no --{setting}; these have: {}", entry.name, concerned(setting)),
            None => Ok(()),
        }
    }

    pub(crate) fn system(&self, entry: &Entry, nodes: usize, delay: f64, law: DelayLaw) -> Result<System> {
        self.refuse_idle_settings(entry)?;
        if self.askers == Some(0) {
            bail!("askers is 0; clients that never ask show nothing, try --askers 1");
        }
        if let Some(askers) = self.askers.filter(|askers| *askers > nodes) {
            bail!("askers is {askers} but there are only {nodes} nodes; take at most {nodes}");
        }
        // Somebody who was turned away asks again after about the time that a message takes.
        let about = Duration::try_from_secs_f64(delay.min(1e6)).unwrap_or_default();
        let patience = match (self.patience, law) {
            (Some(patience), _) => seconds("patience", patience)?,
            (None, DelayLaw::Uniform | DelayLaw::Constant) => about * 5 / 2,
            // There is no bound: one message in millions takes longer than this.
            (None, DelayLaw::Exponential) => about * 40,
        };
        let usual = System::of(nodes);
        let replicas = self.replicas.unwrap_or(usual.replicas);
        Ok(System {
            nodes,
            topology: self.topology,
            quorum: self.quorum.unwrap_or(usual.quorum),
            k: self.k.unwrap_or(usual.k),
            groups: self.groups.unwrap_or(usual.groups),
            replicas,
            majority: self.majority.unwrap_or(replicas / 2 + 1),
            bits: self.bits.unwrap_or(usual.bits),
            prefix: self.prefix.unwrap_or(usual.prefix),
            retry: about / 2..about * 3 / 2,
            patience,
            period: self.period.map_or(Ok(patience * 10), |period| seconds("period", period))?,
        })
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

/// The algorithms that a setting concerns.
fn concerned(setting: Setting) -> String {
    let concerns = |entry: &&Entry| entry.settings.contains(&setting) || is_the_detectors(setting, entry);
    catalog::ALL.iter().filter(concerns).map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

/// Whether whoever tells an algorithm of crashes has this setting.
fn is_the_detectors(setting: Setting, entry: &Entry) -> bool {
    entry.assumptions.detector && matches!(setting, Setting::Patience | Setting::Period)
}

fn seconds(name: &str, time: f64) -> Result<Duration> {
    let time_span = Some(time).filter(|time| (1e-6..=1e6).contains(time)).map(Duration::from_secs_f64);
    time_span.with_context(|| format!("{name} is {time}; take a time from 1e-6 to 1e6, such as --{name} 1"))
}

#[derive(clap::Args)]
pub(crate) struct LoadArgs {
    /// How many nodes.
    #[arg(long, default_value_t = 31)]
    nodes: usize,
    #[command(flatten)]
    pub(crate) system: SystemArgs,
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
    /// closed: a client thinks, asks, stays, leaves. queued: clients come whether or not others wait. saturated: a
    /// client asks again at once.
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
    /// Who tells of crashes, for algorithms that must be told.
    #[arg(long, default_value = "hi-adsd", value_name = "WHO")]
    pub(crate) detector: DetectorName,
    /// Where all randomness comes from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ArrivalKind {
    Closed,
    Queued,
    Saturated,
}

impl LoadArgs {
    /// Whether a file says when clients ask or what goes wrong.
    pub(crate) fn has_a_script(&self) -> bool {
        self.script.is_some() || self.faults.is_some()
    }

    /// Who tells of crashes, and what concerns it.
    pub(crate) fn detection(&self, config: &Config) -> serde_json::Map<String, serde_json::Value> {
        let mut settings = config.system.settings(&[Setting::Patience, Setting::Period]);
        settings.insert("detector".to_owned(), self.detector.name().into());
        settings
    }

    /// What these options mean for an algorithm.
    pub(crate) fn config(
        &self,
        entry: &Entry,
        entries: u64,
        warmup: u64,
        runs: std::ops::Range<u64>,
    ) -> Result<Config> {
        let arrivals = match (&self.script, self.arrivals) {
            (Some(path), _) => Arrivals::Scripted(read(path)?),
            (None, ArrivalKind::Closed) => Arrivals::Closed { rate: self.rate },
            (None, ArrivalKind::Queued) => Arrivals::Queued { rate: self.rate },
            (None, ArrivalKind::Saturated) => Arrivals::Saturated,
        };
        if self.hot.is_some() && !matches!(arrivals, Arrivals::Closed { .. } | Arrivals::Queued { .. }) {
            bail!(
                "--hot shifts a rate, and saturated or scripted clients have none; use it with --arrivals closed or queued"
            );
        }
        let config = Config {
            system: self.system.system(entry, self.nodes, self.delay, self.delay_law)?,
            askers: self.system.askers,
            arrivals,
            hot: self.hot,
            hold: self.hold,
            delay: self.delay,
            delay_law: self.delay_law,
            order: self.system.order(entry),
            faults: self.faults.as_ref().map(read).transpose()?.unwrap_or_default(),
            keep_going: false,
            entries,
            warmup,
            runs,
            seed: self.seed,
        };
        config.validate()?;
        Ok(config)
    }

    /// The network, the stay and the faults in words.
    pub(crate) fn describe_world(&self, entry: &Entry, config: &Config) -> String {
        let delay = match self.delay_law {
            DelayLaw::Uniform => format!("up to {}", self.delay),
            DelayLaw::Constant => format!("{}", self.delay),
            DelayLaw::Exponential => format!("{} on average", self.delay),
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
