//! What is explored: who asks for what, and what may happen meanwhile.

use vez_algorithms::Order;
use vez_peer::ask::{Ask, Patience};

use super::world::MEMBERS;

/// What is explored.
pub(crate) struct Config {
    /// In which view (1 is the present one) each member is for the first time: a newcomer is no home.
    pub joined: [u64; MEMBERS],
    /// What the clients of each member ask for, in this order; none of them waits for the one before to be done.
    pub asks: [&'static [Client]; MEMBERS],
    /// So many of those who wait may give up.
    pub cancels: u8,
    /// So many members may crash.
    pub crashes: u8,
    /// For each view that may follow: what may have happened.
    pub changes: &'static [&'static [Change]],
    /// Whether a member may be removed although it has not crashed.
    pub evicts: bool,
    /// Whether time passes: whatever is idle may be found so at any moment.
    pub forgets: bool,
    /// Whether messages are counted, so that going round in circles would never end.
    pub counts: bool,
    pub order: Order,
    /// What must have happened somewhere, or nothing was explored.
    pub shows: &'static [Event],
}

/// How a view differs from the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// Not at all.
    Same,
    /// Without this member.
    Without(usize),
    /// With a new process of this member.
    Restarted(usize),
}

/// Something worth having seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A member goes on to a new view with something to re-enter.
    HolderInNewView,
    /// Two members do.
    TwoMembersHoldInNewView,
    /// What is re-entered, or was, is given back before all are settled.
    ReleasedWhileSettling,
    AskedWhileSettling,
    /// A client that waited in the view before is granted in this one.
    WaiterServedInNewView,
    /// The home of the name is another member than in the view before.
    HomeMoved,
    /// A message came too late for its view, or for its receiver.
    StaleDropped,
    /// A message was sent to a member that is not in its view yet.
    EarlyWaited,
    /// A token came for a client that had given up, and went on to somebody else.
    TokenForNobodyMovedOn,
    Busy,
    TriedWhileSettling,
    /// The home asked for the token without a client.
    Pulled,
    /// The home was told of an idle token, and could not pull it yet.
    IdleWhileSettling,
    Forgotten,
    /// Its clients go on believing for a while.
    HolderCrashed,
    /// A member was removed with all that it held, though it had not crashed.
    HolderEvicted,
    /// A client of a new process was granted something.
    ServedAfterRestart,
    /// The name was in use as something else.
    Mismatch,
}

impl Change {
    /// Whose process is not in the new view.
    pub(crate) fn ends(self) -> Option<usize> {
        match self {
            Self::Same => None,
            Self::Without(at) | Self::Restarted(at) => Some(at),
        }
    }
}

/// A client, and how patient it is.
type Client = (Ask, Patience);

pub(crate) const LOCK: Client = (Ask::Lock, Patience::Endless);
pub(crate) const TRY: Client = (Ask::Lock, Patience::Try);
pub(crate) const READ: Client = (Ask::Read, Patience::Endless);
pub(crate) const TRY_READ: Client = (Ask::Read, Patience::Try);
pub(crate) const WRITE: Client = (Ask::Write, Patience::Endless);
/// Units of a semaphore that has three.
pub(crate) const ONE: Client = (Ask::Semaphore { units: 3, weight: 1 }, Patience::Endless);
pub(crate) const TWO: Client = (Ask::Semaphore { units: 3, weight: 2 }, Patience::Endless);
pub(crate) const TRY_TWO: Client = (Ask::Semaphore { units: 3, weight: 2 }, Patience::Try);

/// Nobody asks for anything, and nothing else happens.
pub(crate) const NOTHING: Config = Config {
    joined: [0; MEMBERS],
    asks: [&[]; MEMBERS],
    cancels: 0,
    crashes: 0,
    changes: &[],
    evicts: false,
    forgets: false,
    counts: false,
    order: Order::Any,
    shows: &[],
};
