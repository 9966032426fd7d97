//! Clocks that are wrong.

use vez_peer::shard::Nanos;

use crate::plan::Chance;

const MILLION: i128 = 1_000_000;

/// The clock of a machine: it began some time, and runs too fast or too slow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// When it was started.
    since: Nanos,
    /// What it said then.
    began: Nanos,
    /// How many millionths too fast.
    error: i32,
}

impl Clock {
    pub(crate) fn new(began: Nanos, error: i32) -> Self {
        Self { since: 0, began, error }
    }

    /// One that is wrong by at most so many millionths, and often by as many.
    pub(crate) fn draw(began: Nanos, most: i32, chance: &mut Chance) -> Self {
        let error = match chance.below(4) {
            0 => most,
            1 => -most,
            _ => i32::try_from(chance.below(2 * u64::from(most.unsigned_abs()))).expect("small") - most,
        };
        Self::new(began, error)
    }

    /// The machine is started anew, and its clock with it.
    pub(crate) fn begin_anew(&mut self, now: Nanos) {
        (self.since, self.began) = (now, 0);
    }

    /// What it says.
    pub(crate) fn reads(&self, now: Nanos) -> Nanos {
        let passed = i128::from(now.saturating_sub(self.since)) * (MILLION + i128::from(self.error)) / MILLION;
        self.began + u64::try_from(passed).expect("time goes on")
    }

    /// When it will say so, or something later.
    pub(crate) fn when(&self, reads: Nanos) -> Nanos {
        let passed = i128::from(reads.saturating_sub(self.began)) * MILLION;
        let rate = MILLION + i128::from(self.error);
        u64::try_from((passed + rate - 1) / rate).map_or(Nanos::MAX, |passed| self.since.saturating_add(passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_it_reads_something_it_reads_it() {
        for error in [-300_000, -1, 0, 1, 100_000] {
            let clock = Clock::new(77, error);
            for reads in [77, 78, 1000, 123_456_789_012] {
                let when = clock.when(reads);
                assert!(clock.reads(when) >= reads);
                assert!(when == 0 || clock.reads(when - 1) < reads);
            }
            let mut clock = clock;
            clock.begin_anew(5000);
            assert_eq!((clock.reads(5000), clock.when(0)), (0, 5000));
            assert!(clock.reads(clock.when(1000)) >= 1000);
        }
    }
}
