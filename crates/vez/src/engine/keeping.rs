//! Locks that are kept for whoever knows a value.

use std::sync::Arc;

use tokio::sync::oneshot;
use vez_peer::{
    ask::{Ask, Failure, Patience, RequestId, SessionId},
    keep::{Kept, Wish},
    name::Name,
    peer::{Call, Input},
};

use super::{
    Asked, Core, Ending, Engine,
    calls::Pending,
    tell::{Outcome, Tell, Waiting},
};
use crate::{clock::Nanos, guard::Guard, session::Who};

/// Whose request it is, if it is nobody's. Sessions are numbered from 1.
pub(super) const NOBODY: SessionId = SessionId(0);

/// What became of a wish to have a lock kept.
pub(crate) enum Set {
    /// It is known already: until when it is kept.
    Now(Result<Nanos, Failure>),
    /// It takes a while.
    Later(Setting),
}

/// A lock that is to be kept. If this is dropped before it is, it is given back.
pub(crate) struct Setting {
    value: Vec<u8>,
    ttl: Nanos,
    stage: Stage,
    /// Of the session that it is had by.
    ending: Ending,
}

enum Stage {
    /// It is being asked for.
    Asked(Pending<Guard>),
    /// It is had, and more has to be pledged before it is kept.
    Had(Guard, Pending<Nanos>),
}

impl Engine {
    /// A client wants a lock now or never, to be kept for whoever knows the value.
    pub(crate) fn set(self: &Arc<Self>, who: Who, name: &Name, value: Vec<u8>, ttl: Nanos) -> Set {
        let mut value = Some(value);
        // All at once: it happens with every lock of a library, and nearly always all that is needed is here.
        let opened = self.with(|core, now| {
            // Who tries again and again need not come and go each time.
            if core.peer.as_ref().is_some_and(|peer| peer.is_locked_here(name)) {
                return Err(Failure::Busy(name.clone()));
            }
            let session = self.open_in(core, now, who)?;
            let asked = self.acquire_in(core, now, &session, name, Ask::Lock, Patience::Try);
            let kept = match (&asked, value.take_if(|_| matches!(asked, Asked::Now(Ok(_))))) {
                (Asked::Now(Ok(guard)), Some(value)) => Some(self.keep_in(core, now, guard, value, ttl)),
                _ => None,
            };
            Ok((session, asked, kept))
        });
        let (session, asked, kept) = match opened {
            Ok(opened) => opened,
            Err(failure) => return Set::Now(Err(failure)),
        };
        let ending = Ending::new(self, session);
        match (asked, kept) {
            (Asked::Now(Ok(guard)), Some(kept)) => settle(guard, kept, ttl, ending),
            (Asked::Now(Ok(_)), None) => unreachable!("what is had is to be kept"),
            (Asked::Now(Err(failure)), _) => Set::Now(Err(failure)),
            (Asked::Later(pending), _) => {
                let value = value.unwrap_or_default();
                Set::Later(Setting { value, ttl, stage: Stage::Asked(pending), ending })
            }
        }
    }

    /// What a session of its own holds is to be kept.
    fn keep(self: &Arc<Self>, guard: Guard, value: Vec<u8>, ttl: Nanos, ending: Ending) -> Set {
        let kept = self.with(|core, now| self.keep_in(core, now, &guard, value, ttl));
        settle(guard, kept, ttl, ending)
    }

    fn keep_in(
        self: &Arc<Self>,
        core: &mut Core,
        now: Nanos,
        guard: &Guard,
        value: Vec<u8>,
        ttl: Nanos,
    ) -> Asked<Nanos> {
        let (session, name, fence) = (guard.session().id, guard.name().clone(), guard.fence());
        let call = |request| Call::Keep { session, request, name: name.clone(), fence, value, ttl };
        match self.ask_now(core, now, call) {
            (_, Some(Outcome::Kept(deadline))) => Asked::Now(Ok(deadline)),
            (_, Some(Outcome::Failed(failure))) => Asked::Now(Err(failure)),
            (_, Some(Outcome::Granted(_) | Outcome::Found(_))) => unreachable!("the answer to another request"),
            (_, None) if core.peer.is_none() => Asked::Now(Err(Failure::Lost)),
            (request, None) => Asked::Later(self.wait_in(core, now, (session, request), &name, Tell::Kept)),
        }
    }

    /// Somebody wants something of what is kept here under a name and a value, or under whichever value it is.
    pub(crate) fn by_value(self: &Arc<Self>, name: &Name, value: Option<&[u8]>, wish: Wish) -> Asked<Option<Kept>> {
        let call = |request| Call::ByValue { request, name: name.clone(), value: value.map(<[u8]>::to_vec), wish };
        self.with(|core, now| {
            if core.peer.is_none() {
                return Asked::Now(Err(Failure::NoMember));
            }
            match self.ask_now(core, now, call) {
                (_, Some(Outcome::Found(found))) => Asked::Now(found),
                (_, Some(Outcome::Failed(failure))) => Asked::Now(Err(failure)),
                (_, Some(Outcome::Granted(_) | Outcome::Kept(_))) => unreachable!("the answer to another request"),
                (_, None) if core.peer.is_none() => Asked::Now(Err(Failure::NoMember)),
                (request, None) => Asked::Later(self.wait_in(core, now, (NOBODY, request), name, Tell::Found)),
            }
        })
    }

    /// Makes a call: its number, and what became of it at once, if anything did.
    fn ask_now(
        self: &Arc<Self>,
        core: &mut Core,
        now: Nanos,
        call: impl FnOnce(RequestId) -> Call,
    ) -> (RequestId, Option<Outcome>) {
        let request = RequestId(core.number());
        (core.present, core.outcome) = (Some(request), None);
        self.handle(core, now, Input::Call(call(request)));
        core.present = None;
        (request, core.outcome.take())
    }

    fn wait_in<T>(
        self: &Arc<Self>,
        core: &mut Core,
        now: Nanos,
        (session, request): (SessionId, RequestId),
        name: &Name,
        tell: impl FnOnce(oneshot::Sender<Result<T, Failure>>) -> Tell,
    ) -> Pending<T> {
        let (sender, answer) = oneshot::channel();
        let whose = core.sessions.get(&session).cloned();
        core.waiting.insert((session, request), Waiting { session: whose, since: now, tell: tell(sender) });
        Pending { engine: Arc::clone(self), name: name.clone(), session, request, answer }
    }
}

/// What was had is kept, or is to be.
fn settle(guard: Guard, kept: Asked<Nanos>, ttl: Nanos, ending: Ending) -> Set {
    match kept {
        Asked::Now(Ok(deadline)) => {
            guard.disarm();
            ending.disarm();
            Set::Now(Ok(deadline))
        }
        Asked::Now(Err(failure)) => Set::Now(Err(failure)),
        Asked::Later(pending) => {
            let stage = Stage::Had(guard, pending);
            Set::Later(Setting { value: Vec::new(), ttl, stage, ending })
        }
    }
}

impl Setting {
    /// Until when it is kept, once it is.
    pub(crate) async fn kept(self) -> Result<Nanos, Failure> {
        let Self { value, ttl, stage, ending } = self;
        let (guard, pending) = match stage {
            Stage::Had(guard, pending) => (guard, pending),
            Stage::Asked(pending) => {
                let engine = Arc::clone(&pending.engine);
                let guard = pending.answer().await?;
                match engine.keep(guard, value, ttl, ending) {
                    Set::Now(known) => return known,
                    Set::Later(later) => return Box::pin(later.kept()).await,
                }
            }
        };
        let deadline = pending.answer().await?;
        guard.disarm();
        ending.disarm();
        Ok(deadline)
    }
}
