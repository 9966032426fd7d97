//! What is let in: the requests of clients, and the messages of members.

use super::{Clients, MOST_NAMES, MOST_WAITERS, Message, Shard, Waiter};
use crate::{
    ask::{Ask, Failure, Kind, Limit, Patience},
    charter::LockAlgorithm,
    fence::LAST_COUNTER,
    name::Name,
};

impl Shard {
    /// Whether a request can be taken at all.
    pub(super) fn admissible(&self, name: &Name, waiter: &Waiter) -> Result<(), Failure> {
        let Some(place) = &self.place else { return Err(Failure::NoMember) };
        let asked = waiter.ask.kind();
        self.may_be(name, asked)?;
        waiter.ask.is_sound(name)?;
        let clients = self.clients.get(name);
        if let Some(clients) = clients
            && clients.kind != asked
        {
            return Err(Failure::Mismatch { name: name.clone(), is: clients.kind, asked });
        }
        if waiter.patience == Patience::Try {
            let has_clients = clients.is_some_and(|clients| !clients.is_empty());
            if asked == Kind::Lock && (has_clients || self.is_in_line_for_nobody(name)) {
                return Err(Failure::Busy(name.clone()));
            }
            if !self.is_settled() {
                return Err(Failure::Settling(place.view.number));
            }
        }
        self.has_room(name, clients.map(Clients::len))
    }

    /// Whether a name can be that at all. Whoever asks for a lock of another algorithm than fila may never meet its home, which
    /// would know better.
    pub(super) fn may_be(&self, name: &Name, asked: Kind) -> Result<(), Failure> {
        if asked != Kind::Lock && self.algorithms.of(name) != LockAlgorithm::Fila {
            return Err(Failure::OnlyLocks { name: name.clone(), asked });
        }
        Ok(())
    }

    /// Whether one more can be taken, where there are so many of the kind.
    pub(super) fn has_room(&self, name: &Name, there: Option<usize>) -> Result<(), Failure> {
        let names = self.clients.len() + self.errands.len();
        match there {
            Some(there) if there >= MOST_WAITERS => Err(Failure::TooMany(Limit::Clients(name.clone()))),
            None if names >= MOST_NAMES => Err(Failure::TooMany(Limit::Names)),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether a member that runs the same code can have said this. What it says about the state of things is seen later.
    pub(super) fn is_sound(&self, message: &Message) -> bool {
        let members = self.place.as_ref().map_or(0, |place| place.view.members.len());
        match message {
            Message::Lock { name, message, counter } => {
                let counts = counter.is_none_or(|counter| counter <= LAST_COUNTER);
                let is_of_token = message.is_token() == counter.is_some();
                counts && is_of_token && message.is_sound(self.algorithms.of(name), members)
            }
            Message::Idle { name } => self.algorithms.of(name) == LockAlgorithm::Fila,
            Message::Ask { name, ask, .. } => *ask != Ask::Lock && ask.is_sound(name).is_ok(),
            Message::Reenter { name, kind, holds, .. } => {
                // What is held may be more than there is, if the semaphore has shrunk.
                let fits = |ask: &Ask| matches!(ask.is_sound(name), Ok(()) | Err(Failure::TooHeavy { .. }));
                *kind != Kind::Lock && holds.iter().all(|hold| hold.ask.kind() == *kind && fits(&hold.ask))
            }
            Message::Resize { units, .. } => *units > 0,
            Message::Sized { size, .. } => size.units > 0,
            Message::Settled
            | Message::Grant { .. }
            | Message::Busy { .. }
            | Message::Exhausted { .. }
            | Message::Mismatch { .. }
            | Message::Release { .. }
            | Message::Reentered { .. }
            | Message::Observe { .. }
            | Message::Observed { .. }
            | Message::SizeNoted { .. }
            | Message::Resized { .. }
            | Message::NotInUse { .. } => true,
        }
    }
}
