//! A central coordinator that turns away whom it cannot admit [TS07]. Steps: docs/algorithms/central-denying.md.
//!
//! Like `central`, but the coordinator keeps no line: it answers at once, and whoever is denied asks again later.
//!
//!   n1 → n0  Request        n0 → n1  Grant, or Denied and n1 asks again after a while        n1 → n0  Release
//!
//! Cost: 3 messages an entry and 2 for every denial. Assumes: no loss, no crash; FIFO not needed. Nobody is promised a
//! turn: under constant competition a node may be denied for ever.
//! Departures: the lecture does not say when to ask again; here after a random time within a given range.

use alloc::vec::Vec;
use core::{ops::Range, time::Duration};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex};
use crate::{Algorithm, Context, Model, NodeId, Phase, Protocol, Setup, SetupError};

/// What clients and coordinator say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// May I come in?
    Request,
    /// Yes.
    Grant,
    /// No: somebody is inside.
    Denied,
    /// I have left.
    Release,
}

/// What a node wants to be woken for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// It was denied a while ago and may ask again.
    Retry,
}

/// One node of a system with a denying coordinator.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct CentralDenying {
    coordinator: NodeId,
    retry: Range<Duration>,
    phase: Phase,
    /// At the coordinator: who is inside or about to be. Elsewhere nobody.
    admitted: Option<NodeId>,
}

impl Algorithm for CentralDenying {
    const NAME: &'static str = "central-denying";
    const COST: &'static str = "(3+2d)(n−1)/n, d denials an entry";
    const PAPER: &'static str = "TS07";

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let (coordinator, retry) = (setup.tree.root(), setup.retry.clone());
        let node = Self { coordinator, retry, phase: Phase::Idle, admitted: None };
        Ok(setup.ids().map(|_| node.clone()).collect())
    }
}

impl Protocol for CentralDenying {
    const MODEL: Model = Model::RELIABLE;
    type Message = Message;
    type Timer = Timer;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                self.phase.ask();
                cx.send(self.coordinator, Message::Request); // TS07:1
            }
            Command::Release => {
                self.phase.leave();
                cx.send(self.coordinator, Message::Release); // TS07:5
            }
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            // TS07:2 The Release of the one inside may still be on its way, overtaken by its next Request: denied too.
            Message::Request if self.admitted.is_some() => cx.send(from, Message::Denied),
            Message::Request => {
                self.admitted = Some(from);
                cx.send(from, Message::Grant);
            }
            Message::Grant if self.phase == Phase::Waiting => self.phase.enter(cx), // TS07:3
            Message::Denied if self.phase == Phase::Waiting => cx.set_timer(Timer::Retry, self.retry.clone()), // TS07:4
            Message::Grant | Message::Denied => cx.violation("an answer with no request pending"),
            Message::Release if self.admitted == Some(from) => self.admitted = None, // TS07:6
            Message::Release => cx.violation("Release by a node that was not admitted"),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Retry => cx.send(self.coordinator, Message::Request), // TS07:4
        }
    }
}
