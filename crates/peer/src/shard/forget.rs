//! Forgetting: an idle name costs nothing after a while.
//!
//! Only the home may forget a lock, and only with the token in its hands: whatever comes later finds the name as it was
//! born. So whoever has an idle token tells the home, and the home *pulls* it by a request of its own. (A token pushed home
//! would race with a request that is forwarded the other way.) What was granted of a forgotten name raises the floor that
//! names are born at.

use serde::Serialize;
use vez_algorithms::Phase;

use super::{Effect, Effects, Instance, Message, Nanos, Shard, settle::Settling, turns::Turn};
use crate::name::Name;

/// Since when nobody uses a name.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub(super) struct Rest {
    since: Nanos,
    /// Whether a look at it is due some time.
    watched: bool,
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
}

impl Shard {
    /// If nobody uses a name, forgets what can be forgotten at once, and looks again after a while.
    pub(super) fn rest(&mut self, now: Nanos, name: &Name) {
        if self.is_wanted(name) {
            return;
        }
        let Some(instance) = self.instances.get_mut(name) else { return };
        if let Instance::Lock(lock) = instance
            && lock.turns.knows_nothing()
        {
            self.instances.remove(name);
        } else if instance.is_idle() {
            let rest = instance.rest();
            rest.since = now;
            if !rest.watched {
                rest.watched = true;
                self.idle_checks.insert((now.saturating_add(self.habits.idle), name.clone()));
            }
        }
    }

    /// Looks whether a name has not been used for long enough.
    pub(super) fn check_idle(&mut self, now: Nanos, name: &Name, out: &mut Effects) {
        let used = self.is_wanted(name);
        let Some(instance) = self.instances.get_mut(name) else { return };
        let idle = !used && instance.is_idle();
        let rest = instance.rest();
        let due = rest.since.saturating_add(self.habits.idle);
        rest.watched = idle && due > now;
        if rest.watched {
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
        self.instances.remove(name);
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
