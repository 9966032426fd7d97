//! The lock table: one part of all names, with everything that this member knows of them.
//!
//! Two things are kept apart. What local clients hold and wait for ([`Clients`]) lives as long as they do. What the
//! members work out among themselves about a name (an *instance*: a lock's place in its algorithm, or at the home of a
//! semaphore its ledger) lives in one view. In a new view all instances are gone, and begin from their initial state:
//!
//! 1. whatever is held here is *re-entered*, by the algorithm itself; it cannot conflict, for the old view was safe;
//! 2. when all of it is inside, the others are told: [`Message::Settled`];
//! 3. when all others who may hold something have said so, the shard is settled: its clients' requests go out, the oldest
//!    first, and new ones are granted.
//!
//! Until then it issues no request and grants nothing new, but handles every message of its view at once: whoever sent
//! it is settled, or re-enters.
//!
//! A shard knows nothing of other shards, of leases, of lost messages. It reads no clock: whoever drives it says what
//! time it is.

mod clients;
mod door;
mod effect;
mod errand;
mod forget;
mod ledger;
mod lock;
mod message;
mod observe;
mod resize;
mod settle;
mod turns;
mod why;

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

pub use clients::{Clients, Hold, Waiter};
pub use effect::{Effect, Effects};
pub use message::{Message, Reentry, Seat};
use serde::Serialize;
pub use turns::TurnMessage;
use vez_algorithms::NodeId;
pub use why::{Holder, Reason, Waiting, Why};

use self::{errand::Errand, ledger::Book, lock::Lock, settle::Place};
use crate::{
    agreement::SNAPSHOT_AFTER,
    ask::{Failure, Kind, Patience, RequestId, SessionId},
    charter::Algorithms,
    fence::Fence,
    keep::KEEPER,
    name::{Listed, Name},
};

/// Nanoseconds on the node's own clock.
pub type Nanos = u64;

/// So many clients of a node may hold one name or wait for it, and as many observe it.
pub const MOST_WAITERS: usize = 1 << 16;
/// So many names of a shard may have clients on one node.
pub const MOST_NAMES: usize = 1 << 20;

/// What a shard goes by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Habits {
    /// B: so many local clients are served a visit of the token while others wait for it.
    pub visit: u32,
    /// A name that is not used for so long is forgotten.
    pub idle: Nanos,
    /// A log of so many entries is made shorter.
    pub log: u64,
    /// Nothing is kept for whoever knows a value for longer than that, nor than [`crate::views::LONGEST_PLEDGE`].
    pub keep: Nanos,
}

impl Default for Habits {
    fn default() -> Self {
        Self { visit: 16, idle: 30_000_000_000, log: SNAPSHOT_AFTER, keep: 60_000_000_000 }
    }
}

/// One part of the lock table.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Shard {
    habits: Habits,
    algorithms: Algorithms,
    /// The view, and how far it is settled.
    place: Option<Place>,
    /// What is known of names in this view.
    instances: BTreeMap<Name, Instance>,
    /// The clients of this node. They alone say what is held.
    clients: BTreeMap<Name, Clients>,
    /// Their names, for those who look for some of them.
    listed: BTreeSet<Listed>,
    /// What else they want.
    errands: BTreeMap<Name, Errands>,
    /// How many requests and holds of a session there are for each name.
    sessions: BTreeMap<SessionId, BTreeMap<Name, u32>>,
    /// In this view a name is born with this many grants behind it: as many as any that was forgotten had.
    floor: u64,
    /// The number of the next try.
    next_try: u64,
    /// Waiters that give up some time.
    timeouts: BTreeSet<(Nanos, Name, RequestId)>,
    /// When to look whether a name is still idle.
    idle_checks: BTreeSet<(Nanos, Name)>,
}

type Errands = BTreeMap<RequestId, Errand>;

/// What is known of a name in this view.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
enum Instance {
    /// Our part in the algorithm of a lock.
    Lock(Lock),
    /// The ledger of a name whose home this is.
    Book(Book),
}

impl Shard {
    /// Nobody has asked for anything, and there is no view.
    #[must_use]
    pub fn new(habits: Habits, algorithms: Algorithms) -> Self {
        Self {
            habits,
            algorithms,
            place: None,
            instances: BTreeMap::new(),
            clients: BTreeMap::new(),
            listed: BTreeSet::new(),
            errands: BTreeMap::new(),
            sessions: BTreeMap::new(),
            floor: 0,
            next_try: 0,
            timeouts: BTreeSet::new(),
            idle_checks: BTreeSet::new(),
        }
    }

    /// A client asks.
    pub fn acquire(&mut self, now: Nanos, name: &Name, waiter: Waiter, out: &mut Effects) {
        if let Err(failure) = self.admissible(name, &waiter) {
            return out.push(Effect::Failed {
                session: waiter.session,
                request: waiter.request,
                name: name.clone(),
                failure,
            });
        }
        self.note_session(waiter.session, name);
        let clients = self.clients.entry(name.clone()).or_insert_with(|| {
            self.listed.insert(Listed(name.clone()));
            Clients::new(waiter.ask.kind())
        });
        if let Patience::Until(end) = waiter.patience {
            self.timeouts.insert((end, name.clone(), waiter.request));
        }
        let (request, is_lock) = (waiter.request, clients.kind == Kind::Lock);
        clients.waiting.push_back(waiter);
        if !self.is_settled() {
            return; // It asks when the shard is settled.
        }
        if is_lock {
            self.serve_lock(now, name, out);
        } else {
            self.ask_home(now, name, request, out);
        }
    }

    /// A client gives up waiting, or observing. False if that request does neither.
    pub fn cancel(&mut self, now: Nanos, name: &Name, request: RequestId, out: &mut Effects) -> bool {
        self.give_up(now, name, request, Failure::Cancelled(name.clone()), out)
            || self.stop_observing(now, name, request, out)
    }

    fn give_up(&mut self, now: Nanos, name: &Name, request: RequestId, failure: Failure, out: &mut Effects) -> bool {
        let Some(waiter) = self.withdraw(now, name, request, out) else { return false };
        out.push(Effect::Failed { session: waiter.session, request, name: name.clone(), failure });
        true
    }

    /// Takes a waiter out of everything that knows of it.
    fn withdraw(&mut self, now: Nanos, name: &Name, request: RequestId, out: &mut Effects) -> Option<Waiter> {
        let waiter = self.clients.get_mut(name)?.withdraw(request)?;
        self.withdrawn(now, name, &waiter, out);
        Some(waiter)
    }

    /// One who waited is not among the clients any more.
    fn withdrawn(&mut self, now: Nanos, name: &Name, waiter: &Waiter, out: &mut Effects) {
        let request = waiter.request;
        self.forget_waiter(name, waiter);
        if waiter.ask.kind() == Kind::Lock {
            self.forsake_lock(now, name, out);
        } else if self.is_settled() {
            self.send_home(now, name, |name| Message::Release { name, request }, out);
        }
        self.drop_clients(name);
        self.rest(now, name); // It may have been the last that wanted a name which is idle here.
    }

    /// A client gives back what it holds.
    ///
    /// # Errors
    /// If that session does not hold that name under that fence.
    pub fn release(
        &mut self,
        now: Nanos,
        session: SessionId,
        name: &Name,
        fence: Fence,
        out: &mut Effects,
    ) -> Result<(), Failure> {
        let clients = self.clients.get_mut(name);
        let hold = clients.and_then(|clients| clients.give_back(session, fence));
        let Some(hold) = hold else { return Err(Failure::NotYours(name.clone())) };
        self.give_back(now, name, &hold, out);
        Ok(())
    }

    /// What was held is held no longer.
    fn give_back(&mut self, now: Nanos, name: &Name, hold: &Hold, out: &mut Effects) {
        if hold.ask.kind() == Kind::Lock {
            self.leave_lock(now, name, hold.inside, out);
        } else if hold.inside {
            let request = hold.request;
            self.send_home(now, name, |name| Message::Release { name, request }, out);
        } // Otherwise it is being re-entered, and released when that is done.
        self.forget_session(hold.session, name);
        self.drop_clients(name);
    }

    /// A session ends: it gives back all that it holds, and waits for nothing any more.
    pub fn end_session(&mut self, now: Nanos, session: SessionId, out: &mut Effects) {
        for name in self.sessions.remove(&session).unwrap_or_default().into_keys() {
            self.end_errands(now, &name, session, out);
            // All at once, so that nothing that it gives up or gives back is granted to itself.
            let Some(clients) = self.clients.get_mut(&name) else { continue };
            let (waiters, holds) = clients.part_with(session);
            for waiter in waiters {
                self.withdrawn(now, &name, &waiter, out);
            }
            for hold in holds {
                self.give_back(now, &name, &hold, out);
            }
        }
    }

    /// Nobody waits here any more, for this reason.
    pub fn turn_away(&mut self, now: Nanos, failure: &Failure, out: &mut Effects) {
        let of_name = |(name, clients): (&Name, &Clients)| {
            clients.waiting.iter().map(|waiter| (name.clone(), waiter.request)).collect::<Vec<_>>()
        };
        let waiting: Vec<_> = self.clients.iter().flat_map(of_name).collect();
        for (name, request) in waiting {
            self.give_up(now, &name, request, failure.clone(), out);
        }
    }

    /// Whether a client of this node holds anything.
    #[must_use]
    pub fn holds_anything(&self) -> bool {
        self.clients.values().any(|clients| !clients.holds.is_empty())
    }

    /// Another member of the view says something.
    pub fn message(&mut self, now: Nanos, from: NodeId, message: Message, out: &mut Effects) {
        if !self.is_sound(&message) {
            return out.push(Effect::Violation(from, "a message that makes no sense"));
        }
        match message {
            Message::Settled => self.on_settled(now, from, out),
            Message::Lock { name, message, counter } => self.on_lock(now, from, &name, message, counter, out),
            Message::Idle { name } => self.on_idle(now, &name, out),
            Message::Ask { name, request, ask, now_or_never } => {
                self.on_ask(now, &name, Seat { node: from, request }, ask, now_or_never, out);
            }
            Message::Release { name, request } => self.on_release(now, &name, Seat { node: from, request }, out),
            Message::Reenter { name, kind, size, holds } => self.on_reenter(now, from, name, (kind, size), holds, out),
            Message::Reentered { name, requests } => self.on_reentered(now, &name, requests, out),
            Message::Grant { name, request, fence, floor, size } => {
                self.on_grant(now, &name, request, (fence, floor, size), out);
            }
            Message::Busy { name, request } => self.on_denial(&name, request, Failure::Busy(name.clone()), out),
            Message::Exhausted { name, request } => self.on_denial(&name, request, Failure::NoMoreFences, out),
            Message::Mismatch { name, request, is } => self.on_mismatch(&name, request, is, out),
            Message::Observe { name, request } => self.on_observe(now, &name, Seat { node: from, request }, out),
            Message::Observed { name, requests, counter, leader } => {
                self.on_observed(now, &name, requests, (counter, leader), out);
            }
            Message::Resize { name, request, units } => {
                self.on_resize(now, &name, Seat { node: from, request }, units, out);
            }
            Message::Sized { name, size } => self.on_sized(now, &name, size, out),
            Message::SizeNoted { name, since } => self.on_size_noted(now, &name, from, since, out),
            Message::Resized { name, request, size } => self.on_resized(&name, request, size, out),
            Message::NotInUse { name, request } => self.on_denial(&name, request, Failure::NotInUse(name.clone()), out),
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Nanos, out: &mut Effects) {
        while let Some((end, _, _)) = self.timeouts.first()
            && *end <= now
        {
            let (_, name, request) = self.timeouts.pop_first().expect("there is a first");
            self.give_up(now, &name, request, Failure::TimedOut(name.clone()), out);
        }
        while let Some((due, _)) = self.idle_checks.first()
            && *due <= now
        {
            let (_, name) = self.idle_checks.pop_first().expect("there is a first");
            self.check_idle(now, &name, out);
        }
    }

    /// When the next thing is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Nanos> {
        let timeout = self.timeouts.first().map(|(end, _, _)| *end);
        let idle = self.idle_checks.first().map(|(due, _)| *due);
        timeout.into_iter().chain(idle).min()
    }

    /// How many names something is known of, and how many have clients here.
    #[must_use]
    pub fn names(&self) -> (usize, usize) {
        let errands = self.errands.keys().filter(|name| !self.clients.contains_key(*name));
        (self.instances.len(), self.clients.len() + errands.count())
    }

    /// Sends something to the home of a name; at the home itself it happens at once.
    fn send_home(&mut self, now: Nanos, name: &Name, message: impl FnOnce(Name) -> Message, out: &mut Effects) {
        let Some(place) = &self.place else { return };
        let (home, me) = (place.view.home(name), place.me);
        if home == me {
            self.message(now, me, message(name.clone()), out);
        } else {
            out.push(Effect::Send(home, message(name.clone())));
        }
    }

    /// Sends something to a member; to this one itself it happens at once.
    fn send(&mut self, now: Nanos, to: NodeId, message: Message, out: &mut Effects) {
        if self.place.as_ref().is_some_and(|place| place.me == to) {
            self.message(now, to, message, out);
        } else {
            out.push(Effect::Send(to, message));
        }
    }

    fn forget_timeout(&mut self, name: &Name, request: RequestId, patience: Patience) {
        if let Patience::Until(end) = patience {
            self.timeouts.remove(&(end, name.clone(), request));
        }
    }

    /// One who waited is gone.
    fn forget_waiter(&mut self, name: &Name, waiter: &Waiter) {
        self.forget_timeout(name, waiter.request, waiter.patience);
        self.forget_session(waiter.session, name);
    }

    /// One more request of a session for a name.
    fn note_session(&mut self, session: SessionId, name: &Name) {
        if session == KEEPER {
            return; // It never ends, and so nobody asks what it has.
        }
        *self.sessions.entry(session).or_default().entry(name.clone()).or_default() += 1;
    }

    /// One request or hold of a session for a name is gone.
    fn forget_session(&mut self, session: SessionId, name: &Name) {
        let Some(names) = self.sessions.get_mut(&session) else { return };
        if let Some(count) = names.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                names.remove(name);
            }
        }
        if names.is_empty() {
            self.sessions.remove(&session);
        }
    }

    /// Whether a client of this node holds it or waits for it.
    fn is_wanted(&self, name: &Name) -> bool {
        self.clients.get(name).is_some_and(|clients| !clients.is_empty())
    }

    fn drop_clients(&mut self, name: &Name) {
        if self.clients.get(name).is_some_and(Clients::is_empty) {
            self.clients.remove(name);
            self.listed.remove(name.as_bytes());
        }
    }
}
