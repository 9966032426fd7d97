//! What one has while one has a lock.

use std::{fmt, sync::Arc};

use vez_peer::{ask::Failure, fence::Fence, identity::ClusterId, name::Name};

use crate::{
    clock::{Deadline, Nanos},
    engine::Engine,
    session::Session,
};

/// A lock that is held. Dropping it releases it.
///
/// A lock is held for as long as this node is a member of its cluster, which it has to prove again and again. If it cannot,
/// the lock is lost at [`Self::deadline`], and somebody else may get it; whoever works on something that must not be
/// touched by two shows its [fence](Self::fence) to whatever it works on, which [refuses](crate::fence::Register) older ones.
pub struct Guard {
    engine: Arc<Engine>,
    session: Arc<Session>,
    name: Name,
    fence: Fence,
    since: Nanos,
    /// Whether there is still something to release.
    held: bool,
}

impl Guard {
    pub(crate) fn new(engine: Arc<Engine>, session: Arc<Session>, name: Name, fence: Fence, since: Nanos) -> Self {
        Self { engine, session, name, fence, since, held: true }
    }

    /// What is held.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The number of this grant: of two grants of a name, the later has the larger one.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Whose fence it is: those of two clusters cannot be compared.
    #[must_use]
    pub fn cluster(&self) -> ClusterId {
        self.session.cluster()
    }

    /// Until when it is held for certain, as things are. It moves on as long as all goes well.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        Deadline(if self.is_revoked() { 0 } else { self.session.deadline() })
    }

    /// Whether it is lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.deadline().is_over()
    }

    /// Whether it was taken away: that its time is over has been noticed.
    pub(crate) fn is_revoked(&self) -> bool {
        self.session.has_lost(&self.name, self.fence)
    }

    /// Waits until it is lost. If all goes well that never happens.
    pub async fn lost(&self) {
        self.session.lost(&self.name, self.fence).await;
    }

    /// Waits until it will soon be lost, unless things get better: time to come to an end.
    pub async fn danger(&self) {
        self.session.danger(&self.name, self.fence).await;
    }

    /// Releases it, and tells whether it was still held: if not, somebody else may have had it already.
    ///
    /// # Errors
    /// If it was lost.
    pub async fn release(mut self) -> Result<(), Failure> {
        self.let_go()
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(crate) fn let_go(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.held) {
            return Ok(());
        }
        let released = self.engine.release(&self.session, &self.name, self.fence, self.since);
        let lost = self.session.has_lost(&self.name, self.fence);
        self.session.forget(&self.name, self.fence);
        if lost { Err(Failure::Lost) } else { released }
    }

    /// There is nothing to release: whoever has taken it apart does that.
    pub(crate) fn disarm(mut self) -> (Arc<Session>, Name, Fence) {
        self.held = false;
        (Arc::clone(&self.session), self.name.clone(), self.fence)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // If it was lost there is nothing to release, and nobody left to tell.
        let _ = self.let_go();
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guard({:?}, {:?})", self.name, self.fence)
    }
}
