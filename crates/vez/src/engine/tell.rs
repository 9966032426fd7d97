//! Who waits for what became of a request, and how it is told.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use vez_peer::{
    ask::{Failure, Kind, Leader, RequestId, Size},
    fence::Fence,
    keep::Kept,
    name::Name,
};

use super::{Engine, Untold};
use crate::{clock::Nanos, guard::Guard, session::Session};

/// So many sights wait for an observer to look at them.
pub(super) const MOST_SIGHTS: usize = 1024;

/// What became of a request at once.
pub(super) enum Outcome {
    Granted(Grant),
    /// The lock of that name is kept.
    Kept(Name),
    /// What was found under a name and a value.
    Found(Found),
    Failed(Failure),
}

/// What is kept under a name and a value, if anything is.
pub(super) type Found = Result<Option<Kept>, Failure>;

/// Somebody is inside.
#[derive(Clone)]
pub(crate) struct Grant {
    pub name: Name,
    /// Its number.
    pub fence: Fence,
    /// The oldest that may still be alive.
    pub floor: Fence,
    /// Since then.
    pub when: Nanos,
}

/// Who waits for what became of a request.
pub(super) struct Waiting {
    /// Whose request it is, if it is anybody's.
    pub session: Option<Arc<Session>>,
    pub since: Nanos,
    pub tell: Tell,
}

/// How it is told. Who is gone need not be.
pub(super) enum Tell {
    /// That it is inside, and as what.
    Guard(Kind, oneshot::Sender<Result<Guard, Failure>>),
    /// That a semaphore has another size.
    Size(oneshot::Sender<Result<Size, Failure>>),
    /// Who leads, now and from now on.
    Sight(mpsc::Sender<Sight>),
    /// That it is kept.
    Kept(oneshot::Sender<Result<Untold, Failure>>),
    /// What was found under a name and a value.
    Found(oneshot::Sender<Found>),
}

/// Who leads; nobody, if nobody does.
pub(super) type Sight = Result<Option<Leader>, Failure>;

impl Waiting {
    /// It is inside. What comes back is to be released: nobody wants it any more.
    pub(super) fn grant(self, engine: &Arc<Engine>, grant: Grant) -> Option<Grant> {
        let (Tell::Guard(kind, tell), Some(session)) = (self.tell, self.session) else { return Some(grant) };
        engine.metrics.granted(kind);
        engine.metrics.waited(kind, grant.when.saturating_sub(self.since));
        let guard = Guard::new(Arc::clone(engine), session, kind, grant);
        match tell.send(Ok(guard)) {
            Err(Ok(guard)) => Some(guard.disarm()),
            Ok(()) | Err(Err(_)) => None,
        }
    }

    pub(super) fn resized(self, size: Size) {
        if let Tell::Size(tell) = self.tell {
            let _ = tell.send(Ok(size));
        }
    }

    /// It is kept. False if nobody wants to hear that any more.
    pub(super) fn keep(self, engine: &Arc<Engine>, name: Name, request: RequestId, now: Nanos) -> bool {
        let Tell::Kept(tell) = self.tell else { return false };
        engine.metrics.granted(Kind::Lock);
        engine.metrics.waited(Kind::Lock, now.saturating_sub(self.since));
        match tell.send(Ok(Untold::new(engine, name, request))) {
            Err(Ok(untold)) => {
                untold.told(); // Not by itself: the lock of the engine is in somebody's hands.
                false
            }
            Ok(()) | Err(Err(_)) => true,
        }
    }

    pub(super) fn found(self, found: Found) {
        if let Tell::Found(tell) = self.tell {
            let _ = tell.send(found);
        }
    }

    /// False if it is not told any more.
    pub(super) fn show(&self, leader: Option<Leader>) -> bool {
        matches!(&self.tell, Tell::Sight(tell) if tell.try_send(Ok(leader)).is_ok())
    }

    pub(super) fn refuse(self, failure: Failure) {
        match self.tell {
            Tell::Guard(_, tell) => drop(tell.send(Err(failure))),
            Tell::Size(tell) => drop(tell.send(Err(failure))),
            Tell::Sight(tell) => drop(tell.try_send(Err(failure))),
            Tell::Kept(tell) => drop(tell.send(Err(failure))),
            Tell::Found(tell) => drop(tell.send(Err(failure))),
        }
    }
}

/// What an observer sees. Dropping it ends that.
pub(crate) struct Sights {
    pub(super) engine: Arc<Engine>,
    pub(super) session: Arc<Session>,
    pub(super) request: RequestId,
    pub(super) name: Name,
    pub(super) seen: mpsc::Receiver<Sight>,
}

impl Sights {
    /// Who leads, when that has changed. Once it fails, it has ended.
    pub(crate) async fn next(&mut self) -> Sight {
        self.seen.recv().await.unwrap_or(Err(Failure::Lost))
    }
}

impl Drop for Sights {
    fn drop(&mut self) {
        self.engine.look_away(self.session.id, self.request, &self.name);
    }
}
