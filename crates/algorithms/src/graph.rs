//! Which nodes are in each other's reach.

use crate::{NodeId, NodeSet, Setup, hypercube::dimension, tree::columns};

/// The edges between the nodes of a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Graph {
    /// Those of the system's tree, and no others.
    OfTree,
    /// A hypercube, of which the first n corners exist.
    Hypercube,
    /// A square grid, filled row by row.
    Grid,
    /// Between all whose places in the square are at most so far apart.
    Geometric {
        /// How far.
        reach: u32,
    },
}

impl Setup {
    /// The nodes in a node's reach.
    #[must_use]
    pub fn neighbours(&self, node: NodeId) -> NodeSet {
        let (n, at) = (self.nodes(), node.index());
        match self.graph {
            Graph::OfTree => {
                let father = Some(self.tree.father(node)).filter(|father| *father != node);
                let children = self.ids().filter(|child| *child != node && self.tree.father(*child) == node);
                father.into_iter().chain(children).collect()
            }
            Graph::Hypercube => {
                let corners = (0..dimension(n)).map(|bit| at ^ (1 << bit));
                corners.filter(|corner| *corner < n).map(NodeId::from_index).collect()
            }
            Graph::Grid => {
                let width = columns(n);
                let left = (at % width > 0).then(|| at - 1);
                let right = (at % width < width - 1).then_some(at + 1);
                let all = [left, right, at.checked_sub(width), Some(at + width)];
                all.into_iter().flatten().filter(|other| *other < n).map(NodeId::from_index).collect()
            }
            Graph::Geometric { reach } => {
                let near = |other: &NodeId| {
                    distance_squared(self.places[at], self.places[other.index()]) <= u64::from(reach).pow(2)
                };
                self.ids().filter(|other| *other != node).filter(near).collect()
            }
        }
    }
}

/// The square of the distance between two places.
#[must_use]
pub fn distance_squared(one: [u16; 2], other: [u16; 2]) -> u64 {
    let along = |axis: usize| u64::from(one[axis].abs_diff(other[axis]));
    along(0).pow(2) + along(1).pow(2)
}
