//! What a shard wants done.

use alloc::vec::Vec;

use vez_algorithms::NodeId;

use super::Message;
use crate::{
    ask::{Failure, Leader, RequestId, SessionId, Size},
    fence::Fence,
    name::Name,
};

/// What a shard wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Send this to another member of the view.
    Send(NodeId, Message),
    /// Tell a client that it is inside.
    Granted {
        /// Whose request.
        session: SessionId,
        /// Which.
        request: RequestId,
        /// Where.
        name: Name,
        /// Its number.
        fence: Fence,
        /// The oldest grant that may still be alive: its own, but for a semaphore.
        floor: Fence,
    },
    /// Tell a client that it does not get what it asked for.
    Failed {
        /// Whose request.
        session: SessionId,
        /// Which.
        request: RequestId,
        /// Where.
        name: Name,
        /// Why.
        failure: Failure,
    },
    /// Tell a client who leads.
    Observed {
        /// Whose request.
        session: SessionId,
        /// Which.
        request: RequestId,
        /// Where.
        name: Name,
        /// Who; nobody, if there is no leader now.
        leader: Option<Leader>,
    },
    /// Tell a client that a semaphore has as many units as it wanted.
    Resized {
        /// Whose request.
        session: SessionId,
        /// Which.
        request: RequestId,
        /// Where.
        name: Name,
        /// How many, and since when.
        size: Size,
    },
    /// The numbers of this view run out: ask for a new one.
    NewViewWanted,
    /// This shard is settled in its view.
    Settled,
    /// Nothing is known of this name any more.
    Forgotten(Name),
    /// A member did what it cannot do.
    Violation(NodeId, &'static str),
}

/// Where effects go.
pub type Effects = Vec<Effect>;
