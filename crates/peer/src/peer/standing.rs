//! Whether this process is a member, and for how long.

use alloc::{boxed::Box, vec::Vec};

use vez_algorithms::NodeId;

use super::{Cx, Effect, Peer};
use crate::{
    ask::Failure,
    charter::Charter,
    frame::{Body, Membership},
    identity::MemberId,
    lease::Lease,
    shard::Nanos,
    view::View,
};

/// Whether this process is a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// Not, or not yet.
    Outside,
    /// It is.
    Member(Box<Membered>),
    /// It never will be again.
    Stopped,
}

/// A member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Membered {
    pub view: View,
    /// Its number in the view.
    pub node: NodeId,
    pub lease: Lease,
    /// Whether holders were warned of the end of this lease.
    warned: bool,
    /// It takes no new requests, and leaves once nothing is held.
    pub leaving: bool,
    /// It has said that it leaves.
    said_so: bool,
}

/// Why nothing more comes from a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// Its lease is over, or nearly: nobody has renewed it.
    LeaseOver,
    /// It has left, as it was told to.
    Left,
    /// Its disk belongs to a member that was removed: it can come back with an empty disk and a new id.
    Retired,
    /// The cluster goes by something else.
    Refused(Charter),
    /// What is on its disk cannot be true.
    Broken(&'static str),
}

impl Standing {
    pub(super) fn deadline(&self, charter: &Charter) -> Option<Nanos> {
        match self {
            Self::Member(member) if member.warned => Some(member.lease.stop(charter)),
            Self::Member(member) => Some(member.lease.danger(charter)),
            Self::Outside | Self::Stopped => None,
        }
    }
}

impl Peer {
    /// Whether anything may be done at this moment. A member whose lease is over does nothing more, not even a release.
    pub(super) fn may_go_on(&mut self, cx: &mut Cx<'_>) -> bool {
        let Standing::Member(member) = &mut self.standing else { return !self.has_stopped() };
        let stop = member.lease.stop(&self.charter);
        if cx.now >= stop {
            self.stop(self.end_of_membership(), cx);
            return false;
        }
        let danger = cx.now >= member.lease.danger(&self.charter);
        if danger && !member.warned {
            cx.effects.push(Effect::Danger(stop));
        }
        member.warned = danger;
        true
    }

    /// One that wanted to go, and holds nothing, has lost nothing.
    pub(super) fn end_of_membership(&self) -> Stopped {
        let leaves = self.member().is_some_and(|member| member.leaving) && !self.holds_anything();
        if leaves { Stopped::Left } else { Stopped::LeaseOver }
    }

    pub(super) fn stop(&mut self, why: Stopped, cx: &mut Cx<'_>) {
        self.standing = Standing::Stopped;
        cx.effects.push(Effect::Stopped(why));
    }

    /// Whether nothing more comes from this process.
    #[must_use]
    pub fn has_stopped(&self) -> bool {
        self.standing == Standing::Stopped
    }

    /// There is a new view.
    pub(super) fn on_view(&mut self, view: View, cx: &mut Cx<'_>) {
        let node = view.process(self.me.id, self.me.incarnation);
        match (&mut self.standing, node) {
            (Standing::Stopped, _) | (Standing::Outside, None) => return,
            (Standing::Member(_), None) => return self.stop(self.end_of_membership(), cx),
            (Standing::Member(member), Some(node)) => {
                member.view = view.clone();
                member.node = node;
            }
            (Standing::Outside, Some(node)) => {
                let lease = Lease::new(view.member(node).join_sent);
                let member =
                    Membered { view: view.clone(), node, lease, warned: false, leaving: false, said_so: false };
                self.standing = Standing::Member(Box::new(member));
                if !self.may_go_on(cx) {
                    return; // The Join was sent so long ago that its lease is over.
                }
            }
        }
        self.wants_view = false;
        cx.effects.push(Effect::Entered(view.number));
        let node = node.expect("it is a member");
        for shard in 0..self.lanes.len() {
            let effects = self.lanes[shard].install(cx.now, view.clone(), node);
            self.carry_out(shard, effects, cx);
        }
        for frame in core::mem::take(&mut self.parked) {
            self.on_frame(frame, cx);
        }
    }

    /// It takes no new requests, and nobody waits here any more.
    pub(super) fn leave(&mut self, cx: &mut Cx<'_>) {
        let Standing::Member(member) = &mut self.standing else { return self.stop_if_outside(Stopped::Left, cx) };
        member.leaving = true;
        for shard in 0..self.lanes.len() {
            let effects = self.lanes[shard].run(cx.now, |shard, out| shard.turn_away(cx.now, &Failure::Leaving, out));
            self.carry_out(shard, effects, cx);
        }
        self.look_at_unpledged(cx);
    }

    /// When a member does nothing more, unless it is renewed.
    #[must_use]
    pub fn stops_at(&self) -> Option<Nanos> {
        self.member().map(|member| member.lease.stop(&self.charter))
    }

    pub(super) fn member(&self) -> Option<&Membered> {
        match &self.standing {
            Standing::Member(member) => Some(member),
            Standing::Outside | Standing::Stopped => None,
        }
    }

    /// One that leaves says so at once when nothing is held any more, however long it is until its next heartbeat. So does
    /// one that has something to pledge: somebody waits for that.
    pub(super) fn hurry(&mut self, now: Nanos) {
        let leaves = self.member().is_some_and(|member| member.leaving && !member.said_so) && !self.holds_anything();
        if leaves || self.keeping.has_news() {
            self.next_beat = now;
        }
    }

    /// Shows itself to the leader: by a Heartbeat, or a Join, or a Leave.
    pub(super) fn beat(&mut self, cx: &mut Cx<'_>) {
        self.next_beat = cx.now.saturating_add(self.charter.lease / 9);
        let (id, sent) = (self.me.id, cx.now);
        let Some(member) = self.member() else {
            let join = Membership::Join { charter: self.charter.clone(), sent };
            if self.agreement.leads().is_some() {
                return self.on_membership(id, self.me.incarnation, join, cx);
            }
            for address in self.whom_to_ask() {
                self.send(address, None, Body::Membership(join.clone()), cx);
            }
            return;
        };
        let leave = Membership::Leave { view: member.view.number };
        let leave = Some(leave).filter(|_| member.leaving && !self.holds_anything());
        if let Standing::Member(member) = &mut self.standing {
            member.said_so |= leave.is_some();
        }
        let pledge = self.tell_pledge(cx.now);
        let Some(member) = self.member() else { return };
        let heartbeat = Membership::Heartbeat {
            sent,
            view: member.view.number,
            unheard: self.unheard(cx.now),
            wants_view: self.wants_view,
            pledge,
        };
        let leader = self.agreement.leader();
        for message in [Some(heartbeat), leave.clone()].into_iter().flatten() {
            match leader {
                Some(leader) if leader == id => self.on_membership(id, self.me.incarnation, message, cx),
                Some(leader) => self.send_to(leader, Body::Membership(message), cx),
                None => {}
            }
        }
        // Whom nobody leads is perhaps gone already.
        if let (Some(leave), None) = (leave, leader) {
            for address in self.whom_to_ask() {
                self.send(address, None, Body::Membership(leave.clone()), cx);
            }
        }
    }

    /// Whether a client of this node holds anything.
    #[must_use]
    pub fn holds_anything(&self) -> bool {
        self.lanes.iter().any(|lane| lane.shard.holds_anything())
    }

    /// Members that something is owed by since half a lease.
    fn unheard(&self, now: Nanos) -> Vec<MemberId> {
        let (Some(member), Some(moment)) = (self.member(), now.checked_sub(self.charter.lease / 2)) else {
            return Vec::new();
        };
        let mut nodes: Vec<NodeId> = self.lanes.iter().flat_map(|lane| lane.unheard_since(moment)).collect();
        nodes.sort();
        nodes.dedup();
        nodes.into_iter().map(|node| member.view.member(node).id).collect()
    }
}
