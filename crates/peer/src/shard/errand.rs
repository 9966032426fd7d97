//! What clients want of a name's home without being inside: to see who leads, or another number of units.
//!
//! Like those who wait, they are this node's own, and ask again in a new view. What both want can be asked twice.

use alloc::vec::Vec;

use serde::Serialize;

use super::{Effect, Effects, Message, Nanos, Shard};
use crate::{
    ask::{Failure, Kind, Leader, RequestId, SessionId, Size},
    name::Name,
    view::ViewNumber,
};

/// What a client of this node wants.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Errand {
    session: SessionId,
    aim: Aim,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
enum Aim {
    /// To see who leads, now and from now on.
    Observe(Option<Sight>),
    /// Another number of units.
    Resize {
        units: u32,
        /// In so many views it was asked for; in all but the last of them it may have begun.
        views: u32,
    },
}

/// What an observer was told last. Of two sights, the larger is the later: the view comes first, then how many fences had
/// been given out in it, and then, that whoever had the last one is gone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
struct Sight {
    view: ViewNumber,
    counter: u64,
    nobody: bool,
    leader: Option<Leader>,
}

impl Aim {
    /// What the name has to stand for.
    fn kind(&self) -> Kind {
        match self {
            Self::Observe(_) => Kind::Election,
            Self::Resize { units, .. } => Kind::Semaphore { units: *units },
        }
    }
}

impl Shard {
    /// A client wants to see who leads, now and from now on, until it cancels that.
    pub fn observe(&mut self, now: Nanos, name: &Name, session: SessionId, request: RequestId, out: &mut Effects) {
        self.take_errand(now, name, request, Errand { session, aim: Aim::Observe(None) }, out);
    }

    /// A client wants a semaphore that is in use to have so many units.
    pub fn resize(
        &mut self,
        now: Nanos,
        name: &Name,
        session: SessionId,
        request: RequestId,
        units: u32,
        out: &mut Effects,
    ) {
        self.take_errand(now, name, request, Errand { session, aim: Aim::Resize { units, views: 0 } }, out);
    }

    fn take_errand(&mut self, now: Nanos, name: &Name, request: RequestId, errand: Errand, out: &mut Effects) {
        if let Err(failure) = self.is_errand_admissible(name, &errand.aim) {
            return out.push(Effect::Failed { session: errand.session, request, name: name.clone(), failure });
        }
        self.note_session(errand.session, name);
        self.errands.entry(name.clone()).or_default().insert(request, errand);
        if self.is_settled() {
            self.run_errand(now, name, request, out);
        }
    }

    fn is_errand_admissible(&self, name: &Name, aim: &Aim) -> Result<(), Failure> {
        if self.place.is_none() {
            return Err(Failure::NoMember);
        }
        self.may_be(name, aim.kind())?;
        if matches!(aim, Aim::Resize { units: 0, .. }) {
            return Err(Failure::NoUnits(name.clone()));
        }
        self.has_room(name, self.errands.get(name).map(super::Errands::len))
    }

    fn run_errand(&mut self, now: Nanos, name: &Name, request: RequestId, out: &mut Effects) {
        let errand = self.errands.get_mut(name).and_then(|errands| errands.get_mut(&request));
        match errand.map(|errand| &mut errand.aim) {
            None => {}
            Some(Aim::Observe(_)) => self.send_home(now, name, |name| Message::Observe { name, request }, out),
            Some(Aim::Resize { units, views }) => {
                *views += 1;
                let units = *units;
                self.send_home(now, name, |name| Message::Resize { name, request, units }, out);
            }
        }
    }

    /// In a new view, once it is settled: the oldest first.
    pub(super) fn run_errands(&mut self, now: Nanos, out: &mut Effects) {
        let of_name = |(name, errands): (&Name, &super::Errands)| {
            errands.keys().map(|request| (*request, name.clone())).collect::<Vec<_>>()
        };
        let mut errands: Vec<(RequestId, Name)> = self.errands.iter().flat_map(of_name).collect();
        errands.sort();
        for (request, name) in errands {
            self.run_errand(now, &name, request, out);
        }
    }

    /// Who leads, in the words of the home.
    pub(super) fn on_observed(
        &mut self,
        now: Nanos,
        name: &Name,
        requests: Vec<RequestId>,
        (counter, leader): (u64, Option<Leader>),
        out: &mut Effects,
    ) {
        let Some(view) = self.place.as_ref().map(|place| place.view.number) else { return };
        let sight = Sight { view, counter, nobody: leader.is_none(), leader };
        for request in requests {
            let errand = self.errands.get_mut(name).and_then(|errands| errands.get_mut(&request));
            let Some(Errand { session, aim: Aim::Observe(seen) }) = errand else {
                // It is gone, and the word of that has overtaken its Observe.
                self.send_home(now, name, |name| Message::Release { name, request }, out);
                continue;
            };
            if seen.as_ref() >= Some(&sight) {
                continue; // Overtaken by a later word.
            }
            let news = seen.as_ref().is_none_or(|seen| seen.leader != sight.leader);
            *seen = Some(sight.clone());
            if news {
                let (session, name, leader) = (*session, name.clone(), sight.leader.clone());
                out.push(Effect::Observed { session, request, name, leader });
            }
        }
    }

    /// The semaphore has as many units as a client of ours wanted.
    pub(super) fn on_resized(&mut self, name: &Name, request: RequestId, size: Size, out: &mut Effects) {
        let Some(errand) = self.drop_errand(name, request) else { return };
        out.push(Effect::Resized { session: errand.session, request, name: name.clone(), size });
    }

    /// A client of ours does not get what it wanted. False if there is no such errand.
    pub(super) fn deny_errand(&mut self, name: &Name, request: RequestId, failure: Failure, out: &mut Effects) -> bool {
        let Some(errand) = self.drop_errand(name, request) else { return false };
        let failure = match (failure, errand.aim) {
            (Failure::NotInUse(name), Aim::Resize { views: 2.., .. }) => Failure::Interrupted(name),
            (failure, _) => failure,
        };
        out.push(Effect::Failed { session: errand.session, request, name: name.clone(), failure });
        true
    }

    /// What the name would have to be for an errand.
    pub(super) fn errand_kind(&self, name: &Name, request: RequestId) -> Option<Kind> {
        Some(self.errands.get(name)?.get(&request)?.aim.kind())
    }

    /// A client does not want to see any more who leads. False if it does not; a resize cannot be taken back.
    pub(super) fn stop_observing(&mut self, now: Nanos, name: &Name, request: RequestId, out: &mut Effects) -> bool {
        let errand = self.errands.get(name).and_then(|errands| errands.get(&request));
        if !errand.is_some_and(|errand| matches!(errand.aim, Aim::Observe(_))) {
            return false;
        }
        if self.is_settled() {
            self.send_home(now, name, |name| Message::Release { name, request }, out);
        }
        self.deny_errand(name, request, Failure::Cancelled(name.clone()), out)
    }

    /// A session ends. A resize that is on its way may still happen, and nobody hears of it.
    pub(super) fn end_errands(&mut self, now: Nanos, name: &Name, session: SessionId, out: &mut Effects) {
        let own = |(request, errand): (&RequestId, &Errand)| (errand.session == session).then_some(*request);
        let requests: Vec<RequestId> = self.errands.get(name).into_iter().flatten().filter_map(own).collect();
        for request in requests {
            let errand = self.drop_errand(name, request).expect("it was found just now");
            if self.is_settled() && matches!(errand.aim, Aim::Observe(_)) {
                self.send_home(now, name, |name| Message::Release { name, request }, out);
            }
        }
    }

    fn drop_errand(&mut self, name: &Name, request: RequestId) -> Option<Errand> {
        let errands = self.errands.get_mut(name)?;
        let errand = errands.remove(&request)?;
        if errands.is_empty() {
            self.errands.remove(name);
        }
        self.forget_session(errand.session, name);
        Some(errand)
    }
}
