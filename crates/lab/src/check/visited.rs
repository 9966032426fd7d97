//! Which states have been seen, and from where.

use xxhash_rust::xxh3::xxh3_64;

/// The states seen so far, numbered in the order in which they were found, each with the one it was found from.
///
/// A state is a list of words. It is known by its 64-bit fingerprint, or, if `exact`, by the words themselves. With
/// fingerprints a state costs 12 bytes (fingerprint, parent) and 4 bytes divided by the load of the index.
pub(super) struct Visited {
    /// Positions in `fingerprints`, by fingerprint; `EMPTY` where there is none. Open addressing, linear probing.
    index: Vec<u32>,
    fingerprints: Vec<u64>,
    parents: Vec<u32>,
    /// In exact mode, the words of each state.
    states: Option<Vec<Box<[u32]>>>,
}

const EMPTY: u32 = u32::MAX;

/// The index grows by a half when more than 5/6 of it is in use, so that at least 5/9 of it always is.
const FULL: (usize, usize) = (5, 6);

impl Visited {
    pub(super) fn new(exact: bool) -> Self {
        let states = exact.then(Vec::new);
        Self { index: vec![EMPTY; 16], fingerprints: Vec::new(), parents: Vec::new(), states }
    }

    pub(super) fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// What this list weighs, in bytes, but for the states of the exact mode.
    pub(super) fn bytes(&self) -> usize {
        size_of::<u32>() * (self.index.capacity() + self.parents.capacity())
            + size_of::<u64>() * self.fingerprints.capacity()
    }

    /// The number of a state, and whether it is new.
    pub(super) fn insert(&mut self, state: &[u32], parent: u32) -> (u32, bool) {
        if self.fingerprints.len() * FULL.1 >= self.index.len() * FULL.0 {
            self.grow();
        }
        let fingerprint = fingerprint(state);
        let mut slot = slot(fingerprint, self.index.len());
        while self.index[slot] != EMPTY {
            let number = self.index[slot];
            if self.fingerprints[number as usize] == fingerprint && self.is_same(number, state) {
                return (number, false);
            }
            slot = if slot + 1 == self.index.len() { 0 } else { slot + 1 };
        }
        let number = u32::try_from(self.fingerprints.len()).expect("fewer than 2³² states");
        self.index[slot] = number;
        push(&mut self.fingerprints, fingerprint);
        push(&mut self.parents, parent);
        if let Some(states) = &mut self.states {
            states.push(state.into());
        }
        (number, true)
    }

    /// Whether the state of this number is the given one.
    pub(super) fn is(&self, number: u32, state: &[u32]) -> bool {
        self.fingerprints[number as usize] == fingerprint(state) && self.is_same(number, state)
    }

    /// The numbers of the states on the way to this one, the first state first.
    pub(super) fn path(&self, to: u32) -> Vec<u32> {
        let mut path: Vec<u32> =
            std::iter::successors(Some(to), |&at| (at != 0).then(|| self.parents[at as usize])).collect();
        path.reverse();
        path
    }

    fn is_same(&self, number: u32, state: &[u32]) -> bool {
        self.states.as_ref().is_none_or(|states| *states[number as usize] == *state)
    }

    fn grow(&mut self) {
        let size = self.index.len() + self.index.len() / 2;
        self.index = Vec::new();
        self.index = vec![EMPTY; size];
        for (number, &fingerprint) in (0..).zip(&self.fingerprints) {
            let mut slot = slot(fingerprint, size);
            while self.index[slot] != EMPTY {
                slot = if slot + 1 == size { 0 } else { slot + 1 };
            }
            self.index[slot] = number;
        }
    }
}

fn fingerprint(state: &[u32]) -> u64 {
    xxh3_64(bytemuck::cast_slice(state))
}

/// A fingerprint's place among `size`, without a division.
fn slot(fingerprint: u64, size: usize) -> usize {
    ((u128::from(fingerprint) * size as u128) >> 64) as usize
}

/// Grows by a sixteenth where `Vec` would double: memory is what limits the checker.
fn push<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(16 + list.len() / 16);
    }
    list.push(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_once_and_found_again() {
        for exact in [false, true] {
            let mut visited = Visited::new(exact);
            for round in [true, false] {
                for i in 0..100_000_u32 {
                    assert_eq!(visited.insert(&[i, i / 3], i.saturating_sub(1)), (i, round));
                }
            }
            assert_eq!(visited.path(3), [0, 1, 2, 3]);
            assert!(visited.is(77, &[77, 25]) && !visited.is(77, &[77, 26]));
        }
    }

    #[test]
    fn a_state_weighs_at_most_twenty_bytes() {
        let mut visited = Visited::new(false);
        for i in 0..1_000_000_u32 {
            visited.insert(&[i], 0);
            let states = visited.len();
            assert!(states < 5000 || visited.bytes() <= 20 * states, "{} for {states}", visited.bytes());
        }
    }
}
