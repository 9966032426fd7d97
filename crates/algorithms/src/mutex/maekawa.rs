//! Maekawa's mutual exclusion by quorums [M85], as corrected by [S87]. Steps: docs/algorithms/maekawa.md.
//!
//! A node needs the lock of every member of its quorum, and any two quorums meet. A member gives its lock to one node at
//! a time; when an earlier claim comes, it asks the lock back, and whoever cannot have all locks now gives it.
//!
//!   n1 → n2  Request(clock)        n2 → n1  Locked, or Failed: an earlier claim has the lock or waits for it
//!   n2 → n3  Inquire               n3 → n2  Relinquish   (if some other lock has failed n3)
//!   n1 → n2  Release
//!
//! Cost: from 3(k−1) to 5(k−1) messages an entry and more, k the size of a quorum. Assumes: no loss, no crash, **FIFO**.
//! Departures: Sanders' correction: whoever waited first in line and is overtaken by an earlier claim is told Failed.
//! A node that is a member of its own quorum asks itself, without a message.

use alloc::{collections::BTreeSet, vec::Vec};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex, Output};
use crate::{
    Algorithm, Canonical, Clock, Context, Model, Never, NodeId, NodeSet, Protocol, Setting, Setup, SetupError,
};

/// What a node and the members of its quorum say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// Give me your lock; my claim is of this time.
    Request(Clock),
    /// You have my lock.
    Locked,
    /// An earlier claim comes first.
    Failed,
    /// An earlier claim came: can you do without my lock?
    Inquire,
    /// Take your lock back, and give it to me again when my turn comes.
    Relinquish,
    /// I am done with your lock.
    Release,
}

/// A claim: earlier ones are smaller.
type Claim = (Clock, NodeId);

/// Where this node stands.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
enum Phase {
    Idle,
    Waiting(Locks),
    Inside,
}

/// What a waiting node knows of the members of its quorum.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
struct Locks {
    /// Who has given us its lock.
    locked: NodeSet,
    /// Who has told us that an earlier claim comes first, or got its lock back from us.
    failed: NodeSet,
    /// Who has asked for its lock back and had no answer yet.
    inquired: NodeSet,
}

/// A node as a member of quorums: its one lock, and who waits for it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
struct Member {
    lock: Option<Claim>,
    /// Whether we have asked the lock back from the one who has it.
    inquiring: bool,
    line: BTreeSet<Claim>,
}

/// One node of Maekawa's algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Maekawa {
    /// S_i
    quorum: NodeSet,
    clock: Clock,
    phase: Phase,
    member: Member,
}

impl Algorithm for Maekawa {
    const NAME: &'static str = "maekawa";
    const COST: &'static str = "3(k−1)..5(k−1), k ≈ 2√n (grid) or √n (plane)";
    const PAPER: &'static str = "M85";
    const SETTINGS: &'static [Setting] = &[Setting::Quorum];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let node = |quorum| Self { quorum, clock: 0, phase: Phase::Idle, member: Member::default() };
        Ok(setup.quorum.sets(setup.nodes())?.into_iter().map(node).collect())
    }
}

impl Protocol for Maekawa {
    const MODEL: Model = Model::RELIABLE_FIFO;
    const CANONICAL: Option<Canonical<Self>> = Some(shift_clocks);
    type Message = Message;
    type Timer = Never;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                assert_eq!(self.phase, Phase::Idle, "one request at a time");
                self.clock += 1; // M85:1
                self.phase = Phase::Waiting(Locks::default());
                cx.multicast(self.quorum.iter(), &Message::Request(self.clock));
            }
            Command::Release => {
                assert_eq!(self.phase, Phase::Inside, "only who is inside may leave");
                self.phase = Phase::Idle;
                cx.multicast(self.quorum.iter(), &Message::Release); // M85:7
            }
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Request(clock) => {
                self.clock = self.clock.max(clock);
                self.member.on_request((clock, from), cx);
            }
            Message::Locked => self.on_locked(from, cx),
            Message::Failed => self.on_failed(from, cx),
            Message::Inquire => self.on_inquire(from, cx),
            Message::Relinquish => self.member.on_relinquish(from, cx),
            Message::Release => self.member.on_release(from, cx),
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}

impl Maekawa {
    /// M85:4 With the locks of the whole quorum the node enters.
    fn on_locked(&mut self, from: NodeId, cx: &mut Context<'_, Self>) {
        let Phase::Waiting(locks) = &mut self.phase else {
            return cx.violation("Locked with no request pending");
        };
        locks.failed.remove(from);
        locks.locked.insert(from);
        if locks.locked == self.quorum {
            // Inquiries without an answer are answered by the Release.
            self.phase = Phase::Inside;
            cx.output(Output::Entered);
        }
    }

    /// M85:5 We cannot have all locks now: those that were asked back go back.
    fn on_failed(&mut self, from: NodeId, cx: &mut Context<'_, Self>) {
        let Phase::Waiting(locks) = &mut self.phase else {
            return cx.violation("Failed with no request pending");
        };
        locks.failed.insert(from);
        for member in core::mem::take(&mut locks.inquired).iter() {
            locks.give_back(member, cx);
        }
    }

    /// M85:6 Whether the lock goes back depends on whether another one has failed us; if we don't know yet, we wait.
    fn on_inquire(&mut self, from: NodeId, cx: &mut Context<'_, Self>) {
        match &mut self.phase {
            Phase::Waiting(locks) if locks.locked.contains(from) => {
                if locks.failed.is_empty() {
                    locks.inquired.insert(from);
                } else {
                    locks.give_back(from, cx);
                }
            }
            // It crossed our Release of an earlier request, or the Release to come answers it: harmless.
            Phase::Idle | Phase::Waiting(_) | Phase::Inside => {}
        }
    }
}

impl Locks {
    fn give_back(&mut self, member: NodeId, cx: &mut Context<'_, Maekawa>) {
        self.locked.remove(member);
        self.failed.insert(member);
        cx.send(member, Message::Relinquish);
    }
}

impl Member {
    /// M85:2 A free lock is given. Otherwise the claim stands in line, and is told so unless it comes before all others.
    fn on_request(&mut self, claim: Claim, cx: &mut Context<'_, Maekawa>) {
        let Some(lock) = self.lock else {
            self.lock = Some(claim);
            return cx.send(claim.1, Message::Locked);
        };
        let first = self.line.first().copied();
        self.line.insert(claim);
        if claim > lock || first.is_some_and(|first| claim > first) {
            return cx.send(claim.1, Message::Failed);
        }
        // S87:1 The one who was first in line and came before the lock has not been told yet.
        if let Some(first) = first.filter(|first| *first < lock) {
            cx.send(first.1, Message::Failed);
        }
        // M85:3
        if !self.inquiring {
            self.inquiring = true;
            cx.send(lock.1, Message::Inquire);
        }
    }

    /// M85:6 The lock came back before its time: its claim stands in line again.
    fn on_relinquish(&mut self, from: NodeId, cx: &mut Context<'_, Maekawa>) {
        match self.lock.filter(|lock| lock.1 == from && self.inquiring) {
            Some(lock) => {
                self.line.insert(lock);
                self.give_to_first(cx);
            }
            None => cx.violation("Relinquish of a lock that was not asked back"),
        }
    }

    /// M85:8 The lock is free.
    fn on_release(&mut self, from: NodeId, cx: &mut Context<'_, Maekawa>) {
        if self.lock.is_some_and(|lock| lock.1 == from) {
            self.give_to_first(cx);
        } else {
            cx.violation("Release of a lock that the node does not have");
        }
    }

    fn give_to_first(&mut self, cx: &mut Context<'_, Maekawa>) {
        self.inquiring = false;
        self.lock = self.line.pop_first();
        if let Some((_, node)) = self.lock {
            cx.send(node, Message::Locked);
        }
    }
}

/// Only differences between clocks matter: move the smallest to zero.
fn shift_clocks(nodes: &mut [Maekawa], messages: &mut [Message]) {
    let claims = nodes.iter().flat_map(|node| node.member.line.iter().chain(&node.member.lock).map(|claim| claim.0));
    let requests = messages.iter().filter_map(|message| match message {
        Message::Request(clock) => Some(*clock),
        Message::Locked | Message::Failed | Message::Inquire | Message::Relinquish | Message::Release => None,
    });
    let least = claims.chain(requests).chain(nodes.iter().map(|node| node.clock)).min().unwrap_or(0);
    for node in nodes {
        node.clock -= least;
        node.member.line = node.member.line.iter().map(|(clock, asker)| (clock - least, *asker)).collect();
        if let Some((clock, _)) = &mut node.member.lock {
            *clock -= least;
        }
    }
    for message in messages {
        if let Message::Request(clock) = message {
            *clock -= least;
        }
    }
}
