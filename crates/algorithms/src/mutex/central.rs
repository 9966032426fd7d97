//! A central coordinator that queues [TS07]. Steps: docs/algorithms/central.md.
//!
//! One node keeps the line. Whoever wants in asks it, enters when it grants, and tells it on leaving.
//!
//!   n1 → n0  Request        n0 → n1  Grant   (at once, or when n1's turn comes)        n1 → n0  Release
//!
//! Cost: 3 messages an entry, none for the coordinator's own. Assumes: no loss, no crash; FIFO not needed.
//! Departures: none; the lecture leaves open where the coordinator's own requests go, here into the same line.

use alloc::{collections::VecDeque, vec::Vec};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex};
use crate::{Algorithm, Context, Model, Never, NodeId, Phase, Protocol, Setup, SetupError};

/// What clients and coordinator say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// Put me in the line.
    Request,
    /// It is your turn.
    Grant,
    /// My turn is over.
    Release,
}

/// One node of a system with a queueing coordinator.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Central {
    coordinator: NodeId,
    phase: Phase,
    /// At the coordinator: who is inside or about to be, then who waits. Elsewhere empty.
    line: VecDeque<NodeId>,
}

impl Algorithm for Central {
    const NAME: &'static str = "central";
    const COST: &'static str = "3(n−1)/n";
    const PAPER: &'static str = "TS07";

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let node = Self { coordinator: setup.tree.root(), phase: Phase::Idle, line: VecDeque::new() };
        Ok(setup.ids().map(|_| node.clone()).collect())
    }
}

impl Protocol for Central {
    const MODEL: Model = Model::RELIABLE;
    type Message = Message;
    type Timer = Never;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                self.phase.ask();
                cx.send(self.coordinator, Message::Request); // TS07:1
            }
            Command::Release => {
                self.phase.leave();
                cx.send(self.coordinator, Message::Release); // TS07:4
            }
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Request => {
                self.line.push_back(from); // TS07:2
                if self.line.len() == 1 {
                    cx.send(from, Message::Grant);
                }
            }
            Message::Grant if self.phase == Phase::Waiting => self.phase.enter(cx), // TS07:3
            Message::Grant => cx.violation("Grant with no request pending"),
            Message::Release if self.line.front() == Some(&from) => {
                self.line.pop_front(); // TS07:5
                if let Some(&next) = self.line.front() {
                    cx.send(next, Message::Grant);
                }
            }
            Message::Release => cx.violation("Release by a node whose turn it is not"),
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}
