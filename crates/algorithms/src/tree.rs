//! Trees over the nodes of a system, rooted at node 0.

use alloc::{vec, vec::Vec};

use crate::NodeId;

/// A tree: for each node its father, the next one on the way to the root. The root is its own father.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    father: Vec<NodeId>,
}

impl Tree {
    /// Node 0 — node 1 — node 2 — …
    #[must_use]
    pub fn line(n: usize) -> Self {
        Self::by(n, |i| i - 1)
    }

    /// Node 0 in the middle, all others around it.
    #[must_use]
    pub fn star(n: usize) -> Self {
        Self::by(n, |_| 0)
    }

    /// A balanced tree in which each node has up to `arity` children, filled level by level.
    #[must_use]
    pub fn balanced(n: usize, arity: usize) -> Self {
        Self::by(n, |i| (i - 1) / arity)
    }

    /// Shortest paths to node 0 in a hypercube of which the first n corners exist: each step clears the highest bit.
    #[must_use]
    pub fn hypercube(n: usize) -> Self {
        Self::by(n, |i| i & !(1 << i.ilog2()))
    }

    /// Shortest paths to node 0 in a square grid, filled row by row: first up, then left.
    #[must_use]
    pub fn grid(n: usize) -> Self {
        let width = columns(n);
        Self::by(n, |i| if i >= width { i - width } else { i - 1 })
    }

    /// Any tree in which a father has a smaller number than its children: `father` is asked for each node but 0.
    ///
    /// # Panics
    /// If a father is not smaller, or there is no node at all.
    #[must_use]
    pub fn by(n: usize, mut father: impl FnMut(usize) -> usize) -> Self {
        assert!(n > 0, "a tree has a root");
        let mut fathers = vec![NodeId(0)];
        for i in 1..n {
            let f = father(i);
            assert!(f < i, "the father {f} of {i} must have a smaller number");
            fathers.push(NodeId::from_index(f));
        }
        Self { father: fathers }
    }

    /// How many nodes there are.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a tree is never empty")]
    pub fn len(&self) -> usize {
        self.father.len()
    }

    /// The node in which all paths end.
    #[must_use]
    pub fn root(&self) -> NodeId {
        NodeId(0)
    }

    /// The next node on the way to the root; the root itself for the root.
    #[must_use]
    pub fn father(&self, node: NodeId) -> NodeId {
        self.father[node.index()]
    }

    /// The mean number of edges between two nodes drawn at random, the same one twice included.
    #[must_use]
    pub fn mean_distance(&self) -> f64 {
        // An edge lies between two nodes if just one of them is below it.
        let n = self.len();
        let mut below = vec![1_usize; n];
        for i in (1..n).rev() {
            below[self.father[i].index()] += below[i];
        }
        let pairs: f64 = below[1..].iter().map(|&b| 2.0 * b as f64 * (n - b) as f64).sum();
        pairs / (n as f64 * n as f64)
    }
}

/// The width of the square grid that n nodes fill row by row.
pub(crate) fn columns(n: usize) -> usize {
    let root = n.isqrt();
    if root * root < n { root + 1 } else { root }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fathers(tree: &Tree) -> Vec<u32> {
        tree.father.iter().map(|f| f.0).collect()
    }

    #[test]
    fn shapes() {
        assert_eq!(fathers(&Tree::line(4)), [0, 0, 1, 2]);
        assert_eq!(fathers(&Tree::star(4)), [0, 0, 0, 0]);
        assert_eq!(fathers(&Tree::balanced(7, 2)), [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(fathers(&Tree::balanced(7, 3)), [0, 0, 0, 0, 1, 1, 1]);
        assert_eq!(fathers(&Tree::hypercube(8)), [0, 0, 0, 1, 0, 1, 2, 3]);
        assert_eq!(fathers(&Tree::grid(6)), [0, 0, 1, 0, 1, 2]);
    }

    #[test]
    fn distances() {
        assert_eq!(Tree::line(2).mean_distance(), 0.5);
        // Of the 9 pairs in a path of three, three are at distance 0, four at 1, two at 2.
        assert_eq!(Tree::line(3).mean_distance(), 8.0 / 9.0);
        assert_eq!(Tree::line(1).mean_distance(), 0.0);
    }
}
