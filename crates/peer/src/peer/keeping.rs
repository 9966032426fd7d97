//! What is kept for whoever knows a value: the calls about it, and when they can be answered.

use alloc::sync::Arc;

use super::{Cx, Effect, Peer};
use crate::{
    ask::{Ask, Failure, Patience, RequestId},
    fence::Fence,
    keep::{Had, KEEPER, Kept, Moment, Set, Wish},
    name::Name,
    shard::{Nanos, Waiter},
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
        self.look_at_unpledged(cx);
        for ((name, request), (fence, wish)) in self.keeping.take_wishes() {
            // Those about what is gone were answered when it went.
            assert_eq!(self.keeping.fence_of(&name), Some(fence), "what somebody waits for is the same still");
            self.change(request, &name, wish, cx);
        }
    }

    /// What waits for a pledge may not have to any more, or in vain.
    pub(super) fn look_at_unpledged(&mut self, cx: &mut Cx<'_>) {
        for name in self.keeping.take_unpledged() {
            let fence = self.keeping.fence_of(&name).expect("what waits for a pledge is had");
            self.had(&name, fence, cx);
        }
    }

    /// Somebody wants a lock, now or never, to be kept.
    pub(super) fn set(&mut self, mut set: Set, cx: &mut Cx<'_>) {
        set.name = self.known(set.name);
        let (request, name) = (set.request, set.name.clone());
        let standing = match self.member() {
            None => Err(Failure::NoMember),
            // That somebody has it is no failure of this node.
            Some(member) if member.leaving && self.is_locked_here(&name) => Err(Failure::Busy(name.clone())),
            Some(member) if member.leaving => Err(Failure::Leaving),
            Some(_) => Ok(()),
        };
        if let Err(failure) = standing.and_then(|()| self.keeping.set(set)) {
            return self.fail(request, failure, cx);
        }
        let waiter = Waiter { session: KEEPER, request, ask: Ask::Lock, patience: Patience::Try, since: cx.now };
        self.in_shard(&name, cx, |now, shard, out| shard.acquire(now, &name, waiter, out));
    }

    /// Whether somebody here has a lock, or waits for it: who only tries does not get it here.
    #[must_use]
    pub fn is_locked_here(&self, name: &Name) -> bool {
        self.lanes[usize::from(name.shard(self.charter.shards))].shard.is_locked_here(name)
    }

    /// A lock that is to be kept is not had.
    pub(super) fn on_denied(&mut self, name: &Name, request: RequestId, failure: Failure, cx: &mut Cx<'_>) {
        self.keeping.denied(name, request);
        self.fail(request, failure, cx);
    }

    /// A lock is had that is to be kept.
    pub(super) fn had(&mut self, name: &Name, fence: Fence, cx: &mut Cx<'_>) {
        if self.member().is_none_or(|member| member.leaving) {
            // It would have to be waited for.
            return match self.let_go(name, fence, cx) {
                Err(request) => self.fail(request, Failure::Leaving, cx),
                Ok(_) => unreachable!("it is not kept yet"),
            };
        }
        let moment = Moment { now: cx.now, charter: &self.charter, in_force: self.pledge() };
        if let Had::Kept(request, deadline) = self.keeping.had(&moment, name, fence) {
            cx.effects.push(Effect::Kept { request, name: name.clone(), fence, deadline });
        }
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
        let Some((name, fence)) = self.keeping.find(name, value) else {
            return cx.effects.push(Effect::ByValue { request, result: Ok(None) });
        };
        let result = match wish {
            Wish::Look => Ok(self.keeping.look(&name)),
            Wish::Release | Wish::Expire { ttl: 0 } => Ok(self.let_go(&name, fence, cx).ok()),
            Wish::Expire { .. } | Wish::Prolong { .. } => return self.change(request, &name, wish, cx),
        };
        cx.effects.push(Effect::ByValue { request, result });
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
            result => result,
        };
        cx.effects.push(Effect::ByValue { request, result });
    }

    /// Who has set something does not want to hear of it any more: it is given back.
    pub(super) fn take_back(&mut self, request: RequestId, name: &Name, cx: &mut Cx<'_>) {
        if let Some(fence) = self.keeping.held_by(name, request)
            && let Err(request) = self.let_go(name, fence, cx)
        {
            self.fail(request, Failure::Cancelled(name.clone()), cx);
        }
    }

    /// What is kept, or is to be, was given back by force.
    pub(super) fn on_given_back(&mut self, name: &Name, cx: &mut Cx<'_>) {
        if let Err(request) = self.over(name, cx) {
            self.fail(request, Failure::NotYours(name.clone()), cx);
        }
    }

    /// What has been kept for long enough is not kept any more.
    pub(super) fn end_overdue_keeps(&mut self, cx: &mut Cx<'_>) {
        while let Some((name, fence)) = self.keeping.overdue(cx.now) {
            let _ = self.let_go(&name, fence, cx); // Whom it was kept for is told nothing: its own clock has.
        }
    }

    /// What is kept, or is to be, is given back: what was kept, or whose request has failed.
    fn let_go(&mut self, name: &Name, fence: Fence, cx: &mut Cx<'_>) -> Result<Kept, RequestId> {
        let mut released = Ok(());
        self.in_shard(name, cx, |now, shard, out| released = shard.release(now, KEEPER, name, fence, out));
        assert_eq!(released, Ok(()), "what is kept is held");
        self.over(name, cx)
    }

    /// What is kept, or is to be, is held no longer.
    fn over(&mut self, name: &Name, cx: &mut Cx<'_>) -> Result<Kept, RequestId> {
        let in_vain = self.keeping.wishes_in_vain(name).into_iter();
        cx.effects.extend(in_vain.map(|request| Effect::ByValue { request, result: Ok(None) }));
        self.keeping.end(name)
    }

    fn fail(&self, request: RequestId, failure: Failure, cx: &mut Cx<'_>) {
        cx.effects.push(Effect::Failed { session: KEEPER, request, failure });
    }

    /// Who has set a name, or wants to, as it called itself.
    #[must_use]
    pub fn setter(&self, name: &Name) -> Option<Arc<str>> {
        self.keeping.setter(name).cloned()
    }
}
