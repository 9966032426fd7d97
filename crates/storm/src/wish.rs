//! What clients want: some of everything that there is.

use vez_peer::{
    ask::{Ask, RequestId, SessionId},
    name::Name,
    peer::Call,
};

use crate::{client::Stage, world::World};

/// A semaphore whose number of units changes.
const RESIZED: &str = "pool";
/// What observers look at.
pub(crate) const ELECTION: &str = "leader";
/// What is a lock to one and something else to another; who comes too late is told so.
const ANYTHING: &str = "anything";

/// What there is to be had: a name, and the most that one can ask of it.
pub(crate) fn names() -> Vec<(Name, Ask)> {
    let name = |text: &str| Name::new(text.as_bytes()).expect("short");
    vec![
        (name("lock/a"), Ask::Lock),
        (name("lock/b"), Ask::Lock),
        (name("lock/c"), Ask::Lock),
        (name("lock/d"), Ask::Lock),
        (name("other/e"), Ask::Lock),
        (name("semaphore"), Ask::Semaphore { units: 2, weight: 2 }),
        (name(RESIZED), Ask::Semaphore { units: 5, weight: 5 }),
        (name("group"), Ask::Group { label: b"all".to_vec() }),
        (name("register"), Ask::Write),
        (name(ELECTION), Ask::Elect { value: b"me".to_vec() }),
        (name(ANYTHING), Ask::Lock),
    ]
}

/// Whether its number of units changes.
pub(crate) fn is_resized(name: &Name) -> bool {
    name.as_bytes() == RESIZED.as_bytes()
}

impl World<'_> {
    /// A client wants another number of units.
    pub(crate) fn resize(
        &mut self,
        client: usize,
        session: SessionId,
        request: RequestId,
        name: Name,
    ) -> Result<(), String> {
        let units = 2 + u32::try_from(self.whims.below(6)).expect("small");
        self.clients[client].stage = Stage::Resizing { request, name: name.clone() };
        self.law.wants_size(&name, request, units);
        self.call(self.clients[client].machine, Call::Resize { session, request, name, units })
    }

    pub(crate) fn wish(&mut self, client: usize) -> (Name, Ask) {
        let names = names();
        let (name, most) = names[self.whims.index(names.len())].clone();
        let ask = self.wish_of(client, &name, most);
        (name, ask)
    }

    /// Something that can be asked of a name, of which this is the most.
    pub(crate) fn wish_of(&mut self, client: usize, name: &Name, most: Ask) -> Ask {
        let most = match self.whims.below(3) {
            0 if name.as_bytes() == ANYTHING.as_bytes() => Ask::Semaphore { units: 2, weight: 2 },
            1 if name.as_bytes() == ANYTHING.as_bytes() => Ask::Write,
            _ => most,
        };
        match most {
            Ask::Semaphore { units, .. } => {
                let units = self.units.get(name).copied().unwrap_or(units);
                let weight = 1 + u32::try_from(self.whims.below(units.into())).expect("small");
                Ask::Semaphore { units, weight }
            }
            Ask::Group { .. } => Ask::Group { label: vec![b'a' + u8::try_from(self.whims.below(3)).expect("small")] },
            Ask::Write if !self.whims.one_in(3) => Ask::Read,
            Ask::Elect { .. } => Ask::Elect { value: format!("client {client}").into_bytes() },
            Ask::Lock | Ask::Read | Ask::Write => most,
        }
    }
}
