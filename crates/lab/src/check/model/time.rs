//! When time passes, and when timers fire.
//!
//! Where time is bounded it passes in steps, each a third of `patience` or as much as is left of the next timer. A message
//! takes one step at most, so that an answer comes back before patience is at an end, and a timer fires when nothing is left
//! of it. Where nothing is on its way, all that is left of the next timer may pass at once.

use vez_algorithms::{Algorithm, Timing};

use super::{
    super::book::{Facts, LATE},
    Model,
};

impl<P: Algorithm> Model<P> {
    /// What must be left of a timer so that it may fire now; nothing if none may.
    pub(super) fn due(&self, state: &[u32]) -> Option<u64> {
        let nothing_in_flight = state.len() == self.nodes;
        match P::MODEL.timing {
            Timing::Any => Some(0),
            Timing::Bounded if nothing_in_flight => self.next_timer(state),
            Timing::Bounded if self.config.instant => None,
            Timing::Bounded => self.next_timer(state).filter(|left| *left == 0),
        }
    }

    /// How much time may pass while nothing happens; nothing if none may. Until the next timer it passes when that fires,
    /// unless a message is on its way meanwhile.
    pub(super) fn pause(&self, state: &[u32]) -> Option<u64> {
        if P::MODEL.timing == Timing::Any || self.config.instant {
            return None;
        }
        let left = self.next_timer(state)?;
        let in_flight = &state[self.nodes..];
        let passes = left > 0 && (left > self.moment || !in_flight.is_empty());
        (passes && in_flight.iter().all(|packet| packet & LATE == 0)).then_some(left.min(self.moment))
    }

    fn next_timer(&self, state: &[u32]) -> Option<u64> {
        let left = |facts: &Facts| facts.timers.iter().map(|(_, left)| *left).min();
        self.locals_of(state).filter_map(left).min()
    }
}
