//! The laws of the lock service, as its clients and the resources behind it see it.
//!
//! 1. *Exclusion*: among those whose deadline has not passed on their own clock, only such are inside together as may be.
//! 2. *Fences grow*: of two grants of a name the later has the larger fence. Those who share a session share one.
//! 3. *Fences are one's own*: no two grants have the same. This alone must hold whatever clocks do, for it is what keeps a
//!    late write from passing a resource after a newer one.
//! 4. *Nobody is refused who is inside*: a resource that refuses older fences lets pass whoever is.

use std::collections::BTreeMap;

use vez_peer::{
    ask::{Ask, Kind, RequestId},
    fence::Fence,
    name::Name,
    shard::Nanos,
};

use crate::clock::Clock;

/// What has been granted, who believes to be inside, and what resources have seen.
pub(crate) struct Law {
    wild: bool,
    clocks: Vec<Clock>,
    names: BTreeMap<Name, Book>,
}

#[derive(Default)]
struct Book {
    granted: BTreeMap<Fence, Grant>,
    beliefs: Vec<Belief>,
    /// The highest fence that the resource has seen, or for a semaphore the highest floor.
    least: Option<Fence>,
}

struct Grant {
    request: RequestId,
    ask: Ask,
}

/// A client that believes to be inside.
#[derive(Clone, Debug)]
pub(crate) struct Belief {
    pub machine: usize,
    pub request: RequestId,
    pub ask: Ask,
    pub fence: Fence,
    pub floor: Fence,
    /// Until then, on the clock of its machine.
    pub deadline: Nanos,
}

impl Law {
    pub(crate) fn new(wild: bool, clocks: Vec<Clock>) -> Self {
        Self { wild, clocks, names: BTreeMap::new() }
    }

    /// A node lets somebody in.
    pub(crate) fn grant(&mut self, name: &Name, request: RequestId, ask: &Ask, fence: Fence) -> Result<(), String> {
        let book = self.names.entry(name.clone()).or_default();
        let shares = matches!(ask.kind(), Kind::Group | Kind::ReadWrite);
        if let Some(before) = book.granted.get(&fence)
            && !(shares && before.ask == *ask && *ask != Ask::Write)
        {
            return Err(format!("{name}: the fence {fence:?} is given out to {:?} and to {request:?}", before.request));
        }
        // Grants of a semaphore go out side by side, and one may arrive before an earlier one; but not from view to view.
        let side_by_side = matches!(ask.kind(), Kind::Semaphore { .. });
        let later = |highest: Fence| if side_by_side { highest.view() > fence.view() } else { highest > fence };
        if let Some((highest, _)) = book.granted.last_key_value()
            && later(*highest)
            && !self.wild
        {
            return Err(format!("{name}: the fence {fence:?} is given out after {highest:?}"));
        }
        book.granted.entry(fence).or_insert(Grant { request, ask: ask.clone() });
        Ok(())
    }

    /// A client is told that it is inside. False if its time is over before it began.
    pub(crate) fn enter(&mut self, now: Nanos, name: &Name, belief: Belief) -> Result<bool, String> {
        let clocks = &self.clocks;
        let alive = |belief: &Belief| clocks[belief.machine].reads(now) < belief.deadline;
        if !alive(&belief) {
            return Ok(false);
        }
        let book = self.names.entry(name.clone()).or_default();
        book.beliefs.retain(alive);
        book.beliefs.push(belief);
        if self.wild {
            return Ok(true);
        }
        agree(&book.beliefs).map_err(|what| {
            let inside = book.beliefs.iter().map(|belief| {
                let left = belief.deadline - clocks[belief.machine].reads(now);
                format!("{:?} with {:?} on m{} for {} ms", belief.ask, belief.fence, belief.machine, left / 1_000_000)
            });
            format!("{name}: {what}: {}", inside.collect::<Vec<_>>().join("; "))
        })?;
        Ok(true)
    }

    /// What a client holds is its own for longer.
    pub(crate) fn extend(&mut self, now: Nanos, name: &Name, request: RequestId, deadline: Nanos) {
        let Some(book) = self.names.get_mut(name) else { return };
        for belief in book.beliefs.iter_mut().filter(|belief| belief.request == request) {
            // What is over is over, and is not revived.
            if self.clocks[belief.machine].reads(now) < belief.deadline {
                belief.deadline = belief.deadline.max(deadline);
            }
        }
    }

    /// A client is inside no longer.
    pub(crate) fn leave(&mut self, name: &Name, request: RequestId) {
        if let Some(book) = self.names.get_mut(name) {
            book.beliefs.retain(|belief| belief.request != request);
        }
    }

    /// Somebody's word comes to the resource, perhaps long after it was inside. True if it passes.
    pub(crate) fn write(
        &mut self,
        now: Nanos,
        name: &Name,
        kind: Kind,
        fence: Fence,
        floor: Fence,
    ) -> Result<bool, String> {
        let book = self.names.entry(name.clone()).or_default();
        let shows = if matches!(kind, Kind::Semaphore { .. }) { floor } else { fence };
        let least = book.least.map_or(shows, |least| least.max(shows));
        book.least = Some(least);
        let passes = fence >= least;
        let clocks = &self.clocks;
        let alive = |belief: &Belief| belief.fence == fence && clocks[belief.machine].reads(now) < belief.deadline;
        if !passes && !self.wild && book.beliefs.iter().any(alive) {
            return Err(format!(
                "{name}: the resource refuses {fence:?}, whose holder is inside, since it saw {least:?}"
            ));
        }
        Ok(passes)
    }
}

/// Whether these may be inside together.
fn agree(inside: &[Belief]) -> Result<(), &'static str> {
    let Some((first, others)) = inside.split_first() else { return Ok(()) };
    let floor = inside.iter().map(|belief| belief.floor).max().expect("somebody is inside");
    if inside.iter().any(|belief| belief.fence < floor) {
        return Err("somebody is inside who counts as gone");
    }
    match &first.ask {
        _ if others.iter().any(|other| other.ask.kind() != first.ask.kind()) => Err("it is two things at once"),
        Ask::Lock | Ask::Elect { .. } if !others.is_empty() => Err("two are inside"),
        Ask::Semaphore { units, .. } => {
            let weight = |belief: &Belief| match belief.ask {
                Ask::Semaphore { weight, .. } => u64::from(weight),
                _ => 0,
            };
            let all: u64 = inside.iter().map(weight).sum();
            if all > u64::from(*units) { Err("more units are taken than there are") } else { Ok(()) }
        }
        Ask::Group { .. } if others.iter().any(|other| other.ask != first.ask) => Err("two groups are inside"),
        Ask::Read | Ask::Write if !others.is_empty() && inside.iter().any(|belief| belief.ask == Ask::Write) => {
            Err("a writer is not alone")
        }
        Ask::Group { .. } | Ask::Read | Ask::Write if others.iter().any(|other| other.fence != first.fence) => {
            Err("those of one session have different fences")
        }
        Ask::Lock | Ask::Elect { .. } | Ask::Group { .. } | Ask::Read | Ask::Write => Ok(()),
    }
}
