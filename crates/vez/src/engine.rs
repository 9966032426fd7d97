//! The peer behind its lock, and what it wants done.
//!
//! Whoever has something to tell the peer does so in its own thread: takes the lock, looks at the clock, hands the input
//! over, and carries out what comes of it. A lock whose token is here is granted on the way, without a message, a channel
//! or another thread. Sockets are written after the lock is given back, disks by a thread of their own.

mod carry;

use std::{
    collections::hash_map::Entry,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use rustc_hash::FxHashMap;
use tokio::sync::{Notify, oneshot, watch};
use vez_peer::{
    Peer,
    ask::{Ask, Failure, Patience, RequestId, SessionId},
    fence::Fence,
    frame::Frame,
    identity::Address,
    name::Name,
    peer::{Call, Effect, Input, Stopped},
};

use crate::{
    clock::{self, Nanos},
    disk::DiskThread,
    guard::Guard,
    links::Links,
    metrics::Metrics,
    session::{Lease, Session, Who},
    store::{Contents, StoreError},
    wire::Letter,
};

/// The peer of a node, through all its processes.
pub(crate) struct Engine {
    core: Mutex<Core>,
    timer: Timer,
    /// Whether there is a peer that is a member.
    presence: watch::Sender<Presence>,
    pub metrics: Metrics,
}

/// Whether this node can serve anybody.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Presence {
    /// It is no member, or not yet.
    Outside,
    /// It is.
    Member,
    /// This process of it has come to its end; there may be a next.
    Stopped(Stopped),
    /// It never will be again.
    Closed,
}

struct Core {
    /// The peer; none while there is no process of it.
    peer: Option<Peer>,
    /// Which of the processes of this node it is.
    life: u64,
    lease: Arc<Lease>,
    /// What this process itself holds, it holds by this session.
    own: Option<Arc<Session>>,
    sessions: FxHashMap<SessionId, Arc<Session>>,
    /// Who waits for what became of a request.
    waiting: FxHashMap<RequestId, Waiting>,
    /// The request that is being made at this moment, and what became of it at once.
    present: Option<RequestId>,
    outcome: Option<Result<Fence, Failure>>,
    /// What became of the last word of a session.
    answer: Option<Result<Nanos, Failure>>,
    /// What was granted to somebody who was gone.
    unclaimed: Vec<(SessionId, Name, Fence)>,
    /// Room for effects, used again and again.
    effects: Vec<Effect>,
    next: u64,
    random: SmallRng,
    links: Links,
    /// None once this node never does anything again.
    disk: Option<DiskThread>,
}

struct Waiting {
    session: Arc<Session>,
    since: Nanos,
    tell: oneshot::Sender<Result<Guard, Failure>>,
}

/// When the peer next wants to be woken.
struct Timer {
    due: AtomicU64,
    earlier: Notify,
}

/// What became of a request.
pub(crate) enum Asked {
    /// It is known already.
    Now(Result<Guard, Failure>),
    /// It waits.
    Later(Pending),
}

/// A request that waits. Dropping it takes it back.
pub(crate) struct Pending {
    engine: Arc<Engine>,
    name: Name,
    request: RequestId,
    answer: oneshot::Receiver<Result<Guard, Failure>>,
}

impl Engine {
    pub(crate) fn new(links: Links, disk: DiskThread, metrics: Metrics) -> Arc<Self> {
        let core = Core {
            peer: None,
            life: 0,
            lease: Arc::default(),
            own: None,
            sessions: FxHashMap::default(),
            waiting: FxHashMap::default(),
            present: None,
            outcome: None,
            answer: None,
            unclaimed: Vec::new(),
            effects: Vec::new(),
            next: 0,
            random: SmallRng::from_rng(&mut rand::rng()),
            links,
            disk: Some(disk),
        };
        Arc::new(Self {
            core: Mutex::new(core),
            timer: Timer { due: AtomicU64::new(Nanos::MAX), earlier: Notify::new() },
            presence: watch::Sender::new(Presence::Outside),
            metrics,
        })
    }

    /// A new process of this node begins.
    pub(crate) fn begin(
        self: &Arc<Self>,
        lease: Lease,
        start: impl FnOnce(Nanos, &mut Vec<Effect>, &mut dyn FnMut(u64) -> u64) -> Peer,
    ) {
        self.with(|core, now| {
            core.life += 1;
            core.lease = Arc::new(lease);
            self.presence.send_replace(Presence::Outside);
            let mut effects = Vec::new();
            let random = &mut core.random;
            core.peer = Some(start(now, &mut effects, &mut |below| random.random_range(0..below)));
            self.carry_out(core, effects, now);
        });
    }

    /// Time has passed.
    pub(crate) fn tick(self: &Arc<Self>) {
        self.happen(Input::Tick);
    }

    /// Something happens that nobody waits for the outcome of.
    pub(crate) fn happen(self: &Arc<Self>, input: Input) {
        self.with(|core, now| self.handle(core, now, input));
    }

    /// Frames have arrived.
    pub(crate) fn frames(self: &Arc<Self>, frames: impl IntoIterator<Item = Frame>) {
        self.with(|core, now| {
            for frame in frames {
                self.handle(core, now, Input::Frame(Box::new(frame)));
            }
        });
    }

    /// A batch of that life is durable.
    pub(crate) fn written(self: &Arc<Self>, life: u64) {
        self.with(|core, now| {
            if core.life == life {
                self.handle(core, now, Input::Written);
            }
        });
    }

    /// A client comes.
    pub(crate) fn open(self: &Arc<Self>, who: Who) -> Result<Arc<Session>, Failure> {
        self.with(|core, now| self.open_in(core, now, who))
    }

    /// From now on the time of a client is limited.
    pub(crate) fn limit(self: &Arc<Self>, session: &Session, ttl: Nanos) -> Result<Nanos, Failure> {
        session.limit(ttl);
        self.with(|core, now| self.answered(core, now, Call::Open { session: session.id, ttl: Some(ttl) }))
    }

    /// A client shows itself; how long what it holds is its own.
    pub(crate) fn renew(self: &Arc<Self>, session: &Session, by: Option<Nanos>) -> Result<Nanos, Failure> {
        let id = session.id;
        let call = by.map_or(Call::Renew(id), |by| Call::Extend { session: id, by });
        self.with(|core, now| self.answered(core, now, call))
    }

    /// A client goes.
    pub(crate) fn end(self: &Arc<Self>, session: &Session) {
        self.with(|core, now| {
            core.part_with(session.id);
            self.handle(core, now, Input::Call(Call::End(session.id)));
        });
    }

    /// A client wants to be inside.
    pub(crate) fn acquire(
        self: &Arc<Self>,
        session: &Arc<Session>,
        name: &Name,
        ask: Ask,
        patience: Patience,
    ) -> Asked {
        self.with(|core, now| self.acquire_in(core, now, session, name, ask, patience))
    }

    /// This process itself wants to be inside.
    pub(crate) fn acquire_own(self: &Arc<Self>, name: &Name, ask: Ask, patience: Patience) -> Asked {
        self.with(|core, now| {
            let own = match &core.own {
                Some(own) => Ok(Arc::clone(own)),
                None => self.open_in(core, now, Who { label: "in process".into(), bell: None }),
            };
            match own {
                Ok(session) => {
                    core.own.get_or_insert_with(|| Arc::clone(&session));
                    self.acquire_in(core, now, &session, name, ask, patience)
                }
                Err(failure) => Asked::Now(Err(failure)),
            }
        })
    }

    /// A client gives back what it holds.
    pub(crate) fn release(
        self: &Arc<Self>,
        session: &Session,
        name: &Name,
        fence: Fence,
        since: Nanos,
    ) -> Result<(), Failure> {
        let call = Call::Release { session: session.id, name: name.clone(), fence };
        self.with(|core, now| {
            self.metrics.held(now.saturating_sub(since));
            self.answered(core, now, call).map(|_| ())
        })
    }

    /// Sends something that is not the peer's.
    pub(crate) fn send(self: &Arc<Self>, to: &Address, letter: &Letter) {
        self.with(|core, _| core.links.send(to, letter));
    }

    /// Looks at the peer, if there is one.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Peer) -> R) -> Option<R> {
        self.core.lock().peer.as_ref().map(look)
    }

    /// The session of that number, if it is there.
    pub(crate) fn session(&self, id: SessionId) -> Option<Arc<Session>> {
        self.core.lock().sessions.get(&id).cloned()
    }

    /// All sessions.
    pub(crate) fn sessions(&self) -> Vec<Arc<Session>> {
        self.core.lock().sessions.values().cloned().collect()
    }

    /// Changes what the node's folder says about it; nothing comes of it if the node has ended.
    pub(crate) fn renew_folder(
        &self,
        edit: impl FnOnce(Contents) -> Contents + Send + 'static,
    ) -> Option<oneshot::Receiver<Result<Contents, StoreError>>> {
        self.core.lock().disk.as_ref().map(|disk| disk.renew(edit))
    }

    /// Whether there is a peer that is a member, now and from now on.
    pub(crate) fn presence(&self) -> watch::Receiver<Presence> {
        self.presence.subscribe()
    }

    /// This node never does anything again.
    pub(crate) fn close(&self) {
        let mut core = self.core.lock();
        core.lose_all();
        (core.peer, core.disk) = (None, None);
        core.links.close();
        self.presence.send_replace(Presence::Closed);
    }

    /// Wakes the peer whenever it wants to be, for ever.
    pub(crate) async fn run_timer(self: Arc<Self>) {
        loop {
            let due = self.timer.due.load(Ordering::Acquire);
            let left = clock::until(due);
            if due != Nanos::MAX && left.is_zero() {
                self.timer.due.store(Nanos::MAX, Ordering::Release);
                self.tick();
                continue;
            }
            // The timers of tokio do not go on while the machine sleeps. The peer wants to be woken several times a lease, so
            // that the first of these after the sleep is early enough to tell its clients; it decides nothing by them.
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                () = self.timer.earlier.notified() => {}
            }
        }
    }

    /// Does something with the lock in hand, and what has to be done afterwards.
    fn with<R>(&self, act: impl FnOnce(&mut Core, Nanos) -> R) -> R {
        let (result, dirty) = {
            let mut core = self.core.lock();
            // Not before the lock was had: waiting for it takes time.
            let result = act(&mut core, clock::now());
            if let Some(peer) = &core.peer {
                core.lease.set(peer.stops_at().unwrap_or(0));
                let due = peer.deadline();
                if due < self.timer.due.load(Ordering::Acquire) {
                    self.timer.due.store(due, Ordering::Release);
                    self.timer.earlier.notify_one();
                }
            }
            (result, core.links.take_dirty())
        };
        for outbox in dirty {
            outbox.flush();
        }
        result
    }

    fn handle(self: &Arc<Self>, core: &mut Core, now: Nanos, input: Input) {
        let mut next = Some(input);
        while let Some(input) = next {
            let Some(peer) = &mut core.peer else { return };
            let mut effects = std::mem::take(&mut core.effects);
            let random = &mut core.random;
            peer.handle(now, input, &mut effects, &mut |below| random.random_range(0..below));
            self.carry_out(core, effects, now);
            let unclaimed = core.unclaimed.pop();
            next = unclaimed.map(|(session, name, fence)| Input::Call(Call::Release { session, name, fence }));
        }
    }

    /// Makes a call that is answered at once.
    fn answered(self: &Arc<Self>, core: &mut Core, now: Nanos, call: Call) -> Result<Nanos, Failure> {
        core.answer = None;
        self.handle(core, now, Input::Call(call));
        core.answer.take().unwrap_or(Err(Failure::Lost)) // Nothing comes from a peer that has stopped.
    }

    fn open_in(self: &Arc<Self>, core: &mut Core, now: Nanos, who: Who) -> Result<Arc<Session>, Failure> {
        if core.peer.is_none() {
            return Err(Failure::NoMember);
        }
        let id = SessionId(core.number());
        let session = Arc::new(Session::new(id, who, Arc::clone(&core.lease)));
        core.sessions.insert(id, Arc::clone(&session));
        let opened = self.answered(core, now, Call::Open { session: id, ttl: None });
        if opened.is_err() {
            core.sessions.remove(&id);
        }
        opened.map(|_| session)
    }

    fn acquire_in(
        self: &Arc<Self>,
        core: &mut Core,
        now: Nanos,
        session: &Arc<Session>,
        name: &Name,
        ask: Ask,
        patience: Patience,
    ) -> Asked {
        if core.peer.is_none() || session.has_lost_all() {
            return Asked::Now(Err(Failure::Lost));
        }
        let request = RequestId(core.number());
        (core.present, core.outcome) = (Some(request), None);
        let call = Call::Acquire { session: session.id, request, name: name.clone(), ask, patience };
        self.handle(core, now, Input::Call(call));
        core.present = None;
        match core.outcome.take() {
            Some(Ok(fence)) => {
                self.metrics.granted_at_once();
                Asked::Now(Ok(Guard::new(Arc::clone(self), Arc::clone(session), name.clone(), fence, now)))
            }
            Some(Err(failure)) => Asked::Now(Err(failure)),
            None if session.has_lost_all() => Asked::Now(Err(Failure::Lost)),
            None => {
                let (tell, answer) = oneshot::channel();
                core.waiting.insert(request, Waiting { session: Arc::clone(session), since: now, tell });
                Asked::Later(Pending { engine: Arc::clone(self), name: name.clone(), request, answer })
            }
        }
    }

    /// Somebody does not wait any more.
    fn cancel(self: &Arc<Self>, request: RequestId, name: &Name) {
        self.with(|core, now| {
            if let Entry::Occupied(waiting) = core.waiting.entry(request) {
                waiting.remove();
                self.handle(core, now, Input::Call(Call::Cancel { request, name: name.clone() }));
            }
        });
    }
}

impl Pending {
    /// What became of it.
    pub(crate) async fn answer(mut self) -> Result<Guard, Failure> {
        let answer = (&mut self.answer).await;
        answer.unwrap_or(Err(Failure::Lost))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // What was granted a moment ago is still in the channel, and is released when that is dropped.
        self.engine.cancel(self.request, &self.name);
    }
}

impl Core {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Whatever anybody held or waited for is lost.
    fn lose_all(&mut self) {
        for (_, session) in self.sessions.drain() {
            session.lose();
        }
        self.own = None;
        for (_, waiting) in self.waiting.drain() {
            let _ = waiting.tell.send(Err(Failure::Lost)); // Who is gone need not be told.
        }
    }
}
