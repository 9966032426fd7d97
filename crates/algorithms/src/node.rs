//! Who takes part: [`NodeId`], and sets of them.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use smallvec::SmallVec;

/// One of the n nodes of a system, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

/// No system has so many nodes. A set with a node of a higher number in it would fill the memory.
const MOST_NODES: u32 = 1 << 20;

/// From a peer or a file: whoever may be mistaken.
impl<'de> Deserialize<'de> for NodeId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            number if number < MOST_NODES => Ok(Self(number)),
            number => Err(D::Error::custom(format_args!("no system has a node n{number}"))),
        }
    }
}

impl NodeId {
    /// The position of this node in a list of all nodes.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The node at `index` in a list of all nodes.
    #[must_use]
    #[inline]
    pub fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("a system has fewer than 2³² nodes"))
    }

    /// All nodes of a system of `n`.
    pub fn all(n: usize) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator + Clone {
        (0..n).map(Self::from_index)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

const BITS: usize = u64::BITS as usize;

/// A set of nodes: one bit each, inline up to 128 nodes, of any size beyond.
///
/// Two sets with the same members are equal and hash alike, however they came about: the last word is never zero.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeSet {
    words: SmallVec<[u64; 2]>,
}

impl NodeSet {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All nodes of a system of `n` but `me`.
    #[must_use]
    pub fn others(n: usize, me: NodeId) -> Self {
        let mut words: SmallVec<[u64; 2]> = SmallVec::from_elem(u64::MAX, n / BITS);
        if !n.is_multiple_of(BITS) {
            words.push((1 << (n % BITS)) - 1);
        }
        let mut set = Self { words };
        set.remove(me);
        set
    }

    /// Adds a node; false if it was there already.
    #[inline]
    pub fn insert(&mut self, node: NodeId) -> bool {
        let (word, bit) = Self::place(node);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let absent = self.words[word] & bit == 0;
        self.words[word] |= bit;
        absent
    }

    /// Takes a node out; false if it was not there.
    #[inline]
    pub fn remove(&mut self, node: NodeId) -> bool {
        let (word, bit) = Self::place(node);
        let present = self.contains(node);
        if present {
            self.words[word] &= !bit;
            while self.words.last() == Some(&0) {
                self.words.pop();
            }
        }
        present
    }

    /// Whether the node is in the set.
    #[must_use]
    #[inline]
    pub fn contains(&self, node: NodeId) -> bool {
        let (word, bit) = Self::place(node);
        self.words.get(word).is_some_and(|w| w & bit != 0)
    }

    /// Whether nobody is in the set.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// How many nodes are in the set.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The nodes of the set, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            core::iter::successors(Some(word), |left| Some(left & (left.wrapping_sub(1))))
                .take_while(|left| *left != 0)
                .map(move |left| NodeId::from_index(at * BITS + left.trailing_zeros() as usize))
        })
    }

    #[inline]
    fn place(node: NodeId) -> (usize, u64) {
        (node.index() / BITS, 1 << (node.index() % BITS))
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Self {
        let mut set = Self::new();
        for node in nodes {
            set.insert(node);
        }
        set
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Serialize for NodeSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for NodeSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<NodeId>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, vec::Vec};

    use super::*;

    #[test]
    fn a_set_forgets_how_it_came_about() {
        let mut set: NodeSet = [3, 200, 64].map(NodeId).into_iter().collect();
        assert_eq!(format!("{set:?}"), "{n3, n64, n200}");
        assert!(set.remove(NodeId(200)) && !set.remove(NodeId(200)));
        assert!(!set.insert(NodeId(3)) && set.len() == 2);
        assert_eq!(set, [64, 3].map(NodeId).into_iter().collect());
        assert!(set.remove(NodeId(3)) && set.remove(NodeId(64)) && set.is_empty());
        assert_eq!(set, NodeSet::new());
    }

    #[test]
    fn everybody_else() {
        for n in [1, 2, 63, 64, 65, 128, 129, 1000] {
            let me = NodeId::from_index(n - 1);
            let expected: Vec<NodeId> = NodeId::all(n - 1).collect();
            assert_eq!(NodeSet::others(n, me).iter().collect::<Vec<_>>(), expected);
            assert_eq!(NodeSet::others(n, me), expected.into_iter().collect());
        }
    }
}
