//! Ricart–Agrawala mutual exclusion [RA81]. Steps: docs/algorithms/ricart-agrawala.md.
//!
//! A node asks all others and enters once every reply is in. Whoever has the earlier claim keeps its reply back until it
//! leaves; the replies kept back are the line.
//!
//!   n1 → n2  Request(clock)        n2 → n1  Reply(clock)   (at once, or on leaving)
//!
//! Cost: 2(n−1) messages an entry. Assumes: no loss, no crash; FIFO not needed.
//! Departures: the clock is Lamport's, as in [SRS21], and replies carry it too; RA81 counts only requests. "Wait until"
//! became an event: the last reply lets the node in.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Output};
use crate::{Algorithm, Canonical, Clock, Context, Model, Never, NodeId, NodeSet, Protocol, Setup, SetupError};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// May I come in? My claim is of this time.
    Request(Clock),
    /// As far as I am concerned, yes. It carries the clock of its sending.
    Reply(Clock),
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

/// One node of the Ricart–Agrawala algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RicartAgrawala {
    me: NodeId,
    nodes: usize,
    clock: Clock,
    phase: Phase,
    /// To whom a reply is kept back.
    deferred: NodeSet,
}

impl Algorithm for RicartAgrawala {
    const NAME: &'static str = "ricart-agrawala";
    const COST: &'static str = "2(n−1)";
    const PAPER: &'static str = "RA81";

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let nodes = setup.nodes();
        let node = |me| Self { me, nodes, clock: 0, phase: Phase::Idle, deferred: NodeSet::new() };
        Ok(setup.ids().map(node).collect())
    }
}

impl Protocol for RicartAgrawala {
    const MODEL: Model = Model::RELIABLE;
    const CANONICAL: Option<Canonical<Self>> = Some(shift_clocks);
    type Message = Message;
    type Timer = Never;
    type Command = Command;
    type Output = Output;

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
                cx.multicast(deferred.iter(), &Message::Reply(self.clock));
            }
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        let (Message::Request(clock) | Message::Reply(clock)) = message;
        self.clock = self.clock.max(clock) + 1; // RA81:2
        match message {
            // RA81:3 We are inside, or waiting with the smaller (clock, id): the reply has to wait.
            Message::Request(theirs) if self.comes_before(theirs, from) => {
                self.deferred.insert(from);
            }
            Message::Request(_) => cx.send(from, Message::Reply(self.clock)),
            Message::Reply(_) => self.on_reply(from, cx),
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }

    fn on_internal_event(&mut self) {
        self.clock += 1;
    }
}

impl RicartAgrawala {
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

    fn comes_before(&self, clock: Clock, node: NodeId) -> bool {
        match self.phase {
            Phase::Idle => false,
            Phase::Waiting { clock: ours, .. } => (ours, self.me) < (clock, node),
            Phase::Inside => true,
        }
    }
}

/// Only differences between clocks matter: move the smallest to zero.
fn shift_clocks(nodes: &mut [RicartAgrawala], messages: &mut [Message]) {
    let of_message = |message: &Message| match message {
        Message::Request(clock) | Message::Reply(clock) => *clock,
    };
    let of_node = |node: &RicartAgrawala| match node.phase {
        Phase::Waiting { clock, .. } => clock, // never later than the node's own clock
        Phase::Idle | Phase::Inside => node.clock,
    };
    let least = messages.iter().map(of_message).chain(nodes.iter().map(of_node)).min().unwrap_or(0);
    for node in nodes {
        node.clock -= least;
        if let Phase::Waiting { clock, .. } = &mut node.phase {
            *clock -= least;
        }
    }
    for message in messages {
        let (Message::Request(clock) | Message::Reply(clock)) = message;
        *clock -= least;
    }
}
