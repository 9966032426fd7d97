//! Those who only look: one on each machine wants to see who leads.

use vez_peer::{
    ask::{Leader, RequestId, SessionId},
    fence::Fence,
    name::Name,
    peer::{Call, Effect},
};

use crate::{
    plan::MILLISECOND,
    wish::ELECTION,
    world::{Event, World},
};

#[derive(Default)]
pub(crate) struct Observer {
    looking: Option<(SessionId, RequestId)>,
    /// What it was told last.
    sees: Option<Option<Leader>>,
    /// The latest that it has seen.
    latest: Option<Fence>,
}

impl World<'_> {
    /// An observer looks, if it does not already; or looks away, now and then.
    pub(crate) fn look(&mut self, machine: usize) -> Result<(), String> {
        if self.now >= self.plan.dusk {
            self.observer_knows(machine)?;
            return self.look_away(machine);
        }
        let pause = 100 * MILLISECOND + self.whims.below(400 * MILLISECOND);
        self.at((self.now + pause).min(self.plan.dusk), Event::Look(machine));
        if self.observers[machine].looking.is_some() {
            return if self.whims.one_in(20) && self.now < self.plan.quiet { self.look_away(machine) } else { Ok(()) };
        }
        let process = self.machines[machine].process.as_ref();
        if process.is_none_or(|process| process.peer.view().is_none()) {
            return Ok(());
        }
        let (session, request) = (SessionId(self.next_request().0), self.next_request());
        self.observers[machine] = Observer { looking: Some((session, request)), ..Observer::default() };
        self.call(machine, Call::Open { session, ttl: None })?;
        self.call(machine, Call::Observe { session, request, name: election() })
    }

    pub(crate) fn look_away(&mut self, machine: usize) -> Result<(), String> {
        let observer = std::mem::take(&mut self.observers[machine]);
        let Some((session, request)) = observer.looking else { return Ok(()) };
        if self.whims.one_in(2) {
            self.call(machine, Call::Cancel { request, name: election() })?;
        }
        self.call(machine, Call::End(session))
    }

    /// Whether a node says this to an observer.
    pub(crate) fn is_of_observer(&self, machine: usize, session: SessionId) -> bool {
        self.observers[machine].looking.is_some_and(|(looking, _)| looking == session)
    }

    pub(crate) fn observer_hears(&mut self, machine: usize, effect: Effect) -> Result<(), String> {
        match effect {
            Effect::Observed { name, leader, .. } => {
                self.tell(|| format!("m{machine} sees that {leader:?} leads"));
                self.tally.observations += 1;
                let observer = &mut self.observers[machine];
                observer.sees = Some(leader.clone());
                let Some(leader) = leader else { return Ok(()) };
                let before = observer.latest.replace(leader.fence);
                self.law.observe(&name, before, leader)
            }
            // It looks again some time.
            Effect::Failed { .. } | Effect::NotOpened { .. } | Effect::Ended(_) => {
                self.observers[machine] = Observer::default();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// After all trouble, every observer knows who leads.
    pub(crate) fn observer_knows(&self, machine: usize) -> Result<(), String> {
        let Some(sees) = &self.observers[machine].sees else {
            let why = self.machines[machine].process.as_ref().map(|process| process.peer.why(&election()));
            return Err(format!("an observer on m{machine} is told nothing: {why:?}"));
        };
        self.law.knows(self.now, &election(), sees.as_ref()).map_err(|what| format!("on m{machine} {what}"))
    }
}

fn election() -> Name {
    Name::new(ELECTION.as_bytes()).expect("short")
}
