//! When time passes, and when timers fire.
//!
//! Where time is bounded it passes in steps, each a third of `patience`, or as much as is left of the next timer if that is
//! less. A message takes one step at most, so that an answer comes back before patience is at an end, and a timer fires when
//! nothing is left of it. If messages take no time, all that is left of the next timer passes when it fires.

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
            Timing::Bounded if !self.config.instant => self.next_timer(state).filter(|left| *left == 0),
            Timing::Bounded if nothing_in_flight => self.next_timer(state),
            Timing::Bounded => None,
        }
    }

    /// How much time may pass while nothing happens; nothing if none may.
    pub(super) fn pause(&self, state: &[u32]) -> Option<u64> {
        if P::MODEL.timing == Timing::Any || self.config.instant {
            return None;
        }
        let left = self.next_timer(state).filter(|left| *left > 0)?;
        let in_time = state[self.nodes..].iter().all(|packet| packet & LATE == 0);
        in_time.then_some(left.min(self.moment))
    }

    fn next_timer(&self, state: &[u32]) -> Option<u64> {
        let left = |facts: &Facts| facts.timers.iter().map(|(_, left)| *left).min();
        self.locals_of(state).filter_map(left).min()
    }
}
