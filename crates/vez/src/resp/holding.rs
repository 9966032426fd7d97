//! What a client that is connected holds: taking it, keeping it, giving it back.

use std::sync::{Arc, atomic::Ordering};

use parking_lot::Mutex;
use vez_peer::{
    ask::{Ask, Failure, Patience},
    fence::Fence,
    name::Name,
};

use super::{
    connection::{Connection, Outcome, Seat, Step},
    reply::Reply,
    words,
};
use crate::{
    clock::{self, Nanos},
    engine::Asked,
    guard::Guard,
    node::Inner,
    session::{Session, Who},
};

pub(super) const MILLISECOND: Nanos = 1_000_000;
/// So many locks a connection holds at most.
const MOST_HELD: usize = 1 << 16;
/// And so many of them with a time of their own: each byte renews all of these, and others wait for that.
const MOST_TIMED: usize = 1 << 7;

/// A lock that is held.
pub(super) struct Held {
    pub guard: Guard,
    /// Its session, if it has a time of its own.
    pub own: Option<Ending>,
}

/// Ends a session when it is dropped.
pub(super) struct Ending(Arc<Inner>, Arc<Session>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.engine.end(&self.1);
    }
}

/// What came of a wish for a lock.
pub(super) struct Locked {
    result: Result<Guard, Failure>,
    own: Option<Ending>,
    ttl: Option<Nanos>,
}

impl Connection {
    pub(super) fn lock(&mut self, name: Name, ttl_ms: Option<u64>, wait_ms: Option<u64>, elsewhere: bool) -> Step {
        let held = self.held.range((name.clone(), Fence::FIRST)..).next().filter(|((held, _), _)| *held == name);
        if let Some((_, held)) = held {
            return Step::Say(self.already(held));
        }
        if self.held.len() >= MOST_HELD {
            return Step::Say(Reply::Error(format!(
                "TOOMANY a connection holds at most {MOST_HELD} locks; take another"
            )));
        }
        if ttl_ms.is_some() && self.timed.len() >= MOST_TIMED {
            self.timed.retain(|session| !session.has_lost_all());
            if self.timed.len() >= MOST_TIMED {
                return Step::Say(Reply::Error(format!(
                    "TOOMANY a connection holds at most {MOST_TIMED} locks with a TTL; take another"
                )));
            }
        }
        if ttl_ms == Some(0) {
            return Step::Say(Reply::Error("ERR a TTL of 0 would be over at once; say at least 1".into()));
        }
        let patience = match wait_ms {
            None => Patience::Endless,
            Some(0) => Patience::Try,
            Some(ms) => Patience::Until(clock::now().saturating_add(ms.saturating_mul(MILLISECOND))),
        };
        let ttl = ttl_ms.map(|ms| ms.saturating_mul(MILLISECOND));
        let own = Arc::new(Mutex::new(None));
        let seat = Arc::clone(&self.seat);
        let session = Arc::clone(&own);
        let ask = move |name: &Name| seat.ask(name, patience, ttl.is_some().then_some(&session));
        let take = move |own: &Mutex<Option<Ending>>| own.lock().take();
        match ask(&name) {
            Asked::Now(Ok(guard)) => {
                let locked = Locked { result: Ok(guard), own: take(&own), ttl };
                Step::Say(self.locked(locked))
            }
            Asked::Now(Err(failure)) if patience == Patience::Try => {
                Step::Say(self.locked(Locked { result: Err(self.seat.inner.for_now(failure)), own: None, ttl }))
            }
            first => {
                let inner = Arc::clone(&self.seat.inner);
                Step::Wait(Box::pin(async move {
                    let result = inner.patiently(patience, elsewhere, first, || ask(&name)).await;
                    Outcome::Locked(Box::new(Locked { result, own: take(&own), ttl }))
                }))
            }
        }
    }

    /// What is said to one who asks for what it has. Whether it still has it, only the clock knows.
    fn already(&self, held: &Held) -> Reply {
        match self.seat.inner.engine.renew(held.guard.session(), Some(0)) {
            Ok(_) if !held.guard.is_lost() => {
                let error =
                    "ALREADYYOURS this connection holds it already; release it first, or take another connection";
                Reply::Error(error.into())
            }
            Ok(_) | Err(_) => words::failure(&Failure::Lost),
        }
    }

    pub(super) fn locked(&mut self, locked: Locked) -> Reply {
        let Locked { result, own, ttl } = locked;
        let limited = result.and_then(|guard| match ttl {
            Some(ttl) => self.seat.inner.engine.limit(guard.session(), ttl).map(|_| guard),
            None => Ok(guard),
        });
        let guard = match limited {
            Ok(guard) => guard,
            Err(Failure::Busy(_) | Failure::TimedOut(_)) => return Reply::Nil,
            // Who asks has nothing to lose yet: it can be asked again, here or elsewhere.
            Err(Failure::Lost | Failure::NoSession) => return words::failure(&Failure::NoMember),
            Err(failure) => return words::failure(&failure),
        };
        if own.is_some() {
            self.timed.push(Arc::clone(guard.session()));
        }
        let fence = guard.fence();
        self.held.insert((guard.name().clone(), fence), Held { guard, own });
        Reply::text(fence.to_string())
    }

    pub(super) fn unlock(&mut self, name: Name, fence: Fence) -> Reply {
        let key = (name, fence);
        let Some(mut held) = self.held.remove(&key) else { return self.not_held(&key) };
        match held.guard.let_go() {
            Ok(()) => Reply::OK,
            Err(failure) => words::failure(&failure),
        }
    }

    pub(super) fn extend(&mut self, name: &Name, fence: Fence, by_ms: u64) -> Reply {
        let key = (name.clone(), fence);
        let Some(held) = self.held.get(&key) else { return self.not_held(&key) };
        let by = by_ms.saturating_mul(MILLISECOND);
        let extended = self.seat.inner.engine.renew(held.guard.session(), Some(by));
        match extended {
            Ok(_) if held.guard.is_lost() => words::failure(&Failure::Lost),
            Ok(deadline) => Reply::integer(deadline.saturating_sub(clock::now()) / MILLISECOND),
            Err(failure) => words::failure(&failure),
        }
    }

    fn not_held(&self, key: &(Name, Fence)) -> Reply {
        let lost = self.lost.contains(key);
        words::failure(&if lost { Failure::Lost } else { Failure::NotYours(key.0.clone()) })
    }
}

impl Seat {
    /// Asks for a lock, by the session of the connection, or one of its own.
    fn ask(&self, name: &Name, patience: Patience, own: Option<&Arc<Mutex<Option<Ending>>>>) -> Asked {
        let session = match own {
            None => self.session(),
            Some(own) => self.open().inspect(|session| {
                *own.lock() = Some(Ending(Arc::clone(&self.inner), Arc::clone(session)));
            }),
        };
        match session {
            Ok(session) => self.inner.engine.acquire(&session, name, Ask::Lock, patience),
            Err(failure) => Asked::Now(Err(failure)),
        }
    }

    fn session(&self) -> Result<Arc<Session>, Failure> {
        let mut session = self.session.lock();
        match &*session {
            Some(session) if !session.has_lost_all() => Ok(Arc::clone(session)),
            _ => Ok(Arc::clone(session.insert(self.open()?))),
        }
    }

    fn open(&self) -> Result<Arc<Session>, Failure> {
        let name = self.name.lock();
        let label = match &name[..] {
            [] => self.from.to_string(),
            name => format!("{} ({})", self.from, name.escape_ascii()),
        };
        let session = self.inner.engine.open(Who { label: label.into(), bell: Some(Arc::clone(&self.bell)) })?;
        self.term.store(session.term(), Ordering::Relaxed);
        Ok(session)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(session) = self.session.lock().take() {
            self.inner.engine.end(&session);
        }
    }
}
