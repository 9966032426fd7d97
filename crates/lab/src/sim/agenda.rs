//! What is due, and when.

use std::{cmp::Ordering, collections::BinaryHeap};

use vez_algorithms::{NodeId, mutex::Mutex};

/// Something that will happen.
pub(super) enum Due<P: Mutex> {
    /// A client comes to this node: in this life of the node, or whenever it is alive.
    Arrival(NodeId, Option<u32>),
    /// The client inside leaves, in this life of the node.
    Leave(NodeId, u32),
    /// A message arrives.
    Receive { from: NodeId, to: NodeId, message: P::Message },
    /// A timer fires, if it is still the one that was set then.
    Fire { node: NodeId, timer: P::Timer, set: u64 },
    /// Something goes wrong.
    Fault(usize),
}

struct Entry<P: Mutex> {
    time: f64,
    sequence: u64,
    due: Due<P>,
}

impl<P: Mutex> Ord for Entry<P> {
    /// The earliest is the greatest: that is the one that a heap gives first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.time.total_cmp(&self.time).then(other.sequence.cmp(&self.sequence))
    }
}

impl<P: Mutex> PartialOrd for Entry<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P: Mutex> PartialEq for Entry<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P: Mutex> Eq for Entry<P> {}

/// What is due, in the order of time, and of its making where the time is the same.
pub(super) struct Agenda<P: Mutex> {
    entries: BinaryHeap<Entry<P>>,
    sequence: u64,
}

impl<P: Mutex> Agenda<P> {
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

    /// Takes what is due next.
    pub(super) fn next(&mut self) -> Option<(f64, Due<P>)> {
        self.entries.pop().map(|entry| (entry.time, entry.due))
    }
}
