//! A simulation as one asks for it, on the command line or in the file of a study: what is left out is as usual.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use vez_algorithms::{
    Order, Setting, SetupError,
    catalog::{self, Entry},
};

use crate::{
    named::Detector,
    sim::{Arrivals, Config, ConfigError, DelayLaw, Faults, Hot, Script},
    system::{System, SystemOptions},
};

/// What one may ask for, by the names that it has on the command line and in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Wanted {
    /// How many nodes.
    pub nodes: usize,
    /// The parameters of the system.
    #[serde(flatten)]
    pub system: SystemOptions,
    /// Whether messages may overtake each other; by default if the algorithm allows it.
    #[serde(deserialize_with = "word_if_any")]
    pub network: Option<Network>,
    /// How many of the clients ask, the first ones; by default all.
    pub askers: Option<usize>,
    /// When clients ask.
    #[serde(deserialize_with = "word")]
    pub arrivals: ArrivalKind,
    /// How often a node's client asks in a unit of time.
    pub rate: f64,
    /// Requests, one by one, instead.
    #[serde(deserialize_with = "word_if_any")]
    pub script: Option<Script>,
    /// Which nodes have more than their share of the load.
    #[serde(deserialize_with = "word_if_any")]
    pub hot: Option<Hot>,
    /// How long a client stays inside.
    pub hold: f64,
    /// How long a message takes.
    pub delay: f64,
    /// How that varies.
    #[serde(deserialize_with = "word")]
    pub delay_law: DelayLaw,
    /// What goes wrong.
    #[serde(deserialize_with = "word")]
    pub faults: Faults,
    /// Who tells of crashes, for algorithms that must be told.
    #[serde(deserialize_with = "word")]
    pub detector: Detector,
    /// Whether to count how often the law is broken, instead of stopping at the first time.
    pub keep_going: bool,
    /// When a run ends, even if there were fewer entries.
    pub until: Option<f64>,
    /// How many entries of a run are measured; by default 100,000, or with an end in time as many as there are.
    pub entries: Option<u64>,
    /// How many entries come before them; by default 1000, or 0 for a script, if something goes wrong, or with an end in time.
    pub warmup: Option<u64>,
    /// How many independent runs.
    pub runs: u64,
    /// Where all randomness comes from.
    pub seed: u64,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            nodes: 31,
            system: SystemOptions::default(),
            network: None,
            askers: None,
            arrivals: ArrivalKind::Closed,
            rate: 0.1,
            script: None,
            hot: None,
            hold: 0.01,
            delay: 0.1,
            delay_law: DelayLaw::Uniform,
            faults: Faults::default(),
            detector: Detector::HiAdsd,
            keep_going: false,
            until: None,
            entries: None,
            warmup: None,
            runs: 10,
            seed: 1,
        }
    }
}

/// More entries than there can be before a run ends.
const NO_LIMIT: u64 = 1_000_000_000;

impl Wanted {
    /// What that means for an algorithm.
    ///
    /// # Errors
    /// If there is a mistake in it.
    pub fn config(&self, entry: &Entry) -> Result<Config, ConfigError> {
        let rate = self.rate;
        let arrivals = match (&self.script, self.arrivals) {
            (Some(script), _) => Arrivals::Scripted(script.clone()),
            (None, ArrivalKind::Closed) => Arrivals::Closed { rate },
            (None, ArrivalKind::Periodic) => Arrivals::Periodic { rate },
            (None, ArrivalKind::Queued) => Arrivals::Queued { rate },
            (None, ArrivalKind::Saturated) => Arrivals::Saturated,
        };
        if self.hot.is_some() && matches!(arrivals, Arrivals::Saturated | Arrivals::Scripted(_)) {
            let what = "hot shifts a rate, and saturated or scripted clients have none; \
                        take closed, periodic or queued arrivals";
            return Err(SetupError(what.to_owned()).into());
        }
        let special = self.script.is_some() || !self.faults.all().is_empty() || self.until.is_some();
        let config = Config {
            system: self.system(entry)?,
            askers: self.askers,
            arrivals,
            hot: self.hot,
            hold: self.hold,
            delay: self.delay,
            delay_law: self.delay_law.clone(),
            order: self.network.map_or(entry.assumptions.order, Order::from),
            faults: self.faults.clone(),
            keep_going: self.keep_going,
            until: self.until,
            entries: self.entries.unwrap_or(if self.until.is_some() { NO_LIMIT } else { 100_000 }),
            warmup: self.warmup.unwrap_or(if special { 0 } else { 1000 }),
            runs: 0..self.runs,
            seed: self.seed,
        };
        config.validate()?;
        Ok(config)
    }

    /// The system that it runs on.
    ///
    /// # Errors
    /// If something is set that does not concern the algorithm, or there can be no such system.
    pub fn system(&self, entry: &Entry) -> Result<System, SetupError> {
        self.refuse_idle_settings(entry)?;
        let nodes = self.nodes;
        if self.askers == Some(0) {
            return Err(SetupError("askers is 0; clients that never ask show nothing, take at least 1".to_owned()));
        }
        if let Some(askers) = self.askers.filter(|askers| *askers > nodes) {
            let what = format!("askers is {askers} but there are only {nodes} nodes; take at most {nodes}");
            return Err(SetupError(what));
        }
        self.system.resolve(nodes, self.delay, &self.delay_law)
    }

    /// Whoever sets what does not concern the algorithm would be misled by what comes out.
    fn refuse_idle_settings(&self, entry: &Entry) -> Result<(), SetupError> {
        let idle = self.system.given().find(|setting| !concerns(*setting, entry));
        idle.map_or(Ok(()), |setting| {
            let those = catalog::ALL.iter().filter(|entry| concerns(setting, entry)).map(|entry| entry.name);
            let those = those.collect::<Vec<_>>().join(", ");
            Err(SetupError(format!("{} has no setting {setting}; these have: {those}", entry.name)))
        })
    }
}

/// Whether a setting makes a difference to an algorithm, or to whoever tells it of crashes.
fn concerns(setting: Setting, entry: &Entry) -> bool {
    let is_the_detectors = matches!(setting, Setting::Patience | Setting::Period);
    entry.settings.contains(&setting) || (entry.assumptions.detector && is_the_detectors)
}

/// When clients ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArrivalKind {
    /// A client thinks, asks, stays, leaves.
    Closed,
    /// A client asks at once, stays, leaves, and asks again after the same time always.
    Periodic,
    /// Clients come whether or not others wait.
    Queued,
    /// A client asks again at once.
    Saturated,
}

impl FromStr for ArrivalKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "closed" => Ok(Self::Closed),
            "periodic" => Ok(Self::Periodic),
            "queued" => Ok(Self::Queued),
            "saturated" => Ok(Self::Saturated),
            other => Err(format!("unknown arrivals \"{other}\"; there are closed, periodic, queued and saturated")),
        }
    }
}

/// The order of messages from one node to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Network {
    /// As they were sent.
    Fifo,
    /// Any.
    Any,
}

impl From<Network> for Order {
    fn from(network: Network) -> Self {
        match network {
            Network::Fifo => Self::Fifo,
            Network::Any => Self::Any,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fifo" => Ok(Self::Fifo),
            "any" => Ok(Self::Any),
            other => Err(format!("unknown network \"{other}\"; there are fifo and any")),
        }
    }
}

impl FromStr for Detector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "hi-adsd" => Ok(Self::HiAdsd),
            "oracle" => Ok(Self::Oracle),
            other => Err(format!("unknown detector \"{other}\"; there are hi-adsd and oracle")),
        }
    }
}

impl fmt::Display for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HiAdsd => "hi-adsd",
            Self::Oracle => "oracle",
        })
    }
}

impl Serialize for Detector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a file has as a text.
pub(crate) fn word<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(deserializer: D) -> Result<T, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

pub(crate) fn word_if_any<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    word(deserializer).map(Some)
}
