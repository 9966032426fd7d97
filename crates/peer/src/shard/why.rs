//! Why somebody waits, as data.

use alloc::vec::Vec;

use serde::Serialize;
use vez_algorithms::{NodeId, Phase};

use super::{Instance, Nanos, Shard, settle::Settling};
use crate::{
    ask::{Ask, Kind, Label, RequestId, SessionId},
    fence::Fence,
    identity::MemberId,
    name::Name,
    view::ViewNumber,
};

/// What this member knows of a name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Why {
    /// What it stands for, if it is in use.
    pub kind: Option<Kind>,
    /// The view that this is said in; none, if this node is no member.
    pub view: Option<ViewNumber>,
    /// The member that requests go through.
    pub home: Option<MemberId>,
    /// Who holds it, as far as is known here.
    pub holders: Vec<Holder>,
    /// Which members come next, as far as is known here.
    pub line: Vec<MemberId>,
    /// The clients of this node that wait.
    pub waiting: Vec<Waiting>,
    /// What is being waited for.
    pub reason: Reason,
}

/// Who holds a name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Holder {
    /// On which member.
    pub member: MemberId,
    /// Its number, if it is known here.
    pub fence: Option<Fence>,
    /// The session, if it is one of this node.
    pub session: Option<SessionId>,
    /// Since when, on this node's clock, if it is one of this node.
    pub since: Option<Nanos>,
    /// As what, if it is one of this node.
    pub ask: Option<Ask>,
}

/// Who waits for a name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Waiting {
    /// A session of this node.
    pub session: SessionId,
    /// Its request.
    pub request: RequestId,
    /// Since when, on this node's clock.
    pub since: Nanos,
    /// What for.
    pub ask: Ask,
}

/// What is being waited for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub enum Reason {
    /// Nothing: whoever asks here gets it at once.
    Nothing,
    /// Nothing is known of it here: its home knows.
    HomeKnows(MemberId),
    /// A client of this node holds it.
    HeldHere,
    /// This is its home, and here stands who is inside.
    Inside {
        /// So many.
        count: usize,
        /// As what: whose label they have.
        label: Label,
        /// Of a semaphore, how many units they have taken.
        taken: u64,
        /// Who stands in line, if anybody does.
        waiting: usize,
    },
    /// The token is elsewhere: with the member that was the last to ask for it, or on its way there.
    TokenAt(MemberId),
    /// The token is elsewhere, and the algorithm of this lock does not tell where.
    TokenAway,
    /// The request is with the home, which knows where the token is.
    AskedHome(MemberId),
    /// The home has not let it in yet.
    InLineAt(MemberId),
    /// This node re-enters what it holds in a new view.
    Reentering {
        /// Since when.
        since: Nanos,
        /// Which names.
        names: Vec<Name>,
    },
    /// These members have not said that they are settled in the view.
    Settling {
        /// Since when.
        since: Nanos,
        /// Whose word is missing.
        missing: Vec<MemberId>,
    },
    /// This node is no member of any view.
    NoMember,
}

impl Shard {
    /// Why somebody would have to wait for a name here.
    #[must_use]
    pub fn why(&self, name: &Name) -> Why {
        let clients = self.clients.get(name);
        let waiting = clients.map_or_else(Vec::new, |clients| {
            let waiting = |waiter: &super::Waiter| Waiting {
                session: waiter.session,
                request: waiter.request,
                since: waiter.since,
                ask: waiter.ask.clone(),
            };
            clients.waiting.iter().map(waiting).collect()
        });
        let mut why = Why {
            kind: clients.map(|clients| clients.kind),
            view: None,
            home: None,
            holders: Vec::new(),
            line: Vec::new(),
            waiting,
            reason: Reason::NoMember,
        };
        let Some(place) = &self.place else { return why };
        let id = |node: NodeId| place.view.member(node).id;
        let home = place.view.home(name);
        (why.view, why.home) = (Some(place.view.number), Some(id(home)));
        let here = |hold: &super::Hold| Holder {
            member: id(place.me),
            fence: Some(hold.fence),
            session: Some(hold.session),
            since: Some(hold.since),
            ask: Some(hold.ask.clone()),
        };
        why.holders.extend(clients.iter().flat_map(|clients| clients.holds.iter().map(here)));
        let held_here = !why.holders.is_empty();
        why.reason = match self.instances.get(name) {
            Some(Instance::Lock(lock)) => {
                why.kind = Some(Kind::Lock);
                let (line, last) = lock.turns.line();
                why.line = line.into_iter().map(id).collect();
                match lock.turns.phase() {
                    Phase::Inside => Reason::HeldHere,
                    Phase::Idle if lock.turns.has_token() => Reason::Nothing,
                    Phase::Waiting if last.is_some() && home != place.me => Reason::AskedHome(id(home)),
                    Phase::Idle if last.is_some() && home != place.me => Reason::HomeKnows(id(home)),
                    Phase::Idle | Phase::Waiting => last.map_or(Reason::TokenAway, |last| Reason::TokenAt(id(last))),
                }
            }
            Some(Instance::Book(book)) => {
                why.kind = Some(book.kind());
                let elsewhere = book.inside().iter().filter(|(seat, _)| seat.node != place.me);
                let elsewhere = elsewhere.map(|(seat, fence)| Holder {
                    member: id(seat.node),
                    fence: Some(*fence),
                    session: None,
                    since: None,
                    ask: None,
                });
                why.holders.extend(elsewhere);
                why.line = book.waiting().map(|seat| id(seat.node)).collect();
                book.label().map_or(Reason::Nothing, |label| Reason::Inside {
                    count: book.inside().len(),
                    label: label.clone(),
                    taken: book.taken(),
                    waiting: why.line.len(),
                })
            }
            None if !why.waiting.is_empty() => Reason::InLineAt(id(home)),
            None if held_here => Reason::HeldHere,
            None if home == place.me => Reason::Nothing,
            None => Reason::HomeKnows(id(home)),
        };
        if let Settling::Waiting { entering, missing, .. } = &place.settling {
            let since = place.since;
            why.reason = if entering.is_empty() {
                Reason::Settling { since, missing: missing.iter().map(id).collect() }
            } else {
                Reason::Reentering { since, names: entering.iter().cloned().collect() }
            };
        }
        why
    }
}
