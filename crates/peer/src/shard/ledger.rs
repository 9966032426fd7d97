//! Semaphores, groups, readers and writers, elections: the home of a name keeps a ledger of who is inside and who waits.
//!
//! An entry costs three messages: Ask, Grant, Release; none at the home itself. The ledger dies with its home, or with the
//! view; those who are inside write it anew. A client that gave up and one that left say the same, Release: where its Ask is
//! overtaken by it, the client is granted what it no longer wants, and gives it back.

use alloc::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    vec::Vec,
};

use serde::Serialize;
use vez_algorithms::{NodeId, ledger::Ledger};

use super::{Effect, Effects, Instance, Message, Nanos, Reentry, Seat, Shard, forget::Rest, resize::Resizing};
use crate::{
    ask::{Ask, Failure, Kind, Label, Leader, Patience, RequestId, Size},
    fence::{Fence, LATE_COUNTER},
    name::Name,
};

/// The ledger of a name whose home this is.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Book {
    kind: Kind,
    ledger: Ledger<Seat, Label>,
    /// The fence of each who is inside.
    fences: BTreeMap<Seat, Fence>,
    /// How many there are inside with each fence, so that the oldest is found at once.
    alive: BTreeMap<Fence, u32>,
    /// How many fences were given out in this view.
    pub counter: u64,
    /// Of a semaphore that was resized, since when it has its units.
    pub size: Option<Size>,
    /// Resizes that not everybody has taken note of.
    pub resizings: Vec<Resizing>,
    /// Who wants to see who leads.
    pub observers: BTreeSet<Seat>,
    /// What they were told last.
    pub told: Option<Leader>,
    pub rest: Rest,
}

impl Book {
    fn new(kind: Kind, floor: u64) -> Self {
        Self {
            kind,
            ledger: Ledger::new(kind.units()),
            fences: BTreeMap::new(),
            alive: BTreeMap::new(),
            counter: floor,
            size: None,
            resizings: Vec::new(),
            observers: BTreeSet::new(),
            told: None,
            rest: Rest::default(),
        }
    }

    /// What the name stands for, with as many units as it has now.
    pub(super) fn kind(&self) -> Kind {
        match self.kind {
            Kind::Semaphore { .. } => Kind::Semaphore { units: self.ledger.units() },
            other => other,
        }
    }

    /// Whether nobody would miss it.
    pub(super) fn is_idle(&self) -> bool {
        self.ledger.is_idle() && self.observers.is_empty() && self.resizings.is_empty()
    }

    /// How many units those inside have taken.
    pub(super) fn taken(&self) -> u64 {
        self.ledger.holders().map(|(_, weight)| u64::from(weight)).sum()
    }

    pub(super) fn label(&self) -> Option<&Label> {
        self.ledger.label()
    }

    /// The oldest grant that may still be alive.
    fn floor(&self) -> Option<Fence> {
        self.alive.first_key_value().map(|(fence, _)| *fence)
    }

    fn enters(&mut self, seat: Seat, fence: Fence) {
        self.fences.insert(seat, fence);
        *self.alive.entry(fence).or_default() += 1;
    }

    fn leaves(&mut self, seat: Seat) {
        let Some(fence) = self.fences.remove(&seat) else { return };
        if let Entry::Occupied(mut alive) = self.alive.entry(fence) {
            *alive.get_mut() -= 1;
            if *alive.get() == 0 {
                alive.remove();
            }
        }
    }

    /// Those inside with their fences, and those who wait, in their order.
    pub(super) fn inside(&self) -> &BTreeMap<Seat, Fence> {
        &self.fences
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = Seat> + '_ {
        self.weights().map(|(seat, _)| seat)
    }

    /// Those who wait, and for how much.
    pub(super) fn weights(&self) -> impl Iterator<Item = (Seat, u32)> + '_ {
        self.ledger.waiting().map(|(seat, weight, _)| (seat, weight))
    }

    /// The number of the next one who enters: that of the session that it joins, or a new one.
    fn number(&mut self, view: u64) -> Option<Fence> {
        if self.kind.shares_fence()
            && let Some(fence) = self.floor()
        {
            return Some(fence);
        }
        self.next_number(view)
    }

    /// A number that nobody has, if there is one left.
    pub(super) fn next_number(&mut self, view: u64) -> Option<Fence> {
        let fence = Fence::new(view, self.counter + 1)?;
        self.counter += 1;
        Some(fence)
    }
}

impl Shard {
    /// A client of ours wants in.
    pub(super) fn ask_home(&mut self, now: Nanos, name: &Name, request: RequestId, out: &mut Effects) {
        let Some(clients) = self.clients.get(name) else { return };
        let Some(waiter) = clients.waiting.iter().find(|waiter| waiter.request == request) else { return };
        let (ask, now_or_never) = (waiter.ask.clone(), waiter.patience == Patience::Try);
        self.send_home(now, name, |name| Message::Ask { name, request, ask, now_or_never }, out);
    }

    /// A client of a member wants in.
    pub(super) fn on_ask(
        &mut self,
        now: Nanos,
        name: &Name,
        seat: Seat,
        ask: Ask,
        now_or_never: bool,
        out: &mut Effects,
    ) {
        if self.open_book(now, name, seat, ask.kind(), out).is_none() {
            return;
        }
        self.change(now, name, seat.node, |ledger| ledger.ask(seat, ask.weight(), ask.label(seat)), out);
        let waits = |book: &Book| book.ledger.waits(seat);
        if now_or_never && self.book(name).is_some_and(|book| waits(book)) {
            self.change(now, name, seat.node, |ledger| ledger.cancel(seat), out);
            self.send(now, seat.node, Message::Busy { name: name.clone(), request: seat.request }, out);
        }
    }

    /// The ledger of a name, a new one if there is none; unless it is a ledger of something else, which whoever asks is told.
    pub(super) fn open_book(
        &mut self,
        now: Nanos,
        name: &Name,
        seat: Seat,
        asked: Kind,
        out: &mut Effects,
    ) -> Option<&mut Book> {
        self.make_way(name, asked, out);
        let new = || Instance::Book(Book::new(asked, self.floor));
        let is = self.instances.entry(name.clone()).or_insert_with(new).kind();
        if is != asked {
            self.send(now, seat.node, Message::mismatch(name, seat.request, is), out);
            return None;
        }
        self.book(name)
    }

    /// What a name was, and nobody uses any more, need not stand in the way of what it is to be.
    pub(super) fn make_way(&mut self, name: &Name, kind: Kind, out: &mut Effects) {
        let idle = match self.instances.get(name) {
            Some(Instance::Lock(_)) => kind != Kind::Lock && self.is_idle_at_home(name),
            Some(Instance::Book(book)) => kind != book.kind() && book.is_idle(),
            None => false,
        };
        if idle {
            self.forget(name, out);
        }
    }

    /// A client of a member has left, or waits no longer, or looks no longer.
    pub(super) fn on_release(&mut self, now: Nanos, name: &Name, seat: Seat, out: &mut Effects) {
        let Some(book) = self.book(name) else { return };
        book.observers.remove(&seat);
        if book.ledger.waits(seat) {
            self.change(now, name, seat.node, |ledger| ledger.cancel(seat), out);
        } else if book.ledger.holds(seat) {
            book.leaves(seat);
            self.change(now, name, seat.node, |ledger| ledger.release(seat), out);
        } // Otherwise it has overtaken its Ask, or comes a second time.
        self.rest(now, name);
    }

    /// Clients of a member were inside before this view.
    pub(super) fn on_reenter(
        &mut self,
        now: Nanos,
        from: NodeId,
        name: Name,
        (kind, size): (Kind, Option<Size>),
        holds: Vec<Reentry>,
        out: &mut Effects,
    ) {
        let new = || Instance::Book(Book::new(kind, self.floor));
        let Instance::Book(book) = self.instances.entry(name.clone()).or_insert_with(new) else {
            return out.push(Effect::Violation(from, "what was a lock is re-entered as something else"));
        };
        let mut requests = Vec::new();
        for Reentry { request, ask, fence } in holds {
            let seat = Seat { node: from, request };
            if let Err(what) = book.ledger.readmit(seat, ask.weight(), ask.label(seat)) {
                return out.push(Effect::Violation(from, what));
            }
            book.enters(seat, fence); // Its own, never a fresh one: it was granted long ago.
            requests.push(request);
        }
        let later = size.filter(|size| book.size < Some(*size));
        if let Some(size) = later {
            self.set_size(now, &name, from, size, out);
        }
        self.tell_observers(now, &name, out);
        self.send(now, from, Message::Reentered { name, requests }, out);
    }

    /// A client of ours is inside; or was, had it not given up.
    pub(super) fn on_grant(
        &mut self,
        now: Nanos,
        name: &Name,
        request: RequestId,
        (fence, floor, size): (Fence, Fence, Option<Size>),
        out: &mut Effects,
    ) {
        let waiter = self.clients.get_mut(name).and_then(|clients| clients.withdraw_from_line(request));
        let Some(waiter) = waiter else {
            return self.send_home(now, name, |name| Message::Release { name, request }, out);
        };
        self.forget_timeout(name, waiter.request, waiter.patience);
        let session = waiter.session;
        self.clients.get_mut(name).expect("it has a client").hold(waiter, fence, now);
        if let Some(size) = size {
            self.learn_size(now, name, size, out);
        }
        out.push(Effect::Granted { session, request, name: name.clone(), fence, floor });
    }

    /// A client of ours does not get in.
    pub(super) fn on_denial(&mut self, name: &Name, request: RequestId, failure: Failure, out: &mut Effects) {
        if self.deny_errand(name, request, failure.clone(), out) {
            return;
        }
        let waiter = self.clients.get_mut(name).and_then(|clients| clients.withdraw_from_line(request));
        let Some(waiter) = waiter else { return }; // It gave up before.
        self.forget_waiter(name, &waiter);
        self.drop_clients(name);
        out.push(Effect::Failed { session: waiter.session, request, name: name.clone(), failure });
    }

    /// The name stands for something else at its home.
    pub(super) fn on_mismatch(&mut self, name: &Name, request: Option<RequestId>, is: Kind, out: &mut Effects) {
        let Some(request) = request else { return self.on_lock_mismatch(name, is, out) };
        let asked = self.errand_kind(name, request).or_else(|| Some(self.clients.get(name)?.kind));
        let Some(asked) = asked else { return };
        self.on_denial(name, request, Failure::Mismatch { name: name.clone(), is, asked }, out);
    }

    /// Changes the ledger, and lets in whom it admits now.
    pub(super) fn change(
        &mut self,
        now: Nanos,
        name: &Name,
        from: NodeId,
        change: impl FnOnce(&mut Ledger<Seat, Label>) -> Result<Vec<Seat>, &'static str>,
        out: &mut Effects,
    ) {
        let view = self.place.as_ref().expect("in a view").view.number;
        let Some(book) = self.book(name) else { return };
        let mut admitted = match change(&mut book.ledger) {
            Ok(admitted) => admitted,
            Err(what) => return out.push(Effect::Violation(from, what)),
        };
        let mut letters = Vec::new();
        while !admitted.is_empty() {
            let mut next = Vec::new();
            for seat in admitted {
                let request = seat.request;
                if let Some(fence) = book.number(view) {
                    book.enters(seat, fence);
                    let floor = book.floor().expect("somebody is inside");
                    let (name, size) = (name.clone(), book.size);
                    letters.push((seat.node, Message::Grant { name, request, fence, floor, size }));
                } else {
                    // There is no number for it: it is out again, and whoever is next has the same fate.
                    next.extend(book.ledger.release(seat).expect("it was let in just now"));
                    letters.push((seat.node, Message::Exhausted { name: name.clone(), request }));
                }
            }
            admitted = next;
        }
        let late = book.counter >= LATE_COUNTER;
        if late {
            out.push(Effect::NewViewWanted);
        }
        for (to, message) in letters {
            self.send(now, to, message, out);
        }
        self.tell_observers(now, name, out);
    }

    pub(super) fn book(&mut self, name: &Name) -> Option<&mut Book> {
        match self.instances.get_mut(name)? {
            Instance::Book(book) => Some(book),
            Instance::Lock(_) => None,
        }
    }
}
