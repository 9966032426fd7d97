//! What a peer wants done.

use std::sync::Arc;

use tracing::{debug, error, info, warn};
use vez_peer::{
    ask::{Failure, Leader, RequestId, SessionId},
    fence::LATE_VIEW,
    keep::KEEPER,
    peer::{Call, Effect},
};

use super::{Core, Engine, Grant, Presence, tell::Outcome};
use crate::{clock::Nanos, identity, wire::Letter};

/// Room for so many effects is kept for the next time.
const MOST_ROOM: usize = 256;

impl Engine {
    pub(super) fn carry_out(self: &Arc<Self>, core: &mut Core, mut effects: Vec<Effect>, now: Nanos) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Send(to, frame) => core.links.send(&to, &Letter::Frame(frame)),
                Effect::Persist(batch) => {
                    if let Some(disk) = &core.disk {
                        disk.write(core.life, *batch);
                    }
                }
                Effect::Granted { session, request, name, fence, floor, .. } => {
                    core.busy.note(request.0, &name);
                    let grant = Grant { name, fence, floor, when: now };
                    if core.present == Some(request) {
                        core.outcome = Some(Outcome::Granted(grant));
                        continue;
                    }
                    let waiting = core.waiting.remove(&(session, request));
                    // One who was gone a moment ago has not been inside.
                    let unclaimed = waiting.map_or(Some(grant.clone()), |waiting| waiting.grant(self, grant));
                    let release = |Grant { name, fence, .. }| Call::Release { session, name, fence };
                    core.unclaimed.extend(unclaimed.map(release));
                }
                Effect::Failed { session, request, failure } => core.refuse(session, request, failure),
                Effect::Renewed { session, deadline } => {
                    if let Some(session) = core.sessions.get(&session) {
                        session.renewed(deadline);
                    }
                    core.answer = Some(Ok(deadline));
                }
                Effect::NotOpened { failure, .. } => core.answer = Some(Err(failure)),
                Effect::Released { result, .. } => core.answer = Some(result.map(|()| 0)),
                Effect::Ended(session) => {
                    core.part_with(session);
                    core.answer = Some(Err(Failure::NoSession));
                }
                Effect::Entered(view) => {
                    info!(view, "is a member");
                    if view >= LATE_VIEW {
                        error!(view, "half of all view numbers are used; plan for a new cluster");
                    }
                    core.note_company();
                    self.metrics.entered();
                    self.presence.send_if_modified(|presence| {
                        let is_new = *presence != Presence::Member;
                        *presence = Presence::Member;
                        is_new
                    });
                }
                Effect::Settled(view) => debug!(view, "settled"),
                Effect::Forgotten(_) => self.metrics.forgotten(),
                Effect::Violation(member, what) => {
                    warn!(%member, what, "a member did what it cannot do, if it runs the same version");
                    self.metrics.violation();
                }
                Effect::Danger(stop) => {
                    let left_ms = stop.saturating_sub(now) / 1_000_000;
                    warn!(left_ms, "nobody renews the lease of this node: all that is held here is lost soon");
                }
                Effect::Stopped(why) => {
                    core.lose_all();
                    core.peer = None;
                    self.metrics.stopped();
                    info!(?why, "is no member any more");
                    self.presence.send_replace(Presence::Stopped(why));
                }
                Effect::Kept { request, name, .. } => {
                    core.busy.note(request.0, &name);
                    if core.present == Some(request) {
                        core.outcome = Some(Outcome::Kept(name));
                    } else {
                        let waiting = core.waiting.remove(&(KEEPER, request));
                        let told = waiting.is_some_and(|waiting| waiting.keep(self, name.clone(), request, now));
                        core.unclaimed.extend((!told).then_some(Call::Cancel { request, name }));
                    }
                }
                Effect::ByValue { request, result } => {
                    if core.present == Some(request) {
                        core.outcome = Some(Outcome::Found(result));
                    } else if let Some(waiting) = core.waiting.remove(&(KEEPER, request)) {
                        waiting.found(result);
                    }
                }
                Effect::Observed { session, request, leader, .. } => core.show(session, request, leader),
                Effect::Resized { session, request, size, .. } => {
                    if let Some(waiting) = core.waiting.remove(&(session, request)) {
                        waiting.resized(size);
                    }
                }
            }
        }
        effects.shrink_to(MOST_ROOM);
        core.effects = effects;
    }
}

impl Core {
    /// It is a member of a view: whose cluster it is, and whether anybody there is called as it is.
    fn note_company(&mut self) {
        let Some(status) = self.peer.as_ref().map(|peer| peer.status()) else { return };
        if let Some(cluster) = status.cluster {
            self.lease.set_cluster(cluster);
        }
        let number = identity::number(status.id);
        for other in status.members.iter().filter(|member| member.id != status.id) {
            if identity::number(other.id) == number {
                warn!(
                    id = %other.id, address = %other.address,
                    "there is another node {number}; unless it is this one before its folder was emptied, give one of them another --id"
                );
            }
        }
    }

    fn refuse(&mut self, session: SessionId, request: RequestId, failure: Failure) {
        if self.present == Some(request) {
            self.outcome = Some(Outcome::Failed(failure));
        } else if let Some(waiting) = self.waiting.remove(&(session, request)) {
            waiting.refuse(failure);
        }
    }

    /// An observer is told who leads. One that does not look for so long that there is no room left is not told any more.
    fn show(&mut self, session: SessionId, request: RequestId, leader: Option<Leader>) {
        let Some(waiting) = self.waiting.get(&(session, request)) else { return };
        if !waiting.show(leader) {
            self.waiting.remove(&(session, request));
        }
    }

    /// A session has ended: what it held is lost, and what it waited for it does not get.
    pub(super) fn part_with(&mut self, session: SessionId) {
        let Some(session) = self.sessions.remove(&session) else { return };
        session.lose();
        let of_it = (session.id, RequestId(0))..=(session.id, RequestId(u64::MAX));
        for (_, waiting) in self.waiting.extract_if(of_it, |_, _| true) {
            waiting.refuse(Failure::NoSession);
        }
    }
}
