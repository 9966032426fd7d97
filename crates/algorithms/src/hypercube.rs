//! The hypercube over which nodes watch each other and spread messages: for each node, clusters that double in size.
//!
//! Node i sees the others as clusters s = 1 to ⌈log n⌉, in the words of Duarte and Nanya:
//! C(i, s) = ⟨i ⊕ 2^(s−1), C(i ⊕ 2^(s−1), s−1), …, C(i ⊕ 2^(s−1), 1)⟩, so that C(0, 3) = ⟨4, 6, 7, 5⟩.
//! Every other node is in one cluster, and C(i, s) has 2^(s−1) nodes. Where n is no power of two, nodes are missing, and
//! those are treated like crashed ones: the lists leave them out.

use crate::NodeId;

/// ⌈log n⌉: the dimensions of the smallest hypercube with at least n corners, and how many clusters each node sees.
#[must_use]
pub fn dimension(n: usize) -> u32 {
    n.next_power_of_two().ilog2()
}

/// C(i, s) of a system of n: the nodes of a cluster, in the order in which i turns to them.
///
/// # Panics
/// If s is 0 or more than 32.
pub fn cluster(n: usize, i: NodeId, s: u32) -> impl Iterator<Item = NodeId> {
    assert!((1..=32).contains(&s), "there is no cluster {s}");
    let first = i.0 ^ (1 << (s - 1));
    let nodes = core::iter::successors(Some(0), move |at| next(s - 1, *at)).map(move |at| NodeId(first ^ at));
    nodes.filter(move |node| node.index() < n)
}

/// The s for which C(i, s) has that node.
///
/// # Panics
/// If it is i itself, which is in no cluster of its own.
#[must_use]
pub fn cluster_of(i: NodeId, node: NodeId) -> u32 {
    assert_ne!(i, node, "no cluster of {i} has {i} itself");
    u32::BITS - (i.0 ^ node.0).leading_zeros()
}

/// The definition of C is a tree: below a node stand those that differ from it in one of the bits lower than its lowest,
/// highest bit first. This is the walk through that tree: each node, then all below it.
fn next(bits: u32, at: u32) -> Option<u32> {
    let lowest = |at: u32| at.trailing_zeros().min(bits);
    if lowest(at) > 0 {
        return Some(at | 1 << (lowest(at) - 1)); // the first below
    }
    // Nothing is below an odd number, and it is the last of those beside it.
    let above = at & !1;
    (above != 0).then(|| above - (1 << (lowest(above) - 1))) // the next beside the one above
}

#[cfg(test)]
mod tests {
    use alloc::{collections::BTreeSet, vec, vec::Vec};

    use super::*;

    /// As the paper defines it.
    fn by_definition(i: u32, s: u32) -> Vec<u32> {
        let first = i ^ (1 << (s - 1));
        let rest = (1..s).rev().flat_map(|lower| by_definition(first, lower));
        core::iter::once(first).chain(rest).collect()
    }

    fn nodes(n: usize, i: u32, s: u32) -> Vec<u32> {
        cluster(n, NodeId(i), s).map(|node| node.0).collect()
    }

    #[test]
    fn the_clusters_that_the_paper_names() {
        assert_eq!(nodes(8, 0, 1), [1]);
        assert_eq!(nodes(8, 0, 2), [2, 3]);
        assert_eq!(nodes(8, 0, 3), [4, 6, 7, 5]);
        assert_eq!(nodes(8, 4, 2), [6, 7]);
        assert_eq!(nodes(8, 6, 2), [4, 5]);
        assert_eq!(nodes(8, 5, 1), [4]);
    }

    #[test]
    fn as_defined() {
        for i in 0..64 {
            for s in 1..=6 {
                assert_eq!(nodes(64, i, s), by_definition(i, s));
            }
        }
    }

    #[test]
    fn every_other_node_is_in_one_cluster() {
        for n in 1..=70 {
            for i in NodeId::all(n) {
                let clusters = 1..=dimension(n);
                let found: Vec<_> = clusters.flat_map(|s| cluster(n, i, s).map(move |node| (node, s))).collect();
                assert!(found.iter().all(|(node, s)| cluster_of(i, *node) == *s));
                let once: BTreeSet<_> = found.iter().map(|(node, _)| *node).collect();
                assert_eq!((found.len(), once.len(), once.contains(&i)), (n - 1, n - 1, false));
            }
        }
    }

    #[test]
    fn how_many_clusters() {
        let dimensions: Vec<u32> = [1, 2, 3, 4, 5, 8, 9, 16].into_iter().map(dimension).collect();
        assert_eq!(dimensions, vec![0, 1, 2, 2, 3, 3, 4, 4]);
    }
}
