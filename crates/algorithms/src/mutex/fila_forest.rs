//! Fila-forest: the token carries its queue, and requests find it by path reversal [CARVALHO].
//! Steps: docs/algorithms/fila-forest.md.
//!
//! Like `fila`, but without a home: a request follows the fathers to the first node that waits or has the token, and makes
//! its sender everybody's father on the way.
//!
//!   n3 → n1  Request(n3)        n1 → n0  Request(n3)        n0 → n3  Token([])
//!
//! Cost: H(n−1) messages an entry with one request at a time, 2 when all compete; one hop of the token an entry.
//! Assumes: no loss, no crash; FIFO not needed.

use alloc::{collections::VecDeque, vec, vec::Vec};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex, TokenBased};
use crate::{Algorithm, Context, Invariant, Model, Never, NodeId, Phase, Protocol, Setting, Setup, SetupError, World};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// This node wants the token.
    Request(NodeId),
    /// The right to enter, and who is to have it after the receiver.
    Token(VecDeque<NodeId>),
}

/// One node of fila-forest.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct FilaForest {
    me: NodeId,
    /// While we neither wait nor have the token: where a request goes.
    father: NodeId,
    phase: Phase,
    /// Q, if the token is here.
    token: Option<VecDeque<NodeId>>,
    /// Who asked after us and is not in Q yet.
    waiting: VecDeque<NodeId>,
}

impl Algorithm for FilaForest {
    const NAME: &'static str = "fila-forest";
    const COST: &'static str = "H(n−1) at low load, 2 saturated";
    const PAPER: &'static str = "CARVALHO";
    const SETTINGS: &'static [Setting] = &[Setting::Topology];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        Ok(setup.ids().map(|me| Self::at_rest(me, setup.tree.father(me), setup.nodes())).collect())
    }
}

impl TokenBased for FilaForest {
    fn at_rest(me: NodeId, father: NodeId, _nodes: usize) -> Self {
        let token = (me == father).then(VecDeque::new);
        Self { me, father, phase: Phase::Idle, token, waiting: VecDeque::new() }
    }

    fn is_token(message: &Message) -> bool {
        matches!(message, Message::Token(_))
    }

    fn names_only(message: &Message, nodes: usize) -> bool {
        match message {
            Message::Request(asker) => asker.index() < nodes,
            Message::Token(line) => line.iter().all(|node| node.index() < nodes),
        }
    }
}

impl Protocol for FilaForest {
    const MODEL: Model = Model::RELIABLE;
    const INVARIANT: Option<Invariant<Self>> = Some(invariant);
    type Message = Message;
    type Timer = Never;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                self.phase.ask(); // FOREST:1
                if self.token.is_some() {
                    self.phase.enter(cx);
                } else {
                    cx.send(self.father, Message::Request(self.me));
                    self.father = self.me;
                }
            }
            Command::Release => {
                self.phase.leave(); // FOREST:6
                let queue = self.token.as_mut().expect("whoever is inside has the token");
                queue.append(&mut self.waiting);
                if let Some(next) = queue.pop_front() {
                    let last = queue.back().copied().unwrap_or(next);
                    self.give_up(next, last, cx); // FOREST:7
                }
            }
        }
    }

    fn on_message(&mut self, _from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Request(asker) if asker == self.me => cx.violation("our own Request came back"),
            Message::Request(asker) => {
                if self.phase != Phase::Idle {
                    self.waiting.push_back(asker); // FOREST:3
                } else if self.token.is_some() {
                    self.give_up(asker, asker, cx); // FOREST:2
                } else {
                    cx.send(self.father, Message::Request(asker)); // FOREST:4 to the old father
                    self.father = asker;
                }
            }
            Message::Token(queue) if self.phase == Phase::Waiting && self.token.is_none() => {
                self.token = Some(queue);
                self.phase.enter(cx); // FOREST:5
            }
            Message::Token(_) => cx.violation("a Token that nobody waits for"),
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}

impl FilaForest {
    fn give_up(&mut self, next: NodeId, father: NodeId, cx: &mut Context<'_, Self>) {
        let queue = self.token.take().expect("only the holder gives the token up");
        cx.send(next, Message::Token(queue));
        self.father = father;
    }
}

/// Whom each node depends on is a tree: its father while it neither waits nor has the token; whoever has it in its list;
/// whoever its request is on the way to; and the root for those that have the token, are about to, or stand in its queue.
fn invariant(world: &World<'_, FilaForest>) -> Result<(), &'static str> {
    let mut tokens = 0;
    let mut depends_on: Vec<Option<NodeId>> = vec![None; world.nodes.len()];
    let mut at_root: Vec<NodeId> = Vec::new();
    for node in world.nodes {
        if node.phase == Phase::Idle {
            depends_on[node.me.index()] = Some(node.father);
        }
    }
    for node in world.nodes {
        for asker in &node.waiting {
            depends_on[asker.index()] = Some(node.me);
        }
        if let Some(queue) = &node.token {
            tokens += 1;
            at_root.push(node.me);
            at_root.extend(queue);
        }
    }
    for (_, to, message) in world.in_flight {
        match message {
            Message::Request(asker) => depends_on[asker.index()] = Some(*to),
            Message::Token(queue) => {
                tokens += 1;
                at_root.push(*to);
                at_root.extend(queue);
            }
        }
    }
    if tokens != 1 {
        return Err("not exactly one token");
    }
    for start in world.nodes {
        let walk = core::iter::successors(Some(start.me), |at| depends_on[at.index()]);
        if !walk.take(world.nodes.len()).any(|at| at_root.contains(&at)) {
            return Err("a node that depends on itself, or on nobody");
        }
    }
    Ok(())
}
