//! A network that loses, doubles, delays and cuts off.

use vez_peer::shard::Nanos;

use crate::plan::{Chance, MILLISECOND};

/// How the network is.
pub(crate) struct Network {
    chance: Chance,
    nodes: usize,
    /// How many cuts there are from each machine to each.
    cuts: Vec<u32>,
    /// Thousandths, and how late at most; one for each rough time that is going on.
    rough: Vec<(u32, u32, Nanos)>,
}

impl Network {
    pub(crate) fn new(seed: u64, nodes: usize) -> Self {
        Self { chance: Chance::new(seed, 1), nodes, cuts: vec![0; nodes * nodes], rough: Vec::new() }
    }

    pub(crate) fn cut(&mut self, links: &[(usize, usize)]) {
        for (from, to) in links {
            self.cuts[from * self.nodes + to] += 1;
        }
    }

    pub(crate) fn heal(&mut self, links: &[(usize, usize)]) {
        for (from, to) in links {
            self.cuts[from * self.nodes + to] -= 1;
        }
    }

    pub(crate) fn roughen(&mut self, loss: u32, doubling: u32, delay: Nanos) {
        self.rough.push((loss, doubling, delay));
    }

    pub(crate) fn smooth(&mut self, loss: u32, doubling: u32, delay: Nanos) {
        let at = self.rough.iter().position(|one| *one == (loss, doubling, delay)).expect("it was rough");
        self.rough.remove(at);
    }

    /// When a frame that is sent now arrives, each time that it does.
    pub(crate) fn send(&mut self, now: Nanos, from: usize, to: usize) -> Vec<Nanos> {
        let (mut loss, mut doubling, mut late) = (1, 1, 0);
        for (more_loss, more_doubling, delay) in &self.rough {
            (loss, doubling, late) = (loss.max(*more_loss), doubling.max(*more_doubling), late.max(*delay));
        }
        let lost = self.chance.below(1000) < u64::from(loss);
        if lost || self.cuts[from * self.nodes + to] > 0 {
            return Vec::new();
        }
        let times = 1 + u64::from(self.chance.below(1000) < u64::from(doubling));
        (0..times).map(|_| now + self.delay(late)).collect()
    }

    fn delay(&mut self, late: Nanos) -> Nanos {
        let usual = MILLISECOND / 5 + self.chance.below(2 * MILLISECOND);
        match self.chance.below(100) {
            0 => usual + self.chance.below(200 * MILLISECOND),
            1..20 => usual + self.chance.below(late),
            _ => usual,
        }
    }
}
