//! Voting by coordinators that may forget [LLCZ04], as [TS07] teaches it. Steps: docs/algorithms/voting.md.
//!
//! A resource has n replicas, each with a coordinator that has one vote. A process asks all of them and enters with m > n/2
//! votes. A coordinator that has given its vote away says so at once; who cannot reach m any more gives its votes back, and
//! tries again after a random while. A coordinator that crashes is back soon and has forgotten to whom it gave its vote:
//! that may let a second process in, but only if 2m−n of the m coordinators forget while the first is inside.
//!
//!   n1 → n4  Request(ballot)        n4 → n1  Vote(ballot), or Denied and n1 may have to try again
//!   n1 → n4  Release(ballot)
//!
//! Cost: 3n messages for an entry at the first attempt. Assumes: no loss; no process crashes; FIFO not needed. Coordinators
//! may crash as long as m live. Nobody is promised a turn.
//! Departures: votes are numbered, so that a late Release takes nothing back that was given since; a coordinator that still
//! owes an answer is not asked again; the page says why, and lists the others.

mod ring;

use alloc::{
    borrow::ToOwned,
    collections::{BTreeMap, BTreeSet},
    format,
    vec::Vec,
};
use core::{fmt, ops::Range, time::Duration};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex, Output};
use crate::{Algorithm, Canonical, Context, Model, NodeId, NodeSet, Protocol, Setting, Setup, SetupError, Timing};

/// Whom a vote is for. `n1#2` is for the second request of n1's client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ballot {
    process: NodeId,
    /// Which of its client's requests.
    request: u64,
}

impl fmt::Debug for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.process, self.request)
    }
}

/// What processes and coordinators say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// Give me your vote.
    Request(Ballot),
    /// You have it.
    Vote(Ballot),
    /// I have given it away.
    Denied,
    /// Take it back.
    Release(Ballot),
}

/// What a process wants to be woken for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// It asked a while ago, and the answers that are still missing will not come.
    GiveUp,
    /// Its attempt failed a while ago, and it may try again.
    Retry,
}

/// Where a process stands.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
enum Phase {
    Idle,
    Asking {
        votes: Votes,
        denials: NodeSet,
    },
    /// Its attempt has failed, and it will try again.
    BackingOff,
    Inside {
        votes: Votes,
    },
}

/// The coordinators that have voted for a process, each with the ballot that it has in mind.
type Votes = BTreeMap<NodeId, Ballot>;

/// A process: it wants in now and then.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Process {
    /// For whom it asks.
    ballot: Ballot,
    coordinators: NodeSet,
    /// m
    majority: usize,
    retry: Range<Duration>,
    /// The back-off grows so often.
    most_failures: u32,
    patience: Duration,
    /// Those that were asked and have not answered, be it in this attempt or an earlier one.
    unanswered: NodeSet,
    /// How often in a row its attempts have failed; not counted beyond `most_failures`.
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

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
enum Role {
    Process(Process),
    Coordinator(Coordinator),
}

/// One node of a system that votes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Voting(Role);

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
    const COST: &'static str = "3r an attempt, r replicas";
    const PAPER: &'static str = "LLCZ04";
    const SETTINGS: &'static [Setting] = &[Setting::Replicas, Setting::Majority, Setting::Patience];

    /// The processes, then the coordinators.
    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        majority_of(setup.replicas, setup.majority)?;
        let (processes, replicas) = (setup.nodes(), setup.replicas);
        let process = |process| Process {
            ballot: Ballot { process, request: 0 },
            coordinators: NodeId::all(processes + replicas).skip(processes).collect(),
            majority: setup.majority,
            retry: setup.retry.clone(),
            // Long enough for all processes, one after the other.
            most_failures: processes.next_power_of_two().ilog2() + 1,
            patience: setup.patience,
            unanswered: NodeSet::new(),
            failures: 0,
            phase: Phase::Idle,
        };
        let mut nodes: Vec<Self> = setup.ids().map(|me| Self(Role::Process(process(me)))).collect();
        let coordinator = |replica| Self(Role::Coordinator(Coordinator { replica, vote: None }));
        nodes.extend(ring::tenants(replicas).into_iter().map(coordinator));
        Ok(nodes)
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
            (Role::Process(process), Message::Denied) => process.on_denied(from, cx),
            (Role::Coordinator(_), Message::Vote(_) | Message::Denied) => cx.violation("an answer to a coordinator"),
            (Role::Process(_), Message::Request(_) | Message::Release(_)) => {
                cx.violation("a process has no vote to give")
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        let Role::Process(process) = &mut self.0 else { panic!("only processes set timers") };
        match timer {
            Timer::GiveUp => {
                process.unanswered = NodeSet::new(); // LLCZ04:8
                process.fail(cx);
            }
            Timer::Retry => process.begin(cx), // LLCZ04:7
        }
    }
}

impl Process {
    fn on_request(&mut self, cx: &mut Context<'_, Voting>) {
        assert_eq!(self.phase, Phase::Idle, "one request at a time");
        self.ballot.request += 1;
        self.begin(cx);
    }

    /// LLCZ04:2 Every coordinator is asked, but for those that owe an answer already: that will do for this attempt.
    fn begin(&mut self, cx: &mut Context<'_, Voting>) {
        self.phase = Phase::Asking { votes: Votes::new(), denials: NodeSet::new() };
        for coordinator in self.coordinators.iter() {
            if self.unanswered.insert(coordinator) {
                cx.send(coordinator, Message::Request(self.ballot));
            }
        }
        cx.set_timer(Timer::GiveUp, self.patience..self.patience);
    }

    fn on_vote(&mut self, from: NodeId, ballot: Ballot, cx: &mut Context<'_, Voting>) {
        self.unanswered.remove(from);
        match &mut self.phase {
            Phase::Asking { votes, .. } => {
                votes.insert(from, ballot);
                if votes.len() >= self.majority {
                    self.phase = Phase::Inside { votes: core::mem::take(votes) }; // LLCZ04:4
                    self.failures = 0;
                    cx.cancel_timer(Timer::GiveUp);
                    cx.output(Output::Entered);
                }
            }
            // LLCZ04:5 More votes than needed: the more there are, the more must be forgotten before a second one gets in.
            Phase::Inside { votes } => {
                votes.insert(from, ballot);
            }
            Phase::Idle | Phase::BackingOff => cx.send(from, Message::Release(ballot)), // LLCZ04:6
        }
    }

    fn on_denied(&mut self, from: NodeId, cx: &mut Context<'_, Voting>) {
        self.unanswered.remove(from);
        match &mut self.phase {
            Phase::Asking { denials, .. } => {
                denials.insert(from);
                // LLCZ04:7 Those that are left are no majority.
                if self.coordinators.len() - denials.len() < self.majority {
                    self.fail(cx);
                }
            }
            // That attempt is over, or did without this vote: harmless.
            Phase::Idle | Phase::BackingOff | Phase::Inside { .. } => {}
        }
    }

    /// LLCZ04:7 The votes go back, and the process tries again after a random while.
    fn fail(&mut self, cx: &mut Context<'_, Voting>) {
        let Phase::Asking { votes, .. } = core::mem::replace(&mut self.phase, Phase::BackingOff) else {
            panic!("only an attempt can fail");
        };
        give_back(votes, cx);
        cx.cancel_timer(Timer::GiveUp);
        cx.set_timer(Timer::Retry, self.retry.start..self.retry.end.saturating_mul(1 << self.failures));
        self.failures = (self.failures + 1).min(self.most_failures);
    }

    /// LLCZ04:9
    fn on_release(&mut self, cx: &mut Context<'_, Voting>) {
        let Phase::Inside { votes } = core::mem::replace(&mut self.phase, Phase::Idle) else {
            panic!("only who is inside may leave");
        };
        give_back(votes, cx);
    }
}

fn give_back(votes: Votes, cx: &mut Context<'_, Voting>) {
    for (coordinator, ballot) in votes {
        cx.send(coordinator, Message::Release(ballot));
    }
}

impl Coordinator {
    /// LLCZ04:3 One vote, for the first who asks. Whoever has it is denied, too: it has given it back and tries again, and the
    /// Release is under way.
    fn on_request(&mut self, ballot: Ballot, cx: &mut Context<'_, Voting>) {
        if self.vote.is_some() {
            return cx.send(ballot.process, Message::Denied);
        }
        self.vote = Some(ballot);
        cx.send(ballot.process, Message::Vote(ballot));
    }

    /// LLCZ04:10 A vote that it knows nothing of, or has given to another since, it forgot in a crash: nothing to take back.
    fn on_release(&mut self, ballot: Ballot) {
        self.vote.take_if(|vote| *vote == ballot);
    }
}

/// Requests are only told apart: those of each process that are still spoken of are numbered from 0, in their order. How often
/// a process has failed only says how long it may wait, and the checker has it wait as short as it may anyhow.
fn renumber(nodes: &mut [Voting], messages: &mut [Message]) {
    let mut spoken_of: BTreeMap<NodeId, BTreeSet<u64>> = BTreeMap::new();
    for_each_ballot(nodes, messages, |ballot| {
        spoken_of.entry(ballot.process).or_default().insert(ballot.request);
    });
    for_each_ballot(nodes, messages, |ballot| {
        ballot.request = spoken_of[&ballot.process].range(..ballot.request).count() as u64;
    });
}

fn for_each_ballot(nodes: &mut [Voting], messages: &mut [Message], mut visit: impl FnMut(&mut Ballot)) {
    for node in nodes {
        match &mut node.0 {
            Role::Coordinator(coordinator) => coordinator.vote.iter_mut().for_each(&mut visit),
            Role::Process(process) => {
                process.failures = 0;
                visit(&mut process.ballot);
                if let Phase::Asking { votes, .. } | Phase::Inside { votes } = &mut process.phase {
                    votes.values_mut().for_each(&mut visit);
                }
            }
        }
    }
    for message in messages {
        match message {
            Message::Request(ballot) | Message::Vote(ballot) | Message::Release(ballot) => visit(ballot),
            Message::Denied => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_majority() {
        let refusal = |n, m| majority_of(n, m).expect_err("it is none").0;
        assert_eq!(refusal(32, 16), "16 of 32 votes are no majority, and two could have them; take at least 17");
        assert_eq!(refusal(5, 2), "2 of 5 votes are no majority, and two could have them; take at least 3");
        assert_eq!(refusal(5, 6), "a majority of 6 cannot be reached with 5 replicas; take at most 5");
        assert!(refusal(0, 0).contains("0 replicas") && refusal(1 << 20, 1 << 20).contains("too many"));
        for n in 1..=40 {
            assert!((n / 2 + 1..=n).all(|m| majority_of(n, m).is_ok()) && majority_of(n, n / 2).is_err());
        }
    }
}
