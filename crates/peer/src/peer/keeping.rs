//! What is kept for whoever knows a value: the calls about it, and when they can be answered.

use super::{Cx, Effect, Peer};
use crate::{
    ask::{Failure, RequestId, SessionId},
    fence::Fence,
    keep::{Keep, Moment, Wish},
    name::Name,
    shard::Nanos,
    views::Pledge,
};

impl Peer {
    /// What this process has pledged, by its own log.
    pub(super) fn pledge(&self) -> Pledge {
        self.agreement.views().map(|views| views.pledge(self.me.id, self.me.incarnation)).unwrap_or_default()
    }

    /// What this process wants to have pledged. If it has needed less for a while, that is less.
    pub(super) fn tell_pledge(&mut self, now: Nanos) -> Pledge {
        let in_force = self.pledge();
        self.keeping.look_back(&Moment { now, charter: &self.charter, in_force });
        self.keeping.tell()
    }

    /// Perhaps something else is pledged than before: what has been waiting for that is looked at again.
    pub(super) fn on_pledged(&mut self, cx: &mut Cx<'_>) {
        if self.member().is_none() || self.pledge() != self.keeping.issued() {
            return;
        }
        for (session, keep) in self.keeping.take_waiting() {
            self.keep(session, keep, cx);
        }
        for ((name, request), (fence, wish)) in self.keeping.take_wishes() {
            // Those about what is gone were answered when it went.
            let (_, kept) = self.keeping.find(&name, None).expect("what somebody waits for is kept");
            assert_eq!(kept.fence, fence, "it is the same still");
            self.change(request, &name, wish, cx);
        }
    }

    /// What a session holds is to be kept.
    pub(super) fn keep(&mut self, session: SessionId, keep: Keep, cx: &mut Cx<'_>) {
        let request = keep.request;
        if let Err(failure) = self.may_keep(session, &keep) {
            return cx.effects.push(Effect::Failed { session, request, failure });
        }
        let in_force = self.pledge();
        let moment = Moment { now: cx.now, charter: &self.charter, in_force };
        if let Some((deadline, end)) = self.keeping.keep(&moment, session, keep) {
            self.sessions.keep(session, deadline, end);
            cx.effects.push(Effect::Kept { session, request, deadline });
        }
    }

    fn may_keep(&self, session: SessionId, keep: &Keep) -> Result<(), Failure> {
        match self.member() {
            None => return Err(Failure::NoMember),
            // It would have to be waited for.
            Some(member) if member.leaving => return Err(Failure::Leaving),
            Some(_) => {}
        }
        if self.deadline_of(session).is_none() {
            return Err(Failure::NoSession);
        }
        self.keeping.check(session, keep)?;
        if !self.holds_lock(session, &keep.name, keep.fence) {
            return Err(Failure::NotYours(keep.name.clone()));
        }
        // With it everything that its session has would end otherwise than was said.
        let uses: u32 = self.lanes.iter().map(|lane| lane.shard.uses(session)).sum();
        if uses > 1 { Err(Failure::KeepsOnly(keep.name.clone())) } else { Ok(()) }
    }

    fn holds_lock(&self, session: SessionId, name: &Name, fence: Fence) -> bool {
        self.lanes[usize::from(name.shard(self.charter.shards))].shard.holds_lock(session, name, fence)
    }

    /// Somebody wants something of what is kept.
    pub(super) fn by_value(
        &mut self,
        request: RequestId,
        name: &Name,
        value: Option<&[u8]>,
        wish: Wish,
        cx: &mut Cx<'_>,
    ) {
        if self.member().is_none() {
            return cx.effects.push(Effect::ByValue { request, result: Err(Failure::NoMember) });
        }
        let Some((session, kept)) = self.keeping.find(name, value) else {
            return cx.effects.push(Effect::ByValue { request, result: Ok(None) });
        };
        assert!(self.holds_lock(session, name, kept.fence), "what is kept is held");
        match wish {
            Wish::Look => cx.effects.push(Effect::ByValue { request, result: Ok(Some(kept)) }),
            Wish::Release | Wish::Expire { ttl: 0 } => {
                self.let_go(session, cx);
                cx.effects.push(Effect::ByValue { request, result: Ok(Some(kept)) });
            }
            Wish::Expire { .. } | Wish::Prolong { .. } => self.change(request, name, wish, cx),
        }
    }

    /// What is kept is to end some other time.
    fn change(&mut self, request: RequestId, name: &Name, wish: Wish, cx: &mut Cx<'_>) {
        let in_force = self.pledge();
        let moment = Moment { now: cx.now, charter: &self.charter, in_force };
        if self.member().is_some_and(|member| member.leaving) && self.keeping.would_prolong(&moment, name, wish) {
            return cx.effects.push(Effect::ByValue { request, result: Err(Failure::Leaving) });
        }
        let result = match self.keeping.change(&moment, request, name, wish) {
            Ok(None) => return, // It waits for a pledge.
            Ok(Some((session, kept, end))) => {
                self.sessions.keep(session, kept.deadline, end);
                Ok(Some(kept))
            }
            Err(failure) => Err(failure),
        };
        cx.effects.push(Effect::ByValue { request, result });
    }

    /// A session has given something back. If that was kept, there is nothing left for the session to do; if it was to be, it
    /// is not.
    pub(super) fn on_given_back(&mut self, session: SessionId, name: &Name, fence: Fence, cx: &mut Cx<'_>) {
        if let Some(request) = self.keeping.give_up(session, name, fence) {
            cx.effects.push(Effect::Failed { session, request, failure: Failure::NotYours(name.clone()) });
        }
        if self.keeping.of_session(session) == Some((name, fence)) {
            self.let_go(session, cx);
        }
    }

    fn let_go(&mut self, session: SessionId, cx: &mut Cx<'_>) {
        self.end_session(session, cx);
        cx.effects.push(Effect::Ended(session));
    }

    /// A session is over, and with it all that it held.
    pub(super) fn on_ended(&mut self, session: SessionId, cx: &mut Cx<'_>) {
        let Some((name, fence, in_vain)) = self.keeping.end(session) else { return };
        assert!(!self.holds_lock(session, &name, fence), "what is kept no longer is held no longer");
        for request in in_vain {
            cx.effects.push(Effect::ByValue { request, result: Ok(None) });
        }
    }
}
