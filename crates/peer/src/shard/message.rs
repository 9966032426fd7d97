//! What the members say to each other about names.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use vez_algorithms::NodeId;

use super::turns::TurnMessage;
use crate::{
    ask::{Ask, Kind, RequestId},
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
