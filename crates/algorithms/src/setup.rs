//! What an algorithm is told when a system is set up.

use alloc::{borrow::ToOwned, format, string::String, vec::Vec};
use core::{fmt, ops::Range, time::Duration};

use crate::{NodeId, graph::Graph, quorum::Quorum, tree::Tree};

/// More groups than this nobody chooses from.
pub(crate) const MAX_GROUPS: usize = 1 << 16;

/// The system that an algorithm is to run on. Each takes what concerns it.
#[derive(Clone, Debug)]
pub struct Setup {
    /// A tree over all nodes, whose root has the token at first. Its size is the size of the system.
    pub tree: Tree,
    /// Which nodes are in each other's reach, where that matters.
    pub graph: Graph,
    /// Where each node stands in a square: two coordinates from 0 to 65,535.
    pub places: Vec<[u16; 2]>,
    /// Whose leave a node needs.
    pub quorum: Quorum,
    /// How many may be inside together: k.
    pub k: usize,
    /// How many groups, or sessions, there are.
    pub groups: usize,
    /// How many replicas a resource has: the n of a vote.
    pub replicas: usize,
    /// How many of them make a majority: m.
    pub majority: usize,
    /// How many bits an identifier has: m.
    pub bits: u32,
    /// How many of its first bits name a superpeer: k.
    pub prefix: u32,
    /// How long a node that was turned away waits before it asks again.
    pub retry: Range<Duration>,
    /// How long a node waits for an answer before it takes the other for dead: longer than two messages take.
    pub patience: Duration,
    /// How long a node pauses between two rounds of what it does again and again.
    pub period: Duration,
}

impl Setup {
    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.tree.len()
    }

    /// Refuses more nodes than an algorithm can do with, if each keeps something for every other or writes to all of them.
    ///
    /// # Errors
    /// If there are more than 16,384.
    pub fn each_knows_all(&self) -> Result<usize, SetupError> {
        const MOST: usize = 1 << 14;
        match self.nodes() {
            n if n > MOST => Err(SetupError(format!(
                "{n} nodes are too many for an algorithm in which each deals with all others; take at most {MOST}"
            ))),
            n => Ok(n),
        }
    }

    /// How many may be inside together.
    ///
    /// # Errors
    /// If nobody could ever enter, or everybody always.
    pub fn k_of_n(&self) -> Result<usize, SetupError> {
        match (self.k, self.nodes()) {
            (0, _) => Err(SetupError("k is 0 and nobody could enter; take at least 1, such as --k 2".to_owned())),
            (k, n) if k > n => {
                Err(SetupError(format!("k is {k} but there are only {n} nodes; take at most {n}, or more --nodes")))
            }
            (k, _) => Ok(k),
        }
    }

    /// How many groups there are.
    ///
    /// # Errors
    /// If there are none, or far too many.
    pub fn some_groups(&self) -> Result<usize, SetupError> {
        match self.groups {
            0 => Err(SetupError("there are 0 groups to choose from; take at least 1, such as --groups 3".to_owned())),
            groups if groups > MAX_GROUPS => {
                Err(SetupError(format!("{groups} groups are too many to choose from; take at most {MAX_GROUPS}")))
            }
            groups => Ok(groups),
        }
    }

    /// All nodes.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = NodeId> {
        NodeId::all(self.nodes())
    }
}

/// A field of [`Setup`] that concerns only some algorithms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Setting {
    /// The tree or graph that the nodes stand in.
    Topology,
    /// Whose leave a node needs.
    Quorum,
    /// How many may be inside together.
    K,
    /// How many groups there are.
    Groups,
    /// How many replicas a resource has.
    Replicas,
    /// How many of them make a majority.
    Majority,
    /// How many bits an identifier has.
    Bits,
    /// How many of its first bits name a superpeer.
    Prefix,
    /// How long to wait for an answer.
    Patience,
    /// How long to pause between rounds.
    Period,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Topology => "topology",
            Self::Quorum => "quorum",
            Self::K => "k",
            Self::Groups => "groups",
            Self::Replicas => "replicas",
            Self::Majority => "majority",
            Self::Bits => "bits",
            Self::Prefix => "prefix",
            Self::Patience => "patience",
            Self::Period => "period",
        })
    }
}

/// A system that cannot be. Nothing was built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetupError(pub String);

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for SetupError {}
