//! At the home of an election: who wants to see who leads.
//!
//! An observer is told at once, and whenever that changes. It may miss one who led only while a view changed; it is never
//! told of an older leader after a newer one, and in the end it is told who leads.

use alloc::{collections::BTreeMap, vec, vec::Vec};

use vez_algorithms::NodeId;

use super::{Effects, Message, Nanos, Seat, Shard, ledger::Book};
use crate::{
    ask::{Kind, Label, Leader, RequestId},
    name::Name,
};

/// So many are told by one message, so that it is small enough to be sent at once.
const MOST_OBSERVERS: usize = 1024;

impl Book {
    /// Who leads, if this is an election and anybody does.
    pub(super) fn leader(&self) -> Option<Leader> {
        let (_, fence) = self.inside().first_key_value()?;
        match self.label() {
            Some(Label::Leader(value)) => Some(Leader { fence: *fence, value: value.clone() }),
            Some(_) | None => None,
        }
    }
}

impl Shard {
    pub(super) fn on_observe(&mut self, now: Nanos, name: &Name, seat: Seat, out: &mut Effects) {
        let Some(book) = self.open_book(now, name, seat, Kind::Election, out) else { return };
        book.observers.insert(seat);
        let (counter, leader) = (book.counter, book.leader());
        let requests = vec![seat.request];
        self.send(now, seat.node, Message::Observed { name: name.clone(), requests, counter, leader }, out);
    }

    /// Tells all observers who leads, if that has changed.
    pub(super) fn tell_observers(&mut self, now: Nanos, name: &Name, out: &mut Effects) {
        let Some(book) = self.book(name) else { return };
        let leader = book.leader();
        if book.told == leader {
            return;
        }
        book.told.clone_from(&leader);
        let counter = book.counter;
        let mut by_node: BTreeMap<NodeId, Vec<RequestId>> = BTreeMap::new();
        for seat in &book.observers {
            by_node.entry(seat.node).or_default().push(seat.request);
        }
        for (node, requests) in by_node {
            for requests in requests.chunks(MOST_OBSERVERS).map(<[_]>::to_vec) {
                let (name, leader) = (name.clone(), leader.clone());
                self.send(now, node, Message::Observed { name, requests, counter, leader }, out);
            }
        }
    }
}
