//! A token that travels around a ring [TS07]. Steps: docs/algorithms/token-ring.md.
//!
//! Whoever receives the token enters if it wants to, and hands the token to its neighbour.
//!
//!   n0 → n1  Token        n1 → n2  Token   (at once, or on leaving)        n2 → n0  Token
//!
//! Cost: from 1 message an entry, when all want in, to any number, when nobody does. Assumes: no loss, no crash; FIFO
//! not needed. Departures: a ring of one keeps its token instead of sending it to itself for ever.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex};
use crate::{Algorithm, Context, Model, Never, NodeId, Phase, Protocol, Setup, SetupError};

/// What neighbours say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// The right to enter.
    Token,
}

/// One node of a token ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct TokenRing {
    me: NodeId,
    successor: NodeId,
    phase: Phase,
    token: bool,
}

impl Algorithm for TokenRing {
    const NAME: &'static str = "token-ring";
    const COST: &'static str = "1..∞";
    const PAPER: &'static str = "TS07";

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let successor = |me: NodeId| NodeId::from_index((me.index() + 1) % setup.nodes());
        let node = |me| Self { me, successor: successor(me), phase: Phase::Idle, token: me == setup.tree.root() };
        Ok(setup.ids().map(node).collect())
    }
}

impl Protocol for TokenRing {
    const MODEL: Model = Model::RELIABLE;
    type Message = Message;
    type Timer = Never;
    type Family = Mutex;

    fn on_start(&mut self, cx: &mut Context<'_, Self>) {
        if self.token {
            self.pass_on(cx); // TS07:1
        }
    }

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                self.phase.ask();
                if self.token {
                    self.phase.enter(cx);
                }
            }
            Command::Release => {
                self.phase.leave();
                self.pass_on(cx); // TS07:3
            }
        }
    }

    fn on_message(&mut self, _from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Token if self.token => cx.violation("a second token"),
            Message::Token => {
                self.token = true;
                if self.phase == Phase::Waiting {
                    self.phase.enter(cx); // TS07:2
                } else {
                    self.pass_on(cx); // TS07:3
                }
            }
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}

impl TokenRing {
    fn pass_on(&mut self, cx: &mut Context<'_, Self>) {
        if self.successor != self.me {
            self.token = false;
            cx.send(self.successor, Message::Token);
        }
    }
}
