//! The systems that algorithms run on, as one names them.

use std::{fmt, ops::Range, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};
pub use vez_algorithms::quorum::Quorum;
use vez_algorithms::{
    NodeId, Setting, Setup, SetupError,
    graph::{Graph, distance_squared},
    tree::Tree,
};

use crate::{
    random::{Purpose, Stream},
    span,
    wanted::word,
};

/// More nodes than this are surely a slip of the keyboard.
pub const MAX_NODES: usize = 200_000;

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

impl System {
    /// So many nodes on a binary tree, with quorums from a grid, where a message takes at most a tenth.
    #[must_use]
    pub fn of(nodes: usize) -> Self {
        Self {
            nodes,
            topology: Topology::Tree(2),
            quorum: Quorum::Grid,
            k: 2.min(nodes),
            groups: 3,
            replicas: 5,
            majority: 3,
            bits: 16,
            prefix: 2,
            retry: Duration::from_millis(50)..Duration::from_millis(150),
            patience: Duration::from_millis(250),
            period: Duration::from_millis(2500),
        }
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

impl fmt::Display for Topology {
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
