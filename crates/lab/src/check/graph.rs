//! The graph of all states.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use vez_algorithms::{Algorithm, NodeId};

use super::{
    action::Action,
    explore::Watcher,
    model::{Model, Transition},
};

/// A way from one state to another.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) to: u32,
    /// What must not be put off for ever; `None` if it may.
    pub(super) fair: Option<u32>,
    pub(super) messages: u16,
    pub(super) actor: u8,
    pub(super) event: Event,
}

/// What a way means for the client of the node that acts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    Asks,
    Enters,
    /// It asks and is inside at once.
    AsksAndEnters,
    Other,
}

impl Event {
    pub(super) fn asks(self) -> bool {
        matches!(self, Self::Asks | Self::AsksAndEnters)
    }

    pub(super) fn enters(self) -> bool {
        matches!(self, Self::Enters | Self::AsksAndEnters)
    }
}

/// All states, by number, and the ways out of each.
#[derive(Default)]
pub(super) struct Graph {
    /// Where in `ways` those of each state begin, and at the end their number.
    starts: Vec<u32>,
    ways: Vec<Way>,
    /// For each state, one bit for each node: whether it waits.
    waiting: Vec<u64>,
}

impl Graph {
    pub(super) fn states(&self) -> u32 {
        self.waiting.len() as u32
    }

    pub(super) fn ways(&self, state: u32) -> &[Way] {
        &self.ways[self.starts[state as usize] as usize..self.starts[state as usize + 1] as usize]
    }

    pub(super) fn waits(&self, state: u32, node: NodeId) -> bool {
        self.waiting[state as usize] >> node.index() & 1 == 1
    }
}

/// Writes the graph down while the states are explored.
#[derive(Default)]
pub(super) struct Recorder {
    graph: Graph,
    units: IndexSet<(NodeId, Action), FxBuildHasher>,
}

impl Recorder {
    pub(super) fn finish(mut self) -> Graph {
        self.graph.starts.push(self.graph.ways.len() as u32);
        self.graph
    }
}

impl<P: Algorithm> Watcher<P> for Recorder {
    fn state(&mut self, model: &Model<P>, state: &[u32]) {
        self.graph.starts.push(self.graph.ways.len() as u32);
        let waiting = model.waiting(state).iter().fold(0, |bits, node| bits | 1 << node.index());
        self.graph.waiting.push(waiting);
    }

    fn way(&mut self, model: &Model<P>, transition: Transition, to: u32) {
        let outcome = model.outcome(transition);
        let unit = || self.units.insert_full(model.fairness_unit(transition)).0 as u32;
        let fair = transition.action.must_happen().then(unit);
        let event = match (transition.action, outcome.served) {
            (Action::Ask(_), true) => Event::AsksAndEnters,
            (Action::Ask(_), false) => Event::Asks,
            (_, true) => Event::Enters,
            (_, false) => Event::Other,
        };
        let messages = u16::try_from(outcome.messages()).unwrap_or(u16::MAX);
        self.graph.ways.push(Way { to, fair, messages, actor: transition.actor.0 as u8, event });
    }
}

/// The strongly connected components of a graph of `size` nodes, given the successors of each, by Tarjan's algorithm
/// without recursion. A component comes after all that can be reached from it.
pub(super) fn components<I>(size: u32, mut successors: impl FnMut(u32) -> I, mut found: impl FnMut(&[u32]))
where
    I: Iterator<Item = u32>,
{
    const UNSEEN: u32 = u32::MAX;
    const DONE: u32 = u32::MAX - 1;
    let mut low = vec![UNSEEN; size as usize];
    let (mut stack, mut path) = (Vec::new(), Vec::new());
    for root in 0..size {
        if low[root as usize] != UNSEEN {
            continue;
        }
        low[root as usize] = 0;
        stack.clear();
        stack.push(root);
        path.push((root, 0, successors(root)));
        while let Some((node, own, rest)) = path.last_mut() {
            let (node, own) = (*node, *own);
            if let Some(next) = rest.next() {
                match low[next as usize] {
                    UNSEEN => {
                        let order = stack.len() as u32;
                        low[next as usize] = order;
                        stack.push(next);
                        path.push((next, order, successors(next)));
                    }
                    DONE => {}
                    seen => low[node as usize] = low[node as usize].min(seen),
                }
                continue;
            }
            path.pop();
            let reached = low[node as usize];
            if let Some((above, ..)) = path.last() {
                low[*above as usize] = low[*above as usize].min(reached);
            }
            if reached == own {
                let component = &stack[own as usize..];
                component.iter().for_each(|&member| low[member as usize] = DONE);
                found(component);
                stack.truncate(own as usize);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_come_after_what_they_reach() {
        // 0 → 1 ⇄ 2, 1 → 3, 3 → 3, 4 → 0
        let successors = [vec![1], vec![2, 3], vec![1], vec![3], vec![0]];
        let mut all = Vec::new();
        components(5, |node| successors[node as usize].iter().copied(), |component| all.push(component.to_vec()));
        all.iter_mut().for_each(|component| component.sort_unstable());
        assert_eq!(all, [vec![3], vec![1, 2], vec![0], vec![4]]);
    }
}
