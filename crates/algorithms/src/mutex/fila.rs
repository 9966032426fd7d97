//! Fila: the token carries its queue, and requests go through a home. Ours. Steps: docs/algorithms/fila.md.
//!
//! Every request goes to the lock's home, which passes it on to the node that asked last before it. That one takes note,
//! and appends the name to the queue on the token when it leaves. So the token goes from holder to holder in one hop, and
//! a node that neither holds nor waits knows nothing at all about the lock.
//!
//!   n1 → n0  Request(n1)        n0 → n2  Request(n1)   (n0 the home, n2 last in line)        n2 → n1  Token([])
//!
//! What a lock service needs besides is in `fila/service.rs`: clients that do not want to wait, that give up, and a home that
//! wants the idle token back.
//!
//! Cost: 0 messages where the token is; 2 if the home asks, has the token or waits; 3 otherwise; 2 when all compete.
//! Assumes: no loss, no crash; FIFO not needed.

mod service;

use alloc::{collections::VecDeque, vec::Vec};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex, Output};
use crate::{Algorithm, Context, Invariant, Model, Never, NodeId, Protocol, Setup, SetupError, World};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// This node wants the token.
    Request(NodeId),
    /// The right to enter, and who is to have it after the receiver.
    Token(VecDeque<NodeId>),
    /// This node wants the token, and to know if that takes long.
    Try {
        /// Who wants it.
        asker: NodeId,
        /// Which of its tries this is.
        number: u64,
    },
    /// To who tried: you are in line, and it takes long.
    Busy(u64),
    /// To who tried, by the home: it takes long, and you are not in line.
    Refused(u64),
}

impl Message {
    /// Whether everybody that it names is one of so many nodes. A node believes that of what it receives.
    #[must_use]
    pub fn names_only(&self, nodes: usize) -> bool {
        match self {
            Self::Request(asker) | Self::Try { asker, .. } => asker.index() < nodes,
            Self::Token(line) => line.iter().all(|node| node.index() < nodes),
            Self::Busy(_) | Self::Refused(_) => true,
        }
    }
}

/// One node of fila.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Fila {
    me: NodeId,
    home: NodeId,
    phase: Standing,
    /// Q, if the token is here.
    token: Option<VecDeque<NodeId>>,
    /// Who asked after us and is not in Q yet.
    waiting: VecDeque<NodeId>,
    /// At the home, while it neither waits nor has the token: who is last in line.
    last: NodeId,
}

/// Where a node stands, and for whose sake.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
enum Standing {
    /// Wants nothing.
    Idle,
    /// Waits for a client.
    Waiting,
    /// Waits for a client that tries, and its try of this number has no answer yet.
    Trying(u64),
    /// Waits for a client that has taken over somebody's try of this number, which has no answer yet.
    Adopted(u64),
    /// Waits for nobody: the client gave up, or was told that it takes long. The number is that of a try without an answer.
    Forsaken(Option<u64>),
    /// The home waits without a client, and its try of this number has no answer yet.
    Pulling {
        number: u64,
        /// The try of the first of `waiting`, if that one was not told that it takes long.
        silent: Option<u64>,
    },
    /// Is inside, for a client.
    Inside,
}

impl Algorithm for Fila {
    const NAME: &'static str = "fila";
    const COST: &'static str = "≤ 3, 2 saturated";
    const PAPER: &'static str = "ours";

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let home = setup.tree.root();
        Ok(setup.ids().map(|me| Self::new(me, home)).collect())
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
            Command::Request => self.ask(Standing::Waiting, Message::Request(self.me), cx),
            Command::Release => {
                assert_eq!(self.phase, Standing::Inside, "only who is inside may leave");
                self.leave(cx);
            }
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Request(asker) | Message::Try { asker, .. } if asker == self.me => {
                cx.violation("our own Request came back");
            }
            Message::Request(asker) => self.on_request(asker, None, cx),
            Message::Try { asker, number } => self.on_request(asker, Some(number), cx),
            Message::Token(queue) if self.me == self.home && !queue.is_empty() => {
                cx.violation("whoever asks after the home stands in the home's own list");
            }
            Message::Token(queue) => self.on_token(queue, cx),
            Message::Busy(number) => self.on_busy(number, cx),
            Message::Refused(_) if from != self.home => cx.violation("a Refused by another than the home"),
            Message::Refused(number) => self.on_refused(number, cx),
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}

impl Fila {
    /// One node of a system at rest: the home has the token.
    #[must_use]
    pub fn new(me: NodeId, home: NodeId) -> Self {
        let token = (me == home).then(VecDeque::new);
        Self { me, home, phase: Standing::Idle, token, waiting: VecDeque::new(), last: home }
    }

    fn ask(&mut self, standing: Standing, message: Message, cx: &mut Context<'_, Self>) {
        assert_eq!(self.phase, Standing::Idle, "one request at a time");
        self.phase = standing; // FILA:1
        if self.token.is_some() {
            self.enter(cx); // FILA:2
        } else if self.me == self.home {
            cx.send(self.last, message); // FILA:3
        } else {
            cx.send(self.home, message); // FILA:4
        }
    }

    /// A Request, or a Try if it has a number.
    fn on_request(&mut self, asker: NodeId, tried: Option<u64>, cx: &mut Context<'_, Self>) {
        if self.phase != Standing::Idle && self.me != self.home && !self.waiting.is_empty() {
            cx.violation("two nodes behind the last in line");
        } else if self.phase != Standing::Idle {
            self.line_up(asker, tried, cx);
        } else if self.token.is_some() {
            self.last = asker; // FILA:5
            self.give_up(asker, cx);
        } else if self.me == self.home {
            cx.send(self.last, request(asker, tried)); // FILA:7 to the old last
            self.last = asker;
        } else {
            cx.violation("a Request at a node that knows nothing of the lock");
        }
    }

    /// Somebody asks while this node waits or is inside.
    fn line_up(&mut self, asker: NodeId, tried: Option<u64>, cx: &mut Context<'_, Self>) {
        if let Some(number) = tried {
            if self.me == self.home && self.is_for_a_client() {
                // FILA:13 The asker is in no line yet, and need not come into one.
                return cx.send(asker, Message::Refused(number));
            }
            if let Standing::Pulling { silent, .. } = &mut self.phase
                && self.waiting.is_empty()
            {
                *silent = Some(number); // FILA:21 if the token is idle, the asker will have it soon
            } else {
                cx.send(asker, Message::Busy(number)); // FILA:14
            }
        }
        self.waiting.push_back(asker); // FILA:6 a home that waits or is inside keeps all requests to itself
    }

    fn on_token(&mut self, queue: VecDeque<NodeId>, cx: &mut Context<'_, Self>) {
        match self.phase {
            Standing::Idle | Standing::Inside => cx.violation("a Token that nobody waits for"),
            Standing::Waiting | Standing::Trying(_) | Standing::Adopted(_) => {
                self.token = Some(queue);
                self.enter(cx); // FILA:8
            }
            Standing::Forsaken(_) | Standing::Pulling { .. } => {
                self.token = Some(queue);
                self.leave(cx); // FILA:18
            }
        }
    }

    fn enter(&mut self, cx: &mut Context<'_, Self>) {
        self.phase = Standing::Inside;
        cx.output(Output::Entered);
    }

    fn leave(&mut self, cx: &mut Context<'_, Self>) {
        self.phase = Standing::Idle; // FILA:9
        let queue = self.token.as_mut().expect("whoever is inside has the token");
        queue.append(&mut self.waiting);
        if let Some(next) = queue.pop_front() {
            self.last = queue.back().copied().unwrap_or(next); // FILA:11
            self.give_up(next, cx);
        } // FILA:10 otherwise the token stays here
    }

    fn give_up(&mut self, next: NodeId, cx: &mut Context<'_, Self>) {
        let queue = self.token.take().expect("only the holder gives the token up");
        cx.send(next, Message::Token(queue));
        if self.me != self.home {
            self.last = self.home; // Nothing is remembered of the lock.
        }
    }

    const fn is_for_a_client(&self) -> bool {
        match self.phase {
            Standing::Waiting | Standing::Trying(_) | Standing::Adopted(_) | Standing::Inside => true,
            Standing::Idle | Standing::Forsaken(_) | Standing::Pulling { .. } => false,
        }
    }
}

/// What an asker is passed on with.
const fn request(asker: NodeId, tried: Option<u64>) -> Message {
    match tried {
        None => Message::Request(asker),
        Some(number) => Message::Try { asker, number },
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
    let neither = |node: &Fila| node.phase == Standing::Idle && node.token.is_none();
    if neither(home) && neither(last) {
        return Err("the one whom the home believes last in line neither waits nor has the token");
    }
    Ok(())
}
