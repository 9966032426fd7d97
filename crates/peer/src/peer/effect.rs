//! What a process wants done.

use alloc::boxed::Box;

use super::Stopped;
use crate::{
    agreement::Batch,
    ask::{Failure, Leader, RequestId, SessionId, Size},
    fence::Fence,
    frame::Frame,
    identity::{Address, MemberId},
    keep::Kept,
    name::Name,
    shard::Nanos,
    view::ViewNumber,
};

/// Something that a process wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Send a frame. It may get lost, be doubled, and overtake others.
    Send(Address, Box<Frame>),
    /// Write this, all or nothing, and say [`Input::Written`](super::Input::Written).
    Persist(Box<Batch>),
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
        /// The oldest grant that may still be alive.
        floor: Fence,
        /// Until when it is its own, on this machine's clock, if its session is not renewed.
        deadline: Nanos,
    },
    /// Tell a client that it does not get what it asked for.
    Failed {
        /// Whose request; the [keeper](crate::keep::KEEPER)'s, if it was a SET.
        session: SessionId,
        /// Which.
        request: RequestId,
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
    /// Tell a client until when what it holds is its own.
    Renewed {
        /// Which.
        session: SessionId,
        /// On this machine's clock.
        deadline: Nanos,
    },
    /// Tell a client what became of its Release.
    Released {
        /// Whose.
        session: SessionId,
        /// What.
        name: Name,
        /// Which acquisition.
        fence: Fence,
        /// Whether it was its own.
        result: Result<(), Failure>,
    },
    /// Tell somebody that the lock is kept for whoever knows the value.
    Kept {
        /// Which request.
        request: RequestId,
        /// Where.
        name: Name,
        /// Its number.
        fence: Fence,
        /// Until when, on this machine's clock, whatever becomes of this process.
        deadline: Nanos,
    },
    /// Tell somebody what became of its wish about what is kept.
    ByValue {
        /// Which request.
        request: RequestId,
        /// What is, or was, kept here under that name and value; nothing, if there is no such thing.
        result: Result<Option<Kept>, Failure>,
    },
    /// A session has ended: its time was over, or it was never there.
    Ended(SessionId),
    /// A client is not taken.
    NotOpened {
        /// Which.
        session: SessionId,
        /// Why.
        failure: Failure,
    },
    /// This process is a member of this view.
    Entered(ViewNumber),
    /// All that was asked for in this view can be served.
    Settled(ViewNumber),
    /// Nothing is known of this name here any more: it was idle for a while.
    Forgotten(Name),
    /// A member did what it cannot do, if it runs the same code. It has changed nothing.
    Violation(MemberId, &'static str),
    /// Holders are to be warned: unless the lease is renewed, everything is lost at this moment.
    Danger(Nanos),
    /// Nothing more comes from this process. Whatever its clients held is lost.
    Stopped(Stopped),
}
