//! Fewer faults that break the same law.

use crate::{Broken, plan::Plan, weather};

/// So many storms are tried at most.
const TRIALS: u32 = 200;

/// Leaves out one fault after the other, as long as a law is broken still.
pub(crate) fn shrink(plan: &Plan, violation: String) -> Broken {
    let mut plan = plan.clone();
    let mut violation = violation;
    let mut trials = 0;
    let mut size = plan.faults.len().div_ceil(2);
    while size > 0 && trials < TRIALS {
        let mut at = 0;
        let mut progress = false;
        while at < plan.faults.len() && trials < TRIALS {
            let mut fewer = plan.clone();
            let end = (at + size).min(fewer.faults.len());
            fewer.faults.drain(at..end);
            trials += 1;
            match weather(&fewer) {
                Err(still) => (plan, violation, progress) = (fewer, still, true),
                Ok(_) => at += size,
            }
        }
        if !progress || size > 1 {
            size = if size == 1 { 0 } else { size / 2 };
        }
    }
    Broken { seed: plan.seed, violation, faults: plan.faults }
}
