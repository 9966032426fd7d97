//! Frames that come, and frames that go.

use alloc::{boxed::Box, vec::Vec};

use vez_algorithms::NodeId;

use super::{Cx, Effect, Identity, MOST_PARKED, Peer, standing::Standing};
use crate::{
    frame::{Body, Frame, Membership},
    identity::{Address, MemberId},
    keep::KEEPER,
    shard,
    view::ViewNumber,
};

impl Peer {
    /// A frame arrives. Whatever does not concern this process changes nothing.
    pub(super) fn on_frame(&mut self, frame: Frame, cx: &mut Cx<'_>) {
        if self.is_strange(&frame) {
            self.counts.strangers += 1;
            return;
        }
        let Frame { from, incarnation, cluster, .. } = frame;
        self.learn_address(from, &frame.address);
        if let Body::Membership(Membership::Wait) = &frame.body {
            self.cluster = self.cluster.or(cluster); // It belongs to those who let it join.
        }
        match frame.body {
            Body::Agreement(message) => {
                self.with_agreement(cx, |agreement, now, cx| agreement.on_message(now, from, message, cx));
            }
            Body::Membership(message) => self.on_membership(from, incarnation, message, cx),
            Body::Shard { view, .. } if self.is_next(view) => self.park(frame),
            Body::Shard { view, shard, items } => {
                let member = self.member().filter(|member| member.view.number == view);
                let Some(node) = member.and_then(|member| member.view.process(from, incarnation)) else {
                    self.counts.frames_of_other_views += 1;
                    return;
                };
                let Some(lane) = self.lanes.get_mut(usize::from(shard)) else {
                    return self.blame(node, "a shard that there is not", cx);
                };
                let effects = lane.receive(cx.now, node, items);
                self.carry_out(usize::from(shard), effects, cx);
            }
        }
    }

    fn is_strange(&self, frame: &Frame) -> bool {
        let to_another = frame.to.is_some_and(|to| to != self.me.id);
        let of_another_cluster = match (frame.cluster, self.cluster) {
            (Some(theirs), Some(ours)) => theirs != ours,
            // Who has not joined any cluster can only ask; who belongs to none believes whom it has asked.
            (None, _) => !matches!(frame.body, Body::Membership(Membership::Join { .. })),
            (Some(_), None) => false,
        };
        to_another || of_another_cluster || frame.from == self.me.id
    }

    /// What is one view ahead waits for it. That there is such a view is believed only when the log says so.
    fn is_next(&self, view: ViewNumber) -> bool {
        let current = self.agreement.views().map_or(0, |views| views.number());
        view == current + 1
    }

    fn park(&mut self, frame: Frame) {
        if self.parked.len() < MOST_PARKED {
            self.parked.push_back(frame); // What does not fit is sent again.
        }
    }

    /// Does what a shard wants done.
    pub(super) fn carry_out(&mut self, shard: usize, mut effects: shard::Effects, cx: &mut Cx<'_>) {
        for effect in effects.drain(..) {
            match effect {
                shard::Effect::Granted { session: KEEPER, name, fence, .. } => self.had(&name, fence, cx),
                shard::Effect::Failed { session: KEEPER, request, name, failure } => {
                    self.on_denied(&name, request, failure, cx);
                }
                shard::Effect::Granted { session, request, name, fence, floor } => {
                    let deadline = self.deadline_of(session).expect("whoever ends takes its requests along");
                    cx.effects.push(Effect::Granted { session, request, name, fence, floor, deadline });
                }
                shard::Effect::Failed { session, request, failure, .. } => {
                    cx.effects.push(Effect::Failed { session, request, failure });
                }
                shard::Effect::Observed { session, request, name, leader } => {
                    cx.effects.push(Effect::Observed { session, request, name, leader });
                }
                shard::Effect::Resized { session, request, name, size } => {
                    cx.effects.push(Effect::Resized { session, request, name, size });
                }
                shard::Effect::NewViewWanted => self.wants_view = true,
                shard::Effect::Settled => self.note_settled(cx),
                shard::Effect::Forgotten(name) => cx.effects.push(Effect::Forgotten(name)),
                shard::Effect::Violation(node, what) => self.blame(node, what, cx),
                shard::Effect::Send(..) => unreachable!("the lane has taken it"),
            }
        }
        self.lanes[shard].reuse(effects);
    }

    /// A member did what it cannot do, if it runs the same code.
    fn blame(&mut self, node: NodeId, what: &'static str, cx: &mut Cx<'_>) {
        self.counts.violations += 1;
        if let Some(member) = self.member() {
            cx.effects.push(Effect::Violation(member.view.member(node).id, what));
        }
    }

    fn note_settled(&self, cx: &mut Cx<'_>) {
        if let Some(member) = self.member()
            && self.lanes.iter().all(|lane| lane.shard.is_settled_in(member.view.number))
        {
            cx.effects.push(Effect::Settled(member.view.number));
        }
    }

    /// What time brings in the shards.
    pub(super) fn tick_lanes(&mut self, cx: &mut Cx<'_>) {
        if self.member().is_none() {
            return;
        }
        for shard in 0..self.lanes.len() {
            if self.lanes[shard].deadline().is_some_and(|due| due <= cx.now) {
                let effects = self.lanes[shard].tick(cx.now);
                self.carry_out(shard, effects, cx);
            }
        }
    }

    /// Sends what the shards have gathered.
    pub(super) fn flush(&mut self, cx: &mut Cx<'_>) {
        let Standing::Member(member) = &self.standing else { return };
        let view = &member.view;
        let mut letters = Vec::new();
        for (shard, lane) in (0..).zip(&mut self.lanes) {
            let Some(outbox) = lane.take_outbox() else { continue };
            for (node, items) in outbox {
                letters.push((view.member(node).id, Body::Shard { view: view.number, shard, items }));
            }
        }
        for (to, body) in letters {
            self.send_to(to, body, cx);
        }
    }

    /// Sends something to a disk, if it is known where that is.
    pub(super) fn send_to(&mut self, to: MemberId, body: Body, cx: &mut Cx<'_>) {
        if let Some(address) = self.addresses.get(&to).cloned() {
            self.send(address, Some(to), body, cx);
        }
    }

    pub(super) fn send(&mut self, address: Address, to: Option<MemberId>, body: Body, cx: &mut Cx<'_>) {
        if self.has_stopped() {
            return;
        }
        let Identity { id: from, incarnation, address: mine } = self.me.clone();
        let frame = Frame { cluster: self.cluster, from, incarnation, address: mine, to, body };
        cx.effects.push(Effect::Send(address, Box::new(frame)));
    }
}
