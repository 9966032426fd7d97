//! What a resource needs to be safe without any clock.

use std::collections::HashMap;

use vez_peer::fence::Fence;

/// The highest fence that a resource has seen, for each name. Whoever shows an older one is refused: its lock was lost, and
/// somebody else has had it since.
///
/// A resource that outlives its process keeps this where it keeps its data, and changes both in one transaction.
///
/// ```
/// # use vez::{Fence, fence::Register};
/// # let (old, new): (Fence, Fence) = ("00503808322474868753".parse()?, "00503808322474868754".parse()?);
/// let mut register = Register::default();
/// assert!(register.admit("orders/42", old).is_ok());
/// assert!(register.admit("orders/42", new).is_ok());
/// assert!(register.admit("orders/42", old).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Register {
    highest: HashMap<Vec<u8>, Fence>,
}

/// Somebody else has had the lock since.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the fence {shown} is older than {seen}, which was seen already: the lock was lost, and somebody else has had it"
)]
pub struct Stale {
    /// What was shown.
    pub shown: Fence,
    /// What was seen already.
    pub seen: Fence,
}

impl Register {
    /// Lets one in who shows the highest fence so far.
    ///
    /// # Errors
    /// If a higher one was seen. Nothing has changed then.
    pub fn admit(&mut self, name: impl AsRef<[u8]>, fence: Fence) -> Result<(), Stale> {
        self.admit_one_of(name, fence, fence)
    }

    /// Lets one in who holds units of a semaphore, as others do at the same time, each with a fence of its own: whoever is not
    /// below the highest [floor](crate::Guard::floor) so far.
    ///
    /// That does not cover everything. One that has lost its units is refused once somebody has shown a floor above its fence, and
    /// that moves on only when the oldest holder is gone: as long as one who was there before it still is, it is let in.
    ///
    /// # Errors
    /// If a higher floor was seen. Nothing has changed then.
    pub fn admit_one_of(&mut self, name: impl AsRef<[u8]>, fence: Fence, floor: Fence) -> Result<(), Stale> {
        match self.highest.get_mut(name.as_ref()) {
            Some(seen) if *seen > fence => Err(Stale { shown: fence, seen: *seen }),
            Some(seen) => {
                *seen = floor.max(*seen);
                Ok(())
            }
            None => {
                self.highest.insert(name.as_ref().to_vec(), floor);
                Ok(())
            }
        }
    }
}
