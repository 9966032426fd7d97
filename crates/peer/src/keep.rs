//! What is kept for whoever knows a value, and what has to be pledged for that.
//!
//! A client of Redis locks by `SET name value NX PX ms`. It believes to have the lock until that time is over on its own
//! clock, whatever becomes of its connection, and of this node. So such a lock is the one thing that does not end with a
//! lease, and a member that may have kept one must be waited for after its end. How long, is its *pledge* P. It is in the
//! log, where every leader finds it.
//!
//! ```text
//!   member → leader   Heartbeat(pledge 7: P)      I want to keep something, for P at most
//!   the log           Pledge(7: P)                from now on, whoever removes this member waits for its lease and P
//!   member → client   OK                          once its own log says so
//! ```
//!
//! - Something is kept, or prolonged, only while the pledge in force by this member's own log is the last that it has
//!   issued: who has asked for less cannot use what it had before.
//! - What is kept at t < sent + T is over, on anybody's clock, by sent + T + P; a leader counts from later, by its own.
//! - A lower pledge is issued only if all that is kept ends within it. Nothing is kept or prolonged meanwhile.
//!
//! The clock of whom something is kept for is not this one. Until some time has surely passed on another's, longer passes
//! here. So a thing that is kept has two moments: its *deadline*, which clients are told, and its *end*, when the next may
//! have it.
//!
//! No session has a part in it. In the lock table all that is kept is held by one that nobody has opened, the [`KEEPER`].

mod pledging;

use alloc::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    vec::Vec,
};

use serde::{Deserialize, Serialize};

pub(crate) use self::pledging::Moment;

use crate::{
    ask::{Failure, LONGEST_LABEL, Limit, RequestId, SessionId},
    fence::Fence,
    name::Name,
    shard::Nanos,
    views::{LONGEST_PLEDGE, Pledge},
};

/// Whatever is kept, or is to be, is held and asked for by this session. It is always there; those of clients have other numbers.
pub const KEEPER: SessionId = SessionId(0);
/// So many locks are kept at most.
pub const MOST_KEPT: usize = 1 << 17;
/// So many wishes wait for a pledge at most.
pub const MOST_WISHES: usize = 1 << 16;

/// A lock that somebody wants, now or never, to be kept for whoever knows a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Set {
    /// A number larger than that of any request before.
    pub request: RequestId,
    /// Which lock.
    pub name: Name,
    /// Whoever knows it, has the lock.
    pub value: Vec<u8>,
    /// For how long from the moment that it is kept; [`Habits::keep`](crate::shard::Habits::keep) at most.
    pub ttl: Nanos,
    /// Who wants it, as those are told who ask.
    pub by: Arc<str>,
}

/// What somebody who knows a name wants of what is kept under it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Wish {
    /// To see it.
    Look,
    /// To give it back.
    Release,
    /// That it ends so long from now, be that sooner or later than it would.
    Expire {
        /// How long; if it is 0, at once.
        ttl: Nanos,
    },
    /// That it ends later than it would.
    Prolong {
        /// By so much.
        by: Nanos,
    },
}

/// What is kept under a name, as those see it who know that.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// Who knows it, has it.
    pub value: Vec<u8>,
    /// The number of its grant.
    pub fence: Fence,
    /// Until then it is had, on this machine's clock. It may be a moment ago: others' clocks may be slower.
    pub deadline: Nanos,
}

/// What a node keeps, what is to be kept, and what it has pledged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Keeping {
    /// Nothing is kept for longer.
    most: Nanos,
    /// For each name what it is set to: there is one at a time, since only one has a lock or tries to get it.
    all: BTreeMap<Name, Entry>,
    /// When what is kept ends.
    ends: BTreeSet<(Nanos, Name)>,
    /// What is had, and waits for a pledge to be kept.
    unpledged: BTreeSet<Name>,
    /// What is kept and waits for a pledge to be prolonged: under which fence, and how.
    wishes: BTreeMap<(Name, RequestId), (Fence, Wish)>,
    /// The last pledge that was issued.
    issued: Pledge,
    /// The number of the last pledge that the leader was told of.
    told: u64,
    /// How long a pledge has been needed since that moment.
    needed: Nanos,
    since: Nanos,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Entry {
    /// By which it came.
    request: RequestId,
    by: Arc<str>,
    value: Vec<u8>,
    stage: Stage,
}

/// How far a SET has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The lock is asked for.
    Asked { ttl: Nanos },
    /// It is had, and waits for a pledge to be kept.
    Had { fence: Fence, ttl: Nanos },
    /// It is kept.
    Kept {
        fence: Fence,
        /// What clients are told.
        deadline: Nanos,
        /// When the next may have it.
        end: Nanos,
    },
}

impl Entry {
    /// Under which the lock is held, if it is.
    fn fence(&self) -> Option<Fence> {
        match self.stage {
            Stage::Asked { .. } => None,
            Stage::Had { fence, .. } | Stage::Kept { fence, .. } => Some(fence),
        }
    }

    /// What is kept, if anything is.
    fn kept(&self) -> Option<Kept> {
        let Stage::Kept { fence, deadline, .. } = self.stage else { return None };
        Some(Kept { value: self.value.clone(), fence, deadline })
    }
}

/// What came of a lock that is had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Had {
    /// It is kept until that deadline.
    Kept(RequestId, Nanos),
    /// More has to be pledged first.
    Waits,
}

impl Keeping {
    pub(crate) fn new(most: Nanos) -> Self {
        Self {
            most: most.min(LONGEST_PLEDGE),
            all: BTreeMap::new(),
            ends: BTreeSet::new(),
            unpledged: BTreeSet::new(),
            wishes: BTreeMap::new(),
            issued: Pledge::default(),
            told: 0,
            needed: 0,
            since: 0,
        }
    }

    /// How much is kept.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Who has set a name, or wants to.
    pub(crate) fn setter(&self, name: &Name) -> Option<&Arc<str>> {
        self.all.get(name).map(|entry| &entry.by)
    }

    /// The fence of what is kept under a name, and under this value, if one is said; and the name as it is known here.
    pub(crate) fn find(&self, name: &Name, value: Option<&[u8]>) -> Option<(Name, Fence)> {
        let (name, entry) = self.all.get_key_value(name)?;
        let is_it = value.is_none_or(|value| value == entry.value) && matches!(entry.stage, Stage::Kept { .. });
        entry.fence().filter(|_| is_it).map(|fence| (name.clone(), fence))
    }

    /// What is kept under a name.
    pub(crate) fn look(&self, name: &Name) -> Option<Kept> {
        self.all.get(name).and_then(Entry::kept)
    }

    /// Somebody wants a lock: it is to be asked for. Nothing has changed, if it cannot be kept, or is set already.
    pub(crate) fn set(&mut self, set: Set) -> Result<(), Failure> {
        let Set { request, name, value, ttl, by } = set;
        if self.all.contains_key(&name) {
            return Err(Failure::Busy(name)); // Whatever else may be wrong with it.
        }
        if value.len() > LONGEST_LABEL {
            return Err(Failure::TooLong(value.len()));
        }
        if ttl == 0 {
            return Err(Failure::KeptForNothing(name));
        }
        if ttl > self.most {
            return Err(Failure::KeptTooLong { most: self.most, asked: ttl });
        }
        if self.all.len() >= MOST_KEPT {
            return Err(Failure::TooMany(Limit::Kept));
        }
        self.all.insert(name, Entry { request, by, value, stage: Stage::Asked { ttl } });
        Ok(())
    }

    /// The lock that is asked for is not had.
    pub(crate) fn denied(&mut self, name: &Name, request: RequestId) {
        let denied = self.all.remove(name).expect("whoever asks has said what for");
        assert!(denied.request == request && denied.fence().is_none(), "only one is asked for at a time");
    }

    /// The lock is had, or a pledge is in force that was not: is it kept? If more has to be pledged first, it waits.
    pub(crate) fn had(&mut self, moment: &Moment<'_>, name: &Name, fence: Fence) -> Had {
        let entry = self.all.get(name).expect("what is had was asked for");
        let (Stage::Asked { ttl } | Stage::Had { ttl, .. }) = entry.stage else { unreachable!("it is had once") };
        let lasts = moment.charter.of_others(ttl);
        let stage = if self.is_pledged(moment, lasts) {
            let (deadline, end) = (moment.now.saturating_add(ttl), moment.now.saturating_add(lasts));
            self.ends.insert((end, name.clone()));
            Stage::Kept { fence, deadline, end }
        } else {
            self.unpledged.insert(name.clone());
            Stage::Had { fence, ttl }
        };
        let entry = self.all.get_mut(name).expect("it was there just now");
        entry.stage = stage;
        match stage {
            Stage::Kept { deadline, .. } => Had::Kept(entry.request, deadline),
            Stage::Asked { .. } | Stage::Had { .. } => Had::Waits,
        }
    }

    /// Whether what is kept under a name would end later by that.
    pub(crate) fn would_prolong(&self, moment: &Moment<'_>, name: &Name, wish: Wish) -> bool {
        let end = match self.all.get(name).map(|entry| entry.stage) {
            Some(Stage::Kept { end, .. }) => end,
            Some(Stage::Asked { .. } | Stage::Had { .. }) | None => Nanos::MAX,
        };
        match wish {
            Wish::Look | Wish::Release => false,
            Wish::Expire { ttl } => moment.ends_after(ttl) > end,
            Wish::Prolong { by } => by > 0,
        }
    }

    /// What is kept under a name is to end some other time. Nothing yet, if more has to be pledged for it first: then it waits.
    pub(crate) fn change(
        &mut self,
        moment: &Moment<'_>,
        request: RequestId,
        name: &Name,
        wish: Wish,
    ) -> Result<Option<Kept>, Failure> {
        let stage = self.all.get(name).map(|entry| entry.stage);
        let Some(Stage::Kept { fence, deadline, end }) = stage else { unreachable!("whoever calls has found it") };
        let (later, last) = match wish {
            Wish::Look | Wish::Release => (deadline, end),
            Wish::Expire { ttl } => (moment.now.saturating_add(ttl), moment.ends_after(ttl)),
            Wish::Prolong { by } => (deadline.saturating_add(by), end.saturating_add(moment.charter.of_others(by))),
        };
        if last > end {
            let lasts = last - moment.now;
            let asked = moment.charter.waited_for(lasts);
            if asked > self.most {
                return Err(Failure::KeptTooLong { most: self.most, asked });
            }
            if !self.is_pledged(moment, lasts) {
                if self.wishes.len() >= MOST_WISHES {
                    return Err(Failure::TooMany(Limit::Wishes));
                }
                self.wishes.insert((name.clone(), request), (fence, wish));
                return Ok(None);
            }
        }
        self.ends.remove(&(end, name.clone()));
        self.ends.insert((last, name.clone()));
        let entry = self.all.get_mut(name).expect("it was found just now");
        entry.stage = Stage::Kept { fence, deadline: later, end: last };
        Ok(entry.kept())
    }

    /// What was set under a name is over: what was kept; or, if it was not kept yet, whose request that was.
    pub(crate) fn end(&mut self, name: &Name) -> Result<Kept, RequestId> {
        let Entry { request, value, stage, .. } = self.all.remove(name).expect("whoever calls has found it");
        match stage {
            Stage::Asked { .. } => Err(request),
            Stage::Had { .. } => {
                self.unpledged.remove(name);
                Err(request)
            }
            Stage::Kept { fence, deadline, end } => {
                self.ends.remove(&(end, name.clone()));
                Ok(Kept { value, fence, deadline })
            }
        }
    }

    /// Takes out those who wait for something to be prolonged that is over.
    pub(crate) fn wishes_in_vain(&mut self, name: &Name) -> Vec<RequestId> {
        if self.wishes.is_empty() {
            return Vec::new();
        }
        let all = (name.clone(), RequestId(0))..=(name.clone(), RequestId(u64::MAX));
        self.wishes.extract_if(all, |_, _| true).map(|((_, request), _)| request).collect()
    }

    /// The fence under which a name is held for what was set by that request, if it is.
    pub(crate) fn held_by(&self, name: &Name, request: RequestId) -> Option<Fence> {
        self.all.get(name).filter(|entry| entry.request == request)?.fence()
    }

    /// The fence under which a name is held for what was set, if it is.
    pub(crate) fn fence_of(&self, name: &Name) -> Option<Fence> {
        self.all.get(name)?.fence()
    }

    /// Something that has been kept for long enough, and its fence.
    pub(crate) fn overdue(&self, now: Nanos) -> Option<(Name, Fence)> {
        let (_, name) = self.ends.first().filter(|(end, _)| *end <= now)?;
        Some((name.clone(), self.fence_of(name)?))
    }

    /// When the next thing ends that is kept.
    pub(crate) fn next_end(&self) -> Option<Nanos> {
        self.ends.first().map(|(end, _)| *end)
    }

    /// All that waits for a pledge to be kept, to be looked at again.
    pub(crate) fn take_unpledged(&mut self) -> BTreeSet<Name> {
        core::mem::take(&mut self.unpledged)
    }

    /// The same of what is to be prolonged.
    pub(crate) fn take_wishes(&mut self) -> BTreeMap<(Name, RequestId), (Fence, Wish)> {
        core::mem::take(&mut self.wishes)
    }
}

#[cfg(test)]
mod tests;
