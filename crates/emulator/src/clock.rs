//! What time it is.

use rustix::time::{ClockId, clock_gettime};
use vez_algorithms::link::Nanos;

/// Now, on a clock that never goes back and that all processes of this machine share.
#[must_use]
pub fn now() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// In seconds.
#[must_use]
pub fn seconds(time: Nanos) -> f64 {
    time as f64 / 1e9
}

/// From seconds.
#[must_use]
pub fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9) as Nanos
}

/// Asks to be woken in time: Linux is otherwise content with a twentieth of a millisecond later, which is half of what a message
/// takes here. Elsewhere, or if it is refused, timers are a little late, and nothing else.
pub(crate) fn wake_me_in_time() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
