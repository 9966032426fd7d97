//! Who can reach whom.

use vez_algorithms::{Algorithm, NodeId, NodeSet, Reach, Setup};

/// The links of a system, as far as an algorithm makes use of them.
pub(crate) struct Links {
    /// For each node those that it can send to; nothing if that is everybody.
    neighbours: Option<Vec<NodeSet>>,
}

impl Links {
    pub(crate) fn of<A: Algorithm>(setup: &Setup) -> Self {
        let neighbours = match A::MODEL.reach {
            Reach::Everybody => None,
            Reach::Neighbours => Some(setup.ids().map(|node| setup.neighbours(node)).collect()),
        };
        Self { neighbours }
    }

    /// Whether a node can send to another.
    #[inline]
    pub(crate) fn link(&self, from: NodeId, to: NodeId) -> bool {
        self.neighbours.as_ref().is_none_or(|neighbours| neighbours[from.index()].contains(to))
    }

    /// Whether messages get from one node to another, over nodes for which `open` says that they pass them on.
    pub(crate) fn connected(&self, from: NodeId, to: NodeId, open: &dyn Fn(NodeId) -> bool) -> bool {
        let Some(neighbours) = &self.neighbours else { return true };
        let mut seen: NodeSet = std::iter::once(from).collect();
        let mut path = vec![from];
        while let Some(at) = path.pop() {
            if at == to {
                return true;
            }
            for next in neighbours[at.index()].iter().filter(|next| open(*next)) {
                if seen.insert(next) {
                    path.push(next);
                }
            }
        }
        false
    }
}
