//! NxR: requests find their way as in Naimi–Trehel, the token as in Raymond [PO05]. Steps: docs/algorithms/nxr.md.
//!
//! A request follows the fathers to the first node that itself has requests pending, and makes its sender everybody's
//! father on the way. That node puts it in its own line, serves the line when the token comes, and lends the token to all
//! but the last: a lent token comes back.
//!
//!   n3 → n1  Request(n3)        n1 → n0  Request(n3)        n0 → n3  Token(none)   or, lent,  Token(n0)
//!
//! Cost: H(n−1) messages an entry with one request at a time, 2 to 3 when all compete, depending on the tree. Assumes: no
//! loss, no crash; FIFO not needed.
//! Departures, each an error of the printed code: a NIL that comes with the token is not put in line; whoever hands the
//! token over no longer has it in either branch; only the branch that does not want it back stops demanding it.
//! `tokenDemanded` is no variable: by Lemma 1 it says that the line is not empty. One request a node at a time.

use alloc::{collections::VecDeque, vec::Vec};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex, Output, TokenBased};
use crate::{Algorithm, Context, Invariant, Model, Never, NodeId, Protocol, Setting, Setup, SetupError, World};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// This node wants the token.
    Request(NodeId),
    /// The right to enter, to be returned to this node, or to nobody.
    Token(Option<NodeId>),
}

/// haveToken and usingToken in one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
enum Token {
    Away,
    Idle,
    InUse,
}

/// One node of NxR.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Nxr {
    me: NodeId,
    /// Where a request goes; ourselves if we have requests pending or the token.
    father: NodeId,
    token: Token,
    /// q: whom we owe the token, ourselves among them while we wait or are inside.
    line: VecDeque<NodeId>,
}

impl Algorithm for Nxr {
    const NAME: &'static str = "nxr";
    const COST: &'static str = "H(n−1) at low load, 2..3 saturated";
    const PAPER: &'static str = "PO05";
    const SETTINGS: &'static [Setting] = &[Setting::Topology];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        Ok(setup.ids().map(|me| Self::at_rest(me, setup.tree.father(me), setup.nodes())).collect())
    }
}

impl TokenBased for Nxr {
    fn at_rest(me: NodeId, father: NodeId, _nodes: usize) -> Self {
        let token = if me == father { Token::Idle } else { Token::Away };
        Self { me, father, token, line: VecDeque::new() }
    }

    fn is_token(message: &Message) -> bool {
        matches!(message, Message::Token(_))
    }

    fn names_only(message: &Message, nodes: usize) -> bool {
        match message {
            Message::Request(asker) => asker.index() < nodes,
            Message::Token(lender) => lender.is_none_or(|lender| lender.index() < nodes),
        }
    }
}

impl Protocol for Nxr {
    const MODEL: Model = Model::RELIABLE;
    const INVARIANT: Option<Invariant<Self>> = Some(lemmas);
    type Message = Message;
    type Timer = Never;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                assert!(!self.line.contains(&self.me), "one request at a time");
                self.line.push_back(self.me); // PO05:a1
                if self.token == Token::Idle {
                    self.enter(cx); // PO05:a2
                } else if self.line.len() == 1 {
                    cx.send(self.father, Message::Request(self.me)); // PO05:a3
                    self.father = self.me;
                }
            }
            Command::Release => {
                assert_eq!(self.token, Token::InUse, "only who is inside may leave");
                self.line.pop_front(); // PO05:d1
                self.token = Token::Idle;
                if !self.line.is_empty() {
                    self.hand_over(cx); // PO05:d2
                }
            }
        }
    }

    fn on_message(&mut self, _from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Request(asker) if asker == self.me => cx.violation("our own Request came back"),
            Message::Request(asker) => {
                if self.token == Token::Idle {
                    cx.send(asker, Message::Token(None)); // PO05:b1
                    self.token = Token::Away;
                    self.father = asker;
                } else if !self.line.is_empty() {
                    self.line.push_back(asker); // PO05:b2
                } else {
                    cx.send(self.father, Message::Request(asker)); // PO05:b3 to the old father
                    self.father = asker;
                }
            }
            Message::Token(_) if self.line.is_empty() || self.token != Token::Away => {
                cx.violation("a Token that nobody waits for");
            }
            Message::Token(lender) => {
                self.token = Token::Idle;
                self.line.extend(lender); // PO05:c1
                if self.line.front() == Some(&self.me) {
                    self.enter(cx); // PO05:c2
                } else {
                    self.hand_over(cx); // PO05:c3
                }
            }
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}

impl Nxr {
    fn enter(&mut self, cx: &mut Context<'_, Self>) {
        assert_eq!(self.line.front(), Some(&self.me), "only who is first in line may enter");
        self.token = Token::InUse;
        cx.output(Output::Entered);
    }

    /// PO05:c3, PO05:d2 The first in line gets the token: lent if others wait here, for good if it was the last.
    fn hand_over(&mut self, cx: &mut Context<'_, Self>) {
        let first = self.line.pop_front().expect("somebody is owed the token");
        self.token = Token::Away;
        if self.line.is_empty() {
            cx.send(first, Message::Token(None));
            self.father = first;
        } else {
            cx.send(first, Message::Token(Some(self.me)));
        }
    }

    fn is_root(&self) -> bool {
        !self.line.is_empty() || self.token != Token::Away
    }
}

/// The paper's lemmas 2 to 6 and theorems 1 and 2. Lemma 1 holds by construction.
fn lemmas(world: &World<'_, Nxr>) -> Result<(), &'static str> {
    let demanded = |node: NodeId| !world.nodes[node.index()].line.is_empty();
    let mut tokens = 0;
    for node in world.nodes {
        tokens += usize::from(node.token != Token::Away);
        if node.token == Token::Idle && !node.line.is_empty() {
            return Err("Lemma 2: a token at rest while requests are pending");
        }
        if node.token == Token::InUse && !node.line.contains(&node.me) {
            return Err("Lemma 4: inside without standing in the own line");
        }
        if !node.line.iter().all(|asker| demanded(*asker)) {
            return Err("Lemma 6: in line without a request pending");
        }
        if (node.father == node.me) != node.is_root() {
            return Err("Theorem 2: the roots are those with a request pending or the token");
        }
        let mut walk = core::iter::successors(Some(*node), |at| Some(world.nodes[at.father.index()]));
        if !walk.by_ref().take(world.nodes.len()).any(|at| at.father == at.me) {
            return Err("Theorem 2: the fathers form a cycle");
        }
    }
    for (_, to, message) in world.in_flight {
        let named = match message {
            Message::Request(asker) => Some(*asker),
            Message::Token(lender) => {
                tokens += 1;
                if !demanded(*to) {
                    return Err("Lemma 5: a token on its way to a node without a request pending");
                }
                *lender
            }
        };
        if named.is_some_and(|node| !demanded(node)) {
            return Err("Lemma 3: a message names a node without a request pending");
        }
    }
    if tokens == 1 { Ok(()) } else { Err("Theorem 1: not exactly one token") }
}
