//! What one has while one has something.

use std::{fmt, sync::Arc};

use vez_peer::{
    ask::{Failure, Kind},
    fence::Fence,
    identity::ClusterId,
    name::Name,
};

use crate::{
    clock::{Deadline, Nanos},
    engine::{Ending, Engine, Grant},
    session::Session,
};

/// A lock that is held, or units of a semaphore, a place in a session, leadership, several locks at once. Dropping it gives it
/// back.
///
/// It is held for as long as this node is a member of its cluster, which it has to prove again and again. If it cannot,
/// it is lost at [`Self::deadline`], and somebody else may get it; whoever works on something that must not be
/// touched by two shows its [fence](Self::fence) to whatever it works on, which [refuses](crate::fence::Register) older ones.
pub struct Guard {
    engine: Arc<Engine>,
    session: Arc<Session>,
    kind: Kind,
    name: Name,
    fence: Fence,
    floor: Fence,
    since: Nanos,
    /// Whether there is still something to give back.
    held: bool,
    /// What was taken with it, all or nothing.
    others: Option<Box<Others>>,
}

/// What is held by the same session as another, which ends with them.
struct Others {
    guards: Vec<Guard>,
    _ending: Ending,
}

impl Guard {
    pub(crate) fn new(engine: Arc<Engine>, session: Arc<Session>, kind: Kind, grant: Grant) -> Self {
        let Grant { name, fence, floor, when } = grant;
        Self { engine, session, kind, name, fence, floor, since: when, held: true, others: None }
    }

    /// All of them as one. They are held by a session of their own, which ends with them.
    pub(crate) fn all(mut guards: Vec<Self>, ending: Ending) -> Self {
        let mut first = guards.remove(0);
        first.others = Some(Box::new(Others { guards, _ending: ending }));
        first
    }

    /// What is held; of several names, the first of them in their order.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The number of this grant: of two grants of a name, the later has the larger one.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Of units of a semaphore, the oldest grant that may still be alive: a resource [refuses](crate::fence::Register::admit_one_of)
    /// whatever is below the highest that it has seen. Of anything else, the fence itself.
    #[must_use]
    pub fn floor(&self) -> Fence {
        self.floor
    }

    /// All names that are held, each with its fence. But for [`Node::lock_all`](crate::Node::lock_all) it is one.
    pub fn fences(&self) -> impl Iterator<Item = (&Name, Fence)> {
        let others = self.others.iter().flat_map(|others| &others.guards);
        std::iter::once(self).chain(others).map(|guard| (&guard.name, guard.fence))
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

    /// Gives it back, and tells whether it was still held: if not, somebody else may have had it already.
    ///
    /// # Errors
    /// If it was lost.
    pub async fn release(mut self) -> Result<(), Failure> {
        self.let_go()
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(crate) fn let_go(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.held) {
            return Ok(());
        }
        // Asked before the release: a node that leaves ends its sessions as soon as nothing is held.
        let was_lost = self.session.has_lost(&self.name, self.fence);
        let released = self.engine.release(&self.session, (&self.name, self.fence), (self.kind, self.since));
        let own = match released {
            Ok(()) if was_lost => Err(Failure::Lost),
            Err(_) if self.session.has_lost(&self.name, self.fence) => Err(Failure::Lost),
            released => released,
        };
        self.session.forget(&self.name, self.fence);
        let others = self.others.take().map(|mut others| others.guards.iter_mut().try_for_each(Self::let_go));
        own.and(others.unwrap_or(Ok(()))) // Those that come after one that was lost are dropped, and so given back.
    }

    /// There is nothing to give back: whoever has taken it apart does that.
    pub(crate) fn disarm(mut self) -> Grant {
        self.held = false;
        Grant { name: self.name.clone(), fence: self.fence, floor: self.floor, when: self.since }
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
        let fences: Vec<_> = self.fences().collect();
        write!(f, "Guard({fences:?})")
    }
}
