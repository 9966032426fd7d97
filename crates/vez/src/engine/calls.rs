//! What clients want of a peer.

use std::sync::Arc;

use tokio::sync::oneshot;
use vez_peer::{
    ask::{Ask, Failure, Patience, RequestId, SessionId},
    fence::Fence,
    name::Name,
    peer::{Call, Input},
};

use super::{Core, Engine, Waiting};
use crate::{
    clock::Nanos,
    guard::Guard,
    session::{Session, Who},
};

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
    session: SessionId,
    request: RequestId,
    answer: oneshot::Receiver<Result<Guard, Failure>>,
}

impl Engine {
    /// A client comes.
    pub(crate) fn open(self: &Arc<Self>, who: Who) -> Result<Arc<Session>, Failure> {
        self.with(|core, now| self.open_in(core, now, who))
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
    ) -> Asked {
        self.with(|core, now| self.acquire_in(core, now, session, name, ask, patience))
    }

    /// This process itself wants to be inside.
    pub(crate) fn acquire_own(self: &Arc<Self>, name: &Name, ask: Ask, patience: Patience) -> Asked {
        self.with(|core, now| {
            let own = match core.own.take().filter(|own| !own.has_lost_all()) {
                Some(own) => Ok(own),
                None => self.open_in(core, now, Who { label: "in process".into(), bell: None }),
            };
            match own {
                Ok(session) => {
                    core.own = Some(Arc::clone(&session));
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
                core.waiting.insert((session.id, request), Waiting { session: Arc::clone(session), since: now, tell });
                let engine = Arc::clone(self);
                Asked::Later(Pending { engine, name: name.clone(), session: session.id, request, answer })
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
        self.engine.cancel(self.session, self.request, &self.name);
    }
}
