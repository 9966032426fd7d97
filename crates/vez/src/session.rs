//! Sessions of clients, as their guards see them.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::sync::{Notify, watch};
use vez_peer::{ask::SessionId, fence::Fence, identity::ClusterId, name::Name};

use crate::clock::{self, Nanos};

/// A client of this node: a connection, a lock with a time of its own, or this process itself.
pub(crate) struct Session {
    pub id: SessionId,
    /// Who it is, for those who ask.
    pub label: Arc<str>,
    /// How long it is there without showing itself; as long as it is not ended, if nothing is said.
    ttl: OnceLock<Nanos>,
    /// Until when, if its time is limited.
    end: AtomicU64,
    /// Until when the node itself may do anything. It is shared by all sessions of one process of the node.
    lease: Arc<Lease>,
    /// Whether anything was ever lost; nearly always nothing was, and there is nothing to look at.
    has_lost: AtomicBool,
    /// Made when somebody wants to know of them: most sessions never lose anything.
    losses: OnceLock<watch::Sender<Losses>>,
    /// Rung when something is lost.
    bell: Option<Arc<Notify>>,
    /// It has all that it holds, or nothing.
    whole: AtomicBool,
}

/// What a session has lost.
#[derive(Default)]
struct Losses {
    /// Everything.
    all: bool,
    /// Nothing yet, but soon everything: the node leaves.
    soon: bool,
    /// That was because one thing was taken by force, of a session that has all or nothing.
    by_force: bool,
    /// What was taken from it by force.
    some: Vec<(Name, Fence)>,
}

impl Losses {
    fn contain(&self, name: &Name, fence: Fence) -> bool {
        self.all || self.some.iter().any(|(lost, number)| *number == fence && lost == name)
    }
}

/// Who opens a session.
#[derive(Clone)]
pub(crate) struct Who {
    /// As it is shown to those who ask.
    pub label: Arc<str>,
    /// To be rung when it has lost something.
    pub bell: Option<Arc<Notify>>,
}

impl Who {
    /// This process itself.
    pub(crate) fn in_process() -> Self {
        Self { label: "in process".into(), bell: None }
    }
}

/// How long a process of a node may do anything, on its clock.
#[derive(Default)]
pub(crate) struct Lease {
    stop: AtomicU64,
    /// Which cluster it is a member of.
    cluster: OnceLock<ClusterId>,
    /// How long it lasts without being renewed.
    pub term: Nanos,
    /// So long before its end clients are warned.
    pub warning: Nanos,
}

impl Lease {
    pub(crate) fn new(term: Nanos, warning: Nanos) -> Self {
        Self { stop: AtomicU64::new(0), cluster: OnceLock::new(), term, warning }
    }

    pub(crate) fn set(&self, stop: Nanos) {
        self.stop.store(stop, Ordering::Release);
    }

    pub(crate) fn stop(&self) -> Nanos {
        self.stop.load(Ordering::Acquire)
    }

    /// A process is a member of one cluster in its life.
    pub(crate) fn set_cluster(&self, cluster: ClusterId) {
        let _ = self.cluster.set(cluster);
    }
}

impl Session {
    pub(crate) fn new(id: SessionId, who: Who, lease: Arc<Lease>) -> Self {
        let Who { label, bell } = who;
        let end = AtomicU64::new(Nanos::MAX);
        let (ttl, has_lost, losses) = (OnceLock::new(), AtomicBool::new(false), OnceLock::new());
        Self { id, label, ttl, end, lease, has_lost, losses, bell, whole: AtomicBool::new(false) }
    }

    /// From now on its time is limited.
    pub(crate) fn limit(&self, ttl: Nanos) {
        let _ = self.ttl.set(ttl); // It is limited once.
    }

    pub(crate) fn ttl(&self) -> Option<Nanos> {
        self.ttl.get().copied()
    }

    /// It was told until when.
    pub(crate) fn renewed(&self, end: Nanos) {
        if self.ttl().is_some() {
            self.end.store(end, Ordering::Release);
        }
    }

    /// All that it held is lost.
    pub(crate) fn lose(&self) {
        self.loses(|losses| losses.all = true);
    }

    /// All that it holds will be lost soon.
    pub(crate) fn warn(&self) {
        self.losses().send_modify(|losses| losses.soon = true);
        self.ring();
    }

    /// From now on it has all that it holds, or nothing.
    pub(crate) fn bind(&self) {
        self.whole.store(true, Ordering::Release);
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.whole.load(Ordering::Acquire)
    }

    /// Records that a lock was released by force. The caller then ends an all-or-nothing session, which loses its other locks.
    pub(crate) fn revoke(&self, name: &Name, fence: Fence) {
        self.loses(|losses| {
            losses.some.push((name.clone(), fence));
            losses.by_force |= self.is_whole();
        });
    }

    /// Whether it has lost all because its node is no member any more.
    pub(crate) fn has_lost_its_node(&self) -> bool {
        let losses = self.losses().borrow();
        losses.all && !losses.by_force
    }

    fn loses(&self, note: impl FnOnce(&mut Losses)) {
        self.has_lost.store(true, Ordering::Release);
        self.losses().send_modify(note);
        self.ring();
    }

    fn losses(&self) -> &watch::Sender<Losses> {
        self.losses.get_or_init(watch::Sender::default)
    }

    fn ring(&self) {
        if let Some(bell) = &self.bell {
            bell.notify_one();
        }
    }

    /// One who had this does not want to know any more. Others may have had it with the same fence.
    pub(crate) fn forget(&self, name: &Name, fence: Fence) {
        if self.has_lost.load(Ordering::Acquire) {
            self.losses().send_modify(|losses| {
                let at = losses.some.iter().position(|(lost, number)| *number == fence && lost == name);
                at.map(|at| losses.some.swap_remove(at));
            });
        }
    }

    pub(crate) fn has_lost_all(&self) -> bool {
        self.has_lost.load(Ordering::Acquire) && self.losses().borrow().all
    }

    pub(crate) fn has_lost(&self, name: &Name, fence: Fence) -> bool {
        self.has_lost.load(Ordering::Acquire) && self.losses().borrow().contain(name, fence)
    }

    /// How long its node is a member without being renewed: nothing that is held here is promised for longer.
    pub(crate) fn term(&self) -> Nanos {
        self.lease.term
    }

    /// Whose fences it is given. A node that grants something is a member of a cluster.
    pub(crate) fn cluster(&self) -> ClusterId {
        self.lease.cluster.get().copied().unwrap_or(ClusterId(0))
    }

    /// Until when it was last told that what it holds is its own, whether that is still so or not.
    pub(crate) fn promised(&self) -> Nanos {
        self.end.load(Ordering::Acquire).min(self.lease.stop())
    }

    /// Until when what it holds is its own.
    pub(crate) fn deadline(&self) -> Nanos {
        if self.has_lost_all() { 0 } else { self.promised() }
    }

    /// When it is to be warned.
    fn danger_at(&self) -> Nanos {
        let of_lease = self.lease.stop().saturating_sub(self.lease.warning);
        let warning = self.ttl().map_or(0, |ttl| ttl / 3);
        let of_ttl = self.end.load(Ordering::Acquire).saturating_sub(warning);
        if self.has_lost_all() { 0 } else { of_lease.min(of_ttl) }
    }

    /// Waits until this is lost.
    pub(crate) async fn lost(&self, name: &Name, fence: Fence) {
        let mut losses = self.losses().subscribe();
        // The other end is in this very value.
        let _ = losses.wait_for(|losses| losses.contain(name, fence)).await;
    }

    /// Waits until what it holds will soon be lost, unless something is renewed.
    pub(crate) async fn danger(&self, name: &Name, fence: Fence) {
        let mut losses = self.losses().subscribe();
        loop {
            let left = clock::until(self.danger_at());
            let is_near = |losses: &Losses| losses.soon || losses.contain(name, fence);
            if left.is_zero() || is_near(&losses.borrow_and_update()) {
                return;
            }
            // It may have been renewed meanwhile, or be lost.
            let _ = tokio::time::timeout(left.min(clock::GLANCE), losses.wait_for(is_near)).await;
        }
    }
}
