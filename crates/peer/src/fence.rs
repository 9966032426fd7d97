//! Fences: the number of a grant, which only ever grows for a name.
//!
//! The number of the view stands above, a counter below. A resource that refuses whatever carries a smaller fence than one
//! that it has seen is safe without any clock. Outside of a process a fence is text: as a signed integer it would turn
//! negative, as a floating-point number lose bits.

use alloc::{format, string::String};
use core::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// So many of the bits count grants within a view; those above are the view's.
pub const COUNTER_BITS: u32 = 40;
/// The last grant of a view.
pub const LAST_COUNTER: u64 = (1 << COUNTER_BITS) - 1;
/// From here on a new view is asked for, so that the last is never reached.
pub const LATE_COUNTER: u64 = 1 << (COUNTER_BITS - 1);
/// The last view.
pub const LAST_VIEW: u64 = (1 << (u64::BITS - COUNTER_BITS)) - 1;
/// From here on there is reason for alarm: half of all views are used.
pub const LATE_VIEW: u64 = 1 << (u64::BITS - COUNTER_BITS - 1);

/// The number of a grant: of two grants of a name, the later has the larger one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(u64);

impl Fence {
    /// None is smaller.
    pub const FIRST: Self = Self(0);

    /// The fence of a grant. `None` if either number is past the last: a counter never carries into the view.
    #[must_use]
    pub const fn new(view: u64, counter: u64) -> Option<Self> {
        if view > LAST_VIEW || counter > LAST_COUNTER { None } else { Some(Self(view << COUNTER_BITS | counter)) }
    }

    /// The view that it was granted in.
    #[must_use]
    pub const fn view(self) -> u64 {
        self.0 >> COUNTER_BITS
    }

    /// The how manieth grant of that view it was.
    #[must_use]
    pub const fn counter(self) -> u64 {
        self.0 & LAST_COUNTER
    }
}

/// Twenty digits, so that text sorts as numbers do.
impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}", self.0)
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.view(), self.counter())
    }
}

/// Text that is no fence.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("\"{0}\" is no fence; a fence is a decimal number of at most 20 digits, as it was given out")]
pub struct NoFence(String);

impl FromStr for Fence {
    type Err = NoFence;

    fn from_str(text: &str) -> Result<Self, NoFence> {
        let digits = !text.is_empty() && text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| digits).map(Self).ok_or_else(|| NoFence(text.into()))
    }
}

impl Serialize for Fence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(&format!("{self}"))
        } else {
            serializer.serialize_u64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Fence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
        } else {
            u64::deserialize(deserializer).map(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn later_grants_and_later_views_are_larger() {
        let fence = |view, counter| Fence::new(view, counter).unwrap();
        assert!(fence(7, 1) < fence(7, 2) && fence(7, LAST_COUNTER) < fence(8, 0));
        assert!(fence(7, LAST_COUNTER).to_string() < fence(8, 0).to_string(), "as text too");
        assert_eq!((fence(7, 9).view(), fence(7, 9).counter()), (7, 9));
    }

    #[test]
    fn nothing_carries() {
        assert_eq!(Fence::new(7, LAST_COUNTER + 1), None);
        assert_eq!(Fence::new(LAST_VIEW + 1, 0), None);
        assert_eq!(Fence::new(LAST_VIEW, LAST_COUNTER), Some(Fence(u64::MAX)));
    }

    #[test]
    fn text_there_and_back() {
        let fence = Fence::new(458_211, 17).unwrap();
        assert_eq!(fence.to_string(), "00503808322474868753");
        assert_eq!(fence.to_string().parse(), Ok(fence));
        for text in ["", "+1", "-1", "1.0", "18446744073709551616", "000000000000000000001"] {
            assert!(text.parse::<Fence>().is_err(), "{text}");
        }
    }
}
