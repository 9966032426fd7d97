//! What all members of a cluster go by: fixed at its birth, and compared when somebody joins.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::name::Name;

/// The version of what members say to each other. Another cannot join.
pub const VERSION: u16 = 1;

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

    /// How long a leader waits on its own clock until a lease of T on anybody else's is surely over: T (1+ρ)/(1−ρ).
    #[must_use]
    pub fn lease_of_others(&self) -> u64 {
        let (lease, error) = (u128::from(self.lease), u128::from(self.rate_error));
        u64::try_from((lease * (MILLION + error)).div_ceil(MILLION - error)).unwrap_or(u64::MAX)
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
    use super::*;

    #[test]
    fn others_leases_are_waited_for_longer_than_ones_own_lasts() {
        let charter = Charter { rate_error: 100_000, ..Charter::new(8) };
        assert_eq!(charter.lease_of_others(), 11_000 * MILLISECOND);
        assert!(charter.danger() < charter.stop() && charter.stop() < charter.lease);
    }
}
