//! What an algorithm is told when a system is set up.

use alloc::{format, string::String};
use core::{fmt, ops::Range, time::Duration};

use crate::{NodeId, quorum::Quorum, tree::Tree};

/// The system that an algorithm is to run on. Each takes what concerns it: a tree, quorums, a time to wait.
#[derive(Clone, Debug)]
pub struct Setup {
    /// A tree over all nodes, whose root has the token at first. Its size is the size of the system.
    pub tree: Tree,
    /// Whose leave a node needs.
    pub quorum: Quorum,
    /// How long a node that was turned away waits before it asks again.
    pub retry: Range<Duration>,
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

    /// All nodes.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = NodeId> {
        NodeId::all(self.nodes())
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
