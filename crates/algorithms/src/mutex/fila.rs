//! Fila: the token carries its queue, and requests go through a home. Ours. Steps: docs/algorithms/fila.md.
//!
//! Every request goes to the lock's home, which passes it on to the node that asked last before it. That one takes note,
//! and appends the name to the queue on the token when it leaves. So the token goes from holder to holder in one hop, and
//! a node that neither holds nor waits knows nothing at all about the lock.
//!
//!   n1 → n0  Request(n1)        n0 → n2  Request(n1)   (n0 the home, n2 last in line)        n2 → n1  Token([])
//!
//! Cost: 0 messages where the token is; 2 if the home asks, has the token or waits; 3 otherwise; 2 when all compete.
//! Assumes: no loss, no crash; FIFO not needed.

use alloc::{collections::VecDeque, vec::Vec};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex};
use crate::{Algorithm, Context, Invariant, Model, Never, NodeId, Phase, Protocol, Setup, SetupError, World};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// This node wants the token.
    Request(NodeId),
    /// The right to enter, and who is to have it after the receiver.
    Token(VecDeque<NodeId>),
}

/// One node of fila.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Fila {
    me: NodeId,
    home: NodeId,
    phase: Phase,
    /// Q, if the token is here.
    token: Option<VecDeque<NodeId>>,
    /// Who asked after us and is not in Q yet.
    waiting: VecDeque<NodeId>,
    /// At the home, while it neither waits nor has the token: who is last in line.
    last: NodeId,
}

impl Algorithm for Fila {
    const NAME: &'static str = "fila";
    const COST: &'static str = "≤ 3, 2 saturated";
    const PAPER: &'static str = "ours";

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let home = setup.tree.root();
        let node = |me| Self {
            me,
            home,
            phase: Phase::Idle,
            token: (me == home).then(VecDeque::new),
            waiting: VecDeque::new(),
            last: home,
        };
        Ok(setup.ids().map(node).collect())
    }
}

impl Protocol for Fila {
    const MODEL: Model = Model::RELIABLE;
    const INVARIANT: Option<Invariant<Self>> = Some(invariant);
    type Message = Message;
    type Timer = Never;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                self.phase.ask(); // FILA:1
                if self.token.is_some() {
                    self.phase.enter(cx); // FILA:2
                } else if self.me == self.home {
                    cx.send(self.last, Message::Request(self.me)); // FILA:3
                } else {
                    cx.send(self.home, Message::Request(self.me)); // FILA:4
                }
            }
            Command::Release => {
                self.phase.leave(); // FILA:9
                let queue = self.token.as_mut().expect("whoever is inside has the token");
                queue.append(&mut self.waiting);
                if let Some(next) = queue.pop_front() {
                    self.last = queue.back().copied().unwrap_or(next); // FILA:11
                    self.give_up(next, cx);
                } // FILA:10 otherwise the token stays here
            }
        }
    }

    fn on_message(&mut self, _from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Request(asker) if asker == self.me => cx.violation("our own Request came back"),
            Message::Request(asker) => self.on_request(asker, cx),
            Message::Token(_) if self.phase != Phase::Waiting || self.token.is_some() => {
                cx.violation("a Token that nobody waits for");
            }
            Message::Token(queue) if self.me == self.home && !queue.is_empty() => {
                cx.violation("whoever asks after the home stands in the home's own list");
            }
            Message::Token(queue) => {
                self.token = Some(queue);
                self.phase.enter(cx); // FILA:8
            }
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}

impl Fila {
    fn on_request(&mut self, asker: NodeId, cx: &mut Context<'_, Self>) {
        if self.phase != Phase::Idle && self.me != self.home && !self.waiting.is_empty() {
            cx.violation("two nodes behind the last in line");
        } else if self.phase != Phase::Idle {
            self.waiting.push_back(asker); // FILA:6 a home that waits or is inside keeps all requests to itself
        } else if self.token.is_some() {
            self.last = asker; // FILA:5
            self.give_up(asker, cx);
        } else if self.me == self.home {
            cx.send(self.last, Message::Request(asker)); // FILA:7 to the old last
            self.last = asker;
        } else {
            cx.violation("a Request at a node that knows nothing of the lock");
        }
    }

    fn give_up(&mut self, next: NodeId, cx: &mut Context<'_, Self>) {
        let queue = self.token.take().expect("only the holder gives the token up");
        cx.send(next, Message::Token(queue));
        if self.me != self.home {
            self.last = self.home; // Nothing is remembered of the lock.
        }
    }
}

/// One token; and the home knows somebody who will pass it on.
fn invariant(world: &World<'_, Fila>) -> Result<(), &'static str> {
    let held = world.nodes.iter().filter(|node| node.token.is_some()).count();
    let moving = world.in_flight.iter().filter(|(_, _, message)| matches!(message, Message::Token(_))).count();
    if held + moving != 1 {
        return Err("not exactly one token");
    }
    let home = world.nodes[world.nodes[0].home.index()];
    let last = world.nodes[home.last.index()];
    if home.phase == Phase::Idle && home.token.is_none() && last.phase == Phase::Idle && last.token.is_none() {
        return Err("the one whom the home believes last in line neither waits nor has the token");
    }
    Ok(())
}
