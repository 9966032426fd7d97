//! Asking with patience: a node that was no member for a moment is asked again when it is one.

use tokio::{task::coop::consume_budget, time::timeout};
use vez_peer::{
    ask::{Ask, Failure, Patience, Size},
    name::Name,
};

use crate::{
    clock,
    engine::{Asked, Ending, Presence},
    guard::Guard,
    node::Inner,
    session::Who,
};

/// Several locks that are held by a session of their own, in the order of their names.
pub(crate) struct Several {
    pub guards: Vec<Guard>,
    pub ending: Ending,
}

impl Inner {
    /// Takes something for this process itself.
    pub(crate) async fn acquire(&self, name: &Name, ask: Ask, patience: Patience) -> Result<Guard, Failure> {
        // What is granted at once does not let others have their turn by itself: the timers of this very node among them.
        consume_budget().await;
        let again = || self.engine.acquire_own(name, ask.clone(), patience);
        match again() {
            Asked::Now(Ok(guard)) => Ok(guard),
            first => self.patiently(patience, false, first, again).await,
        }
    }

    /// Asks, and asks again where the node was no member in between: who waits has patience for that too, unless it would rather
    /// go elsewhere.
    pub(crate) async fn patiently(
        &self,
        patience: Patience,
        elsewhere: bool,
        first: Asked<Guard>,
        ask_again: impl Fn() -> Asked<Guard>,
    ) -> Result<Guard, Failure> {
        let mut asked = first;
        loop {
            let outcome = match asked {
                Asked::Now(outcome) => outcome,
                Asked::Later(pending) => pending.answer().await,
            };
            match outcome {
                // The process may have been asleep on the way here.
                Ok(guard) if guard.is_lost() => {}
                Err(failure) if is_passing(&failure) && patience != Patience::Try && !elsewhere => {}
                outcome => return outcome.map_err(|failure| self.for_now(failure)),
            }
            self.is_back(patience).await?;
            asked = ask_again();
        }
    }

    /// Takes several locks, which are in the order of their names, by a session of their own: all of them or none.
    pub(crate) async fn acquire_all(
        &self,
        who: &Who,
        names: &[Name],
        patience: Patience,
        elsewhere: bool,
    ) -> Result<Several, Failure> {
        loop {
            match self.acquire_each(who, names, patience).await {
                Ok(several) if several.guards.iter().any(Guard::is_lost) => {}
                Err(failure) if is_passing(&failure) && patience != Patience::Try && !elsewhere => {}
                outcome => return outcome.map_err(|failure| self.for_now(failure)),
            }
            self.is_back(patience).await?;
        }
    }

    async fn acquire_each(&self, who: &Who, names: &[Name], patience: Patience) -> Result<Several, Failure> {
        // If it does not come to all of them, those that were had are given back when this is dropped, and the session ends.
        let ending = self.engine.open_whole(who.clone())?;
        let mut guards = Vec::with_capacity(names.len());
        for name in names {
            consume_budget().await;
            guards.push(match self.engine.acquire(&ending.session, name, Ask::Lock, patience) {
                Asked::Now(taken) => taken?,
                Asked::Later(pending) => pending.answer().await?,
            });
        }
        Ok(Several { guards, ending })
    }

    /// Gives a semaphore another number of units. A node that is no member does so when it is one again.
    pub(crate) async fn resize(&self, name: &Name, units: u32) -> Result<Size, Failure> {
        loop {
            match self.resize_now(name, units).await {
                Err(Failure::NoMember) => self.is_back(Patience::Endless).await?,
                outcome => return outcome,
            }
        }
    }

    /// The same; but a node that is no member says so.
    pub(crate) async fn resize_now(&self, name: &Name, units: u32) -> Result<Size, Failure> {
        let outcome = match self.engine.own().map(|own| self.engine.resize(&own, name, units)) {
            Ok(Asked::Now(outcome)) => outcome,
            Ok(Asked::Later(pending)) => pending.answer().await,
            Err(failure) => Err(failure),
        };
        outcome.map_err(|failure| if is_passing(&failure) { Failure::NoMember } else { failure })
    }

    /// Why a try has failed: a node that has lost its lease comes back, unless it has ended.
    pub(crate) fn for_now(&self, failure: Failure) -> Failure {
        let ended = *self.engine.presence().borrow() == Presence::Closed;
        match failure {
            Failure::Lost | Failure::NoSession if !ended => Failure::NoMember,
            failure => failure,
        }
    }

    /// Waits until the node is a member.
    pub(crate) async fn is_back(&self, patience: Patience) -> Result<(), Failure> {
        let mut presence = self.engine.presence();
        let decided = |presence: &Presence| matches!(presence, Presence::Member | Presence::Closed);
        let back = async {
            let there = presence.wait_for(decided).await.is_ok_and(|presence| *presence == Presence::Member);
            if there { Ok(()) } else { Err(Failure::Lost) }
        };
        match patience {
            Patience::Endless => back.await,
            Patience::Until(end) => timeout(clock::until(end), back).await.unwrap_or(Err(Failure::NoMember)),
            Patience::Try => Err(Failure::NoMember),
        }
    }
}

/// Whether it fails because the node was no member for a moment.
pub(crate) fn is_passing(failure: &Failure) -> bool {
    matches!(failure, Failure::NoMember | Failure::NoSession | Failure::Lost)
}

/// Several names as they are asked for, one after the other: in the same order wherever that is, so that nobody who has one waits
/// for somebody who has the next and waits for that one.
pub(crate) fn in_order(mut names: Vec<Name>) -> Vec<Name> {
    names.sort_unstable_by(Name::by_bytes);
    names.dedup();
    names
}
