//! Lamport's mutual exclusion [L78]. Steps: docs/algorithms/lamport.md.
//!
//! Every node keeps the same line, ordered by logical time. A node tells all others that it asks and that it leaves, and
//! enters once it is first in its own copy of the line and has heard from all others since.
//!
//!   n1 → n2  Request(clock)        n2 → n1  Reply        n1 → n2  Release
//!
//! Cost: 3(n−1) messages an entry. Assumes: no loss, no crash, **FIFO**: a Reply that overtakes an earlier Request of
//! its sender would let two nodes in.
//! Departures: only requests carry the clock, and only they move it. The paper lets any later message stand for the
//! reply; then replies need a clock too, or a late one is taken for the answer to the next request. Here only replies count.

use alloc::{collections::BTreeSet, vec::Vec};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex, Output};
use crate::{Algorithm, Canonical, Clock, Context, Model, Never, NodeId, NodeSet, Protocol, Setup, SetupError};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// Put me in the line, at this time.
    Request(Clock),
    /// I have seen your request.
    Reply,
    /// Take me out of the line.
    Release,
}

/// Where this node stands.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
enum Phase {
    Idle,
    Waiting {
        /// T_m: the time of the request.
        clock: Clock,
        /// Whose reply has not come yet.
        silent: NodeSet,
    },
    Inside,
}

/// One node of Lamport's algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Lamport {
    me: NodeId,
    nodes: usize,
    /// The latest time seen in a request.
    clock: Clock,
    phase: Phase,
    /// The request queue, in the total order of requests.
    line: BTreeSet<(Clock, NodeId)>,
}

impl Algorithm for Lamport {
    const NAME: &'static str = "lamport";
    const COST: &'static str = "3(n−1)";
    const PAPER: &'static str = "L78";

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let nodes = setup.each_knows_all()?;
        let node = |me| Self { me, nodes, clock: 0, phase: Phase::Idle, line: BTreeSet::new() };
        Ok(setup.ids().map(node).collect())
    }
}

impl Protocol for Lamport {
    const MODEL: Model = Model::RELIABLE_FIFO;
    const CANONICAL: Option<Canonical<Self>> = Some(shift_clocks);
    type Message = Message;
    type Timer = Never;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                assert_eq!(self.phase, Phase::Idle, "one request at a time");
                self.clock += 1; // L78:1
                self.line.insert((self.clock, self.me));
                self.phase = Phase::Waiting { clock: self.clock, silent: NodeSet::others(self.nodes, self.me) };
                self.tell_all(&Message::Request(self.clock), cx);
                self.enter_if_first(cx);
            }
            Command::Release => {
                assert_eq!(self.phase, Phase::Inside, "only who is inside may leave");
                self.phase = Phase::Idle;
                self.forget(self.me); // L78:4
                self.tell_all(&Message::Release, cx);
            }
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Request(theirs) => {
                self.clock = self.clock.max(theirs); // L78:2
                self.line.insert((theirs, from));
                cx.send(from, Message::Reply);
            }
            Message::Reply => self.on_reply(from, cx),
            Message::Release => self.forget(from), // L78:5
        }
        self.enter_if_first(cx);
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}

impl Lamport {
    fn on_reply(&mut self, from: NodeId, cx: &mut Context<'_, Self>) {
        match &mut self.phase {
            Phase::Waiting { silent, .. } if silent.contains(from) => {
                silent.remove(from);
            }
            Phase::Idle | Phase::Waiting { .. } | Phase::Inside => cx.violation("a Reply that nobody waits for"),
        }
    }

    /// L78:3 First in line, and nobody can come before us any more.
    fn enter_if_first(&mut self, cx: &mut Context<'_, Self>) {
        if let Phase::Waiting { clock, silent } = &self.phase
            && silent.is_empty()
            && self.line.first() == Some(&(*clock, self.me))
        {
            self.phase = Phase::Inside;
            cx.output(Output::Entered);
        }
    }

    fn tell_all(&self, message: &Message, cx: &mut Context<'_, Self>) {
        cx.multicast(NodeId::all(self.nodes).filter(|node| *node != self.me), message);
    }

    fn forget(&mut self, node: NodeId) {
        self.line.retain(|(_, asker)| *asker != node);
    }
}

/// Only differences between clocks matter: move the smallest to zero.
fn shift_clocks(nodes: &mut [Lamport], messages: &mut [Message]) {
    let in_lines = nodes.iter().flat_map(|node| node.line.iter().map(|(clock, _)| *clock));
    let sent = messages.iter().filter_map(|message| match message {
        Message::Request(clock) => Some(*clock),
        Message::Reply | Message::Release => None,
    });
    let least = in_lines.chain(sent).chain(nodes.iter().map(|node| node.clock)).min().unwrap_or(0);
    for node in nodes {
        node.clock -= least;
        node.line = node.line.iter().map(|(clock, asker)| (clock - least, *asker)).collect();
        if let Phase::Waiting { clock, .. } = &mut node.phase {
            *clock -= least;
        }
    }
    for message in messages {
        if let Message::Request(clock) = message {
            *clock -= least;
        }
    }
}
