//! The clock that leases are counted on.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on a clock of this machine that goes on while it sleeps, and never goes back.
pub(crate) type Nanos = u64;

/// Linux has a clock of its own for that; elsewhere the monotonic one goes on through sleep, or there is no better.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// The timers of tokio stand still while the machine sleeps. Whoever waits for a moment on this clock looks at it again after so
/// long, and is that late at most.
pub(crate) const GLANCE: Duration = Duration::from_millis(250);

/// Now.
pub(crate) fn now() -> Nanos {
    let now = clock_gettime(CLOCK);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// How long it is until then.
pub(crate) fn until(then: Nanos) -> Duration {
    Duration::from_nanos(then.saturating_sub(now()))
}

/// A stretch of time; one of centuries is as good as any longer one.
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A moment on the clock that leases are counted on. It goes on while the machine sleeps, as [`std::time::Instant`] need
/// not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Deadline(pub(crate) Nanos);

impl Deadline {
    /// How long it is until then; nothing, if it is over.
    #[must_use]
    pub fn remaining(self) -> Duration {
        until(self.0)
    }

    /// Whether that moment is over.
    #[must_use]
    pub fn is_over(self) -> bool {
        now() >= self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_comes_and_is_over() {
        let (over, far) = (Deadline(now()), Deadline(now() + nanos(Duration::from_secs(3600))));
        assert!(over.is_over() && over.remaining().is_zero());
        assert!(!far.is_over() && far.remaining() > Duration::from_secs(3500) && over < far);
    }
}
