//! The peer behind its lock, and what it wants done.
//!
//! Whoever has something to tell the peer does so in its own thread: takes the lock, looks at the clock, hands the input
//! over, and carries out what comes of it. A lock whose token is here is granted on the way, without a message, a channel
//! or another thread. Sockets are written after the lock is given back, disks by a thread of their own.

mod calls;
mod carry;
mod keeping;
mod tell;

pub(crate) use self::{
    calls::{Asked, Ending},
    keeping::Untold,
    tell::{Grant, Sights},
};

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use rustc_hash::FxHashMap;
use tokio::sync::{Notify, oneshot, watch};
use tracing::warn;
use vez_peer::{
    Peer,
    ask::{Failure, RequestId, SessionId},
    frame::Frame,
    identity::{Address, ClusterId},
    name::Name,
    peer::{Call, Effect, Input, Stopped},
};

use self::tell::{Outcome, Waiting};
use crate::{
    busy::Busy,
    clock::{self, Nanos},
    disk::DiskThread,
    links::Links,
    metrics::Metrics,
    session::{Lease, Session},
    store::{Contents, StoreError},
    wire::Letter,
};

/// So many nodes of other clusters are remembered.
const MOST_STRANGERS: usize = 8;

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
    peer: Option<Box<Peer>>,
    /// Which of the processes of this node it is.
    life: u64,
    lease: Arc<Lease>,
    /// What this process itself holds, it holds by this session.
    own: Option<Arc<Session>>,
    sessions: FxHashMap<SessionId, Arc<Session>>,
    /// Who waits for what became of a request: those of a session are beside each other.
    waiting: BTreeMap<(SessionId, RequestId), Waiting>,
    /// The request that is being made at this moment, and what became of it at once.
    present: Option<RequestId>,
    outcome: Option<Outcome>,
    /// What became of the last word of a session.
    answer: Option<Result<Nanos, Failure>>,
    /// Nodes of other clusters that have spoken to this one.
    strangers: Vec<(ClusterId, Address)>,
    /// What was granted to somebody who was gone is given back, by these.
    unclaimed: Vec<Call>,
    busy: Busy,
    /// Room for effects, used again and again.
    effects: Vec<Effect>,
    next: u64,
    random: SmallRng,
    links: Links,
    /// None once this node never does anything again.
    disk: Option<DiskThread>,
}

/// When the peer next wants to be woken.
struct Timer {
    due: AtomicU64,
    earlier: Notify,
}

impl Engine {
    pub(crate) fn new(links: Links, disk: DiskThread, metrics: Metrics) -> Arc<Self> {
        let core = Core {
            peer: None,
            life: 0,
            lease: Arc::default(),
            own: None,
            sessions: FxHashMap::default(),
            waiting: BTreeMap::new(),
            present: None,
            outcome: None,
            answer: None,
            strangers: Vec::new(),
            unclaimed: Vec::new(),
            busy: Busy::default(),
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
            if core.disk.is_none() {
                return; // The node has ended meanwhile.
            }
            core.life += 1;
            core.lease = Arc::new(lease);
            self.presence.send_replace(Presence::Outside);
            let mut effects = Vec::new();
            let random = &mut core.random;
            core.peer = Some(Box::new(start(now, &mut effects, &mut |below| random.random_range(0..below))));
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
    pub(crate) fn frames(self: &Arc<Self>, frames: impl IntoIterator<Item = Box<Frame>>) {
        self.with(|core, _| {
            for frame in frames {
                core.note_cluster(&frame);
                self.handle(core, clock::now(), Input::Frame(frame));
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

    /// Sends something that is not the peer's.
    pub(crate) fn send(self: &Arc<Self>, to: &Address, letter: &Letter) {
        self.with(|core, _| core.links.send(to, letter));
    }

    /// Looks at the peer, if there is one.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Peer) -> R) -> Option<R> {
        self.core.lock().peer.as_deref().map(look)
    }

    /// The names that are granted most here, each with its share of all grants in millionths.
    pub(crate) fn busiest(&self, most: usize) -> Vec<(Name, u32)> {
        self.core.lock().busy.busiest(most)
    }

    /// Nodes of other clusters that have spoken to this one.
    pub(crate) fn strangers(&self) -> Vec<(ClusterId, Address)> {
        self.core.lock().strangers.clone()
    }

    /// A node says that it belongs to another cluster.
    pub(crate) fn stranger(self: &Arc<Self>, theirs: ClusterId, address: &Address) {
        self.core.lock().note_stranger(theirs, address);
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
            tokio::select! {
                () = tokio::time::sleep(left.min(clock::GLANCE)) => {}
                () = self.timer.earlier.notified() => {}
            }
        }
    }

    /// Does something with the lock in hand, and what has to be done afterwards.
    #[inline]
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

    #[inline]
    fn handle(self: &Arc<Self>, core: &mut Core, now: Nanos, input: Input) {
        self.handle_one(core, now, input);
        while let Some(call) = core.unclaimed.pop() {
            let answer = core.answer.take();
            self.handle_one(core, now, Input::Call(call));
            core.answer = answer;
        }
    }

    fn handle_one(self: &Arc<Self>, core: &mut Core, now: Nanos, input: Input) {
        let Some(mut peer) = core.peer.take() else { return };
        let mut effects = std::mem::take(&mut core.effects);
        let (random, failing) = (&mut core.random, Failing(self));
        peer.handle(now, input, &mut effects, &mut |below| random.random_range(0..below));
        std::mem::forget(failing);
        core.peer = Some(peer);
        self.carry_out(core, effects, now);
    }
}

/// If a peer should ever panic, half changed, it does not come back, and the node ends.
pub(crate) struct Failing<'a>(pub &'a Engine);

impl Drop for Failing<'_> {
    fn drop(&mut self) {
        self.0.presence.send_replace(Presence::Stopped(Stopped::Broken("an assertion has failed")));
    }
}

impl Core {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A node of another cluster is not meant to speak to this one. The peer takes no notice; people should.
    fn note_cluster(&mut self, frame: &Frame) {
        let Some(theirs) = frame.cluster else { return };
        if let Some(ours) = self.note_stranger(theirs, &frame.address)
            && let Some(address) = self.peer.as_ref().map(|peer| peer.address().clone())
        {
            // It takes us for somebody else, and should know.
            self.links.send(&frame.address, &Letter::Stranger { cluster: ours, address });
        }
    }

    /// Somebody belongs to another cluster. Ours, if that is new.
    fn note_stranger(&mut self, theirs: ClusterId, address: &Address) -> Option<ClusterId> {
        let ours = self.peer.as_ref()?.cluster()?;
        let known = self.strangers.iter().any(|(cluster, at)| *cluster == theirs && at == address);
        if theirs == ours || known || self.strangers.len() >= MOST_STRANGERS {
            return None;
        }
        warn!(
            %address, %theirs, %ours,
            "a node of another cluster speaks to this one, and neither knows the locks of the other: \
             was the folder of one emptied, and the node started with --bootstrap again? It should join instead"
        );
        self.strangers.push((theirs, address.clone()));
        Some(ours)
    }

    /// Whatever anybody held or waited for is lost.
    fn lose_all(&mut self) {
        for (_, session) in self.sessions.drain() {
            session.lose();
        }
        self.own = None;
        for (_, waiting) in std::mem::take(&mut self.waiting) {
            waiting.refuse(Failure::Lost);
        }
    }
}
