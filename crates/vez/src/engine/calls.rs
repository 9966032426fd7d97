//! What clients want of a peer.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use vez_peer::{
    ask::{Ask, Failure, Kind, Patience, RequestId, SessionId, Size},
    fence::Fence,
    name::Name,
    peer::{Call, Input},
};

use super::{
    Core, Engine, Sights,
    tell::{MOST_SIGHTS, Outcome, Tell, Waiting},
};
use crate::{
    clock::Nanos,
    guard::Guard,
    session::{Session, Who},
};

/// What became of a request.
pub(crate) enum Asked<T> {
    /// It is known already.
    Now(Result<T, Failure>),
    /// It waits.
    Later(Pending<T>),
}

/// A request that waits. Dropping it takes it back, if that can be.
pub(crate) struct Pending<T> {
    pub(super) engine: Arc<Engine>,
    pub(super) name: Name,
    pub(super) session: SessionId,
    pub(super) request: RequestId,
    pub(super) answer: oneshot::Receiver<Result<T, Failure>>,
}

/// Ends a session when it is dropped.
pub(crate) struct Ending {
    engine: Arc<Engine>,
    pub session: Arc<Session>,
}

impl Ending {
    pub(crate) fn new(engine: &Arc<Engine>, session: Arc<Session>) -> Self {
        Self { engine: Arc::clone(engine), session }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.engine.end(&self.session);
    }
}

impl Engine {
    /// A client comes.
    pub(crate) fn open(self: &Arc<Self>, who: Who) -> Result<Arc<Session>, Failure> {
        self.with(|core, now| self.open_in(core, now, who))
    }

    /// A client comes that has all it holds, or nothing. It goes when this is dropped.
    pub(crate) fn open_whole(self: &Arc<Self>, who: Who) -> Result<Ending, Failure> {
        let session = self.open(who)?;
        session.bind();
        Ok(Ending::new(self, session))
    }

    /// From now on the time of a client is limited.
    pub(crate) fn limit(self: &Arc<Self>, session: &Session, ttl: Nanos) -> Result<Nanos, Failure> {
        session.limit(ttl);
        self.with(|core, now| {
            if session.has_lost_all() {
                return Err(Failure::Lost);
            }
            self.answered(core, now, Call::Open { session: session.id, ttl: Some(ttl) })
        })
    }

    /// A client shows itself; how long what it holds is its own.
    pub(crate) fn renew(self: &Arc<Self>, session: &Session, by: Option<Nanos>) -> Result<Nanos, Failure> {
        let id = session.id;
        let call = by.map_or(Call::Renew(id), |by| Call::Extend { session: id, by });
        self.with(|core, now| self.answered(core, now, call))
    }

    /// Clients show themselves.
    pub(crate) fn renew_all<'a>(self: &Arc<Self>, sessions: impl Iterator<Item = &'a Session>) {
        self.with(|core, now| {
            for session in sessions {
                self.handle(core, now, Input::Call(Call::Renew(session.id)));
            }
        });
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
    ) -> Asked<Guard> {
        self.with(|core, now| self.acquire_in(core, now, session, name, ask, patience))
    }

    /// This process itself wants to be inside.
    #[inline]
    pub(crate) fn acquire_own(self: &Arc<Self>, name: &Name, ask: Ask, patience: Patience) -> Asked<Guard> {
        self.with(|core, now| match self.own_in(core, now) {
            Ok(session) => self.acquire_in(core, now, &session, name, ask, patience),
            Err(failure) => Asked::Now(Err(failure)),
        })
    }

    /// The session of this process itself.
    pub(crate) fn own(self: &Arc<Self>) -> Result<Arc<Session>, Failure> {
        self.with(|core, now| self.own_in(core, now))
    }

    fn own_in(self: &Arc<Self>, core: &mut Core, now: Nanos) -> Result<Arc<Session>, Failure> {
        if let Some(own) = core.own.as_ref().filter(|own| !own.has_lost_all()) {
            return Ok(Arc::clone(own));
        }
        let own = self.open_in(core, now, Who::in_process())?;
        core.own = Some(Arc::clone(&own));
        Ok(own)
    }

    /// A client wants a semaphore to have so many units.
    pub(crate) fn resize(self: &Arc<Self>, session: &Arc<Session>, name: &Name, units: u32) -> Asked<Size> {
        let (tell, answer) = oneshot::channel();
        let asked = self.ask_in_line(session, Tell::Size(tell), |session, request| {
            let name = name.clone();
            Call::Resize { session, request, name, units }
        });
        match asked {
            Ok(request) => {
                let engine = Arc::clone(self);
                Asked::Later(Pending { engine, name: name.clone(), session: session.id, request, answer })
            }
            Err(failure) => Asked::Now(Err(failure)),
        }
    }

    /// A client wants to see who leads, now and from now on.
    pub(crate) fn observe(self: &Arc<Self>, session: &Arc<Session>, name: &Name) -> Result<Sights, Failure> {
        let (tell, seen) = mpsc::channel(MOST_SIGHTS);
        let request = self.ask_in_line(session, Tell::Sight(tell), |session, request| {
            let name = name.clone();
            Call::Observe { session, request, name }
        })?;
        let (engine, session) = (Arc::clone(self), Arc::clone(session));
        Ok(Sights { engine, session, request, name: name.clone(), seen })
    }

    /// An observer does not want to see any more who leads.
    pub(super) fn look_away(self: &Arc<Self>, session: SessionId, request: RequestId, name: &Name) {
        self.with(|core, now| {
            core.waiting.remove(&(session, request));
            self.handle(core, now, Input::Call(Call::Cancel { request, name: name.clone() }));
        });
    }

    /// Makes a call that is answered some time, perhaps at once.
    fn ask_in_line(
        self: &Arc<Self>,
        session: &Arc<Session>,
        tell: Tell,
        call: impl FnOnce(SessionId, RequestId) -> Call,
    ) -> Result<RequestId, Failure> {
        self.with(|core, now| {
            if core.peer.is_none() || session.has_lost_all() {
                return Err(Failure::Lost);
            }
            let request = RequestId(core.number());
            let waiting = Waiting { session: Some(Arc::clone(session)), since: now, tell };
            core.waiting.insert((session.id, request), waiting);
            self.handle(core, now, Input::Call(call(session.id, request)));
            Ok(request)
        })
    }

    /// A client gives back what it holds.
    pub(crate) fn release(
        self: &Arc<Self>,
        session: &Session,
        (name, fence): (&Name, Fence),
        (kind, since): (Kind, Nanos),
    ) -> Result<(), Failure> {
        let call = Call::Release { session: session.id, name: name.clone(), fence };
        self.with(|core, now| {
            self.metrics.held(kind, now.saturating_sub(since));
            self.answered(core, now, call).map(|_| ())
        })
    }

    /// Makes a call that is answered at once.
    pub(super) fn answered(self: &Arc<Self>, core: &mut Core, now: Nanos, call: Call) -> Result<Nanos, Failure> {
        core.answer = None;
        self.handle(core, now, Input::Call(call));
        core.answer.take().unwrap_or(Err(Failure::Lost)) // Nothing comes from a peer that has stopped.
    }

    pub(super) fn open_in(self: &Arc<Self>, core: &mut Core, now: Nanos, who: Who) -> Result<Arc<Session>, Failure> {
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

    pub(super) fn acquire_in(
        self: &Arc<Self>,
        core: &mut Core,
        now: Nanos,
        session: &Arc<Session>,
        name: &Name,
        ask: Ask,
        patience: Patience,
    ) -> Asked<Guard> {
        if core.peer.is_none() || session.has_lost_all() {
            return Asked::Now(Err(Failure::Lost));
        }
        let (request, kind) = (RequestId(core.number()), ask.kind());
        (core.present, core.outcome) = (Some(request), None);
        let call = Call::Acquire { session: session.id, request, name: name.clone(), ask, patience };
        self.handle(core, now, Input::Call(call));
        core.present = None;
        match core.outcome.take() {
            Some(Outcome::Granted(grant)) => {
                self.metrics.granted_at_once(kind);
                Asked::Now(Ok(Guard::new(Arc::clone(self), Arc::clone(session), kind, grant)))
            }
            Some(Outcome::Failed(failure)) => Asked::Now(Err(failure)),
            Some(Outcome::Kept(_) | Outcome::Found(_)) => unreachable!("the answer to another request"),
            None if session.has_lost_all() => Asked::Now(Err(Failure::Lost)),
            None => {
                let (tell, answer) = oneshot::channel();
                let (id, tell) = (session.id, Tell::Guard(kind, tell));
                let waiting = Waiting { session: Some(Arc::clone(session)), since: now, tell };
                core.waiting.insert((id, request), waiting);
                Asked::Later(Pending { engine: Arc::clone(self), name: name.clone(), session: id, request, answer })
            }
        }
    }

    /// Somebody does not wait any more.
    fn cancel(self: &Arc<Self>, session: SessionId, request: RequestId, name: &Name) {
        self.with(|core, now| {
            if core.waiting.remove(&(session, request)).is_some() {
                self.handle(core, now, Input::Call(Call::Cancel { request, name: name.clone() }));
            }
        });
    }
}

impl<T> Pending<T> {
    /// What became of it.
    pub(crate) async fn answer(mut self) -> Result<T, Failure> {
        let answer = (&mut self.answer).await;
        answer.unwrap_or(Err(Failure::Lost))
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        // What was granted a moment ago is still in the channel, and is released when that is dropped.
        self.engine.cancel(self.session, self.request, &self.name);
    }
}
