//! What goes from one process to another.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{
    agreement,
    charter::Charter,
    identity::{Address, ClusterId, Incarnation, MemberId},
    shard,
    view::ViewNumber,
    views::Pledge,
};

/// A frame. Whoever it does not concern drops it: another cluster, another disk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Frame {
    /// Which cluster it belongs to; nothing, from one who has not joined any yet.
    pub cluster: Option<ClusterId>,
    /// The disk that it comes from.
    pub from: MemberId,
    /// The process that it comes from.
    pub incarnation: Incarnation,
    /// Where an answer finds it.
    pub address: Address,
    /// The disk that it is for; nothing, if whoever sends it knows only an address.
    pub to: Option<MemberId>,
    /// What it says.
    pub body: Body,
}

/// What a frame says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Body {
    /// About the sequence of views.
    Agreement(agreement::Message),
    /// About membership.
    Membership(Membership),
    /// About names.
    Shard {
        /// The view that it counts in, and in no other.
        view: ViewNumber,
        /// Which part of the lock table.
        shard: u16,
        /// Messages and acknowledgements.
        items: Vec<Item>,
    },
}

/// A message with its number, or the acknowledgement of one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Item {
    /// A message.
    Message(u64, shard::Message),
    /// It has arrived.
    Ack(u64),
}

/// What is said about membership.
///
/// ```text
///   joiner → anybody   Join         anybody → joiner  NotLeader(who is), or: Wait, Retired, Refused
///   member → leader    Heartbeat    leader → member   Renewed, once a majority has confirmed that it leads
///   member → anybody   Leave        and the next view is without it; whoever knows that one: Gone
///   member → leader    Evict        and the lease of the one that is meant runs out
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Membership {
    /// Let me be a member.
    Join {
        /// What it goes by.
        charter: Charter,
        /// When this was sent, on its own clock.
        sent: u64,
    },
    /// You will be, when the time comes.
    Wait,
    /// Another is the leader.
    NotLeader(Option<Address>),
    /// Your disk was removed: come back as another.
    Retired,
    /// You go by something else than we do.
    Refused(Charter),
    /// I am still here.
    Heartbeat {
        /// When this was sent, on its own clock.
        sent: u64,
        /// The view that it is in.
        view: ViewNumber,
        /// Members from which it has had no answer for a while.
        unheard: Vec<MemberId>,
        /// The numbers of this view run out.
        wants_view: bool,
        /// What it wants to have pledged.
        pledge: Pledge,
    },
    /// You are a member still, counted from then.
    Renewed {
        /// The process that sent the Heartbeat: another of the same disk may have another clock.
        process: Incarnation,
        /// When it was sent, on that clock.
        sent: u64,
    },
    /// I hold nothing any more, and go.
    Leave {
        /// The view that it is in.
        view: ViewNumber,
    },
    /// You are no member any more.
    Gone {
        /// The process that is meant.
        process: Incarnation,
    },
    /// Let this member go: do not renew its lease any more.
    Evict(MemberId),
}
