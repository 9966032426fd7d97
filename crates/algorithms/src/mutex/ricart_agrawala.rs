//! Ricart–Agrawala mutual exclusion [RA81], and the same with Lamport's clock in every message, as [SRS21] sets it as an
//! exercise. Steps: docs/algorithms/ricart-agrawala.md, docs/algorithms/ricart-agrawala-clock.md.
//!
//! A node asks all others and enters once every reply is in. Whoever has the earlier claim keeps its reply back until it
//! leaves; the replies kept back are the line.
//!
//!   n1 → n2  Request(clock)        n2 → n1  Reply   (at once, or on leaving)
//!
//! Cost: 2(n−1) messages an entry. Assumes: no loss, no crash; FIFO not needed.
//! Departures: "wait until" became an event: the last reply lets the node in. In `ricart-agrawala-clock` the clock also
//! counts receipts and internal events, and replies carry it.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex, Output};
use crate::{Algorithm, Canonical, Clock, Context, Model, Never, NodeId, NodeSet, Protocol, Setup, SetupError};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// May I come in? My claim is of this time.
    Request(Clock),
    /// As far as I am concerned, yes.
    Reply,
    /// The same, with the clock of its sending.
    ReplyAt(Clock),
}

/// Where this node stands: RELEASED, WANTED or HELD.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
enum Phase {
    Idle,
    Waiting {
        /// T: the time of the claim.
        clock: Clock,
        /// Whose reply has not come yet.
        missing: NodeSet,
    },
    Inside,
}

/// One node of the Ricart–Agrawala algorithm; whether the clock counts every event is part of the type.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RicartAgrawala<const EVERY_EVENT: bool = false> {
    me: NodeId,
    nodes: usize,
    /// The latest time seen in a claim; with `EVERY_EVENT`, logicalClock.
    clock: Clock,
    phase: Phase,
    /// To whom a reply is kept back.
    deferred: NodeSet,
}

/// With Lamport's clock in every message.
pub type RicartAgrawalaClock = RicartAgrawala<true>;

impl<const EVERY_EVENT: bool> Algorithm for RicartAgrawala<EVERY_EVENT> {
    const NAME: &'static str = if EVERY_EVENT { "ricart-agrawala-clock" } else { "ricart-agrawala" };
    const COST: &'static str = "2(n−1)";
    const PAPER: &'static str = if EVERY_EVENT { "SRS21" } else { "RA81" };

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let nodes = setup.each_knows_all()?;
        let node = |me| Self { me, nodes, clock: 0, phase: Phase::Idle, deferred: NodeSet::new() };
        Ok(setup.ids().map(node).collect())
    }
}

impl<const EVERY_EVENT: bool> Protocol for RicartAgrawala<EVERY_EVENT> {
    const MODEL: Model = Model::RELIABLE;
    const CANONICAL: Option<Canonical<Self>> = Some(shift_clocks);
    type Message = Message;
    type Timer = Never;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                assert_eq!(self.phase, Phase::Idle, "one request at a time");
                self.clock += 1; // RA81:1 once a request, not once a copy
                let missing = NodeSet::others(self.nodes, self.me);
                cx.multicast(missing.iter(), &Message::Request(self.clock));
                self.phase = Phase::Waiting { clock: self.clock, missing };
                self.enter_if_unopposed(cx);
            }
            Command::Release => {
                assert_eq!(self.phase, Phase::Inside, "only who is inside may leave");
                self.phase = Phase::Idle;
                let deferred = core::mem::take(&mut self.deferred); // RA81:5
                cx.multicast(deferred.iter(), &self.reply());
            }
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Request(theirs) => {
                self.heard(theirs);
                if self.comes_before(theirs, from) {
                    self.deferred.insert(from); // RA81:3
                } else {
                    cx.send(from, self.reply());
                }
            }
            Message::Reply => self.on_reply(from, cx),
            Message::ReplyAt(theirs) => {
                self.heard(theirs);
                self.on_reply(from, cx);
            }
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }

    fn on_internal_event(&mut self) {
        if EVERY_EVENT {
            self.clock += 1; // SRS21:1
        }
    }
}

impl<const EVERY_EVENT: bool> RicartAgrawala<EVERY_EVENT> {
    /// RA81:2 A later claim of ours will come after all we have heard of. SRS21:2 A receipt is an event, too.
    fn heard(&mut self, theirs: Clock) {
        self.clock = self.clock.max(theirs) + Clock::from(EVERY_EVENT);
    }

    /// SRS21:3 A reply carries the clock as it is: sending it is no event.
    fn reply(&self) -> Message {
        if EVERY_EVENT { Message::ReplyAt(self.clock) } else { Message::Reply }
    }

    fn on_reply(&mut self, from: NodeId, cx: &mut Context<'_, Self>) {
        match &mut self.phase {
            Phase::Waiting { missing, .. } if missing.contains(from) => {
                missing.remove(from);
                self.enter_if_unopposed(cx);
            }
            Phase::Idle | Phase::Waiting { .. } | Phase::Inside => cx.violation("a Reply that nobody waits for"),
        }
    }

    /// RA81:4 Everybody has replied.
    fn enter_if_unopposed(&mut self, cx: &mut Context<'_, Self>) {
        if matches!(&self.phase, Phase::Waiting { missing, .. } if missing.is_empty()) {
            self.phase = Phase::Inside;
            cx.output(Output::Entered);
        }
    }

    /// We are inside, or waiting with the smaller (clock, id).
    fn comes_before(&self, clock: Clock, node: NodeId) -> bool {
        match self.phase {
            Phase::Idle => false,
            Phase::Waiting { clock: ours, .. } => (ours, self.me) < (clock, node),
            Phase::Inside => true,
        }
    }
}

/// Only differences between clocks matter: move the smallest to zero.
fn shift_clocks<const EVERY_EVENT: bool>(nodes: &mut [RicartAgrawala<EVERY_EVENT>], messages: &mut [Message]) {
    let of_message = |message: &Message| match message {
        Message::Request(clock) | Message::ReplyAt(clock) => Some(*clock),
        Message::Reply => None,
    };
    let of_node = |node: &RicartAgrawala<EVERY_EVENT>| match node.phase {
        Phase::Waiting { clock, .. } => clock, // never later than the node's own clock
        Phase::Idle | Phase::Inside => node.clock,
    };
    let least = messages.iter().filter_map(of_message).chain(nodes.iter().map(of_node)).min().unwrap_or(0);
    for node in nodes {
        node.clock -= least;
        if let Phase::Waiting { clock, .. } = &mut node.phase {
            *clock -= least;
        }
    }
    for message in messages {
        if let Message::Request(clock) | Message::ReplyAt(clock) = message {
            *clock -= least;
        }
    }
}
