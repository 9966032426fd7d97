//! What is due, and when.

use std::{cmp::Ordering, collections::BinaryHeap};

use vez_algorithms::{NodeId, Protocol};

/// Something that will happen.
pub(super) enum Due<P: Protocol> {
    /// A client comes to this node: in this life of the node, or whenever it is alive.
    Arrival(NodeId, Option<u32>),
    /// The next of the clients that wait at a node may ask, in this life of the node.
    Backlog(NodeId, u32),
    /// The client inside leaves, in this life of the node.
    Leave(NodeId, u32),
    /// A message arrives.
    Receive { from: NodeId, to: NodeId, message: P::Message },
    /// A timer fires, if it is still the one that was set then.
    Fire { node: NodeId, timer: P::Timer, set: u64 },
    /// The failure detector tells a node, in this life of it, that another has crashed.
    Notice { node: NodeId, life: u32, crashed: NodeId },
    /// Something goes wrong.
    Fault(usize),
    /// A node crashes and is back at once, and not for the last time, as the fault of this number has it.
    Reset(NodeId, usize),
}

struct Entry<P: Protocol> {
    time: f64,
    sequence: u64,
    due: Due<P>,
}

impl<P: Protocol> Ord for Entry<P> {
    /// The earliest is the greatest: that is the one that a heap gives first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.time.total_cmp(&self.time).then(other.sequence.cmp(&self.sequence))
    }
}

impl<P: Protocol> PartialOrd for Entry<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P: Protocol> PartialEq for Entry<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P: Protocol> Eq for Entry<P> {}

/// What is due, in the order of time, and of its making where the time is the same.
pub(super) struct Agenda<P: Protocol> {
    entries: BinaryHeap<Entry<P>>,
    sequence: u64,
}

impl<P: Protocol> Agenda<P> {
    pub(super) fn new() -> Self {
        Self { entries: BinaryHeap::new(), sequence: 0 }
    }

    /// Puts something on the agenda.
    pub(super) fn add(&mut self, time: f64, due: Due<P>) {
        self.sequence += 1;
        self.entries.push(Entry { time, sequence: self.sequence, due });
    }

    /// A number that no other entry so far has.
    pub(super) fn next_number(&self) -> u64 {
        self.sequence + 1
    }

    /// Takes some of the messages of a node that are on their way. `lost` is asked of each, by its receiver, in the order of
    /// their arrival.
    pub(super) fn lose(&mut self, sender: NodeId, mut lost: impl FnMut(NodeId) -> bool) -> Vec<(NodeId, P::Message)> {
        let sent = |entry: &Entry<P>| matches!(entry.due, Due::Receive { from, .. } if from == sender);
        let (sent, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.entries).into_iter().partition(sent);
        self.entries = rest.into();
        let mut gone = Vec::new();
        for entry in BinaryHeap::from(sent).into_sorted_vec().into_iter().rev() {
            match entry.due {
                Due::Receive { to, message, .. } if lost(to) => gone.push((to, message)),
                due => self.entries.push(Entry { due, ..entry }),
            }
        }
        gone
    }

    /// Takes what is due next.
    pub(super) fn next(&mut self) -> Option<(f64, Due<P>)> {
        self.entries.pop().map(|entry| (entry.time, entry.due))
    }
}
