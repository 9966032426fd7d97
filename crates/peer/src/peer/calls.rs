//! What clients want.

use alloc::vec::Vec;

use super::{Cx, Effect, Peer};
use crate::{
    ask::{Ask, Failure, Limit, Patience, RequestId, SessionId},
    fence::Fence,
    keep::{KEEPER, Set, Wish},
    name::Name,
    shard::{self, Nanos, Shard, Waiter},
};

/// What a client wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// It is there, and if it does not show itself for so long, it is gone.
    Open {
        /// Which.
        session: SessionId,
        /// How long; until it is ended, if nothing is said. A lease is shorter than any promise: see [`Effect::Renewed`].
        ttl: Option<Nanos>,
    },
    /// It shows itself.
    Renew(SessionId),
    /// It is to be there for at least so long from now, if its time is limited at all.
    Extend {
        /// Which.
        session: SessionId,
        /// How long.
        by: Nanos,
    },
    /// It is gone.
    End(SessionId),
    /// It wants to be inside.
    Acquire {
        /// Who.
        session: SessionId,
        /// A number larger than that of any request before.
        request: RequestId,
        /// Where.
        name: Name,
        /// As what.
        ask: Ask,
        /// How long it waits.
        patience: Patience,
    },
    /// It does not want to wait any more. What came by a [`Self::Set`] of that number is given back, also if it is kept.
    Cancel {
        /// Which request.
        request: RequestId,
        /// Where.
        name: Name,
    },
    /// It wants to see who leads, now and from now on. Ended by Cancel.
    Observe {
        /// Who.
        session: SessionId,
        /// A number larger than that of any request before.
        request: RequestId,
        /// Where.
        name: Name,
    },
    /// It wants a semaphore that is in use to have so many units.
    Resize {
        /// Who.
        session: SessionId,
        /// A number larger than that of any request before.
        request: RequestId,
        /// Where.
        name: Name,
        /// How many.
        units: u32,
    },
    /// It has left.
    Release {
        /// Who.
        session: SessionId,
        /// Where.
        name: Name,
        /// Which acquisition.
        fence: Fence,
    },
    /// Somebody, whoever it is, wants a lock to be kept. Who was told that it is must not be told otherwise by a
    /// [`Self::Cancel`].
    Set(Set),
    /// Somebody, whoever it is, wants something of what is kept here.
    ByValue {
        /// A number larger than that of any request before.
        request: RequestId,
        /// Where.
        name: Name,
        /// Under this value, or under whichever it is.
        value: Option<Vec<u8>>,
        /// What.
        wish: Wish,
    },
}

impl Peer {
    pub(super) fn on_call(&mut self, call: Call, cx: &mut Cx<'_>) {
        match call {
            Call::Open { session, ttl } => match self.open(session, ttl, cx) {
                Ok(()) => self.tell_deadline(session, true, cx),
                Err(failure) => cx.effects.push(Effect::NotOpened { session, failure }),
            },
            Call::Renew(session) => {
                let open = self.sessions.renew(cx.now, session);
                self.tell_deadline(session, open, cx);
            }
            Call::Extend { session, by } => {
                let open = self.sessions.extend(cx.now, session, by);
                self.tell_deadline(session, open, cx);
            }
            Call::End(session) => self.end_session(session, cx),
            Call::Acquire { session, request, name, ask, patience } => {
                let name = self.known(name);
                let waiter = Waiter { session, request, ask, patience, since: cx.now };
                self.ask(&name, session, request, cx, |now, shard, out| shard.acquire(now, &name, waiter, out));
            }
            Call::Observe { session, request, name } => {
                self.ask(&name, session, request, cx, |now, shard, out| {
                    shard.observe(now, &name, session, request, out);
                });
            }
            Call::Resize { session, request, name, units } => {
                self.ask(&name, session, request, cx, |now, shard, out| {
                    shard.resize(now, &name, session, request, units, out);
                });
            }
            Call::Cancel { request, name } => {
                self.in_shard(&name, cx, |now, shard, out| {
                    shard.cancel(now, &name, request, out);
                });
                self.take_back(request, &name, cx);
            }
            Call::Release { session, name, fence } => {
                let mut result = Ok(());
                self.in_shard(&name, cx, |now, shard, out| result = shard.release(now, session, &name, fence, out));
                let is_given_back = result.is_ok();
                cx.effects.push(Effect::Released { session, name: name.clone(), fence, result });
                if is_given_back && session == KEEPER {
                    self.on_given_back(&name, cx);
                }
            }
            Call::Set(set) => self.set(set, cx),
            Call::ByValue { request, name, value, wish } => self.by_value(request, &name, value.as_deref(), wish, cx),
        }
    }

    /// A client comes, or comes again.
    fn open(&mut self, session: SessionId, ttl: Option<Nanos>, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let Some(member) = self.member() else { return Err(Failure::NoMember) };
        if session == KEEPER {
            return Err(Failure::NoSession); // It is nobody's.
        }
        if member.leaving && self.deadline_of(session).is_none() {
            return Err(Failure::Leaving);
        }
        if self.sessions.open(cx.now, session, ttl) { Ok(()) } else { Err(Failure::TooMany(Limit::Sessions)) }
    }

    /// Asks a shard for something new, if that session may.
    fn ask(
        &mut self,
        name: &Name,
        session: SessionId,
        request: RequestId,
        cx: &mut Cx<'_>,
        ask: impl FnOnce(Nanos, &mut Shard, &mut shard::Effects),
    ) {
        let failure = match self.member() {
            None => Some(Failure::NoMember),
            Some(member) if member.leaving => Some(Failure::Leaving),
            Some(_) if self.deadline_of(session).is_none() => Some(Failure::NoSession),
            Some(_) => None,
        };
        if let Some(failure) = failure {
            return cx.effects.push(Effect::Failed { session, request, failure });
        }
        self.in_shard(name, cx, ask);
    }

    pub(super) fn end_session(&mut self, session: SessionId, cx: &mut Cx<'_>) {
        if !self.sessions.end(session) {
            return;
        }
        for shard in 0..self.lanes.len() {
            if self.lanes[shard].shard.uses(session) == 0 {
                continue;
            }
            let effects = self.lanes[shard].run(cx.now, |shard, out| shard.end_session(cx.now, session, out));
            self.carry_out(shard, effects, cx);
        }
    }

    pub(super) fn end_overdue_sessions(&mut self, cx: &mut Cx<'_>) {
        while let Some(session) = self.sessions.overdue(cx.now) {
            self.end_session(session, cx);
            cx.effects.push(Effect::Ended(session));
        }
    }

    fn tell_deadline(&self, session: SessionId, open: bool, cx: &mut Cx<'_>) {
        let deadline = self.deadline_of(session).filter(|_| open);
        cx.effects.push(match deadline {
            Some(deadline) => Effect::Renewed { session, deadline },
            None => Effect::Ended(session),
        });
    }

    /// Until when what a session holds is its own: never longer than this member's lease.
    pub(super) fn deadline_of(&self, session: SessionId) -> Option<Nanos> {
        let stop = self.member().map_or(0, |member| member.lease.stop(&self.charter));
        self.sessions.deadline(session, stop)
    }

    /// A name as it is known here, if it is. It is compared with what is known many times, and copies are at a glance.
    pub(super) fn known(&self, name: Name) -> Name {
        let shard = &self.lanes[usize::from(name.shard(self.charter.shards))].shard;
        shard.known(&name).cloned().unwrap_or(name)
    }

    pub(super) fn in_shard(
        &mut self,
        name: &Name,
        cx: &mut Cx<'_>,
        happen: impl FnOnce(Nanos, &mut Shard, &mut shard::Effects),
    ) {
        let now = cx.now;
        let shard = usize::from(name.shard(self.charter.shards));
        let effects = self.lanes[shard].run(now, |shard, out| happen(now, shard, out));
        self.carry_out(shard, effects, cx);
    }
}
