//! One process of one member: everything together.

mod calls;
mod effect;
mod frames;
mod keeping;
mod standing;
mod status;
mod terms;

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet, VecDeque},
    vec::Vec,
};

use self::standing::Standing;
pub use self::{
    calls::Call,
    effect::Effect,
    standing::Stopped,
    status::{MemberStatus, Standings, Status},
};
use crate::{
    agreement::{self, Agreement, Disk, Pace},
    charter::Charter,
    frame::{Body, Frame},
    identity::{Address, ClusterId, Incarnation, MemberId},
    keep::Keeping,
    lane::Lane,
    leadership::Leadership,
    session::Sessions,
    shard::{Habits, Nanos, Shard},
    view::ViewNumber,
    views::Views,
};

/// So many frames of the next view are kept until it comes.
pub const MOST_PARKED: usize = 4096;
/// The addresses of so many are remembered.
pub const MOST_ADDRESSES: usize = 4096;

/// One process of one member. The value is its whole state, but for what is on its disk.
///
/// # The calling contract
///
/// - [`Self::handle`] is called for everything that happens, with the time on this machine's own clock, which goes on while
///   the machine sleeps, and never goes back.
/// - Its effects are carried out in their order. A [`Effect::Persist`] is answered by [`Input::Written`] once it is durable;
///   until then no other comes.
/// - At [`Self::deadline`], or some time later, it wants [`Input::Tick`].
/// - After [`Effect::Stopped`] it does nothing any more. The process ends, or goes on as a new incarnation.
#[derive(Clone, Debug)]
pub struct Peer {
    me: Identity,
    charter: Charter,
    seeds: Vec<Address>,
    /// Which cluster it belongs to, once that is known.
    cluster: Option<ClusterId>,
    agreement: Agreement,
    standing: Standing,
    lanes: Vec<Lane>,
    sessions: Sessions,
    /// What is kept for whoever knows a value.
    keeping: Keeping,
    /// While it leads.
    leadership: Option<Leadership>,
    /// Where others are, as far as is known.
    addresses: BTreeMap<MemberId, Address>,
    /// Frames of the next view.
    parked: VecDeque<Frame>,
    /// When it shows itself next: by a Heartbeat, or a Join.
    next_beat: Nanos,
    wants_view: bool,
    counts: Counts,
}

/// Who this process is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its disk.
    pub id: MemberId,
    /// Itself: higher than any before it on this disk.
    pub incarnation: Incarnation,
    /// Where others reach it.
    pub address: Address,
}

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Frames of a view that is over, or too far ahead.
    pub frames_of_other_views: u64,
    /// Frames of other clusters, disks or processes.
    pub strangers: u64,
    /// What a member cannot have done, if it runs the same code.
    pub violations: u64,
    /// Tokens of locks passed to other members.
    pub handovers: u64,
}

/// How a process begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Start {
    /// A new cluster, whose only member it is at first.
    Found {
        /// Drawn at random.
        cluster: ClusterId,
        /// Minutes since the beginning of 2026, so that the fences of a wiped folder do not fall.
        first_view: ViewNumber,
    },
    /// One of a cluster that exists: it has been a member before, or knows some addresses to ask at.
    Join {
        /// What its disk holds; an empty one, if it is new.
        disk: Box<Disk>,
        /// Where others may be.
        seeds: Vec<Address>,
    },
}

/// Something that happens to a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// A frame arrives.
    Frame(Box<Frame>),
    /// The last batch is durable.
    Written,
    /// A client wants something.
    Call(Call),
    /// Take no new requests, and leave once nothing is held here any more.
    Leave,
    /// Let this member go, whether it wants to or not: its lease is not renewed any more.
    Evict(MemberId),
}

impl Input {
    /// Whether a leader may have something to do after it. What clients and shards do is none of its business.
    fn is_about_members(&self) -> bool {
        match self {
            Self::Tick | Self::Written | Self::Leave | Self::Evict(_) => true,
            Self::Frame(frame) => !matches!(frame.body, Body::Shard { .. }),
            Self::Call(_) => false,
        }
    }
}

/// What a handler works with.
pub(crate) struct Cx<'a> {
    now: Nanos,
    effects: &'a mut Vec<Effect>,
    choose: &'a mut dyn FnMut(u64) -> u64,
}

impl Peer {
    /// A process begins, by a charter that was [checked](Charter::check). What it wants done at once goes to `effects`; `choose`
    /// draws a number below the one it is given.
    #[must_use]
    pub fn start(
        me: Identity,
        charter: Charter,
        habits: Habits,
        start: Start,
        now: Nanos,
        effects: &mut Vec<Effect>,
        choose: &mut dyn FnMut(u64) -> u64,
    ) -> Self {
        let pace = Pace { compaction: habits.log, ..Pace::of(&charter) };
        let mut events = Vec::new();
        let mut cx = agreement::Cx { events: &mut events, choose: &mut *choose };
        let (agreement, seeds) = match start {
            Start::Found { cluster, first_view } => {
                let views = Views::new(cluster, charter.clone(), first_view);
                (Agreement::found(me.id, views, pace, now, &mut cx), Vec::new())
            }
            Start::Join { disk, seeds } => (Agreement::resume(me.id, &disk, pace, now, &mut cx), seeds),
        };
        let lanes = (0..charter.shards).map(|_| Lane::new(Shard::new(habits, charter.algorithms.clone()))).collect();
        let mut peer = Self {
            cluster: agreement.views().map(|views| views.cluster),
            me,
            charter,
            seeds,
            agreement,
            standing: Standing::Outside,
            lanes,
            sessions: Sessions::default(),
            keeping: Keeping::new(habits.keep),
            leadership: None,
            addresses: BTreeMap::new(),
            parked: VecDeque::new(),
            next_beat: now,
            wants_view: false,
            counts: Counts::default(),
        };
        peer.learn_addresses();
        let mut cx = Cx { now, effects, choose };
        peer.obey(events, &mut cx);
        peer.go_on(true, &mut cx);
        peer
    }

    /// Something happens. Whatever it is, the first thing is a look at the clock: a process that was asleep must not act
    /// on what has been waiting for it.
    pub fn handle(&mut self, now: Nanos, input: Input, effects: &mut Vec<Effect>, choose: &mut dyn FnMut(u64) -> u64) {
        let mut cx = Cx { now, effects, choose };
        if !self.may_go_on(&mut cx) {
            return;
        }
        self.end_overdue_sessions(&mut cx);
        self.end_overdue_keeps(&mut cx);
        let about_members = input.is_about_members();
        match input {
            Input::Tick => {}
            Input::Frame(frame) => self.on_frame(*frame, &mut cx),
            Input::Written => self.with_agreement(&mut cx, |agreement, now, cx| agreement.on_written(now, cx)),
            Input::Call(call) => self.on_call(call, &mut cx),
            Input::Leave => self.leave(&mut cx),
            Input::Evict(id) => self.evict(id, &mut cx),
        }
        self.go_on(about_members, &mut cx);
    }

    /// Does what is due, and sends what has been gathered. What a leader does is long, and clients come often: it is left
    /// out where nothing about members can have changed.
    fn go_on(&mut self, mut about_members: bool, cx: &mut Cx<'_>) {
        if self.has_stopped() {
            return;
        }
        if self.agreement.deadline() <= cx.now {
            about_members = true;
            self.with_agreement(cx, |agreement, now, cx| agreement.on_tick(now, cx));
        }
        self.tick_lanes(cx);
        self.hurry(cx.now);
        if self.next_beat <= cx.now && !self.has_stopped() {
            about_members = true;
            self.beat(cx);
        }
        if about_members {
            self.lead(cx);
        }
        self.flush(cx);
    }

    /// When it next wants a tick.
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        if self.has_stopped() {
            return Nanos::MAX;
        }
        let lanes = self.lanes.iter().filter_map(Lane::deadline);
        let standing = self.standing.deadline(&self.charter);
        let own = [self.agreement.deadline(), self.next_beat].into_iter();
        let ends = self.sessions.next_end().into_iter().chain(self.keeping.next_end());
        own.chain(standing).chain(lanes).chain(ends).min().expect("there is always a next beat")
    }

    /// What was counted.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { handovers: self.lanes.iter().map(|lane| lane.handovers).sum(), ..self.counts }
    }

    fn with_agreement(&mut self, cx: &mut Cx<'_>, happen: impl FnOnce(&mut Agreement, Nanos, &mut agreement::Cx<'_>)) {
        let mut events = Vec::new();
        happen(&mut self.agreement, cx.now, &mut agreement::Cx { events: &mut events, choose: &mut *cx.choose });
        self.obey(events, cx);
    }

    /// Where an answer finds somebody. Where there are too many, those are forgotten who neither are members nor vote.
    fn learn_address(&mut self, id: MemberId, address: &Address) {
        if self.addresses.get(&id) == Some(address) {
            return;
        }
        if self.addresses.len() >= MOST_ADDRESSES {
            let (config, views) = (self.agreement.config(), self.agreement.views());
            let matters = |id: &MemberId| views.is_some_and(|views| views.members().contains_key(id));
            self.addresses.retain(|id, _| config.is_voter(*id) || matters(id));
        }
        self.addresses.insert(id, address.clone());
    }

    /// Where the members of the view are.
    fn learn_addresses(&mut self) {
        let Some(views) = self.agreement.views() else { return };
        self.addresses.extend(views.members().iter().map(|(id, member)| (*id, member.address.clone())));
    }

    /// Who may know the leader: the leader, if this process knows it, or everybody that it has heard of.
    fn whom_to_ask(&self) -> BTreeSet<Address> {
        let known = self.addresses.values().chain(&self.seeds);
        known.filter(|address| **address != self.me.address).cloned().collect()
    }
}
