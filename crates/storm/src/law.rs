//! The laws of the lock service, as its clients and the resources behind it see it.
//!
//! 1. *Exclusion*: among those whose deadline has not passed on their own clock, only such are inside together as may be.
//! 2. *Fences grow*: of two grants of a name the later has the larger fence. Those who share a session share one.
//! 3. *Fences are one's own*: no two grants have the same. This alone must hold whatever clocks do, for it is what keeps a
//!    late write from passing a resource after a newer one.
//! 4. *Nobody is refused who is inside*: a resource that refuses older fences lets pass whoever is.
//! 5. *A view is one*: whoever is in it knows the same members.
//! 6. *A size is kept*: once a semaphore is said to have been resized, and as long as somebody is inside, it has that size.
//! 7. *Observers see the truth*: a leader that was granted, with its value; never an older one after a newer one; and in the
//!    end, the one who leads.
//! 8. *Nobody is turned away too early*: a wait times out when it was to, and only who tries is told that it is busy.

use std::{collections::BTreeMap, mem::discriminant};

use vez_peer::{
    ask::{Ask, Failure, Kind, Leader, Patience, RequestId, Size},
    fence::Fence,
    name::Name,
    shard::Nanos,
    view::{View, ViewNumber},
};

use crate::{clock::Clock, plan::SECOND};

/// What has been granted, who believes to be inside, and what resources have seen.
pub(crate) struct Law {
    wild: bool,
    clocks: Vec<Clock>,
    /// What was asked for, and when.
    asks: BTreeMap<RequestId, Asked>,
    views: BTreeMap<ViewNumber, View>,
    names: BTreeMap<Name, Book>,
}

struct Asked {
    when: Nanos,
    machine: usize,
    ask: Ask,
    patience: Patience,
}

#[derive(Default)]
struct Book {
    granted: BTreeMap<Fence, Grant>,
    beliefs: Vec<Belief>,
    /// The highest fence that the resource has seen, or for a semaphore the highest floor.
    least: Option<Fence>,
    resizes: Vec<Resize>,
    /// The values of leaders that were seen.
    seen: BTreeMap<Fence, Vec<u8>>,
    /// When somebody entered or left last.
    changed: Nanos,
}

/// Somebody wanted another number of units.
struct Resize {
    request: RequestId,
    units: u32,
    /// When it was said to be done, and its number.
    done: Option<(Nanos, Fence)>,
}

struct Grant {
    request: RequestId,
    ask: Ask,
}

/// A client that believes to be inside.
#[derive(Clone, Debug)]
pub(crate) struct Belief {
    /// Whose clock it goes by: that of its machine, or, above those, one of its own.
    pub machine: usize,
    pub request: RequestId,
    pub ask: Ask,
    pub fence: Fence,
    pub floor: Fence,
    /// Until then, on that clock.
    pub deadline: Nanos,
}

impl Law {
    pub(crate) fn new(wild: bool, clocks: Vec<Clock>) -> Self {
        Self { wild, clocks, asks: BTreeMap::new(), views: BTreeMap::new(), names: BTreeMap::new() }
    }

    /// Somebody asks for something.
    pub(crate) fn asked(&mut self, when: Nanos, machine: usize, request: RequestId, ask: Ask, patience: Patience) {
        self.asks.insert(request, Asked { when, machine, ask, patience });
    }

    /// A machine was started anew, and with it its clock. None of its clients is left.
    pub(crate) fn set_clock(&mut self, machine: usize, clock: Clock) {
        self.clocks[machine] = clock;
    }

    /// A process is a member of this view.
    pub(crate) fn view(&mut self, view: Option<&View>) -> Result<(), String> {
        let Some(view) = view else { return Ok(()) };
        let known = self.views.entry(view.number).or_insert_with(|| view.clone());
        if known == view { Ok(()) } else { Err(format!("there are two views {}: {known:?}, {view:?}", view.number)) }
    }

    /// Somebody does not get what it asked for.
    pub(crate) fn deny(&mut self, now: Nanos, request: RequestId, failure: &Failure) -> Result<(), String> {
        if !matches!(failure, Failure::Interrupted(_)) {
            for book in self.names.values_mut() {
                book.resizes.retain(|resize| resize.request != request);
            }
        }
        let Some(Asked { machine, patience, .. }) = self.asks.get(&request) else { return Ok(()) };
        let reads = self.clocks[*machine].reads(now);
        let too_early = match (failure, patience) {
            (Failure::TimedOut(_), Patience::Until(end)) => reads < *end,
            (Failure::TimedOut(_), _) => true,
            (Failure::Busy(_) | Failure::Settling(_), patience) => *patience != Patience::Try,
            (_, _) => false,
        };
        if too_early { Err(format!("{request:?} with {patience:?} is told at {reads}: {failure}")) } else { Ok(()) }
    }

    /// A node lets somebody in.
    pub(crate) fn grant(&mut self, name: &Name, request: RequestId, fence: Fence) -> Result<(), String> {
        let ask = &self.asks[&request].ask;
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
        if let Some(value) = book.seen.get(&fence)
            && *ask != (Ask::Elect { value: value.clone() })
        {
            return Err(format!("{name}: {fence:?} is given out as {ask:?}, and was seen with {value:?}"));
        }
        book.granted.entry(fence).or_insert(Grant { request, ask: ask.clone() });
        Ok(())
    }

    /// Somebody wants a semaphore to have so many units.
    pub(crate) fn wants_size(&mut self, name: &Name, request: RequestId, units: u32) {
        self.names.entry(name.clone()).or_default().resizes.push(Resize { request, units, done: None });
    }

    /// It is told that it has.
    pub(crate) fn resized(&mut self, now: Nanos, name: &Name, request: RequestId, size: Size) {
        let book = self.names.entry(name.clone()).or_default();
        if let Some(resize) = book.resizes.iter_mut().find(|resize| resize.request == request) {
            resize.done = Some((now, size.since));
        }
    }

    /// An observer is told who leads.
    pub(crate) fn observe(
        &mut self,
        name: &Name,
        before: Option<Fence>,
        Leader { fence, value }: Leader,
    ) -> Result<(), String> {
        if before >= Some(fence) {
            return Err(format!("{name}: an observer sees {fence:?} after {before:?}"));
        }
        let book = self.names.entry(name.clone()).or_default();
        let is = Ask::Elect { value: value.clone() };
        if book.granted.get(&fence).is_some_and(|grant| grant.ask != is) {
            return Err(format!("{name}: an observer sees {fence:?} with {value:?}, which is not its value"));
        }
        book.seen.insert(fence, value);
        Ok(())
    }

    /// Whether an observer who sees this knows who leads. What has just changed it need not know yet.
    pub(crate) fn knows(&self, now: Nanos, name: &Name, sees: Option<&Leader>) -> Result<(), String> {
        let Some(book) = self.names.get(name) else { return Ok(()) };
        let leads = book.beliefs.iter().find(|belief| self.is_alive(now, belief));
        let (sees, leads) = (sees.map(|leader| leader.fence), leads.map(|belief| belief.fence));
        if sees == leads || now < book.changed + SECOND {
            return Ok(());
        }
        Err(format!("{name}: an observer sees {sees:?}, and {leads:?} leads"))
    }

    fn is_alive(&self, now: Nanos, belief: &Belief) -> bool {
        self.clocks[belief.machine].reads(now) < belief.deadline
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
        let asked = self.asks[&belief.request].when;
        let keeps_size = book.keeps_size(asked, &belief);
        book.beliefs.push(belief);
        book.changed = now;
        if self.wild {
            return Ok(true);
        }
        keeps_size.and_then(|()| agree(&book.beliefs, book.most_units())).map_err(|what| {
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

    /// What a client holds may end earlier.
    pub(crate) fn shorten(&mut self, name: &Name, request: RequestId, deadline: Nanos) {
        let Some(book) = self.names.get_mut(name) else { return };
        for belief in book.beliefs.iter_mut().filter(|belief| belief.request == request) {
            belief.deadline = belief.deadline.min(deadline);
        }
    }

    /// A client is inside no longer.
    pub(crate) fn leave(&mut self, now: Nanos, name: &Name, request: RequestId) {
        if let Some(book) = self.names.get_mut(name) {
            book.changed = now;
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

impl Book {
    /// How many units a semaphore may have had when it last let somebody in: as many as were asked for then, or as some resize
    /// made them that no other is known to have undone since. One that was done later may have begun in an earlier view.
    fn most_units(&self) -> u32 {
        let Some(last) = self.beliefs.iter().max_by_key(|belief| belief.fence) else { return 0 };
        let done = |resize: &Resize| resize.done.map(|(_, since)| since);
        let undone =
            |since: Fence| self.resizes.iter().filter_map(done).any(|later| since < later && later < last.fence);
        let counts = |resize: &&Resize| done(resize).is_none_or(|since| !undone(since));
        let resized = self.resizes.iter().filter(counts).map(|resize| resize.units);
        let asked = match last.ask {
            Ask::Semaphore { units, .. } => units,
            _ => 0,
        };
        resized.chain([asked]).max().unwrap_or(0)
    }

    /// Whether one who asked then and enters now takes the semaphore for as large as it was last made, if somebody has been
    /// inside ever since, and nobody wants it otherwise.
    fn keeps_size(&self, asked: Nanos, entering: &Belief) -> Result<(), &'static str> {
        let Ask::Semaphore { units, .. } = entering.ask else { return Ok(()) };
        let done: Option<Vec<_>> = self.resizes.iter().map(|resize| Some((resize.done?, resize.units))).collect();
        let Some(((when, since), size)) = done.and_then(|done| done.into_iter().max_by_key(|((_, since), _)| *since))
        else {
            return Ok(());
        };
        let witnessed = self.beliefs.iter().any(|belief| belief.fence < since);
        if witnessed && asked > when && entering.fence > since && units != size {
            return Err("it has not the size any more that it was given");
        }
        Ok(())
    }
}

/// Whether these may be inside together, if there are so many units.
fn agree(inside: &[Belief], units: u32) -> Result<(), &'static str> {
    let Some((first, others)) = inside.split_first() else { return Ok(()) };
    let floor = inside.iter().map(|belief| belief.floor).max().expect("somebody is inside");
    if inside.iter().any(|belief| belief.fence < floor) {
        return Err("somebody is inside who counts as gone");
    }
    match &first.ask {
        _ if others.iter().any(|other| discriminant(&other.ask.kind()) != discriminant(&first.ask.kind())) => {
            Err("it is two things at once")
        }
        Ask::Lock | Ask::Elect { .. } if !others.is_empty() => Err("two are inside"),
        Ask::Semaphore { .. } => {
            let weight = |belief: &Belief| match belief.ask {
                Ask::Semaphore { weight, .. } => u64::from(weight),
                _ => 0,
            };
            let all: u64 = inside.iter().map(weight).sum();
            if all > u64::from(units) { Err("more units are taken than there are") } else { Ok(()) }
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
