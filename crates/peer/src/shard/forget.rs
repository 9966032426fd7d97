//! Forgetting: an idle name costs nothing after a while.
//!
//! Only the home may forget a lock, and only with the token in its hands: whatever comes later finds the name as it was
//! born. So whoever has an idle token tells the home, and the home *pulls* it by a request of its own. (A token pushed home
//! would race with a request that is forwarded the other way.) What was granted of a forgotten name raises the floor that
//! names are born at.

use core::mem::discriminant;

use serde::Serialize;
use vez_algorithms::Phase;

use super::{Clients, Effect, Effects, Instance, Message, Nanos, Shard, settle::Settling, turns::Turn};
use crate::{ask::Kind, name::Name};

/// Since when nobody uses a name.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub(super) struct Rest {
    since: Nanos,
    /// When to look whether it is still so.
    look: Option<Nanos>,
}

impl Instance {
    /// Nobody uses it, but something would have to be done to forget it.
    fn is_idle(&self) -> bool {
        match self {
            Self::Lock(lock) => lock.turns.is_forgettable() && !lock.told_idle,
            Self::Book(book) => book.is_idle(),
        }
    }

    fn rest(&mut self) -> &mut Rest {
        match self {
            Self::Lock(lock) => &mut lock.rest,
            Self::Book(book) => &mut book.rest,
        }
    }

    /// Whether clients of this node hold it or want it as what it is. Those who take it for something else are told so.
    fn is_used_by(&self, clients: &Clients) -> bool {
        !clients.is_empty() && discriminant(&self.kind()) == discriminant(&clients.kind)
    }

    /// What it is known as.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Lock(_) => Kind::Lock,
            Self::Book(book) => book.kind(),
        }
    }
}

impl Shard {
    /// If nobody uses a name, forgets what can be forgotten at once, and looks again after a while.
    pub(super) fn rest(&mut self, now: Nanos, name: &Name) {
        let Some(instance) = self.instances.get_mut(name) else { return };
        if self.clients.get(name).is_some_and(|clients| instance.is_used_by(clients)) {
            return;
        }
        if let Instance::Lock(lock) = instance
            && lock.turns.knows_nothing()
        {
            self.drop_instance(name);
        } else if instance.is_idle() {
            let rest = instance.rest();
            rest.since = now;
            if rest.look.is_none() {
                let due = now.saturating_add(self.habits.idle);
                rest.look = Some(due);
                self.idle_checks.insert((due, name.clone()));
            }
        }
    }

    /// Nothing is known of a name any more, and so there is nothing to look at.
    pub(super) fn drop_instance(&mut self, name: &Name) {
        let Some(mut instance) = self.instances.remove(name) else { return };
        if let Some(due) = instance.rest().look {
            self.idle_checks.remove(&(due, name.clone()));
        }
    }

    /// Looks whether a name has not been used for long enough.
    pub(super) fn check_idle(&mut self, now: Nanos, name: &Name, out: &mut Effects) {
        let Some(instance) = self.instances.get_mut(name) else { return };
        let used = self.clients.get(name).is_some_and(|clients| instance.is_used_by(clients));
        let idle = !used && instance.is_idle();
        let rest = instance.rest();
        let due = rest.since.saturating_add(self.habits.idle);
        rest.look = Some(due).filter(|_| idle && due > now);
        if rest.look.is_some() {
            self.idle_checks.insert((due, name.clone()));
        } else if idle {
            self.forget(name, out);
        }
    }

    /// A name has been idle for long enough.
    pub fn forget(&mut self, name: &Name, out: &mut Effects) {
        let Some(place) = &self.place else { return };
        let home = place.view.home(name);
        let counter = match self.instances.get_mut(name) {
            Some(Instance::Lock(lock)) if home != place.me => {
                lock.told_idle = true;
                return out.push(Effect::Send(home, Message::Idle { name: name.clone() }));
            }
            Some(Instance::Lock(lock)) => lock.counter.expect("an idle home has the token"),
            Some(Instance::Book(book)) => book.counter,
            None => return,
        };
        self.floor = self.floor.max(counter);
        self.drop_instance(name);
        out.push(Effect::Forgotten(name.clone()));
    }

    /// Somebody else has the token of a name whose home this is, and does not use it.
    pub(super) fn on_idle(&mut self, now: Nanos, name: &Name, out: &mut Effects) {
        let Some(place) = &mut self.place else { return };
        if let Settling::Waiting { idle, .. } = &mut place.settling {
            idle.insert(name.clone()); // The pull is a new request, and those have to wait.
            return;
        }
        // Where the name is unknown or in use, the word has been overtaken by what happened since.
        let Some(Instance::Lock(lock)) = self.instances.get(name) else { return };
        if place.view.home(name) == place.me && lock.turns.phase() == Phase::Idle && !lock.turns.has_token() {
            self.next_try += 1;
            let number = self.next_try;
            self.turn(now, name, Turn::Pull(number), out);
        }
    }
}
