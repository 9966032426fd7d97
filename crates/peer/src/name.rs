//! The names of locks.

use alloc::{string::String, sync::Arc, vec::Vec};
use core::{
    borrow::Borrow,
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use xxhash_rust::xxh3::xxh3_64;

/// No name is longer.
pub const LONGEST_NAME: usize = 255;

/// The name of a lock, semaphore, group or election: some bytes.
///
/// Names are looked for much more often than they are listed, so they have the order of their hashes, which is the same on every
/// member. For people they are [sorted](Self::by_bytes).
#[derive(Clone)]
pub struct Name {
    hash: u64,
    bytes: Arc<[u8]>,
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && (Arc::ptr_eq(&self.bytes, &other.bytes) || self.bytes == other.bytes)
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.hash.cmp(&other.hash).then_with(|| {
            let same = Arc::ptr_eq(&self.bytes, &other.bytes); // Most that are compared so far are copies of each other.
            if same { Ordering::Equal } else { self.bytes.cmp(&other.bytes) }
        })
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A name among others in the order of its bytes, as people look for it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(crate) struct Listed(pub Name);

impl Ord for Listed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.by_bytes(&other.0)
    }
}

impl PartialOrd for Listed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Borrow<[u8]> for Listed {
    fn borrow(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// What is no name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoName {
    /// It has no bytes.
    #[error("a name has at least one byte")]
    Empty,
    /// It has too many.
    #[error("a name has at most {LONGEST_NAME} bytes, this one has {0}; take a hash of it instead")]
    TooLong(usize),
}

impl Name {
    /// A name.
    ///
    /// # Errors
    /// If there are no bytes, or too many.
    #[inline]
    pub fn new(bytes: &[u8]) -> Result<Self, NoName> {
        match bytes.len() {
            0 => Err(NoName::Empty),
            1..=LONGEST_NAME => Ok(Self { hash: xxh3_64(bytes), bytes: bytes.into() }),
            length => Err(NoName::TooLong(length)),
        }
    }

    /// As it was given.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The order that people look for it in.
    #[must_use]
    pub fn by_bytes(&self, other: &Self) -> Ordering {
        self.bytes.cmp(&other.bytes)
    }

    /// Which of so many shards it belongs to: the same on every member and in every build.
    #[must_use]
    pub fn shard(&self, shards: u16) -> u16 {
        let shards = u64::from(shards.max(1));
        u16::try_from(self.hash % shards).expect("less than the number of shards")
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&String::from_utf8_lossy(&self.bytes), f)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.bytes), f)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self) // What a person reads; bytes that are no text are lost on the way.
        } else {
            serializer.serialize_bytes(&self.bytes)
        }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.into_bytes()
        } else {
            Vec::<u8>::deserialize(deserializer)?
        };
        Self::new(&bytes).map_err(D::Error::custom)
    }
}
