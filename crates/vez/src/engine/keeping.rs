//! Locks that are kept for whoever knows a value.

use std::sync::Arc;

use tokio::sync::oneshot;
use vez_peer::{
    ask::{Failure, Kind, RequestId, SessionId},
    fence::Fence,
    keep::{KEEPER, Kept, Set, Wish},
    name::Name,
    peer::{Call, Input},
};

use super::{
    Asked, Core, Engine,
    calls::Pending,
    tell::{Outcome, Tell, Waiting},
};
use crate::clock::Nanos;

/// A lock that is kept, of which nobody has been told yet. If this is dropped before, it is given back.
pub(crate) struct Untold {
    engine: Arc<Engine>,
    name: Name,
    request: RequestId,
    told: bool,
}

impl Untold {
    pub(super) fn new(engine: &Arc<Engine>, name: Name, request: RequestId) -> Self {
        Self { engine: Arc::clone(engine), name, request, told: false }
    }

    /// Whoever wanted it is told.
    pub(crate) fn told(mut self) {
        self.told = true;
    }
}

impl Drop for Untold {
    fn drop(&mut self) {
        if !self.told {
            let (request, name) = (self.request, self.name.clone());
            self.engine.happen(Input::Call(Call::Cancel { request, name }));
        }
    }
}

impl Engine {
    /// Somebody wants a lock now or never, to be kept for whoever knows the value.
    pub(crate) fn set(self: &Arc<Self>, by: &Arc<str>, name: &Name, value: &[u8], ttl: Nanos) -> Asked<Untold> {
        self.with(|core, now| {
            let Some(peer) = &core.peer else { return Asked::Now(Err(Failure::NoMember)) };
            // Where many want the same, most of what is said is in vain, and that is seen at a glance.
            if peer.is_locked_here(name) {
                return Asked::Now(Err(Failure::Busy(name.clone())));
            }
            let (value, by) = (value.to_vec(), Arc::clone(by));
            let call = |request| Call::Set(Set { request, name: name.clone(), value, ttl, by });
            match self.ask_now(core, now, call) {
                (request, Some(Outcome::Kept(name))) => {
                    self.metrics.granted_at_once(Kind::Lock);
                    Asked::Now(Ok(Untold::new(self, name, request)))
                }
                (_, Some(Outcome::Failed(failure))) => Asked::Now(Err(failure)),
                (_, Some(Outcome::Granted(_) | Outcome::Found(_))) => unreachable!("the answer to another request"),
                (_, None) if core.peer.is_none() => Asked::Now(Err(Failure::Lost)),
                (request, None) => Asked::Later(self.wait_in(core, now, (KEEPER, request), name, Tell::Kept)),
            }
        })
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
                (request, None) => Asked::Later(self.wait_in(core, now, (KEEPER, request), name, Tell::Found)),
            }
        })
    }

    /// What is kept under a name, or is to be, is given back by force. False, if there is no such thing.
    pub(crate) fn revoke_kept(self: &Arc<Self>, name: &Name, fence: Fence) -> bool {
        let call = Call::Release { session: KEEPER, name: name.clone(), fence };
        self.with(|core, now| self.answered(core, now, call).is_ok())
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
