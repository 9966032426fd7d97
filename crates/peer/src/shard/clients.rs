//! The local clients of a name: who holds it here, and who waits here. It is all that outlives a view.

use alloc::{collections::VecDeque, vec::Vec};
use core::ops::Bound;

use serde::Serialize;

use super::Shard;
use crate::{
    ask::{Ask, Kind, Patience, RequestId, SessionId, Size},
    fence::Fence,
    name::Name,
};

/// What a client of this node has.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Hold {
    /// Whose it is.
    pub session: SessionId,
    /// By which request it came.
    pub request: RequestId,
    /// As what.
    pub ask: Ask,
    /// The number of its grant.
    pub fence: Fence,
    /// Since when, on the node's clock.
    pub since: u64,
    /// Whether it is inside in the present view.
    pub inside: bool,
}

/// A client of this node that waits.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Waiter {
    /// Whose it is.
    pub session: SessionId,
    /// Its request.
    pub request: RequestId,
    /// What for.
    pub ask: Ask,
    /// How long.
    pub patience: Patience,
    /// Since when, on the node's clock.
    pub since: u64,
}

impl Shard {
    /// A name, if anything is known of it.
    pub(crate) fn known(&self, name: &Name) -> Option<&Name> {
        self.instances.get_key_value(name).map(|(name, _)| name)
    }

    /// The names that begin so, come after that one and have clients here, in the order of their bytes.
    pub fn used_names(&self, prefix: &[u8], after: Option<&Name>) -> impl Iterator<Item = &Name> {
        let begins = move |name: &&Name| name.as_bytes().starts_with(prefix);
        let from = after.map_or(Bound::Included(prefix), |after| Bound::Excluded(after.as_bytes()));
        self.listed.range::<[u8], _>((from, Bound::Unbounded)).map(|listed| &listed.0).take_while(begins)
    }

    /// How many requests and holds of a session there are.
    #[must_use]
    pub fn uses(&self, session: SessionId) -> u32 {
        self.sessions.get(&session).map_or(0, |names| names.values().sum())
    }
}

/// The clients of a name.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Clients {
    /// What they take it for.
    pub kind: Kind,
    /// Of a semaphore that was resized, the last that was heard of it.
    pub size: Option<Size>,
    /// Who holds it.
    pub holds: Vec<Hold>,
    /// Who waits, the oldest first.
    pub waiting: VecDeque<Waiter>,
}

impl Clients {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, size: None, holds: Vec::new(), waiting: VecDeque::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.holds.is_empty() && self.waiting.is_empty()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.holds.len() + self.waiting.len()
    }

    /// Takes out one who waits for a place in a ledger.
    pub(super) fn withdraw_from_line(&mut self, request: RequestId) -> Option<Waiter> {
        if self.kind == Kind::Lock { None } else { self.withdraw(request) }
    }

    /// Takes out all that is a session's: what it waits for, and what it holds.
    pub(super) fn part_with(&mut self, session: SessionId) -> (VecDeque<Waiter>, Vec<Hold>) {
        let (gone, waiting) =
            core::mem::take(&mut self.waiting).into_iter().partition(|waiter| waiter.session == session);
        self.waiting = waiting;
        let (given_back, holds) =
            core::mem::take(&mut self.holds).into_iter().partition(|hold| hold.session == session);
        self.holds = holds;
        (gone, given_back)
    }

    /// Takes out one who waits.
    pub(super) fn withdraw(&mut self, request: RequestId) -> Option<Waiter> {
        let at = self.waiting.iter().position(|waiter| waiter.request == request)?;
        self.waiting.remove(at)
    }

    /// Takes out what a session holds under a fence.
    pub(super) fn give_back(&mut self, session: SessionId, fence: Fence) -> Option<Hold> {
        let at = self.holds.iter().position(|hold| hold.session == session && hold.fence == fence)?;
        Some(self.holds.remove(at))
    }

    /// The semaphore was resized. What is known already, or was overtaken by a later word, changes nothing.
    pub(super) fn learn(&mut self, size: Size) {
        if self.size >= Some(size) || !matches!(self.kind, Kind::Semaphore { .. }) {
            return;
        }
        self.size = Some(size);
        self.kind = Kind::Semaphore { units: size.units };
        let holds = self.holds.iter_mut().map(|hold| &mut hold.ask);
        for ask in holds.chain(self.waiting.iter_mut().map(|waiter| &mut waiter.ask)) {
            if let Ask::Semaphore { units, .. } = ask {
                *units = size.units;
            }
        }
    }

    /// What waits becomes what is held.
    pub(super) fn hold(&mut self, waiter: Waiter, fence: Fence, now: u64) {
        let Waiter { session, request, ask, .. } = waiter;
        self.holds.push(Hold { session, request, ask, fence, since: now, inside: true });
    }
}
