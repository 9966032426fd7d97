//! How much is pledged: as much as is needed, and not for much longer than it is.

use super::Keeping;
use crate::{charter::Charter, shard::Nanos, views::Pledge};

/// When something is decided, and what it is decided by.
#[derive(Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub now: Nanos,
    pub charter: &'a Charter,
    /// What this process has pledged by its own log.
    pub in_force: Pledge,
}

impl Moment<'_> {
    /// When so long has surely passed on anybody's clock.
    pub(super) fn ends_after(&self, ttl: Nanos) -> Nanos {
        self.now.saturating_add(self.charter.of_others(ttl))
    }
}

impl Keeping {
    /// The last pledge that was issued.
    pub(crate) fn issued(&self) -> Pledge {
        self.issued
    }

    /// Whether something may be kept until so long from now. If not, a pledge is on its way by which it may.
    pub(super) fn is_pledged(&mut self, moment: &Moment<'_>, lasts: Nanos) -> bool {
        let needed = moment.charter.waited_for(lasts);
        if needed > self.issued.ttl {
            self.issue(moment.now, self.rounded(needed, moment.charter));
        }
        assert!(needed <= self.issued.ttl, "whoever calls has looked that it is not too long");
        self.needed = self.needed.max(needed);
        moment.in_force == self.issued
    }

    /// Pledges less, if less has been enough for two leases. Whoever waits for a pledge must not be made to wait for another.
    pub(crate) fn look_back(&mut self, moment: &Moment<'_>) {
        let Moment { now, charter, in_force } = *moment;
        if now.saturating_sub(self.since) < 2 * charter.lease {
            return;
        }
        let lasts = self.ends.last().map_or(0, |(end, _)| end.saturating_sub(now));
        let lasts = charter.waited_for(lasts);
        assert!(lasts <= self.issued.ttl, "nothing is kept for longer than is pledged");
        let enough = self.rounded(self.needed.max(lasts), charter);
        let nobody_waits = self.unpledged.is_empty() && self.wishes.is_empty() && in_force == self.issued;
        if enough < self.issued.ttl && nobody_waits {
            self.issue(now, enough);
        }
        (self.needed, self.since) = (0, now);
    }

    fn issue(&mut self, now: Nanos, ttl: Nanos) {
        self.issued = Pledge { number: self.issued.number + 1, ttl };
        (self.needed, self.since) = (0, now);
    }

    /// In steps of a lease, so that what grows little by little is not pledged so often.
    fn rounded(&self, ttl: Nanos, charter: &Charter) -> Nanos {
        ttl.next_multiple_of(charter.lease.max(1)).min(self.most)
    }

    /// Whether the leader has not been told of the last pledge.
    pub(crate) fn has_news(&self) -> bool {
        self.told != self.issued.number
    }

    /// What the leader is told.
    pub(crate) fn tell(&mut self) -> Pledge {
        self.told = self.issued.number;
        self.issued
    }
}
