//! At the home of a semaphore: another number of units, while it is in use.
//!
//! A ledger dies with its home, and is written anew by those inside. So a resize is done when all who are inside or wait
//! have taken note of it. It has a number of its own, from the same counter as grants: where a home dies in the midst of a
//! resize, some re-enter with the old number of units and some with the new one, and the later wins.

use alloc::vec::Vec;

use serde::Serialize;
use vez_algorithms::{NodeId, NodeSet};

use super::{Effects, Instance, Message, Nanos, Seat, Shard, Waiter};
use crate::{
    ask::{Failure, Kind, Size},
    fence::Fence,
    name::Name,
};

/// A resize that not everybody has taken note of.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Resizing {
    /// Who wanted it.
    by: Seat,
    size: Size,
    /// Who has not taken note.
    missing: NodeSet,
}

impl Shard {
    pub(super) fn on_resize(&mut self, now: Nanos, name: &Name, seat: Seat, units: u32, out: &mut Effects) {
        let place = self.place.as_ref().expect("in a view");
        let (view, me, request) = (place.view.number, place.me, seat.request);
        self.make_way(name, Kind::Semaphore { units }, out);
        let denial = match self.instances.get(name) {
            None => Some(Message::NotInUse { name: name.clone(), request }),
            Some(Instance::Lock(_)) => Some(Message::mismatch(name, request, Kind::Lock)),
            Some(Instance::Book(book)) if book.is_idle() => Some(Message::NotInUse { name: name.clone(), request }),
            Some(Instance::Book(book)) => match book.kind() {
                Kind::Semaphore { .. } => None,
                is => Some(Message::mismatch(name, request, is)),
            },
        };
        if let Some(denial) = denial {
            return self.send(now, seat.node, denial, out);
        }
        let book = self.book(name).expect("it is a semaphore");
        let Some(since) = book.next_number(view) else {
            return self.send(now, seat.node, Message::Exhausted { name: name.clone(), request }, out);
        };
        let size = Size { since, units };
        let missing: NodeSet = book.inside().keys().copied().chain(book.waiting()).map(|seat| seat.node).collect();
        book.resizings.push(Resizing { by: seat, size, missing: missing.clone() });
        self.set_size(now, name, seat.node, size, out);
        for node in missing.iter() {
            self.send(now, node, Message::Sized { name: name.clone(), size }, out);
        }
        self.on_size_noted(now, name, me, since, out); // It may be nobody else that has to.
    }

    /// The semaphore has so many units from now on, and whoever fits now enters.
    pub(super) fn set_size(&mut self, now: Nanos, name: &Name, from: NodeId, size: Size, out: &mut Effects) {
        let Some(book) = self.book(name) else { return };
        book.size = Some(size);
        self.change(now, name, from, |ledger| Ok(ledger.resize(size.units)), out);
    }

    /// The home says how many units there are.
    pub(super) fn on_sized(&mut self, now: Nanos, name: &Name, size: Size, out: &mut Effects) {
        self.learn_size(now, name, size, out);
        self.send_home(now, name, |name| Message::SizeNoted { name, since: size.since }, out);
    }

    /// What its clients hold and wait for is of a semaphore of that size now. Who waits for more than that would wait for
    /// ever, and is told so.
    pub(super) fn learn_size(&mut self, now: Nanos, name: &Name, size: Size, out: &mut Effects) {
        let Some(clients) = self.clients.get_mut(name) else { return };
        clients.learn(size);
        let units = clients.kind.units();
        let too_heavy = |waiter: &Waiter| (waiter.ask.weight() > units).then(|| (waiter.request, waiter.ask.weight()));
        let too_heavy: Vec<_> = clients.waiting.iter().filter_map(too_heavy).collect();
        for (request, weight) in too_heavy {
            self.give_up(now, name, request, Failure::TooHeavy { name: name.clone(), units, weight }, out);
        }
    }

    /// A member has taken note.
    pub(super) fn on_size_noted(&mut self, now: Nanos, name: &Name, from: NodeId, since: Fence, out: &mut Effects) {
        self.cross_out(now, name, from, since, out);
        let Some(book) = self.book(name) else { return };
        let Some(at) = book.resizings.iter().position(|resizing| resizing.size.since == since) else { return };
        book.resizings[at].missing.remove(from);
        if book.resizings[at].missing.is_empty() {
            let Resizing { by, size, .. } = book.resizings.remove(at);
            self.send(now, by.node, Message::Resized { name: name.clone(), request: by.request, size }, out);
            self.rest(now, name);
        }
    }

    /// Who knows the latest size has told all its clients that want more. If one is still in line, the word that it has given up
    /// has overtaken what it asked for; and nothing else would ever bring it out.
    fn cross_out(&mut self, now: Nanos, name: &Name, from: NodeId, since: Fence, out: &mut Effects) {
        let Some(book) = self.book(name) else { return };
        let Some(size) = book.size.filter(|size| size.since == since) else { return };
        let is_late = |(seat, weight): &(Seat, u32)| seat.node == from && *weight > size.units;
        let late: Vec<_> = book.weights().filter(is_late).collect();
        for (seat, _) in late {
            self.change(now, name, from, |ledger| ledger.cancel(seat), out);
        }
    }
}
