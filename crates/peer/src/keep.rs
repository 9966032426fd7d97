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

mod pledging;

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

use serde::{Deserialize, Serialize};

pub(crate) use self::pledging::Moment;

use crate::{
    ask::{Failure, LONGEST_LABEL, Limit, RequestId, SessionId},
    fence::Fence,
    name::Name,
    session::MOST_SESSIONS,
    shard::Nanos,
    views::{LONGEST_PLEDGE, Pledge},
};

/// So many locks are kept at most: half of the sessions that a node has are for others.
pub const MOST_KEPT: usize = MOST_SESSIONS / 2;
/// So many wishes wait for a pledge at most.
pub const MOST_WISHES: usize = 1 << 16;

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

/// A hold that is to be kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Keep {
    pub request: RequestId,
    pub name: Name,
    pub fence: Fence,
    pub value: Vec<u8>,
    pub ttl: Nanos,
}

/// What a node keeps, what is to be kept, and what it has pledged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Keeping {
    /// Nothing is kept for longer.
    most: Nanos,
    kept: BTreeMap<Name, Entry>,
    /// What each session keeps.
    names: BTreeMap<SessionId, Name>,
    ends: BTreeSet<(Nanos, Name)>,
    /// Holds that wait for a pledge to be kept.
    waiting: BTreeMap<SessionId, Keep>,
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
    session: SessionId,
    fence: Fence,
    value: Vec<u8>,
    /// What clients are told.
    deadline: Nanos,
    /// When the next may have it.
    end: Nanos,
}

impl Entry {
    fn kept(&self) -> Kept {
        Kept { value: self.value.clone(), fence: self.fence, deadline: self.deadline }
    }
}

impl Keeping {
    pub(crate) fn new(most: Nanos) -> Self {
        Self {
            most: most.min(LONGEST_PLEDGE),
            kept: BTreeMap::new(),
            names: BTreeMap::new(),
            ends: BTreeSet::new(),
            waiting: BTreeMap::new(),
            wishes: BTreeMap::new(),
            issued: Pledge::default(),
            told: 0,
            needed: 0,
            since: 0,
        }
    }

    /// How much is kept.
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// What a session keeps: the name, and the fence.
    pub(crate) fn of_session(&self, session: SessionId) -> Option<(&Name, Fence)> {
        let name = self.names.get(&session)?;
        Some((name, self.kept[name].fence))
    }

    /// What is kept under a name, and by which session; nothing, if it is under another value than this one.
    pub(crate) fn find(&self, name: &Name, value: Option<&[u8]>) -> Option<(SessionId, Kept)> {
        let entry = self.kept.get(name)?;
        value.is_none_or(|value| value == entry.value).then(|| (entry.session, entry.kept()))
    }

    /// Whether a hold can be kept at all, by that session.
    pub(crate) fn check(&self, session: SessionId, keep: &Keep) -> Result<(), Failure> {
        if self.names.contains_key(&session) || self.waiting.contains_key(&session) {
            return Err(Failure::KeepsOnly(keep.name.clone()));
        }
        if keep.value.len() > LONGEST_LABEL {
            return Err(Failure::TooLong(keep.value.len()));
        }
        if self.kept.len() + self.waiting.len() >= MOST_KEPT {
            return Err(Failure::TooMany(Limit::Kept));
        }
        match keep.ttl {
            0 => Err(Failure::KeptForNothing(keep.name.clone())),
            ttl if ttl > self.most => Err(Failure::KeptTooLong { most: self.most, asked: ttl }),
            _ => Ok(()),
        }
    }

    /// What a session holds is kept from now on: until when. Nothing yet, if more has to be pledged for it first: then it waits.
    pub(crate) fn keep(&mut self, moment: &Moment<'_>, session: SessionId, keep: Keep) -> Option<(Nanos, Nanos)> {
        let lasts = moment.charter.of_others(keep.ttl);
        if !self.is_pledged(moment, lasts) {
            self.waiting.insert(session, keep);
            return None;
        }
        let (deadline, end) = (moment.now.saturating_add(keep.ttl), moment.now.saturating_add(lasts));
        let Keep { name, fence, value, .. } = keep;
        self.names.insert(session, name.clone());
        self.ends.insert((end, name.clone()));
        let before = self.kept.insert(name, Entry { session, fence, value, deadline, end });
        assert!(before.is_none(), "what is kept is held, and only one holds a lock");
        Some((deadline, end))
    }

    /// Whether what is kept under a name would end later by that.
    pub(crate) fn would_prolong(&self, moment: &Moment<'_>, name: &Name, wish: Wish) -> bool {
        let end = self.kept.get(name).map_or(Nanos::MAX, |entry| entry.end);
        match wish {
            Wish::Look | Wish::Release => false,
            Wish::Expire { ttl } => moment.ends_after(ttl) > end,
            Wish::Prolong { by } => by > 0,
        }
    }

    /// What is kept under a name and a fence is to end some other time: when it does. Nothing yet, if more has to be pledged
    /// for it first: then it waits.
    pub(crate) fn change(
        &mut self,
        moment: &Moment<'_>,
        request: RequestId,
        name: &Name,
        wish: Wish,
    ) -> Result<Option<(SessionId, Kept, Nanos)>, Failure> {
        let entry = self.kept.get(name).expect("whoever calls has found it");
        let Entry { session, fence, deadline, end, .. } = *entry;
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
        let entry = self.kept.get_mut(name).expect("it was found just now");
        (entry.deadline, entry.end) = (later, last);
        Ok(Some((session, entry.kept(), last)))
    }

    /// A session is over, and with it what it keeps, if it does: under which name and fence, and whose wishes about it are in
    /// vain. What it only wanted to keep is not kept.
    pub(crate) fn end(&mut self, session: SessionId) -> Option<(Name, Fence, Vec<RequestId>)> {
        self.waiting.remove(&session);
        let name = self.names.remove(&session)?;
        let entry = self.kept.remove(&name).expect("what a session keeps is kept");
        self.ends.remove(&(entry.end, name.clone()));
        let all = (name.clone(), RequestId(0))..=(name.clone(), RequestId(u64::MAX));
        let in_vain: Vec<RequestId> = self.wishes.range(all).map(|((_, request), _)| *request).collect();
        for request in &in_vain {
            self.wishes.remove(&(name.clone(), *request));
        }
        Some((name, entry.fence, in_vain))
    }

    /// What a session only wanted to keep it has given back.
    pub(crate) fn give_up(&mut self, session: SessionId, name: &Name, fence: Fence) -> Option<RequestId> {
        let keep = self.waiting.get(&session).filter(|keep| keep.name == *name && keep.fence == fence)?;
        let request = keep.request;
        self.waiting.remove(&session);
        Some(request)
    }

    /// All that waits for a pledge, to be looked at again.
    pub(crate) fn take_waiting(&mut self) -> BTreeMap<SessionId, Keep> {
        core::mem::take(&mut self.waiting)
    }

    /// The same of what is to be prolonged.
    pub(crate) fn take_wishes(&mut self) -> BTreeMap<(Name, RequestId), (Fence, Wish)> {
        core::mem::take(&mut self.wishes)
    }
}

#[cfg(test)]
mod tests;
