//! Voting by coordinators that may forget [LLCZ04], as [TS07] teaches it. Steps: docs/algorithms/voting.md.
//!
//! A resource has n replicas, each with a coordinator that has one vote. A process asks all of them and enters with m > n/2
//! votes. A coordinator that has given its vote away says so at once; who cannot reach m any more gives the votes back, and
//! tries again after a random while. A coordinator that crashes comes back soon and has forgotten to whom it gave its vote:
//! that may let a second process in, but only if 2m−n of the m coordinators forget while one is inside.
//!
//!   n1 → n4  Request(ballot)        n4 → n1  Vote(ballot), or Denied(ballot)        n1 → n4  Release(ballot)
//!
//! Cost: 3n messages for an entry at the first attempt. Assumes: no loss; no process crashes; FIFO not needed. Coordinators
//! may crash as long as m live. Nobody is promised a turn.
//! Departures: see the page; a ballot has the number of its attempt, so that late answers and releases are told from new ones.

mod ring;

use alloc::{
    borrow::ToOwned,
    collections::{BTreeMap, BTreeSet},
    format,
    vec::Vec,
};
use core::{ops::Range, time::Duration};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex, Output};
use crate::{Algorithm, Canonical, Context, Model, NodeId, NodeSet, Protocol, Setup, SetupError, Timing};

/// One attempt of one process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Ballot {
    process: NodeId,
    attempt: u64,
}

/// What processes and coordinators say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// Give me your vote.
    Request(Ballot),
    /// You have it.
    Vote(Ballot),
    /// Another has it.
    Denied(Ballot),
    /// Take it back.
    Release(Ballot),
}

/// What a process wants to be woken for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// It asked a while ago, and some answers are still missing: they will not come.
    GiveUp,
    /// Its attempt failed a while ago, and it may try again.
    Retry,
}

/// Where a process stands.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
enum Phase {
    Idle,
    Asking {
        votes: NodeSet,
        denials: NodeSet,
    },
    /// Its attempt has failed; it will try again.
    BackingOff,
    Inside {
        votes: NodeSet,
    },
}

/// A process: it wants in now and then.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Process {
    me: NodeId,
    coordinators: NodeSet,
    /// m
    majority: usize,
    retry: Range<Duration>,
    patience: Duration,
    /// The number of the last attempt.
    attempt: u64,
    /// How often it has failed since it was last inside.
    failures: u32,
    phase: Phase,
}

/// The coordinator of one replica.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Coordinator {
    /// i, of `rname-i`.
    replica: usize,
    /// Who has its vote, as far as it remembers.
    vote: Option<Ballot>,
}

/// One node of a system that votes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Voting(Role);

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
enum Role {
    Process(Process),
    Coordinator(Coordinator),
}

/// The back-off is doubled so often at most.
const MOST_DOUBLINGS: u32 = 6;

/// Nobody means to have more replicas than this.
const MOST_REPLICAS: usize = 1 << 14;

/// Refuses what is no majority.
///
/// # Errors
/// If two could have a majority at the same time, or nobody ever.
pub fn majority_of(replicas: usize, majority: usize) -> Result<(), SetupError> {
    let refuse = |why| Err(SetupError(why));
    let least = replicas / 2 + 1;
    match (replicas, majority) {
        (0, _) => refuse("there are 0 replicas, and nobody to vote; take at least 1, such as --replicas 5".to_owned()),
        (n, _) if n > MOST_REPLICAS => refuse(format!("{n} replicas are too many; take at most {MOST_REPLICAS}")),
        (n, m) if m < least => {
            refuse(format!("{m} of {n} votes are no majority, and two could have them; take at least {least}"))
        }
        (n, m) if m > n => refuse(format!("a majority of {m} cannot be reached with {n} replicas; take at most {n}")),
        (_, _) => Ok(()),
    }
}

impl Algorithm for Voting {
    const NAME: &'static str = "voting";
    const COST: &'static str = "3n an attempt, n replicas";
    const PAPER: &'static str = "LLCZ04";

    /// The processes, then the coordinators.
    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let (replicas, majority) = (setup.replicas, setup.majority);
        majority_of(replicas, majority)?;
        let processes = setup.nodes();
        let coordinators: NodeSet = NodeId::all(processes + replicas).skip(processes).collect();
        let process = |me| Process {
            me,
            coordinators: coordinators.clone(),
            majority,
            retry: setup.retry.clone(),
            patience: setup.patience,
            attempt: 0,
            failures: 0,
            phase: Phase::Idle,
        };
        let mut places: Vec<(usize, usize)> = ring::placement(replicas, replicas)
            .into_iter()
            .enumerate()
            .map(|(replica, node)| (node, replica))
            .collect();
        places.sort_unstable();
        let coordinator = |(_, replica)| Self(Role::Coordinator(Coordinator { replica, vote: None }));
        Ok(setup.ids().map(|me| Self(Role::Process(process(me)))).chain(places.into_iter().map(coordinator)).collect())
    }
}

impl Protocol for Voting {
    const MODEL: Model = Model { timing: Timing::Bounded, ..Model::RELIABLE };
    const CANONICAL: Option<Canonical<Self>> = Some(renumber);
    type Message = Message;
    type Timer = Timer;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        let Role::Process(process) = &mut self.0 else { panic!("only processes have clients") };
        match command {
            Command::Request => process.on_request(cx),
            Command::Release => process.on_release(cx),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match (&mut self.0, message) {
            (Role::Coordinator(_), Message::Request(ballot)) if ballot.process != from => {
                cx.violation("a Request for somebody else");
            }
            (Role::Coordinator(coordinator), Message::Request(ballot)) => coordinator.on_request(ballot, cx),
            (Role::Coordinator(coordinator), Message::Release(ballot)) => coordinator.on_release(ballot),
            (Role::Process(process), Message::Vote(ballot)) => process.on_vote(from, ballot, cx),
            (Role::Process(process), Message::Denied(ballot)) => process.on_denied(from, ballot, cx),
            (Role::Coordinator(_), Message::Vote(_) | Message::Denied(_)) => cx.violation("an answer to a coordinator"),
            (Role::Process(_), Message::Request(_) | Message::Release(_)) => cx.violation("a process has no vote"),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        let Role::Process(process) = &mut self.0 else { panic!("only processes set timers") };
        match timer {
            Timer::GiveUp => process.fail(cx), // LLCZ04:7
            Timer::Retry => process.begin(cx), // LLCZ04:8
        }
    }
}

impl Process {
    fn on_request(&mut self, cx: &mut Context<'_, Voting>) {
        assert_eq!(self.phase, Phase::Idle, "one request at a time");
        self.begin(cx);
    }

    /// LLCZ04:2 Each attempt asks every coordinator.
    fn begin(&mut self, cx: &mut Context<'_, Voting>) {
        self.attempt += 1;
        self.phase = Phase::Asking { votes: NodeSet::new(), denials: NodeSet::new() };
        cx.multicast(self.coordinators.iter(), &Message::Request(self.ballot()));
        cx.set_timer(Timer::GiveUp, self.patience..self.patience);
    }

    fn on_vote(&mut self, from: NodeId, ballot: Ballot, cx: &mut Context<'_, Voting>) {
        let is_ours = ballot == self.ballot();
        match &mut self.phase {
            Phase::Asking { votes, .. } if is_ours => {
                votes.insert(from);
                if votes.len() == self.majority {
                    // LLCZ04:4
                    self.phase = Phase::Inside { votes: core::mem::take(votes) };
                    self.failures = 0;
                    cx.cancel_timer(Timer::GiveUp);
                    cx.output(Output::Entered);
                }
            }
            // LLCZ04:5 More votes than needed: the more there are, the more must be forgotten before a second one gets in.
            Phase::Inside { votes } if is_ours => {
                votes.insert(from);
            }
            // LLCZ04:6 It comes too late: that attempt is over.
            Phase::Idle | Phase::Asking { .. } | Phase::BackingOff | Phase::Inside { .. } => {
                cx.send(from, Message::Release(ballot));
            }
        }
    }

    fn on_denied(&mut self, from: NodeId, ballot: Ballot, cx: &mut Context<'_, Voting>) {
        let is_ours = ballot == self.ballot();
        match &mut self.phase {
            Phase::Asking { denials, .. } if is_ours => {
                denials.insert(from);
                // LLCZ04:7 Those that are left are no majority.
                if self.coordinators.len() - denials.len() < self.majority {
                    self.fail(cx);
                }
            }
            // That attempt is over, or did without this vote: harmless.
            Phase::Idle | Phase::Asking { .. } | Phase::BackingOff | Phase::Inside { .. } => {}
        }
    }

    /// LLCZ04:7 The votes go back, and the process tries again after a random while.
    fn fail(&mut self, cx: &mut Context<'_, Voting>) {
        let Phase::Asking { votes, .. } = core::mem::replace(&mut self.phase, Phase::BackingOff) else {
            panic!("only an attempt can fail");
        };
        cx.multicast(votes.iter(), &Message::Release(self.ballot()));
        cx.cancel_timer(Timer::GiveUp);
        let longest = self.retry.end.saturating_mul(1 << self.failures.min(MOST_DOUBLINGS));
        self.failures = self.failures.saturating_add(1);
        cx.set_timer(Timer::Retry, self.retry.start..longest); // LLCZ04:8
    }

    /// LLCZ04:9
    fn on_release(&mut self, cx: &mut Context<'_, Voting>) {
        let Phase::Inside { votes } = core::mem::replace(&mut self.phase, Phase::Idle) else {
            panic!("only who is inside may leave");
        };
        cx.multicast(votes.iter(), &Message::Release(self.ballot()));
    }

    const fn ballot(&self) -> Ballot {
        Ballot { process: self.me, attempt: self.attempt }
    }
}

impl Coordinator {
    /// LLCZ04:3 One vote, for the first who asks.
    fn on_request(&mut self, ballot: Ballot, cx: &mut Context<'_, Voting>) {
        if self.vote.is_some() {
            return cx.send(ballot.process, Message::Denied(ballot));
        }
        self.vote = Some(ballot);
        cx.send(ballot.process, Message::Vote(ballot));
    }

    /// LLCZ04:10 A vote that it does not remember, or has given to another since, it forgot in a crash: nothing to take back.
    fn on_release(&mut self, ballot: Ballot) {
        self.vote.take_if(|vote| *vote == ballot);
    }
}

/// Attempts are only compared for being the same: number those of each process that are still spoken of from 0, in their
/// order. How often a process has failed only changes how long it waits, by chance.
fn renumber(nodes: &mut [Voting], messages: &mut [Message]) {
    let mut known: BTreeMap<NodeId, BTreeSet<u64>> = BTreeMap::new();
    ballots(nodes, messages, &mut |process, attempt| {
        known.entry(process).or_default().insert(*attempt);
    });
    ballots(nodes, messages, &mut |process, attempt| {
        *attempt = known[&process].range(..*attempt).count() as u64;
    });
    for node in nodes {
        if let Role::Process(process) = &mut node.0 {
            process.failures = 0;
        }
    }
}

/// Every attempt that is spoken of anywhere.
fn ballots(nodes: &mut [Voting], messages: &mut [Message], visit: &mut dyn FnMut(NodeId, &mut u64)) {
    for node in nodes {
        match &mut node.0 {
            Role::Process(process) => visit(process.me, &mut process.attempt),
            Role::Coordinator(coordinator) => {
                if let Some(ballot) = &mut coordinator.vote {
                    visit(ballot.process, &mut ballot.attempt);
                }
            }
        }
    }
    for message in messages {
        let (Message::Request(ballot) | Message::Vote(ballot) | Message::Denied(ballot) | Message::Release(ballot)) =
            message;
        visit(ballot.process, &mut ballot.attempt);
    }
}
