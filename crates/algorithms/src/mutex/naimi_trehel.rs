//! Naimi–Trehel mutual exclusion by path reversal [NTA96]. Steps: docs/algorithms/naimi-trehel.md.
//!
//! A request follows the fathers to the node that was last to ask, and on its way makes its sender everybody's father.
//! The line is spread out: each node knows only who comes next after itself.
//!
//!   n3 → n1  Request(n3)        n1 → n0  Request(n3)        n0 → n3  Token   (at once, or on leaving)
//!
//! Cost: O(log n) messages an entry on average; H(n−1) with one request at a time. Assumes: no loss, no crash; FIFO not
//! needed. Departures: whether the token is here is not a variable of its own: it is with whoever is inside, and with the
//! root while that is idle.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex, TokenBased};
use crate::{Algorithm, Context, Model, Never, NodeId, Phase, Protocol, Setting, Setup, SetupError};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// This node wants the token.
    Request(NodeId),
    /// The right to enter.
    Token,
}

/// One node of the Naimi–Trehel algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct NaimiTrehel {
    me: NodeId,
    /// LAST: whom we believe to have asked last; ourselves if we did.
    father: NodeId,
    /// NEXT: to whom the token goes when we leave.
    next: Option<NodeId>,
    phase: Phase,
}

impl Algorithm for NaimiTrehel {
    const NAME: &'static str = "naimi-trehel";
    const COST: &'static str = "O(log n); H(n−1) at low load";
    const PAPER: &'static str = "NTA96";
    const SETTINGS: &'static [Setting] = &[Setting::Topology];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        Ok(setup.ids().map(|me| Self::at_rest(me, setup.tree.father(me), setup.nodes())).collect())
    }
}

impl TokenBased for NaimiTrehel {
    fn at_rest(me: NodeId, father: NodeId, _nodes: usize) -> Self {
        Self { me, father, next: None, phase: Phase::Idle }
    }

    fn is_token(message: &Message) -> bool {
        *message == Message::Token
    }

    fn names_only(message: &Message, nodes: usize) -> bool {
        match message {
            Message::Request(asker) => asker.index() < nodes,
            Message::Token => true,
        }
    }
}

impl Protocol for NaimiTrehel {
    const MODEL: Model = Model::RELIABLE;
    type Message = Message;
    type Timer = Never;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                self.phase.ask();
                if self.father == self.me {
                    self.phase.enter(cx); // NTA96:1 we were the last to ask and are done: the token is here
                } else {
                    cx.send(self.father, Message::Request(self.me)); // NTA96:2
                    self.father = self.me;
                }
            }
            Command::Release => {
                self.phase.leave();
                if let Some(next) = self.next.take() {
                    cx.send(next, Message::Token); // NTA96:6
                }
            }
        }
    }

    fn on_message(&mut self, _from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Request(asker) if asker == self.me => cx.violation("our own Request came back"),
            Message::Request(asker) => {
                if self.father != self.me {
                    cx.send(self.father, Message::Request(asker)); // NTA96:3 to the old father
                } else if self.phase == Phase::Idle {
                    cx.send(asker, Message::Token); // NTA96:4
                } else if self.next.is_some() {
                    return cx.violation("two nodes behind the last in line");
                } else {
                    self.next = Some(asker); // NTA96:4
                }
                self.father = asker;
            }
            Message::Token if self.phase == Phase::Waiting => self.phase.enter(cx), // NTA96:5
            Message::Token => cx.violation("a Token that nobody waits for"),
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}
