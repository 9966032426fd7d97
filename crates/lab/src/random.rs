//! Randomness, all of it from one seed.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use vez_algorithms::NodeId;

/// What random numbers are used for. Each use has a stream of its own, so that one more number drawn for one purpose
/// changes nothing for another: two algorithms under the same seed meet the same clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// When clients ask.
    Arrivals,
    /// How long messages take.
    Delays,
    /// What an algorithm leaves to chance, and how long within its range a timer takes.
    Choices,
    /// Which messages are lost or doubled.
    Faults,
    /// The shape of a random tree.
    Tree,
    /// Where nodes stand.
    Places,
    /// What happens in an ordeal.
    Ordeal,
}

/// A stream of random numbers. Its key is (seed, run, node, purpose), so no two streams have anything in common.
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream for one purpose of one node in one run.
    #[must_use]
    pub fn new(seed: u64, run: u64, node: NodeId, purpose: Purpose) -> Self {
        let mut key = [0; 32];
        for (bytes, word) in key.chunks_exact_mut(8).zip([seed, run, u64::from(node.0), purpose as u64]) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Self(ChaCha8Rng::from_seed(key))
    }

    /// From 0 up to but not 1.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        const ONE_IN_2_53: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.0.next_u64() >> 11) as f64 * ONE_IN_2_53
    }

    /// Exponentially distributed, with mean 1. The logarithm is not the platform's, which may differ in the last bit.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -libm::log1p(-self.uniform())
    }

    /// A whole number below `n`.
    #[inline]
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_pinned() {
        let mut stream = Stream::new(1, 2, NodeId(3), Purpose::Delays);
        let numbers: Vec<usize> = (0..5).map(|_| stream.below(1000)).collect();
        assert_eq!(numbers, PINNED);
    }

    const PINNED: [usize; 5] = [568, 634, 90, 156, 352];

    #[test]
    fn the_mean_is_one() {
        let mut stream = Stream::new(1, 0, NodeId(0), Purpose::Arrivals);
        let mean = (0..100_000).map(|_| stream.exponential()).sum::<f64>() / 100_000.0;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
    }
}
