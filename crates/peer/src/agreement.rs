//! A small group agrees on the sequence of views: Raft, on the library `noraft`.
//!
//! An [`Agreement`] is one member's part in it. `noraft` has the rules of the paper and nothing else: it knows neither time
//! nor what a command says, and asks its host to write and to send. What it leaves to its host is here.
//!
//! ```text
//!   durability    a step's term, vote and entries are one Persist, and what it wants sent waits for on_written
//!   pre-vote      who hears of no leader first asks whether it would be elected, so that nobody's return ends a term
//!   check-quorum  a leader that no majority answers steps down, so that its heartbeats do not keep others from electing
//!   confirmation  a round of heartbeats that a majority answered: no other had been elected before it began
//!   snapshots     after some entries the views stand for them; who lacks such entries is sent the views
//! ```
//!
//! **One step at a time.** `noraft` counts a leader's own entry as written the moment that it is proposed, and lets a
//! single voter agree with itself at once. So while a batch is being written nothing else is handled: messages queue up,
//! a bounded number of them, and a deadline that passes is looked at afterwards. Steps with nothing to write, which is
//! nearly all of them, end at once.
//!
//! **Birth.** A cluster begins as if its founder had agreed with itself on a first entry and made a snapshot of it. So no
//! log with views in it begins at nothing; every joiner, whose log does, is sent a snapshot and learns the views by it.
//!
//! **Whose fault.** A message that no member could have sent is dropped. A leader whose log contradicts what is agreed on
//! here means that a disk has lost something, here or there: [`Event::Broken`], and this member does nothing more.

mod disk;
mod election;
mod log;
mod message;
mod mirror;
mod office;
mod propose;
mod receive;
mod step;

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet, VecDeque},
    vec::Vec,
};

use noraft::{Log, LogIndex, Node, Term};

pub use self::{
    disk::{Ballot, Batch, Disk, Snapshot},
    log::{Append, Config, Entry, MOST_ENTRIES, Position},
    message::Message,
};
use self::{office::Office, step::Held};
use crate::{
    charter::Charter,
    identity::MemberId,
    view::View,
    views::{Command, Refused, Views},
};

/// A point in time on this process's own clock, or a stretch of it.
pub type Nanos = u64;

/// So many messages wait while a batch is being written; more are dropped, as the network might have done.
pub const MOST_WAITING: usize = 256;
/// After so many entries a snapshot stands for them.
pub const SNAPSHOT_AFTER: u64 = 64;

/// How often a leader is heard, and how long it may be silent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pace {
    /// From one heartbeat to the next.
    pub heartbeat: Nanos,
    /// After so long without a leader somebody may stand for election; who waits, waits up to twice as long.
    pub election: Nanos,
    /// After so many entries the views stand for them.
    pub compaction: u64,
}

impl Pace {
    /// A thirtieth and a sixth of a lease: a leader is replaced well before the leases that it renews run out.
    #[must_use]
    pub fn of(charter: &Charter) -> Self {
        Self { heartbeat: charter.lease / 30, election: charter.lease / 6, compaction: SNAPSHOT_AFTER }
    }
}

/// Where a step leaves what it wants done, and where it has its chances from.
pub struct Cx<'a> {
    /// What is to be done, in this order.
    pub events: &'a mut Vec<Event>,
    /// A whole number below the one given.
    pub choose: &'a mut dyn FnMut(u64) -> u64,
}

/// What is to be done, and what there is to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Send this to that member. It may get lost, come twice, or out of order.
    Send(MemberId, Message),
    /// Write this, then call [`Agreement::on_written`]. There is never a second one before that.
    Persist(Batch),
    /// There is a new view.
    Viewed(View),
    /// In the same view something else is pledged.
    Pledged,
    /// A command of the log changed nothing.
    Refused(Command, Refused),
    /// This member leads from now on.
    Leads,
    /// It no longer does: whatever waits for a round of its leadership waits in vain.
    Follows,
    /// A disk, this one or the leader's, is not what was written on it. This member must stop.
    Broken(&'static str),
}

/// That a member leads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Leading {
    /// In this term.
    pub term: u64,
    /// Since when it knows all that was agreed on in earlier terms: since then an entry of its own term is.
    pub since: Option<Nanos>,
}

/// One member's part in agreeing on views.
///
/// Every call comes with the time and with a [`Cx`], whose events the caller carries out in their order. `on_tick` is due at
/// [`Agreement::deadline`]. After a [`Event::Persist`] nothing else happens until `on_written`.
#[derive(Clone, Debug)]
pub struct Agreement {
    me: MemberId,
    pace: Pace,
    node: Node,
    /// What the commands in the log say.
    commands: BTreeMap<u64, Command>,
    /// What the beginning of the log came to, as it is on disk.
    base: Snapshot,
    views: Option<Views>,
    /// So far the log is in `views`.
    applied: u64,
    office: Office,
    /// The latest round of confirmation; over all terms of this process.
    round: u64,
    deadline: Nanos,
    /// The time of the latest call.
    clock: Nanos,
    pen: Pen,
    waiting: VecDeque<(MemberId, Message)>,
}

/// Whether something can be handled.
#[derive(Clone, Debug)]
enum Pen {
    Idle,
    /// A batch is being written: what the step wants done afterwards.
    Writing(Box<Held>),
    /// Never again.
    Broken,
}

impl Agreement {
    /// The first member of a new cluster. It leads as soon as its first batch is written; if it ends before that, nothing has
    /// happened, and it is founded again.
    pub fn found(me: MemberId, views: Views, pace: Pace, now: Nanos, cx: &mut Cx<'_>) -> Self {
        let config = Config { voters: BTreeSet::from([me]), ..Config::default() };
        let snapshot = Snapshot { position: Position { term: 1, index: 1 }, config, views: Some(views) };
        let ballot = Ballot { term: 1, vote: Some(me) };
        let disk = Disk { ballot, snapshot: snapshot.clone(), entries: Vec::new() };
        let mut founder = Self::new(me, &disk, pace, now);
        // The timer that a restart asks for: it stands for election at once instead.
        *founder.node.actions_mut() = noraft::Actions::default();
        founder.node.handle_election_timeout();
        founder.conclude(now, Held { installed: Some(snapshot), ..Held::default() }, cx);
        founder
    }

    /// A member that was there before, or one with an empty disk, which waits until a leader knows of it.
    pub fn resume(me: MemberId, disk: &Disk, pace: Pace, now: Nanos, cx: &mut Cx<'_>) -> Self {
        let mut member = Self::new(me, disk, pace, now);
        member.conclude(now, Held::default(), cx);
        if member.config().all_voters().eq([me]) {
            // Nobody else could be leading.
            member.deadline = now;
        }
        member
    }

    fn new(me: MemberId, disk: &Disk, pace: Pace, now: Nanos) -> Self {
        let snapshot = &disk.snapshot;
        let first = snapshot.position.index + 1;
        let command = |(index, entry): (u64, &Entry)| match entry {
            Entry::Command(command) => Some((index, command.clone())),
            Entry::Term(_) | Entry::Config(_) => None,
        };
        let log =
            Log::new(mirror::cluster_config(&snapshot.config), mirror::log_entries(snapshot.position, &disk.entries));
        let vote = disk.ballot.vote.map(mirror::node_id);
        Self {
            me,
            pace,
            node: Node::restart(mirror::node_id(me), Term::new(disk.ballot.term), vote, log),
            commands: (first..).zip(&disk.entries).filter_map(command).collect(),
            base: snapshot.clone(),
            views: snapshot.views.clone(),
            applied: snapshot.position.index,
            office: Office::NONE,
            round: 0,
            deadline: now,
            clock: now,
            pen: Pen::Idle,
            waiting: VecDeque::new(),
        }
    }

    /// Another member said this.
    pub fn on_message(&mut self, now: Nanos, from: MemberId, message: Message, cx: &mut Cx<'_>) {
        self.clock = now;
        if from == self.me || !message.is_sound() {
            return;
        }
        match self.pen {
            Pen::Idle => self.receive(now, from, message, cx),
            Pen::Writing(_) if self.waiting.len() < MOST_WAITING => self.waiting.push_back((from, message)),
            Pen::Writing(_) | Pen::Broken => {}
        }
    }

    /// Time has passed. Before the deadline nothing happens.
    pub fn on_tick(&mut self, now: Nanos, cx: &mut Cx<'_>) {
        self.clock = now;
        if self.is_idle() && now >= self.deadline {
            self.time_out(now, cx);
        }
    }

    /// The batch of the last Persist is on disk.
    pub fn on_written(&mut self, now: Nanos, cx: &mut Cx<'_>) {
        self.clock = now;
        match core::mem::replace(&mut self.pen, Pen::Idle) {
            Pen::Writing(held) => self.settle(now, *held, cx),
            Pen::Idle => return,
            Pen::Broken => self.pen = Pen::Broken,
        }
        while self.is_idle()
            && let Some((from, message)) = self.waiting.pop_front()
        {
            self.receive(now, from, message, cx);
        }
        self.on_tick(now, cx);
    }

    /// When `on_tick` is due. While a batch is being written nothing is.
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        if self.is_idle() { self.deadline } else { Nanos::MAX }
    }

    fn is_idle(&self) -> bool {
        matches!(self.pen, Pen::Idle)
    }

    /// Whether this member leads.
    #[must_use]
    pub fn leads(&self) -> Option<Leading> {
        self.office.leadership().map(|leadership| Leading { term: self.term(), since: leadership.since })
    }

    /// Whom it takes for the leader of its term.
    #[must_use]
    pub fn leader(&self) -> Option<MemberId> {
        match &self.office {
            Office::Follower { leader, .. } => leader.map(|(id, _)| id),
            Office::Asking { .. } | Office::Candidate => None,
            Office::Leader(_) => Some(self.me),
        }
    }

    /// What is agreed on, as far as this member knows. `None` if it has never heard of it.
    #[must_use]
    pub fn views(&self) -> Option<&Views> {
        self.views.as_ref()
    }

    /// Whose word counts, by the end of its log: a change counts before it is agreed on.
    #[must_use]
    pub fn config(&self) -> Config {
        mirror::config(self.node.config())
    }

    /// Who has a vote by what is agreed on: what is in the log beyond that may never have been. The library, started again,
    /// knows less of that than was applied.
    #[must_use]
    pub fn agreed_config(&self) -> Config {
        let agreed = self.node.commit_index().max(LogIndex::new(self.applied));
        let agreed = self.node.log().get_position_and_config(agreed);
        agreed.map_or_else(|| self.base.config.clone(), |(_, config)| mirror::config(config))
    }

    /// Its term.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.node.current_term().get()
    }

    /// The end of its log.
    #[must_use]
    pub fn last(&self) -> Position {
        mirror::position(self.node.log().last_position())
    }

    /// So far the log is agreed on and in the views, as far as this member knows.
    #[must_use]
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// How many entries stand in its log, those that a snapshot stands for not counted.
    #[must_use]
    pub fn log_length(&self) -> usize {
        self.node.log().entries().len()
    }
}
