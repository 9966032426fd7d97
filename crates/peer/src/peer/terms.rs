//! What a leader does, and what the log says.

use alloc::{boxed::Box, vec::Vec};

use super::{
    Cx, Effect, Peer,
    standing::{Standing, Stopped},
};
use crate::{
    agreement::Event,
    charter::Charter,
    frame::{Body, Membership},
    identity::{Incarnation, MemberId},
    leadership::{Heartbeat, Leadership},
    view::ViewNumber,
};

/// So many addresses are remembered besides those of members.
const MOST_SEEDS: usize = 64;

impl Peer {
    /// Carries out what the agreement wants done.
    pub(super) fn obey(&mut self, events: Vec<Event>, cx: &mut Cx<'_>) {
        for event in events {
            if self.has_stopped() {
                return;
            }
            match event {
                Event::Send(to, message) => self.send_to(to, Body::Agreement(message), cx),
                Event::Persist(batch) => cx.effects.push(Effect::Persist(Box::new(batch))),
                Event::Viewed(view) => {
                    self.cluster = self.agreement.views().map(|views| views.cluster);
                    self.learn_addresses();
                    self.note_outcome(cx);
                    self.on_view(view, cx);
                    self.on_pledged(cx);
                }
                Event::Pledged => {
                    if let Some(leadership) = &mut self.leadership {
                        leadership.on_pledged();
                    }
                    self.on_pledged(cx);
                }
                Event::Refused(..) => self.note_outcome(cx),
                Event::Leads => {
                    self.leadership = Some(Leadership::default());
                    self.next_beat = cx.now; // It need not wait to be asked by itself.
                }
                Event::Follows => self.leadership = None,
                Event::Broken(what) => self.stop(Stopped::Broken(what), cx),
            }
        }
    }

    fn note_outcome(&mut self, cx: &Cx<'_>) {
        if let (Some(leadership), Some(views)) = (&mut self.leadership, self.agreement.views()) {
            leadership.on_outcome(cx.now, views);
        }
    }

    /// Something about membership.
    pub(super) fn on_membership(
        &mut self,
        from: MemberId,
        incarnation: Incarnation,
        message: Membership,
        cx: &mut Cx<'_>,
    ) {
        match message {
            Membership::Join { charter, sent } => {
                let answer = self.answer_to_join(from, &charter);
                let address = if from == self.me.id { Some(&self.me.address) } else { self.addresses.get(&from) };
                if let (Membership::Wait, Some(leadership), Some(address)) = (&answer, &mut self.leadership, address) {
                    leadership.on_join(cx.now, &self.charter, (from, incarnation), address.clone(), sent);
                }
                if from == self.me.id {
                    return self.on_membership(from, incarnation, answer, cx);
                }
                self.send_to(from, Body::Membership(answer), cx);
            }
            Membership::Heartbeat { sent, view, unheard, wants_view, pledge } => {
                let unheard = unheard.into_iter().collect();
                self.on_heartbeat(Heartbeat { id: from, incarnation, sent, view, unheard, wants_view, pledge }, cx);
            }
            Membership::Leave { view } => self.on_leave(from, incarnation, view, cx),
            Membership::Evict(id) => {
                if let Some(leadership) = &mut self.leadership {
                    leadership.evict(id);
                }
            }
            Membership::Gone { process } => {
                if process == self.me.incarnation && self.end_of_membership() == Stopped::Left {
                    self.stop(Stopped::Left, cx);
                }
            }
            Membership::Renewed { process, sent } => {
                if let Standing::Member(member) = &mut self.standing
                    && process == self.me.incarnation
                    && sent <= cx.now
                {
                    member.lease.renew(sent);
                }
            }
            Membership::NotLeader(Some(leader)) if self.seeds.len() < MOST_SEEDS && !self.seeds.contains(&leader) => {
                self.seeds.push(leader);
            }
            Membership::Wait | Membership::NotLeader(_) => {}
            Membership::Retired => self.stop_if_outside(Stopped::Retired, cx),
            Membership::Refused(charter) => self.stop_if_outside(Stopped::Refused(charter), cx),
        }
    }

    pub(super) fn stop_if_outside(&mut self, why: Stopped, cx: &mut Cx<'_>) {
        if self.standing == Standing::Outside {
            self.stop(why, cx);
        }
    }

    fn answer_to_join(&self, from: MemberId, charter: &Charter) -> Membership {
        let Some(views) = self.agreement.views() else { return Membership::NotLeader(None) };
        if *charter != views.charter {
            return Membership::Refused(views.charter.clone());
        }
        // As long as its vote may be needed, whoever was removed keeps its disk, and goes on voting.
        let retired = views.is_retired(from);
        if retired && !self.agreement.agreed_config().is_voter(from) && !self.agreement.config().is_voter(from) {
            return Membership::Retired;
        }
        if self.leadership.is_some() && !retired {
            return Membership::Wait;
        }
        let leader = self.agreement.leader().and_then(|leader| self.addresses.get(&leader).cloned());
        Membership::NotLeader(leader)
    }

    /// A process that was a member in that view wants to go, or is gone already and does not know.
    fn on_leave(&mut self, id: MemberId, incarnation: Incarnation, view: ViewNumber, cx: &mut Cx<'_>) {
        let Some(views) = self.agreement.views() else { return };
        let is_member = views.members().get(&id).is_some_and(|member| member.incarnation == incarnation);
        if is_member && let Some(leadership) = &mut self.leadership {
            leadership.on_leave(views, id, incarnation);
        } else if !is_member && view < views.number() && id != self.me.id {
            self.send_to(id, Body::Membership(Membership::Gone { process: incarnation }), cx);
        }
    }

    /// Somebody wants a member to go.
    pub(super) fn evict(&mut self, id: MemberId, cx: &mut Cx<'_>) {
        match self.agreement.leader() {
            Some(leader) if leader == self.me.id => {
                self.on_membership(leader, self.me.incarnation, Membership::Evict(id), cx);
            }
            Some(leader) => self.send_to(leader, Body::Membership(Membership::Evict(id)), cx),
            None => {} // Whoever wants it says it again.
        }
    }

    fn on_heartbeat(&mut self, heartbeat: Heartbeat, cx: &mut Cx<'_>) {
        let mut round = None;
        if self.leadership.is_some() {
            self.with_agreement(cx, |agreement, now, cx| round = agreement.confirm(now, cx));
        }
        if let (Some(leadership), Some(views), Some(round)) = (&mut self.leadership, self.agreement.views(), round) {
            leadership.on_heartbeat(cx.now, views, heartbeat, round);
        }
    }

    /// What a leader does whenever anything has happened: answers renewals, changes the view, changes who votes.
    pub(super) fn lead(&mut self, cx: &mut Cx<'_>) {
        // Before its first commit it does not know all that earlier leaders have decided, removals among it.
        let Some(since) = self.agreement.leads().and_then(|leading| leading.since) else { return };
        self.answer_renewals(cx);
        let (Some(leadership), Some(views)) = (&mut self.leadership, self.agreement.views()) else { return };
        leadership.condemn(cx.now, self.me.id, &self.charter);
        let voters = self.agreement.config().voters;
        let (wanted, audience) = leadership.configuration(cx.now, self.me.id, views, &voters);
        let pledges = leadership.pledges(views);
        if !self.agreement.is_proposing() && !pledges.is_empty() {
            self.propose(pledges, cx);
        }
        let (Some(leadership), Some(views)) = (&mut self.leadership, self.agreement.views()) else { return };
        if !self.agreement.is_proposing() {
            let agreement = &self.agreement;
            let changes = leadership.changes(cx.now, since, views, &voters, &|id| agreement.caught_up(id));
            let waits = leadership.waits_for_kept(cx.now, since, views);
            if !waits && leadership.is_time(cx.now, &changes, &self.charter) {
                self.propose(changes, cx);
            }
        }
        // Not while a view is on its way: whoever that removes is not to be given a vote any more.
        if !self.agreement.is_proposing() {
            self.with_agreement(cx, |agreement, now, cx| {
                agreement.reconfigure(now, &wanted, &audience, cx);
            });
        }
    }

    fn propose(&mut self, changes: Vec<crate::views::Change>, cx: &mut Cx<'_>) {
        // Before anything else happens: whoever is to be removed is not renewed from here on.
        if let Some(leadership) = &mut self.leadership {
            leadership.proposed(changes.clone());
        }
        let mut done = false;
        self.with_agreement(cx, |agreement, now, cx| done = agreement.propose(now, changes, cx));
        if !done && let Some(leadership) = &mut self.leadership {
            leadership.proposed(Vec::new());
        }
    }

    fn answer_renewals(&mut self, cx: &mut Cx<'_>) {
        let confirmed = self.agreement.confirmed();
        let Some(leadership) = &mut self.leadership else { return };
        for renewal in leadership.answer(cx.now, confirmed) {
            let renewed = Membership::Renewed { process: renewal.incarnation, sent: renewal.sent };
            if renewal.id == self.me.id {
                self.on_membership(renewal.id, renewal.incarnation, renewed, cx);
            } else {
                self.send_to(renewal.id, Body::Membership(renewed), cx);
            }
        }
    }
}
