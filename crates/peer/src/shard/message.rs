//! What the members say to each other about names.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use vez_algorithms::NodeId;

use super::turns::TurnMessage;
use crate::{
    ask::{Ask, Kind, Leader, RequestId, Size},
    fence::Fence,
    name::Name,
};

/// One request of one member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Seat {
    /// Whose.
    pub node: NodeId,
    /// Which.
    pub request: RequestId,
}

/// What a member tells another, within one view and one shard.
///
/// ```text
///   all → all           Settled                                once a view
///   asker → home        Lock(Request) … → asker Lock(Token)    see docs/algorithms/fila.md
///   owner → home        Idle                                   once an idle spell; the home pulls the token
///   asker → home        Ask      home → asker  Grant           and, when it is done, asker → home  Release
///   holder → home       Reenter  home → holder Reentered       before Settled, in a new view
///   observer → home     Observe  home → observer Observed      now, and whenever another leads; ended by Release
///   anybody → home      Resize   home → all in it  Sized       each → home SizeNoted, and when all have: Resized
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// I have left all earlier views, and all that I hold is inside in this one, or released.
    Settled,
    /// A message of the algorithm that a lock runs on; a token brings its counter.
    Lock {
        /// Which.
        name: Name,
        /// What it says.
        message: TurnMessage,
        /// How many were granted in this view, if the token comes with it.
        counter: Option<u64>,
    },
    /// The token of this lock has not been used here for a while.
    Idle {
        /// Which.
        name: Name,
    },
    /// Let a client of mine in.
    Ask {
        /// Where.
        name: Name,
        /// Which client.
        request: RequestId,
        /// As what.
        ask: Ask,
        /// If it cannot enter at once, it does not want to wait.
        now_or_never: bool,
    },
    /// It is inside.
    Grant {
        /// Where.
        name: Name,
        /// Which client.
        request: RequestId,
        /// The number of its grant, or of the session that it joined.
        fence: Fence,
        /// The oldest grant that may still be alive.
        floor: Fence,
        /// Of a semaphore that was resized, its size.
        size: Option<Size>,
    },
    /// It cannot enter at once.
    Busy {
        /// Where.
        name: Name,
        /// Which client.
        request: RequestId,
    },
    /// All numbers of this view are used.
    Exhausted {
        /// Where.
        name: Name,
        /// Which client.
        request: RequestId,
    },
    /// The name stands for something else. Of a request for a lock nothing is left behind.
    Mismatch {
        /// Which.
        name: Name,
        /// Which client; none, if it is about the lock of the whole node.
        request: Option<RequestId>,
        /// What it stands for.
        is: Kind,
    },
    /// This client waits no longer, and is not inside.
    Release {
        /// Where.
        name: Name,
        /// Which client.
        request: RequestId,
    },
    /// These clients of mine were inside before this view.
    Reenter {
        /// Where.
        name: Name,
        /// What it is, with the number of its units.
        kind: Kind,
        /// Of a semaphore that was resized, since when it has those.
        size: Option<Size>,
        /// Who.
        holds: Vec<Reentry>,
    },
    /// They stand in the ledger.
    Reentered {
        /// Where.
        name: Name,
        /// Who.
        requests: Vec<RequestId>,
    },
    /// A client of mine wants to know who leads, now and from now on.
    Observe {
        /// Where.
        name: Name,
        /// Which client.
        request: RequestId,
    },
    /// So it is.
    Observed {
        /// Where.
        name: Name,
        /// Which clients.
        requests: Vec<RequestId>,
        /// How many fences had been given out: of two words, the one with more is the later.
        counter: u64,
        /// Who leads.
        leader: Option<Leader>,
    },
    /// Let there be so many units.
    Resize {
        /// Where.
        name: Name,
        /// Which client wants it.
        request: RequestId,
        /// How many.
        units: u32,
    },
    /// There are so many units: remember it, for a ledger dies with its home.
    Sized {
        /// Where.
        name: Name,
        /// How many.
        size: Size,
    },
    /// I shall.
    SizeNoted {
        /// Where.
        name: Name,
        /// The number of the change.
        since: Fence,
    },
    /// There are so many units, and everybody knows.
    Resized {
        /// Where.
        name: Name,
        /// Which client wanted it.
        request: RequestId,
        /// How many.
        size: Size,
    },
    /// There is nothing to resize.
    NotInUse {
        /// Where.
        name: Name,
        /// Which client wanted to.
        request: RequestId,
    },
}

impl Message {
    /// The answer to somebody who takes a name for something else.
    pub(super) fn mismatch(name: &Name, request: RequestId, is: Kind) -> Self {
        Self::Mismatch { name: name.clone(), request: Some(request), is }
    }
}

/// One who was inside before this view.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Reentry {
    /// Which client.
    pub request: RequestId,
    /// As what.
    pub ask: Ask,
    /// The number of its grant.
    pub fence: Fence,
}
