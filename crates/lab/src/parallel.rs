//! Work in parallel, in the order of its numbers.

use std::ops::Range;

use rayon::prelude::*;

/// Does something for every number, on all cores, and returns the results in the order of the numbers.
///
/// The work is behind a pointer, so that none of the machinery is compiled again for each algorithm.
pub(crate) fn map<T: Send>(numbers: Range<u64>, work: &(dyn Fn(u64) -> T + Sync)) -> Vec<T> {
    numbers.into_par_iter().map(work).collect()
}
