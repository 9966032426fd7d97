//! What a leader keeps in mind: whose lease it has renewed and when, who wants to join, who wants to leave.
//!
//! All of it is lost with the leadership. That is why a new leader removes nobody for as long as any lease that an earlier
//! one gave could last (L3), counted from its own first commit.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

use crate::{
    charter::Charter,
    identity::{Address, Incarnation, MemberId},
    shard::Nanos,
    view::ViewNumber,
    views::{Change, LONGEST_PLEDGE, Pledge, Views},
};

/// So many may want to join at a time.
const MOST_JOINERS: usize = 64;

/// What a leader keeps in mind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Leadership {
    tenants: BTreeMap<MemberId, Tenant>,
    joiners: BTreeMap<MemberId, Joiner>,
    leaving: BTreeMap<MemberId, Incarnation>,
    /// Renewals that wait for the proof that this is the leader still.
    renewals: Vec<Renewal>,
    /// What was proposed and has not come to anything yet.
    proposed: Vec<Change>,
    /// When the last view came.
    last_view: Option<Nanos>,
    last_condemned: Option<Nanos>,
    /// Since when members do not hear each other.
    bad_since: Option<Nanos>,
    wants_view: bool,
}

/// A member, as its heartbeats show it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Tenant {
    incarnation: Incarnation,
    /// When its lease was renewed last, on this clock.
    answered: Option<Nanos>,
    /// Since when it has not been in the latest view.
    behind_since: Option<Nanos>,
    /// When it last showed itself.
    heard: Nanos,
    /// Whom it has not heard from.
    unheard: BTreeSet<MemberId>,
    /// What it wants to have pledged.
    pledge: Pledge,
    /// It is to go, so that the others are not held up: its lease is not renewed any more.
    condemned: bool,
}

/// One who wants to be a member.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Joiner {
    incarnation: Incarnation,
    address: Address,
    /// When it sent its last Join, on its own clock.
    sent: Nanos,
    /// When that came, on this one.
    heard: Nanos,
}

/// A heartbeat that is to be answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Renewal {
    /// The round that has to be confirmed first: it began after the heartbeat came.
    pub round: u64,
    pub id: MemberId,
    pub incarnation: Incarnation,
    pub sent: Nanos,
}

/// What a heartbeat says.
pub(crate) struct Heartbeat {
    pub id: MemberId,
    pub incarnation: Incarnation,
    pub sent: Nanos,
    pub view: ViewNumber,
    pub unheard: BTreeSet<MemberId>,
    pub wants_view: bool,
    pub pledge: Pledge,
}

impl Leadership {
    /// Somebody wants to be a member. An older process of a disk does not come back.
    pub(crate) fn on_join(
        &mut self,
        now: Nanos,
        charter: &Charter,
        (id, incarnation): (MemberId, Incarnation),
        address: Address,
        sent: Nanos,
    ) {
        if self.joiners.len() >= MOST_JOINERS {
            self.joiners.retain(|_, joiner| joiner.is_there(now, charter));
        }
        let older = |known: &Joiner| known.incarnation <= incarnation;
        let known = self.joiners.contains_key(&id);
        if self.joiners.get(&id).is_none_or(older) && (known || self.joiners.len() < MOST_JOINERS) {
            self.joiners.insert(id, Joiner { incarnation, address, sent, heard: now });
        }
    }

    /// Somebody holds nothing any more and wants to go. A word of a process that is gone already says nothing of the next.
    pub(crate) fn on_leave(&mut self, views: &Views, id: MemberId, incarnation: Incarnation) {
        if views.members().get(&id).is_some_and(|member| member.incarnation == incarnation) {
            self.leaving.insert(id, incarnation);
        }
    }

    /// Somebody wants a member to go: its lease is not renewed any more, and once that is over, so is its membership.
    pub(crate) fn evict(&mut self, id: MemberId) {
        if let Some(tenant) = self.tenants.get_mut(&id) {
            tenant.condemned = true;
        }
    }

    /// A member shows itself; `round` is one that begins now.
    pub(crate) fn on_heartbeat(&mut self, now: Nanos, views: &Views, heartbeat: Heartbeat, round: u64) {
        let Heartbeat { id, incarnation, sent, view, unheard, wants_view, pledge } = heartbeat;
        if views.members().get(&id).is_none_or(|member| member.incarnation != incarnation) {
            return; // Not a member any more, or not yet.
        }
        let new = || Tenant::new(incarnation, None, now);
        let tenant = self.tenants.entry(id).or_insert_with(new);
        if tenant.incarnation != incarnation {
            *tenant = new();
        }
        tenant.heard = now;
        // Whom it did not hear in an earlier view may be another process by now.
        tenant.unheard = if view == views.number() { unheard } else { BTreeSet::new() };
        tenant.behind_since = if view < views.number() { tenant.behind_since.or(Some(now)) } else { None };
        let lags = tenant.behind_since.is_some_and(|since| now.saturating_sub(since) > views.charter.lease);
        if !lags && !tenant.condemned {
            tenant.pledge = tenant.pledge.max(pledge); // Whoever is to go is not to be waited for longer.
            self.renewals.push(Renewal { round, id, incarnation, sent });
        }
        self.wants_view |= wants_view && view == views.number();
    }

    /// The renewals that may be answered, now that a round is confirmed (L2).
    pub(crate) fn answer(&mut self, now: Nanos, confirmed: u64) -> Vec<Renewal> {
        let (mut due, waiting): (Vec<_>, Vec<_>) =
            core::mem::take(&mut self.renewals).into_iter().partition(|renewal| renewal.round <= confirmed);
        self.renewals = waiting;
        // Whose removal is on its way is not renewed: the removal counts on its lease being over (L4).
        due.retain(|renewal| !self.is_being_removed(renewal.id));
        for renewal in &due {
            if let Some(tenant) = self.tenants.get_mut(&renewal.id) {
                tenant.answered = Some(now);
            }
        }
        due
    }

    fn is_being_removed(&self, id: MemberId) -> bool {
        self.proposed.iter().any(|change| match change {
            Change::Remove { id: removed, .. } | Change::Leave { id: removed, .. } => *removed == id,
            Change::Admit { id: admitted, replaces, .. } => *admitted == id && replaces.is_some(),
            Change::Pledge { .. } => false,
        })
    }

    /// What was proposed was pledges, and they are agreed on.
    pub(crate) fn on_pledged(&mut self) {
        self.proposed.clear();
    }

    /// What was proposed has become the view, or has been refused.
    pub(crate) fn on_outcome(&mut self, now: Nanos, views: &Views) {
        self.proposed.clear();
        self.wants_view = false;
        self.last_view = Some(now);
        let process = |id: &MemberId| views.members().get(id).map(|member| member.incarnation);
        self.tenants.retain(|id, tenant| process(id) == Some(tenant.incarnation));
        for tenant in self.tenants.values_mut() {
            tenant.unheard.clear();
        }
        self.leaving.retain(|id, incarnation| process(id) == Some(*incarnation));
        self.joiners.retain(|id, joiner| {
            let there = joiner.is_there(now, &views.charter);
            there && process(id) != Some(joiner.incarnation) && !views.is_retired(*id)
        });
        // A new member's lease counts from its Join, which came before this.
        for (id, member) in views.members() {
            if member.joined_in == views.number() {
                self.tenants.insert(*id, Tenant::new(member.incarnation, Some(now), now));
            }
        }
    }

    /// What is to be different in the next view, if anything. `since` is when this leader committed first.
    pub(crate) fn changes(
        &self,
        now: Nanos,
        since: Nanos,
        views: &Views,
        voters: &BTreeSet<MemberId>,
        caught_up: &dyn Fn(MemberId) -> bool,
    ) -> Vec<Change> {
        let charter = &views.charter;
        let mut changes = Vec::new();
        for (id, member) in views.members() {
            let (id, incarnation) = (*id, member.incarnation);
            let pledge = views.pledge(id, incarnation).number;
            let over = self.is_over(now, since, id, incarnation, views);
            let over_for_long = self.is_over(now.saturating_sub(charter.lease), since, id, incarnation, views);
            let heir = self.joiners.get(&id).filter(|joiner| joiner.incarnation > incarnation);
            let heir = heir.filter(|joiner| joiner.is_there(now, charter));
            match heir {
                Some(joiner) if over && caught_up(id) => changes.push(joiner.admit(id, Some(incarnation), pledge)),
                // An heir that is heard and does not hear must not hold up the others.
                Some(_) if over_for_long => changes.push(Change::Remove { id, incarnation, pledge }),
                Some(_) => {}
                None if over => changes.push(Change::Remove { id, incarnation, pledge }),
                None if self.may_leave(id, incarnation, views, voters) => {
                    changes.push(Change::Leave { id, incarnation })
                }
                None => {}
            }
        }
        for (id, joiner) in &self.joiners {
            let new = !views.members().contains_key(id) && !views.is_retired(*id);
            if new && joiner.is_there(now, charter) && caught_up(*id) {
                changes.push(joiner.admit(*id, None, 0));
            }
        }
        changes
    }

    /// What members want to have pledged and have not yet. It need not wait for a view: somebody waits for it.
    pub(crate) fn pledges(&self, views: &Views) -> Vec<Change> {
        let wished = |(id, tenant): (&MemberId, &Tenant)| {
            let (id, incarnation, pledge) = (*id, tenant.incarnation, tenant.pledge);
            let is_new = pledge.number > views.pledge(id, incarnation).number && pledge.ttl <= LONGEST_PLEDGE;
            is_new.then_some(Change::Pledge { id, incarnation, pledge })
        };
        self.tenants.iter().filter_map(wished).collect()
    }

    /// Whether a view has to wait, for one who is not there, or not for long, may have kept something. With it in the view nobody could settle there
    /// before its time is over; in the present view only what is its own waits.
    pub(crate) fn waits_for_kept(&self, now: Nanos, since: Nanos, views: &Views) -> bool {
        let stays = |tenant: &Tenant| tenant.is_there(now, &views.charter) && !tenant.condemned;
        views.members().iter().any(|(id, member)| {
            let keeps = views.pledge(*id, member.incarnation).ttl > 0;
            keeps
                && !self.tenants.get(id).is_some_and(stays)
                && !self.is_over(now, since, *id, member.incarnation, views)
        })
    }

    /// Whether a view is wanted, and long enough after the last one.
    pub(crate) fn is_time(&self, now: Nanos, changes: &[Change], charter: &Charter) -> bool {
        let distance = charter.lease / 9;
        let soon = self.last_view.is_some_and(|last| now.saturating_sub(last) < distance);
        !soon && (self.wants_view || !changes.is_empty())
    }

    /// This was proposed.
    pub(crate) fn proposed(&mut self, changes: Vec<Change>) {
        self.proposed = changes;
    }

    /// Whether the lease of a member is surely over, whoever gave it, and whatever it kept beyond that.
    fn is_over(&self, now: Nanos, since: Nanos, id: MemberId, incarnation: Incarnation, views: &Views) -> bool {
        let tenant = self.tenants.get(&id).filter(|tenant| tenant.incarnation == incarnation);
        let answered = tenant.and_then(|tenant| tenant.answered).unwrap_or(0);
        let lasts = views.charter.lease.saturating_add(views.pledge(id, incarnation).ttl);
        now >= since.max(answered).saturating_add(views.charter.of_others(lasts))
    }

    /// One who wants to leave may, once its vote is not needed; or if nobody stays.
    fn may_leave(&self, id: MemberId, incarnation: Incarnation, views: &Views, voters: &BTreeSet<MemberId>) -> bool {
        let wants = self.leaving.get(&id) == Some(&incarnation);
        wants && (!voters.contains(&id) || self.stayers(views).is_empty())
    }

    fn stayers(&self, views: &Views) -> BTreeSet<MemberId> {
        let stays = |id: &&MemberId| !self.leaving.contains_key(*id);
        views.members().keys().filter(stays).copied().collect()
    }

    /// Who is to vote, and who is to be told: five of five or more members, three of three or four, one of one or two.
    pub(crate) fn configuration(
        &self,
        now: Nanos,
        me: MemberId,
        views: &Views,
        voters: &BTreeSet<MemberId>,
    ) -> (BTreeSet<MemberId>, BTreeSet<MemberId>) {
        let stayers = self.stayers(views);
        let most = match stayers.len() {
            0 => return (voters.clone(), self.audience(now, views, voters)),
            1 | 2 => 1,
            3 | 4 => 3,
            _ => 5,
        };
        // Who votes already goes on voting; the leader above all, so that it need not step down.
        let mut candidates: Vec<MemberId> = stayers.into_iter().collect();
        candidates.sort_by_key(|id| (*id != me, !voters.contains(id), *id));
        let wanted = candidates.into_iter().take(most).collect();
        let audience = self.audience(now, views, &wanted);
        (wanted, audience)
    }

    fn audience(&self, now: Nanos, views: &Views, voters: &BTreeSet<MemberId>) -> BTreeSet<MemberId> {
        let there = |(id, joiner): (&MemberId, &Joiner)| joiner.is_there(now, &views.charter).then_some(*id);
        let joiners = self.joiners.iter().filter_map(there).filter(|id| !views.is_retired(*id));
        views.members().keys().copied().chain(joiners).filter(|id| !voters.contains(id)).collect()
    }

    /// If members that are there cannot hear each other, one has to go, so that the others can settle: the one with the fewest
    /// good links, once all have had the time to say whom they do not hear, and only one a lease. One that is not there at
    /// all goes by itself, when its lease is over.
    pub(crate) fn condemn(&mut self, now: Nanos, me: MemberId, charter: &Charter) {
        let is_there = |id: &MemberId| self.tenants.get(id).is_some_and(|tenant| tenant.is_there(now, charter));
        let mut bad: BTreeMap<MemberId, BTreeSet<MemberId>> = BTreeMap::new();
        for (id, tenant) in self.tenants.iter().filter(|(id, _)| is_there(id)) {
            for other in tenant.unheard.iter().filter(|other| is_there(other)) {
                bad.entry(*id).or_default().insert(*other);
                bad.entry(*other).or_default().insert(*id);
            }
        }
        self.bad_since = self.bad_since.or(Some(now)).filter(|_| !bad.is_empty());
        let lasts = self.bad_since.is_some_and(|since| now.saturating_sub(since) >= charter.lease / 4);
        let recently = self.last_condemned.is_some_and(|last| now.saturating_sub(last) < charter.lease_of_others());
        if !lasts || recently {
            return;
        }
        let worst = bad.iter().max_by_key(|(id, others)| (others.len(), **id != me, **id)).map(|(id, _)| *id);
        if let Some(worst) = worst
            && let Some(tenant) = self.tenants.get_mut(&worst)
        {
            tenant.condemned = true;
            self.last_condemned = Some(now);
        }
    }
}

impl Tenant {
    const fn new(incarnation: Incarnation, answered: Option<Nanos>, heard: Nanos) -> Self {
        let pledge = Pledge { number: 0, ttl: 0 };
        Self { incarnation, answered, behind_since: None, heard, unheard: BTreeSet::new(), pledge, condemned: false }
    }

    fn is_there(&self, now: Nanos, charter: &Charter) -> bool {
        now.saturating_sub(self.heard) < charter.lease / 3
    }
}

impl Joiner {
    fn is_there(&self, now: Nanos, charter: &Charter) -> bool {
        now.saturating_sub(self.heard) < charter.lease / 2
    }

    fn admit(&self, id: MemberId, replaces: Option<Incarnation>, pledge: u64) -> Change {
        Change::Admit {
            id,
            incarnation: self.incarnation,
            address: self.address.clone(),
            join_sent: self.sent,
            replaces,
            pledge,
        }
    }
}

#[cfg(test)]
mod tests;
