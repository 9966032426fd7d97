//! Suzuki–Kasami mutual exclusion [SK85]. Steps: docs/algorithms/suzuki-kasami.md.
//!
//! A token carries its line and, for each node, the number of its last entry. A node that wants in tells all others the
//! number of its request; whoever has the token and is done with it sends it to the next one whose request is new.
//!
//!   n1 → all  Request(number)        n0 → n1  Token(entries of each, line)   (at once, or on leaving)
//!
//! Cost: 0 messages an entry where the token is, n elsewhere. Assumes: no loss, no crash; FIFO not needed.
//! Departures: none.

use alloc::{boxed::Box, collections::VecDeque, vec, vec::Vec};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex, TokenBased};
use crate::{Algorithm, Context, Model, Never, NodeId, Phase, Protocol, Setup, SetupError};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// This is my request of this number.
    Request(u64),
    /// The right to enter.
    Token(Box<Token>),
}

/// The right to enter, and who is to have it next.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Token {
    /// LN: for each node, the number of its last request that was served.
    served: Vec<u64>,
    /// Q: who waits.
    line: VecDeque<NodeId>,
}

/// One node of the Suzuki–Kasami algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct SuzukiKasami {
    me: NodeId,
    phase: Phase,
    /// RN: for each node, the largest number of a request of it that was heard of.
    requested: Vec<u64>,
    token: Option<Box<Token>>,
}

impl Algorithm for SuzukiKasami {
    const NAME: &'static str = "suzuki-kasami";
    const COST: &'static str = "0 or n";
    const PAPER: &'static str = "SK85";

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let nodes = setup.each_knows_all()?;
        Ok(setup.ids().map(|me| Self::at_rest(me, setup.tree.root(), nodes)).collect())
    }
}

impl TokenBased for SuzukiKasami {
    fn at_rest(me: NodeId, father: NodeId, nodes: usize) -> Self {
        let zeros = vec![0; nodes];
        let token = || Box::new(Token { served: zeros.clone(), line: VecDeque::new() });
        Self { me, phase: Phase::Idle, token: (me == father).then(token), requested: zeros }
    }

    fn is_token(message: &Message) -> bool {
        matches!(message, Message::Token(_))
    }

    fn names_only(message: &Message, nodes: usize) -> bool {
        match message {
            Message::Request(_) => true,
            Message::Token(token) => token.line.iter().all(|node| node.index() < nodes),
        }
    }
}

impl Protocol for SuzukiKasami {
    const MODEL: Model = Model::RELIABLE;
    type Message = Message;
    type Timer = Never;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                self.phase.ask();
                self.requested[self.me.index()] += 1; // SK85:1
                if self.token.is_some() {
                    self.phase.enter(cx);
                } else {
                    let others = NodeId::all(self.requested.len()).filter(|node| *node != self.me);
                    cx.multicast(others, &Message::Request(self.requested[self.me.index()]));
                }
            }
            Command::Release => {
                self.phase.leave();
                self.line_up_new_requests();
                self.send_token_to_next(cx);
            }
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Request(number) => {
                // SK85:2 A number that is not new has been overtaken, or served meanwhile: harmless.
                let known = &mut self.requested[from.index()];
                *known = number.max(*known);
                if self.phase == Phase::Idle && self.token.is_some() {
                    self.line_up_new_requests();
                    self.send_token_to_next(cx);
                }
            }
            Message::Token(token) if token.served.len() != self.requested.len() => {
                cx.violation("a Token of a system of another size");
            }
            Message::Token(token) if self.phase == Phase::Waiting && self.token.is_none() => {
                self.token = Some(token);
                self.phase.enter(cx); // SK85:3
            }
            Message::Token(_) => cx.violation("a Token that nobody waits for"),
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}

impl SuzukiKasami {
    /// SK85:4 Our own request has been served; whose request is the next after its last one served stands in line.
    fn line_up_new_requests(&mut self) {
        let token = self.token.as_mut().expect("only the holder of the token lines others up");
        token.served[self.me.index()] = self.requested[self.me.index()];
        for node in NodeId::all(self.requested.len()) {
            let is_new = token.served[node.index()].checked_add(1) == Some(self.requested[node.index()]);
            if is_new && !token.line.contains(&node) {
                token.line.push_back(node);
            }
        }
    }

    /// SK85:5 The first in line gets the token; with nobody in line it stays here.
    fn send_token_to_next(&mut self, cx: &mut Context<'_, Self>) {
        if let Some(next) = self.token.as_mut().and_then(|token| token.line.pop_front()) {
            cx.send(next, Message::Token(self.token.take().expect("it had a line")));
        }
    }
}
