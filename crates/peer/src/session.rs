//! Sessions: the clients of a node, each for as long as it shows itself.

use alloc::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{ask::SessionId, shard::Nanos};

/// So many clients a node has at most.
pub const MOST_SESSIONS: usize = 1 << 18;

/// The clients of a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub struct Sessions {
    all: BTreeMap<SessionId, Session>,
    /// Those that end some time, the first to end first.
    ends: BTreeSet<(Nanos, SessionId)>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Session {
    /// So long after it showed itself last it ends; if nothing is said, when its connection does.
    ttl: Option<Nanos>,
    end: Option<Nanos>,
}

impl Sessions {
    /// A client comes, or shows itself. False if there are too many.
    pub fn open(&mut self, now: Nanos, session: SessionId, ttl: Option<Nanos>) -> bool {
        if self.all.len() >= MOST_SESSIONS && !self.all.contains_key(&session) {
            return false;
        }
        self.end(session);
        let end = ttl.map(|ttl| now.saturating_add(ttl));
        self.ends.extend(end.map(|end| (end, session)));
        self.all.insert(session, Session { ttl, end });
        true
    }

    /// A client shows itself. False if it is not there any more.
    pub fn renew(&mut self, now: Nanos, session: SessionId) -> bool {
        let Some(ttl) = self.all.get(&session).map(|session| session.ttl) else { return false };
        ttl.is_none_or(|ttl| self.extend(now, session, ttl))
    }

    /// A client is there for at least so long from now. What it was promised before is never shortened. False if it is not
    /// there any more.
    pub fn extend(&mut self, now: Nanos, session: SessionId, by: Nanos) -> bool {
        let Some(known) = self.all.get_mut(&session) else { return false };
        let Some(end) = known.end else { return true }; // It does not depend on being shown.
        let later = end.max(now.saturating_add(by));
        known.end = Some(later);
        self.ends.remove(&(end, session));
        self.ends.insert((later, session));
        true
    }

    /// A client goes. False if it was not there.
    pub fn end(&mut self, session: SessionId) -> bool {
        let Some(gone) = self.all.remove(&session) else { return false };
        if let Some(end) = gone.end {
            self.ends.remove(&(end, session));
        }
        true
    }

    /// One whose time is over.
    #[must_use]
    pub fn overdue(&self, now: Nanos) -> Option<SessionId> {
        self.ends.first().filter(|(end, _)| *end <= now).map(|(_, session)| *session)
    }

    /// Until when what it holds is its own, given when the node itself stops.
    #[must_use]
    pub fn deadline(&self, session: SessionId, stop: Nanos) -> Option<Nanos> {
        self.all.get(&session).map(|session| session.end.unwrap_or(stop).min(stop))
    }

    /// When the next one ends.
    #[must_use]
    pub fn next_end(&self) -> Option<Nanos> {
        self.ends.first().map(|(end, _)| *end)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_when_it_does_not_show_itself() {
        let mut sessions = Sessions::default();
        let (one, other) = (SessionId(1), SessionId(2));
        assert!(sessions.open(100, one, Some(50)) && sessions.open(100, other, None));
        assert_eq!((sessions.next_end(), sessions.overdue(149)), (Some(150), None));
        assert!(sessions.renew(140, one));
        assert_eq!((sessions.overdue(150), sessions.overdue(190)), (None, Some(one)));
        assert!(sessions.end(one) && !sessions.end(one) && !sessions.renew(191, one));
        assert_eq!((sessions.next_end(), sessions.len()), (None, 1));
    }

    #[test]
    fn a_session_is_extended_and_never_shortened() {
        let mut sessions = Sessions::default();
        let (one, other) = (SessionId(1), SessionId(2));
        assert!(sessions.open(100, one, Some(50)) && sessions.open(100, other, None));
        assert!(sessions.extend(110, one, 400) && sessions.renew(120, one) && sessions.extend(120, one, 1));
        assert_eq!((sessions.next_end(), sessions.deadline(one, 900)), (Some(510), Some(510)));
        assert!(sessions.extend(110, other, 1), "it lasts as long as its connection");
        assert_eq!((sessions.next_end(), sessions.deadline(other, 900)), (Some(510), Some(900)));
        assert!(sessions.renew(490, one) && sessions.end(one) && !sessions.extend(490, one, 9));
        assert_eq!(sessions.next_end(), None);
    }

    #[test]
    fn no_session_outlives_the_lease_of_its_node() {
        let mut sessions = Sessions::default();
        let (one, other) = (SessionId(1), SessionId(2));
        assert!(sessions.open(100, one, Some(50)) && sessions.open(100, other, None));
        assert_eq!((sessions.deadline(one, 120), sessions.deadline(one, 900)), (Some(120), Some(150)));
        assert_eq!((sessions.deadline(other, 900), sessions.deadline(SessionId(3), 900)), (Some(900), None));
    }
}
