//! A new view: what is held is re-entered, everybody says so, and only then does anything new begin.

use alloc::{
    collections::{BTreeSet, VecDeque},
    vec::Vec,
};

use serde::Serialize;
use vez_algorithms::{NodeId, NodeSet};

use super::{Clients, Effect, Effects, Hold, Message, Nanos, Reentry, Shard, Waiter};
use crate::{
    ask::{Ask, Failure, Kind, Patience, RequestId},
    name::Name,
    view::{View, ViewNumber},
};

/// So many re-entries are one message: with labels as long as they may be, it is small enough to be sent at once.
const MOST_REENTRIES: usize = 16;

/// Where this member stands in the present view.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Place {
    pub view: View,
    /// This member.
    pub me: NodeId,
    pub settling: Settling,
    /// Since when it is in this view.
    pub since: Nanos,
}

/// How far a view is settled.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) enum Settling {
    /// Something is held here that is not inside yet, or somebody else has not said that it is settled.
    Waiting {
        /// What is to be inside before the others are told.
        entering: BTreeSet<Name>,
        /// Whether the others were told.
        told: bool,
        /// Who has not said that it is settled.
        missing: NodeSet,
        /// Names that somebody called idle: their tokens are pulled when this is over.
        idle: BTreeSet<Name>,
    },
    /// Everything goes its way.
    Settled,
}

impl Shard {
    /// A new view. Whatever was known in the one before is gone; what is held is re-entered.
    pub fn install(&mut self, now: Nanos, view: View, me: NodeId, out: &mut Effects) {
        self.fail_tries(view.number, out);
        self.instances.clear();
        self.idle_checks.clear();
        self.floor = 0;
        let held = |(name, clients): (&Name, &Clients)| (!clients.holds.is_empty()).then(|| name.clone());
        let entering: BTreeSet<Name> = self.clients.iter().filter_map(held).collect();
        let missing = view.older().filter(|node| *node != me).collect();
        let settling = Settling::Waiting { entering: entering.clone(), told: false, missing, idle: BTreeSet::new() };
        self.place = Some(Place { view, me, settling, since: now });
        for name in entering {
            self.reenter(now, &name, out);
        }
        self.settle_if_inside(now, out);
    }

    /// Who only tries does not wait for a view to be settled.
    fn fail_tries(&mut self, view: ViewNumber, out: &mut Effects) {
        let tries = |waiter: &Waiter| waiter.patience == Patience::Try;
        let mut failed = Vec::new();
        for (name, clients) in &mut self.clients {
            let (trying, waiting) = core::mem::take(&mut clients.waiting).into_iter().partition(tries);
            clients.waiting = waiting;
            let trying: VecDeque<Waiter> = trying;
            failed.extend(trying.into_iter().map(|waiter| (name.clone(), waiter)));
        }
        for (name, waiter) in failed {
            self.forget_waiter(&name, &waiter);
            self.drop_clients(&name);
            let failure = Failure::Settling(view);
            out.push(Effect::Failed { session: waiter.session, request: waiter.request, name: name.clone(), failure });
        }
    }

    fn reenter(&mut self, now: Nanos, name: &Name, out: &mut Effects) {
        let clients = self.clients.get_mut(name).expect("what is held has clients");
        for hold in &mut clients.holds {
            hold.inside = false;
        }
        let (kind, size) = (clients.kind, clients.size);
        if kind == Kind::Lock {
            return self.reenter_lock(now, name, out);
        }
        let reentry = |hold: &Hold| Reentry { request: hold.request, ask: hold.ask.clone(), fence: hold.fence };
        let parts = clients.holds.chunks(MOST_REENTRIES).map(|holds| holds.iter().map(reentry).collect());
        let parts: Vec<Vec<Reentry>> = parts.collect();
        for holds in parts {
            self.send_home(now, name, |name| Message::Reenter { name, kind, size, holds }, out);
        }
    }

    /// The home has taken note of what was held here.
    pub(super) fn on_reentered(&mut self, now: Nanos, name: &Name, requests: Vec<RequestId>, out: &mut Effects) {
        for request in requests {
            let holds = self.clients.get_mut(name).map_or(&mut [][..], |clients| &mut clients.holds[..]);
            match holds.iter_mut().find(|hold| hold.request == request && hold.ask != Ask::Lock) {
                Some(hold) => hold.inside = true,
                // It was released meanwhile. A Release of then could have overtaken the Reenter.
                None => self.send_home(now, name, |name| Message::Release { name, request }, out),
            }
        }
        let all_inside = |clients: &Clients| clients.holds.iter().all(|hold| hold.inside);
        if self.clients.get(name).is_none_or(all_inside) {
            self.entered(now, name, out);
        }
    }

    /// What was held of this name is inside in this view, or released.
    pub(super) fn entered(&mut self, now: Nanos, name: &Name, out: &mut Effects) {
        let Some(place) = &mut self.place else { return };
        if let Settling::Waiting { entering, .. } = &mut place.settling
            && entering.remove(name)
        {
            self.settle_if_inside(now, out);
        }
    }

    /// Tells the others once all that is held here is inside.
    fn settle_if_inside(&mut self, now: Nanos, out: &mut Effects) {
        let Some(place) = &mut self.place else { return };
        let Settling::Waiting { entering, told, .. } = &mut place.settling else { return };
        if !entering.is_empty() {
            return;
        }
        if !*told {
            *told = true;
            let others = NodeId::all(place.view.members.len()).filter(|node| *node != place.me);
            out.extend(others.map(|node| Effect::Send(node, Message::Settled)));
        }
        self.settle_if_all_have(now, out);
    }

    /// Another member is settled.
    pub(super) fn on_settled(&mut self, now: Nanos, from: NodeId, out: &mut Effects) {
        let Some(place) = &mut self.place else { return };
        if let Settling::Waiting { missing, .. } = &mut place.settling {
            missing.remove(from);
            self.settle_if_all_have(now, out);
        }
    }

    fn settle_if_all_have(&mut self, now: Nanos, out: &mut Effects) {
        let Some(place) = &mut self.place else { return };
        let Settling::Waiting { told: true, missing, idle, .. } = &mut place.settling else { return };
        if !missing.is_empty() {
            return;
        }
        let idle = core::mem::take(idle);
        place.settling = Settling::Settled;
        out.push(Effect::Settled);
        for name in idle {
            self.on_idle(now, &name, out);
        }
        self.ask_again(now, out);
    }

    /// Whoever waits asks, the oldest first.
    fn ask_again(&mut self, now: Nanos, out: &mut Effects) {
        let of_name = |(name, clients): (&Name, &Clients)| {
            let first = |waiter: &Waiter| (waiter.request, clients.kind, name.clone());
            clients.waiting.iter().map(first).collect::<Vec<_>>()
        };
        let mut waiting: Vec<(RequestId, Kind, Name)> = self.clients.iter().flat_map(of_name).collect();
        waiting.sort();
        for (request, kind, name) in waiting {
            if kind == Kind::Lock {
                self.serve_lock(now, &name, out);
            } else {
                self.ask_home(now, &name, request, out);
            }
        }
        self.run_errands(now, out);
    }

    /// Whether new requests may be issued and granted.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.settling == Settling::Settled)
    }

    /// Whether it is settled in that view.
    #[must_use]
    pub fn is_settled_in(&self, view: ViewNumber) -> bool {
        self.is_settled() && self.place.as_ref().is_some_and(|place| place.view.number == view)
    }
}
