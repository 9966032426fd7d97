//! The systems that algorithms run on, as one names them.

use std::{
    fmt::{self, Display},
    ops::Range,
    str::FromStr,
    time::Duration,
};

use serde::{Deserialize, Serialize};
pub use vez_algorithms::quorum::Quorum;
use vez_algorithms::{
    NodeId, Setting, Setup, SetupError,
    graph::{Graph, distance_squared},
    tree::Tree,
};

use crate::{
    random::{Purpose, Stream},
    sim::DelayLaw,
    span,
    wanted::{word, word_if_any},
};

/// More nodes than this are surely a slip of the keyboard.
pub const MAX_NODES: usize = 200_000;

/// How long a message takes at most, in time units, if nothing else is said.
pub const MESSAGE_DELAY: f64 = 0.1;

/// A system: how many nodes, how they are arranged, and what an algorithm may want to know besides.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct System {
    /// How many nodes there are.
    pub nodes: usize,
    /// The tree or graph that the algorithms that use one start with.
    #[serde(deserialize_with = "word")]
    pub topology: Topology,
    /// The quorums of the algorithms that use them.
    #[serde(deserialize_with = "word")]
    pub quorum: Quorum,
    /// How many may be inside together, where more than one may.
    pub k: usize,
    /// How many groups or sessions there are.
    pub groups: usize,
    /// How many replicas vote, and how many of them are a majority.
    pub replicas: usize,
    /// How many of them are a majority.
    pub majority: usize,
    /// How many bits an identifier has.
    pub bits: u32,
    /// How many of them name a superpeer.
    pub prefix: u32,
    /// How long a node that was turned away waits before it asks again.
    #[serde(with = "span::range")]
    pub retry: Range<Duration>,
    /// How long a node waits for an answer before it takes the other for dead.
    #[serde(with = "span")]
    pub patience: Duration,
    /// How long a node pauses between two rounds of what it does again and again.
    #[serde(with = "span")]
    pub period: Duration,
}

/// The parameters of a system as they are asked for: on the command line, in the file of a study, in a transcript or in a check.
/// [`resolve`](Self::resolve) is the only place that knows what an omitted one means.
#[derive(Clone, PartialEq, Default, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SystemOptions {
    /// The tree or graph that algorithms with one start with: binary, tree:K, line, star, random, hypercube, grid or
    /// geometric. By default binary.
    #[cfg_attr(feature = "clap", arg(long, value_name = "SHAPE"))]
    #[serde(deserialize_with = "word_if_any")]
    pub topology: Option<Topology>,
    /// The quorums of algorithms that vote: grid, plane or star. By default grid.
    #[cfg_attr(feature = "clap", arg(long, value_name = "KIND"))]
    #[serde(deserialize_with = "word_if_any")]
    pub quorum: Option<Quorum>,
    /// How many may be inside together, for semaphores; how many superpeers there are. By default 2.
    #[cfg_attr(feature = "clap", arg(long))]
    pub k: Option<usize>,
    /// How many groups or sessions there are to choose from. By default 3.
    #[cfg_attr(feature = "clap", arg(long))]
    pub groups: Option<usize>,
    /// How many replicas of the resource vote. By default 5.
    #[cfg_attr(feature = "clap", arg(long))]
    pub replicas: Option<usize>,
    /// How many of them must agree; by default more than half.
    #[cfg_attr(feature = "clap", arg(long))]
    pub majority: Option<usize>,
    /// How many bits an identifier has. By default 16.
    #[cfg_attr(feature = "clap", arg(long))]
    pub bits: Option<u32>,
    /// How many of them, the first ones, name a superpeer. By default 2.
    #[cfg_attr(feature = "clap", arg(long))]
    pub prefix: Option<u32>,
    /// How long a node waits for an answer before it takes the other for dead; by default longer than two messages take.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", value_parser = time))]
    pub patience: Option<f64>,
    /// How long a node pauses between two rounds of what it does again and again; by default ten times that.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", value_parser = time))]
    pub period: Option<f64>,
}

/// A span of time, as a number of time units or with the name of a unit: 0.25, 250ms.
#[cfg(feature = "clap")]
fn time(text: &str) -> Result<f64, String> {
    text.parse().or_else(|_| span::seconds(text))
}

impl SystemOptions {
    /// Reads parameters from a script: pairs of a name and a value.
    ///
    /// # Errors
    /// If there is no such parameter, or it has no such value.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        fn parse<T: FromStr<Err: Display>>(name: &str, value: &str) -> Result<Option<T>, String> {
            value.parse().map(Some).map_err(|error| format!("{name}={value}: {error}"))
        }
        let mut options = Self::default();
        for (name, value) in pairs {
            match name {
                "topology" => options.topology = parse(name, value)?,
                "quorum" => options.quorum = parse(name, value)?,
                "k" => options.k = parse(name, value)?,
                "groups" => options.groups = parse(name, value)?,
                "replicas" => options.replicas = parse(name, value)?,
                "majority" => options.majority = parse(name, value)?,
                "bits" => options.bits = parse(name, value)?,
                "prefix" => options.prefix = parse(name, value)?,
                "patience" => options.patience = parse(name, value)?,
                "period" => options.period = parse(name, value)?,
                other => return Err(format!("a system has no parameter \"{other}\"")),
            }
        }
        Ok(options)
    }

    /// The settings that are given. A topology concerns every system.
    pub(crate) fn given(&self) -> impl Iterator<Item = Setting> {
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
        given.into_iter().filter(|(_, given)| *given).map(|(setting, _)| setting)
    }

    /// The system of these parameters, in which a message takes about `delay` time units.
    ///
    /// # Errors
    /// If a time is not one.
    pub fn resolve(&self, nodes: usize, delay: f64, law: &DelayLaw) -> Result<System, SetupError> {
        // Somebody who was turned away asks again after about the time that a message takes.
        let about = Duration::try_from_secs_f64(delay.min(1e6)).unwrap_or_default();
        let patience = match (self.patience, law) {
            (Some(patience), _) => seconds("patience", patience)?,
            (None, DelayLaw::Uniform | DelayLaw::Constant) => about * 5 / 2,
            // There is no bound: one message in millions takes longer than this.
            (None, DelayLaw::Exponential | DelayLaw::Measured(_)) => about * 40,
        };
        let replicas = self.replicas.unwrap_or(5);
        Ok(System {
            nodes,
            topology: self.topology.unwrap_or(Topology::Tree(2)),
            quorum: self.quorum.unwrap_or(Quorum::Grid),
            k: self.k.unwrap_or(2.min(nodes)),
            groups: self.groups.unwrap_or(3),
            replicas,
            majority: self.majority.unwrap_or(replicas / 2 + 1),
            bits: self.bits.unwrap_or(16),
            prefix: self.prefix.unwrap_or(2),
            retry: about / 2..about * 3 / 2,
            patience,
            period: self.period.map_or(Ok(patience * 10), |period| seconds("period", period))?,
        })
    }
}

fn seconds(name: &str, time: f64) -> Result<Duration, SetupError> {
    let time_span = Some(time).filter(|time| (1e-6..=1e6).contains(time)).map(Duration::from_secs_f64);
    time_span.ok_or_else(|| SetupError(format!("{name} is {time}; take a time from 1e-6 to 1e6, such as 1")))
}

impl System {
    /// The usual system of this many nodes: on a binary tree, with quorums from a grid, where a message takes up to a tenth of
    /// a time unit.
    #[must_use]
    pub fn of(nodes: usize) -> Self {
        let usual = SystemOptions::default().resolve(nodes, MESSAGE_DELAY, &DelayLaw::Uniform);
        usual.expect("no time is given that could be wrong")
    }

    /// What these are set to, by name.
    #[must_use]
    pub fn settings(&self, settings: &[Setting]) -> serde_json::Map<String, serde_json::Value> {
        let besides = settings.iter().filter(|setting| **setting != Setting::Topology);
        besides.map(|setting| (setting.to_string(), self.setting(*setting))).collect()
    }

    fn setting(&self, setting: Setting) -> serde_json::Value {
        match setting {
            Setting::Topology => serde_json::json!(self.topology),
            Setting::Quorum => serde_json::json!(self.quorum),
            Setting::K => self.k.into(),
            Setting::Groups => self.groups.into(),
            Setting::Replicas => self.replicas.into(),
            Setting::Majority => self.majority.into(),
            Setting::Bits => self.bits.into(),
            Setting::Prefix => self.prefix.into(),
            Setting::Patience => self.patience.as_secs_f64().into(),
            Setting::Period => self.period.as_secs_f64().into(),
        }
    }

    /// The system for one run. A random tree is drawn anew for each, and so are the places of the nodes.
    ///
    /// # Errors
    /// If there can be no such system.
    pub fn setup(&self, seed: u64, run: u64) -> Result<Setup, SetupError> {
        let n = self.nodes;
        if n == 0 {
            return Err(SetupError("a system of 0 nodes does nothing; take at least 1".to_owned()));
        }
        if n > MAX_NODES {
            return Err(SetupError(format!("{n} nodes are too many; take at most {MAX_NODES}")));
        }
        let places = places(n, seed, run);
        let mut stream = Stream::new(seed, run, NodeId(0), Purpose::Tree);
        let (tree, graph) = match self.topology {
            Topology::Tree(0) => return Err(SetupError("a tree needs at least 1 child a node; try tree:2".to_owned())),
            Topology::Tree(arity) => (Tree::balanced(n, arity), Graph::OfTree),
            Topology::Line => (Tree::line(n), Graph::OfTree),
            Topology::Star => (Tree::star(n), Graph::OfTree),
            Topology::Random => (Tree::by(n, |i| stream.below(i)), Graph::OfTree),
            Topology::Hypercube => (Tree::hypercube(n), Graph::Hypercube),
            Topology::Grid => (Tree::grid(n), Graph::Grid),
            Topology::Geometric if n > MAX_GEOMETRIC => {
                let fix = format!("take at most {MAX_GEOMETRIC}, or another topology");
                return Err(SetupError(format!("{n} nodes are too many for a geometric graph; {fix}")));
            }
            Topology::Geometric => (Tree::balanced(n, 2), Graph::Geometric { reach: reach(&places) }),
        };
        Ok(Setup {
            tree,
            graph,
            places,
            quorum: self.quorum,
            k: self.k,
            groups: self.groups,
            replicas: self.replicas,
            majority: self.majority,
            bits: self.bits,
            prefix: self.prefix,
            retry: self.retry.clone(),
            patience: self.patience,
            period: self.period,
        })
    }
}

/// A larger geometric graph takes too long to lay out.
const MAX_GEOMETRIC: usize = 10_000;

/// Where each node stands: anywhere in the square.
fn places(n: usize, seed: u64, run: u64) -> Vec<[u16; 2]> {
    let mut stream = Stream::new(seed, run, NodeId(0), Purpose::Places);
    let mut coordinate = || stream.below(1 << 16) as u16;
    (0..n).map(|_| [coordinate(), coordinate()]).collect()
}

/// The shortest reach with which all nodes hang together, and a quarter more, so that the loss of a node seldom cuts
/// others off: the longest edge of the shortest tree over all places, found by growing it from node 0.
fn reach(places: &[[u16; 2]]) -> u32 {
    let mut nearest: Vec<u64> = places.iter().map(|place| distance_squared(places[0], *place)).collect();
    let mut outside: Vec<usize> = (1..places.len()).collect();
    let mut longest = 0;
    while let Some((at, &next)) = outside.iter().enumerate().min_by_key(|(_, other)| nearest[**other]) {
        outside.swap_remove(at);
        longest = longest.max(nearest[next]);
        for &other in &outside {
            nearest[other] = nearest[other].min(distance_squared(places[next], places[other]));
        }
    }
    let shortest = longest.isqrt() + 1;
    (shortest + shortest / 4) as u32
}

/// The shape of the tree over the nodes, rooted at node 0, and of the graph between them, where there is more than a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Topology {
    /// Balanced, with up to so many children a node.
    Tree(usize),
    /// One behind the other.
    Line,
    /// All around node 0.
    Star,
    /// Each node's father is drawn among those before it.
    Random,
    /// A hypercube, and in it shortest paths to node 0.
    Hypercube,
    /// A square grid, and in it shortest paths to node 0.
    Grid,
    /// Nodes anywhere in a square, in reach of those nearby. The tree is a binary one.
    Geometric,
}

impl Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tree(2) => f.write_str("binary"),
            Self::Tree(arity) => write!(f, "tree:{arity}"),
            Self::Line => f.write_str("line"),
            Self::Star => f.write_str("star"),
            Self::Random => f.write_str("random"),
            Self::Hypercube => f.write_str("hypercube"),
            Self::Grid => f.write_str("grid"),
            Self::Geometric => f.write_str("geometric"),
        }
    }
}

impl Serialize for Topology {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Topology {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "binary" => Ok(Self::Tree(2)),
            "line" => Ok(Self::Line),
            "star" => Ok(Self::Star),
            "random" => Ok(Self::Random),
            "hypercube" => Ok(Self::Hypercube),
            "grid" => Ok(Self::Grid),
            "geometric" => Ok(Self::Geometric),
            other => {
                other.strip_prefix("tree:").and_then(|arity| arity.parse().ok()).map(Self::Tree).ok_or_else(|| {
                    format!(
                        "unknown topology \"{other}\"; there are binary, tree:K, line, star, random, hypercube, grid and geometric"
                    )
                })
            }
        }
    }
}
