//! The state of the whole: members with their shards, what is under way between them, and what clients believe.

use std::sync::Arc;

use vez_algorithms::NodeId;
use vez_peer::{
    ask::{Ask, RequestId, SessionId},
    fence::Fence,
    identity::{Address, Incarnation, MemberId},
    shard::{Message, Shard},
    view::{Member, View},
};

/// So many members.
pub(crate) const MEMBERS: usize = 3;

/// Everything. It has no clock: all happens at the moment 0, and whatever waits for time may happen at any moment.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct World {
    /// All views that were announced. Their numbers are 1, 2, 3, …
    pub views: Vec<Arc<View>>,
    /// The latest process of each member.
    pub processes: Vec<Arc<Process>>,
    /// Sorted: by sender and receiver if messages cannot overtake each other, by everything otherwise.
    pub network: Vec<Packet>,
    /// What clients rightly believe to hold: until they release it, or the lease of their node is surely over.
    pub holds: Vec<Held>,
    /// How many of its requests each member has made.
    pub asked: [usize; MEMBERS],
    /// How many more may give up.
    pub cancels: u8,
    /// How many more may crash.
    pub crashes: u8,
    /// How many messages were sent. That is in the state so that whoever goes round in a circle never ends.
    pub sent: u16,
    /// The highest fence that was given out, and what for.
    pub latest: Option<(Fence, Ask)>,
    /// The highest floor that was given out: a resource refuses what is below.
    pub floor: Option<Fence>,
    /// What should not have happened. Nothing follows it.
    pub breach: Option<&'static str>,
}

/// One process of a member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Process {
    pub shard: Shard,
    pub standing: Standing,
    /// Which of the views it is in; or, while it joins, will be in first.
    pub view: usize,
    /// Which of its clients wait, and whether they have since before this view.
    pub waiting: Vec<(RequestId, bool)>,
}

/// Whether a process takes part.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Standing {
    /// It was started, and has not installed its first view.
    Joins,
    /// It is a member.
    Runs,
    /// It has crashed, or its lease is over.
    Gone,
}

/// A message under way. It counts in its view only.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Packet {
    /// Which of the views.
    pub view: usize,
    pub from: usize,
    pub to: usize,
    pub message: Message,
}

/// What a client holds.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Held {
    pub member: usize,
    pub request: RequestId,
    pub ask: Ask,
    pub fence: Fence,
}

impl World {
    pub(crate) fn last(&self) -> usize {
        self.views.len() - 1
    }

    /// Whether the latest process of a member runs.
    pub(crate) fn runs(&self, member: usize) -> bool {
        self.processes[member].standing == Standing::Runs
    }

    pub(crate) fn running(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter().map(AsRef::as_ref).filter(|process: &&Process| process.standing == Standing::Runs)
    }

    /// Whoever crashed and was not removed yet: until then its clients go on believing.
    pub(crate) fn crashed(&self) -> Option<usize> {
        let view = self.views.last().expect("there is a first view");
        (0..MEMBERS)
            .find(|member| self.processes[*member].standing == Standing::Gone && view.position(id(*member)).is_some())
    }

    /// Whether this packet can arrive now.
    pub(crate) fn arrives(&self, packet: &Packet) -> bool {
        self.runs(packet.to) && self.processes[packet.to].view == packet.view
    }

    /// Whether this packet comes too late, or says nothing new to one who has settled.
    pub(crate) fn is_void(&self, packet: &Packet) -> bool {
        let process = &self.processes[packet.to];
        let settled = packet.message == Message::Settled && self.arrives(packet) && process.shard.is_settled();
        self.is_stale(packet) || settled
    }

    pub(crate) fn is_stale(&self, packet: &Packet) -> bool {
        let process = &self.processes[packet.to];
        process.standing == Standing::Gone || process.view > packet.view
    }

    /// Takes note of what should not have happened.
    pub(crate) fn object(&mut self, what: &'static str) {
        self.breach = self.breach.or(Some(what));
    }

    /// Whether those who hold something may do so together.
    pub(crate) fn excludes(&self) -> bool {
        let Some(first) = self.holds.first() else { return true };
        if self.holds.iter().any(|held| held.ask.kind() != first.ask.kind()) {
            return false;
        }
        match first.ask {
            Ask::Semaphore { units, .. } => self.holds.iter().map(Held::weight).sum::<u32>() <= units,
            Ask::Read => self.holds.iter().all(|held| held.ask == Ask::Read && held.fence == first.fence),
            Ask::Lock | Ask::Write => self.holds.len() == 1,
            Ask::Group { .. } | Ask::Elect { .. } => unreachable!("nobody asks for this"),
        }
    }

    /// A grant reaches a client. Of what is not shared each has a higher fence than all before.
    pub(crate) fn grant(&mut self, held: Held, floor: Fence) {
        let grows = |(latest, before): &(Fence, Ask)| match held.ask {
            Ask::Read if *before == Ask::Read => held.fence >= *latest,
            Ask::Semaphore { .. } => true,
            _ => held.fence > *latest,
        };
        if !self.latest.as_ref().is_none_or(grows) {
            self.object("a fence that is not higher than those before");
        }
        if self.holds.iter().any(|other| other.fence == held.fence && held.ask != Ask::Read) {
            self.object("a fence for the second time");
        }
        if self.latest.as_ref().is_none_or(|(latest, _)| *latest < held.fence) {
            self.latest = Some((held.fence, held.ask.clone()));
        }
        self.floor = self.floor.max(Some(floor));
        self.holds.push(held);
        self.holds.sort();
        if self.holds.iter().any(|held| Some(held.fence) < self.floor) {
            self.object("one who holds something is below the floor");
        }
    }
}

impl Packet {
    /// Within one of these messages may keep their order.
    pub(crate) fn lane(&self) -> (usize, usize, usize) {
        (self.view, self.from, self.to)
    }
}

impl Held {
    fn weight(&self) -> u32 {
        match self.ask {
            Ask::Semaphore { weight, .. } => weight,
            _ => 1,
        }
    }
}

impl std::fmt::Debug for Packet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { view, from, to, message } = self;
        write!(f, "view {} m{from} → m{to} {message:?}", view + 1)
    }
}

pub(crate) fn id(member: usize) -> MemberId {
    MemberId(member as u64)
}

/// One who takes part since that view.
pub(crate) fn member(member: usize, incarnation: u64, joined_in: u64) -> Member {
    let address = Address::new("");
    Member { id: id(member), incarnation: Incarnation(incarnation), address, joined_in, join_sent: 0 }
}

/// Which member a node of a view is.
pub(crate) fn who(view: &View, node: NodeId) -> usize {
    usize::try_from(view.member(node).id.0).expect("small")
}

/// Each request is of a session of its own.
pub(crate) fn session(request: RequestId) -> SessionId {
    SessionId(1 + request.0) // 0 is the keeper's.
}
