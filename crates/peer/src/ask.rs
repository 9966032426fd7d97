//! What clients ask for, and what they may be told instead.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    fence::Fence,
    keep::{MOST_KEPT, MOST_WISHES},
    name::Name,
    session::MOST_SESSIONS,
    shard::{MOST_NAMES, MOST_WAITERS, Nanos, Seat},
};

/// A request of a client: numbered by the node in the order of their arrival, so that a smaller one is older.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u64);

/// A client, for as long as it is there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub u64);

/// What a name stands for. A name that is in use stands for one thing only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// One at a time.
    Lock,
    /// So many units, of which each takes some.
    Semaphore {
        /// M.
        units: u32,
    },
    /// Those of one label together.
    Group,
    /// Readers together, or one writer.
    ReadWrite,
    /// One leader, with a value that all can see.
    Election,
}

/// What a client asks for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Ask {
    /// The lock.
    Lock,
    /// Some units of a semaphore.
    Semaphore {
        /// M: of so many.
        units: u32,
        /// This many.
        weight: u32,
    },
    /// To be inside with those of this label.
    Group {
        /// Which.
        label: Vec<u8>,
    },
    /// To read.
    Read,
    /// To write.
    Write,
    /// To lead.
    Elect {
        /// What the others are to see.
        value: Vec<u8>,
    },
}

/// With whom one can be inside: those of the same label.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Label {
    /// Whoever there is room for.
    Anybody,
    /// Those of a group.
    Group(Vec<u8>),
    /// Those who read.
    Readers,
    /// This writer alone.
    Writer(Seat),
    /// Who leads, with what the others are to see.
    Leader(Vec<u8>),
}

/// Who leads, as the others see it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Leader {
    /// The number of its grant.
    pub fence: Fence,
    /// What it wants the others to see.
    pub value: Vec<u8>,
}

/// What became of the number of units of a semaphore.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Size {
    /// The number of the change, one of those that grants have: what was granted later was granted from this many units.
    pub since: Fence,
    /// How many there are.
    pub units: u32,
}

impl Ask {
    /// What the name has to stand for.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Lock => Kind::Lock,
            Self::Semaphore { units, .. } => Kind::Semaphore { units: *units },
            Self::Group { .. } => Kind::Group,
            Self::Read | Self::Write => Kind::ReadWrite,
            Self::Elect { .. } => Kind::Election,
        }
    }

    /// Whether it can be served at all.
    pub(crate) fn is_sound(&self, name: &Name) -> Result<(), Failure> {
        match self {
            Self::Semaphore { units: 0, .. } | Self::Semaphore { weight: 0, .. } => Err(Failure::NoUnits(name.clone())),
            Self::Semaphore { units, weight } if weight > units => {
                Err(Failure::TooHeavy { name: name.clone(), units: *units, weight: *weight })
            }
            Self::Group { label: bytes } | Self::Elect { value: bytes } if bytes.len() > LONGEST_LABEL => {
                Err(Failure::TooLong(bytes.len()))
            }
            Self::Lock
            | Self::Semaphore { .. }
            | Self::Group { .. }
            | Self::Read
            | Self::Write
            | Self::Elect { .. } => Ok(()),
        }
    }

    pub(crate) fn weight(&self) -> u32 {
        match self {
            Self::Semaphore { weight, .. } => *weight,
            Self::Lock | Self::Group { .. } | Self::Read | Self::Write | Self::Elect { .. } => 1,
        }
    }

    pub(crate) fn label(&self, seat: Seat) -> Label {
        match self {
            Self::Lock | Self::Semaphore { .. } => Label::Anybody,
            Self::Elect { value } => Label::Leader(value.clone()),
            Self::Group { label } => Label::Group(label.clone()),
            Self::Read => Label::Readers,
            Self::Write => Label::Writer(seat),
        }
    }
}

impl Kind {
    pub(crate) fn units(self) -> u32 {
        match self {
            Self::Semaphore { units } => units,
            Self::Lock | Self::Election => 1,
            Self::Group | Self::ReadWrite => u32::MAX,
        }
    }

    /// Whether all who are inside together have one fence: a resource that refuses older ones must not refuse one of them.
    pub(crate) fn shares_fence(self) -> bool {
        matches!(self, Self::Group | Self::ReadWrite)
    }
}

/// How long a client waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Patience {
    /// Until it is its turn.
    Endless,
    /// Until this moment on the node's clock.
    Until(u64),
    /// Not at all: now or never.
    Try,
}

/// Why a client does not get what it asked for.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error, Serialize, Deserialize)]
pub enum Failure {
    /// Somebody else has it.
    #[error("{0} is in use")]
    Busy(Name),
    /// It waited as long as it wanted to.
    #[error("the wait for {0} has timed out")]
    TimedOut(Name),
    /// It took its request back.
    #[error("the wait for {0} was cancelled")]
    Cancelled(Name),
    /// The name stands for something else.
    #[error("{name} is {}, not {}; release it everywhere, or take another name", words(.is), words(.asked))]
    Mismatch {
        /// Which.
        name: Name,
        /// What it is.
        is: Kind,
        /// What it was taken for.
        asked: Kind,
    },
    /// A request that can never be served.
    #[error("{name} has {units} units and can never give {weight}; ask for at most {units}")]
    TooHeavy {
        /// Which.
        name: Name,
        /// How many there are.
        units: u32,
        /// How many were asked for.
        weight: u32,
    },
    /// A semaphore of nothing, or a request for nothing.
    #[error("{0} cannot have 0 units, and nobody can take 0 of them; say at least 1")]
    NoUnits(Name),
    /// There is nothing to change.
    #[error("{0} is not in use; whoever takes it first says how many units it has")]
    NotInUse(Name),
    /// A new view came before a resize was done, and now there is nothing to resize.
    #[error("a new view came while {0} was being resized, and it may have got that size or not; look, or ask again")]
    Interrupted(Name),
    /// A new view is being settled, and a try does not wait for it.
    #[error("the members are settling view {0}; try again in a moment")]
    Settling(u64),
    /// This node is no member.
    #[error("this node is not a member of the cluster now; ask another, or wait until it has joined")]
    NoMember,
    /// This node is about to leave.
    #[error("this node is leaving the cluster; ask another")]
    Leaving,
    /// Its time was over, or that of this node, or it was taken away.
    #[error("it is lost: its time was over, or that of its node, or it was taken away by force")]
    Lost,
    /// There is no such hold of this session.
    #[error("{0} is not held by this session with this fence")]
    NotYours(Name),
    /// There is no such session.
    #[error("there is no such session; it may have ended")]
    NoSession,
    /// All numbers of this view are used.
    #[error("the fences of this view are used up; a new view is on its way, try again")]
    NoMoreFences,
    /// There are as many as there may be.
    #[error("{0} already, as many as this node takes; release some, or ask another node")]
    TooMany(Limit),
    /// A label or a value that is too long.
    #[error("a label, a value, or what a leader wants to be seen, has at most {LONGEST_LABEL} bytes, this one has {0}")]
    TooLong(usize),
    /// A lock is to be kept for longer than this node keeps any.
    #[error(
        "a lock by SET is kept for at most {} ms here, not {}; take less, or start the nodes with a longer --compat-ttl",
        .most.div_ceil(MILLISECOND),
        .asked.div_ceil(MILLISECOND)
    )]
    KeptTooLong {
        /// How long it keeps one at most.
        most: Nanos,
        /// How long it was to.
        asked: Nanos,
    },
    /// A lock is to be kept for no time at all.
    #[error("{0} cannot be kept for 0 ms; take at least 1, or do not lock it")]
    KeptForNothing(Name),
    /// The name can be nothing but a lock.
    #[error(
        "{name} can be nothing but a lock, not {}, for what begins so runs on an algorithm for locks; take another name",
        words(.asked)
    )]
    OnlyLocks {
        /// Which.
        name: Name,
        /// What it was taken for.
        asked: Kind,
    },
}

/// No label and no value is longer.
pub const LONGEST_LABEL: usize = 1024;
const MILLISECOND: Nanos = 1_000_000;

/// What there can be too many of.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error, Serialize, Deserialize)]
pub enum Limit {
    /// Those who hold a name, or wait for it.
    #[error("{MOST_WAITERS} hold {0}, or wait for it,")]
    Clients(Name),
    /// Names.
    #[error("{MOST_NAMES} names are in use")]
    Names,
    /// Sessions.
    #[error("{MOST_SESSIONS} clients are there")]
    Sessions,
    /// What is kept.
    #[error("{MOST_KEPT} locks by SET are kept")]
    Kept,
    /// Wishes about what is kept.
    #[error("{MOST_WISHES} wishes about locks by SET wait to be granted")]
    Wishes,
}

fn words(kind: &Kind) -> String {
    match kind {
        Kind::Lock => "a lock".into(),
        Kind::Semaphore { units } => alloc::format!("a semaphore of {units}"),
        Kind::Group => "a group".into(),
        Kind::ReadWrite => "a lock of readers and writers".into(),
        Kind::Election => "an election".into(),
    }
}
