//! What all members of a cluster go by: fixed at its birth, and compared when somebody joins.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::name::Name;

/// The version of what members say to each other. Another cannot join.
pub const VERSION: u16 = 2;

const MILLISECOND: u64 = 1_000_000;
const MILLION: u128 = 1_000_000;

/// What all members go by. Times are in nanoseconds.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Charter {
    /// What they speak.
    pub version: u16,
    /// T: how long a membership lasts without being renewed.
    pub lease: u64,
    /// So long before the end of its lease a member stops.
    pub margin: u64,
    /// ρ, in millionths: how much faster or slower than it should a clock may run.
    pub rate_error: u32,
    /// How many parts the lock table has.
    pub shards: u16,
    /// Locks whose names begin so run on that algorithm; all others on `fila`.
    pub algorithms: Algorithms,
}

/// No lease is shorter: renewals must come and go within a fraction of it.
pub const SHORTEST_LEASE: u64 = 50 * MILLISECOND;
/// No lease is longer: what a dead machine held is not free before it is over.
pub const LONGEST_LEASE: u64 = 3600 * 1000 * MILLISECOND;
/// No clock is worse than that, in millionths: one that is, is broken.
pub const WORST_CLOCK: u32 = 500_000;

/// What no cluster can go by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadCharter {
    /// The lock table has no parts.
    #[error("there are 0 shards, and no name would have a place; take at least 1")]
    Shards,
    /// The lease is too short.
    #[error("a lease of {0} ms is too short to be renewed; take at least 50 ms, such as 3 s")]
    Lease(u64),
    /// The lease is too long.
    #[error(
        "a lease of {0} s is too long: so long nobody gets what a dead machine held; take at most 3600 s, such as 3 s"
    )]
    LongLease(u64),
    /// The margin is too long.
    #[error("a margin of {0} ms leaves too little of the lease; take at most a quarter of it, {1} ms")]
    Margin(u64, u64),
    /// The clocks are too bad.
    #[error("clocks that are wrong by {0} millionths are broken; take at most {WORST_CLOCK}, such as 500")]
    RateError(u32),
}

/// Which locks run on another algorithm than `fila`, by the beginning of their names.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Algorithms(pub Vec<(Vec<u8>, LockAlgorithm)>);

impl Algorithms {
    /// The algorithm of a lock: that of the longest beginning of its name that has one.
    #[must_use]
    pub fn of(&self, name: &Name) -> LockAlgorithm {
        let of_name = self.0.iter().filter(|(prefix, _)| name.as_bytes().starts_with(prefix));
        of_name.max_by_key(|(prefix, _)| prefix.len()).map_or(LockAlgorithm::Fila, |(_, algorithm)| *algorithm)
    }
}

/// What a lock can run on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum LockAlgorithm {
    /// The token carries its queue, and requests go through a home.
    Fila,
    /// The token carries its queue, and requests find their way by path reversal.
    FilaForest,
    /// Path reversal, and each knows who comes next.
    NaimiTrehel,
    /// Path reversal, and the token comes back to who lent it.
    Nxr,
    /// Along the edges of a tree.
    Raymond,
    /// Requests go to all.
    SuzukiKasami,
}

impl Charter {
    /// Nine seconds, a tenth of which is margin, and clocks that are wrong by less than a minute a day.
    #[must_use]
    pub fn new(shards: u16) -> Self {
        Self {
            version: VERSION,
            lease: 9000 * MILLISECOND,
            margin: 900 * MILLISECOND,
            rate_error: 500,
            shards,
            algorithms: Algorithms::default(),
        }
    }

    /// Whether a cluster can go by it.
    ///
    /// # Errors
    /// If a lease could not be kept, or there is no part of the lock table.
    pub fn check(&self) -> Result<(), BadCharter> {
        if self.shards == 0 {
            return Err(BadCharter::Shards);
        }
        if self.lease < SHORTEST_LEASE {
            return Err(BadCharter::Lease(self.lease / MILLISECOND));
        }
        if self.lease > LONGEST_LEASE {
            return Err(BadCharter::LongLease(self.lease / MILLISECOND / 1000));
        }
        if self.margin > self.lease / 4 {
            return Err(BadCharter::Margin(self.margin / MILLISECOND, self.lease / 4 / MILLISECOND));
        }
        if self.rate_error > WORST_CLOCK {
            return Err(BadCharter::RateError(self.rate_error));
        }
        Ok(())
    }

    /// How long a leader waits on its own clock until a lease of T on anybody else's is surely over.
    #[must_use]
    pub fn lease_of_others(&self) -> u64 {
        self.of_others(self.lease)
    }

    /// How long one waits on one's own clock until so long has surely passed on anybody else's: t (1+ρ)/(1−ρ).
    #[must_use]
    pub fn of_others(&self, time: u64) -> u64 {
        let (time, error) = (u128::from(time), u128::from(self.rate_error));
        u64::try_from((time * (MILLION + error)).div_ceil(MILLION - error)).unwrap_or(u64::MAX)
    }

    /// The other way round: the shortest time of others that one waits so long for.
    #[must_use]
    pub fn waited_for(&self, wait: u64) -> u64 {
        let (long, error) = (u128::from(wait), u128::from(self.rate_error));
        let time = u64::try_from(long * (MILLION - error) / (MILLION + error)).expect("at most as long as the wait");
        if self.of_others(time) < wait { time + 1 } else { time }
    }

    /// When a holder is warned, counted from the sending of the renewal.
    #[must_use]
    pub fn danger(&self) -> u64 {
        self.lease / 3 * 2
    }

    /// When a member stops, counted from the sending of the renewal.
    #[must_use]
    pub fn stop(&self) -> u64 {
        self.lease - self.margin
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn others_leases_are_waited_for_longer_than_ones_own_lasts() {
        let charter = Charter { rate_error: 100_000, ..Charter::new(8) };
        assert_eq!(charter.lease_of_others(), 11_000 * MILLISECOND);
        assert!(charter.danger() < charter.stop() && charter.stop() < charter.lease);
    }

    #[test]
    fn what_is_waited_for_is_the_shortest_that_takes_so_long() {
        for rate_error in [0, 500, 100_000, WORST_CLOCK] {
            let charter = Charter { rate_error, ..Charter::new(8) };
            for time in [0, 1, 2, 999, 7 * MILLISECOND + 1, u64::MAX / 8] {
                assert_eq!(charter.waited_for(charter.of_others(time)), time);
                let longer = charter.waited_for(charter.of_others(time) + 1);
                assert!(longer > time && charter.of_others(longer) > charter.of_others(time));
            }
            assert_eq!(charter.of_others(charter.waited_for(u64::MAX)), u64::MAX);
        }
    }

    #[test]
    fn what_cannot_work_is_refused_in_words() {
        let good = Charter::new(8);
        assert_eq!(good.check(), Ok(()));
        let bad = [
            (
                Charter { shards: 0, ..good.clone() },
                "there are 0 shards, and no name would have a place; take at least 1",
            ),
            (
                Charter { lease: 0, ..good.clone() },
                "a lease of 0 ms is too short to be renewed; take at least 50 ms, such as 3 s",
            ),
            (
                Charter { lease: u64::MAX, ..good.clone() },
                "a lease of 18446744073 s is too long: so long nobody gets what a dead machine held; take at most 3600 s, such as 3 s",
            ),
            (
                Charter { margin: good.lease, ..good.clone() },
                "a margin of 9000 ms leaves too little of the lease; take at most a quarter of it, 2250 ms",
            ),
            (
                Charter { rate_error: 1_000_000, ..good },
                "clocks that are wrong by 1000000 millionths are broken; take at most 500000, such as 500",
            ),
        ];
        for (charter, words) in bad {
            assert_eq!(charter.check().map_err(|bad| bad.to_string()), Err(words.into()));
        }
    }
}
