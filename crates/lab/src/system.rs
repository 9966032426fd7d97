//! The systems that algorithms run on, as one names them.

use std::{fmt, ops::Range, str::FromStr, time::Duration};

use serde::Serialize;
pub use vez_algorithms::quorum::Quorum;
use vez_algorithms::{NodeId, Setup, SetupError, tree::Tree};

use crate::random::{Purpose, Stream};

/// More nodes than this are surely a slip of the keyboard.
pub const MAX_NODES: usize = 200_000;

/// A system: how many nodes, and how they are arranged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct System {
    /// How many nodes there are.
    pub nodes: usize,
    /// The tree that the algorithms that use one start with.
    pub topology: Topology,
    /// The quorums of the algorithms that use them.
    pub quorum: Quorum,
    /// How long a node that was turned away waits before it asks again.
    pub retry: Range<Duration>,
}

impl System {
    /// So many nodes on a binary tree, with quorums from a grid.
    #[must_use]
    pub fn of(nodes: usize) -> Self {
        let retry = Duration::from_millis(50)..Duration::from_millis(150);
        Self { nodes, topology: Topology::Tree(2), quorum: Quorum::Grid, retry }
    }

    /// The system for one run. A random tree is drawn anew for each.
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
        let mut stream = Stream::new(seed, run, NodeId(0), Purpose::Tree);
        let tree = match self.topology {
            Topology::Tree(0) => return Err(SetupError("a tree needs at least 1 child a node; try tree:2".to_owned())),
            Topology::Tree(arity) => Tree::balanced(n, arity),
            Topology::Line => Tree::line(n),
            Topology::Star => Tree::star(n),
            Topology::Random => Tree::by(n, |i| stream.below(i)),
            Topology::Hypercube => Tree::hypercube(n),
            Topology::Grid => Tree::grid(n),
        };
        Ok(Setup { tree, quorum: self.quorum, retry: self.retry.clone() })
    }
}

/// The shape of the tree over the nodes. It is rooted at node 0.
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
    /// Shortest paths to node 0 in a hypercube.
    Hypercube,
    /// Shortest paths to node 0 in a square grid.
    Grid,
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
            other => {
                other.strip_prefix("tree:").and_then(|arity| arity.parse().ok()).map(Self::Tree).ok_or_else(|| {
                    format!(
                        "unknown topology \"{other}\"; there are binary, tree:K, line, star, random, hypercube and grid"
                    )
                })
            }
        }
    }
}
