//! Robust k-exclusion [RDA12]: Raymond's [RK89] with a failure detector, up to n−1 crashes. Steps: docs/algorithms/robust-k.md,
//! docs/algorithms/robust-k-direct.md.
//!
//! A node asks all others and enters when fewer than k of those who are alive still owe it a reply. Whoever has crashed owes
//! nothing any more, and is owed nothing. How a request gets to all others is a layer below: the spanning tree, or directly.
//!
//!   n1 ⇒ all  Request(clock)       n2 → n1  Reply(1)       at once, or, on leaving, one Reply(count) for all that wait
//!
//! Cost: from 2n−k−1 to 2(n−1) messages an entry, and n−1 acknowledgements with the tree. Assumes: no loss; FIFO not needed;
//! a detector that is never wrong, perhaps late.
//! Departures: what was printed wrong is corrected (see the page). The permissions are not counted: who still owes a reply
//! is known anyway, and so what must be one step is one step.

use alloc::{collections::BTreeMap, vec::Vec};
use core::fmt;

use serde::{Deserialize, Serialize};

use super::{Command, Output, Semaphore};
use crate::{
    Algorithm, Canonical, Clock, Context, Model, NodeId, NodeSet, Protocol, Setting, Setup, SetupError,
    broadcast::{self, Direct, Layer, SpanningTree},
};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message<M> {
    /// Of the layer that spreads the requests.
    Layer(M),
    /// As far as I am concerned, yes: to so many of your requests.
    Reply(u32),
}

impl<M: crate::Message> From<&Message<M>> for &'static str {
    fn from(message: &Message<M>) -> Self {
        match message {
            Message::Layer(message) => message.kind(),
            Message::Reply(_) => "Reply",
        }
    }
}

/// What the layer says is written as the layer writes it.
impl<M: fmt::Debug> fmt::Debug for Message<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layer(message) => message.fmt(f),
            Self::Reply(count) => write!(f, "Reply({count})"),
        }
    }
}

/// state: not_requesting, requesting or executing.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
enum Phase {
    Idle,
    Waiting {
        /// last: the time of the claim.
        clock: Clock,
    },
    Inside,
}

/// One node of robust k-exclusion over a layer that spreads its requests.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RobustK<B> {
    me: NodeId,
    nodes: usize,
    k: usize,
    /// The latest time seen in a claim.
    clock: Clock,
    phase: Phase,
    suspects: NodeSet,
    /// reply_count: how many replies others owe us. Who owes none is not in it, nor who has crashed.
    owed: BTreeMap<NodeId, u32>,
    /// defer_count: how many replies we keep back. Who has crashed is not in it.
    deferred: BTreeMap<NodeId, u32>,
    layer: B,
}

/// Over the spanning tree of the hypercube: the whole paper.
pub type RobustKTree = RobustK<SpanningTree<Clock>>;

/// With requests sent to all directly: Algorithm 2 of the paper alone.
pub type RobustKDirect = RobustK<Direct>;

impl Algorithm for RobustKTree {
    const NAME: &'static str = "robust-k";
    const COST: &'static str = "3n−k−2..3(n−1)";
    const PAPER: &'static str = "RDA12";
    const SETTINGS: &'static [Setting] = &[Setting::K, Setting::Patience];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        Self::over_layers(setup)
    }
}

impl Algorithm for RobustKDirect {
    const NAME: &'static str = "robust-k-direct";
    const COST: &'static str = "2n−k−1..2(n−1)";
    const PAPER: &'static str = "RDA12";
    const SETTINGS: &'static [Setting] = &[Setting::K];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        Self::over_layers(setup)
    }
}

impl<B: Layer<Clock>> Protocol for RobustK<B> {
    const MODEL: Model = B::MODEL;
    const CANONICAL: Option<Canonical<Self>> = Some(shift_clocks);
    type Message = Message<B::Message>;
    type Timer = B::Timer;
    type Family = Semaphore;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Acquire(units) => {
                assert_eq!(units, 1, "one unit at a time");
                assert_eq!(self.phase, Phase::Idle, "one request at a time");
                self.clock += 1; // RDA12:b1 A later claim of ours is a later one.
                self.phase = Phase::Waiting { clock: self.clock };
                let others = NodeSet::others(self.nodes, self.me);
                for node in others.iter().filter(|node| !self.suspects.contains(*node)) {
                    *self.owed.entry(node).or_default() += 1; // RDA12:b2
                }
                let request = broadcast::Command::Broadcast(self.clock);
                self.with_layer(cx, |layer, cx| layer.on_command(request, cx));
                self.enter_if_permitted(cx);
            }
            Command::Release => {
                assert_eq!(self.phase, Phase::Inside, "only who is inside may leave");
                self.phase = Phase::Idle;
                for (node, count) in core::mem::take(&mut self.deferred) {
                    cx.send(node, Message::Reply(count)); // RDA12:b7
                }
            }
            Command::Resize(_) => panic!("the number of units is fixed"),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message<B::Message>, cx: &mut Context<'_, Self>) {
        match message {
            Message::Layer(message) => self.with_layer(cx, |layer, cx| layer.on_message(from, message, cx)),
            // RDA12:b5 It was on its way when its sender crashed, and is not owed any more.
            Message::Reply(_) if self.suspects.contains(from) => {}
            Message::Reply(count) => self.on_reply(from, count, cx),
        }
    }

    fn on_timer(&mut self, timer: B::Timer, cx: &mut Context<'_, Self>) {
        self.with_layer(cx, |layer, cx| layer.on_timer(timer, cx));
    }

    /// RDA12:b8 All in one step: who has crashed, what it owed and was owed, and whether this lets us in.
    fn on_crash(&mut self, node: NodeId, cx: &mut Context<'_, Self>) {
        self.suspects.insert(node);
        self.owed.remove(&node);
        self.deferred.remove(&node);
        self.with_layer(cx, |layer, cx| layer.on_crash(node, cx));
        self.enter_if_permitted(cx);
    }
}

impl<B: Layer<Clock>> RobustK<B> {
    fn over_layers(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let (nodes, k) = (setup.each_knows_all()?, setup.k_of_n()?);
        let node = |(me, layer)| Self {
            me,
            nodes,
            k,
            clock: 0,
            phase: Phase::Idle,
            suspects: NodeSet::new(),
            owed: BTreeMap::new(),
            deferred: BTreeMap::new(),
            layer,
        };
        Ok(setup.ids().zip(B::layers(setup)?).map(node).collect())
    }

    /// Lets something happen to the layer, and takes the requests that it delivers. When all have ours is its own business.
    fn with_layer(&mut self, cx: &mut Context<'_, Self>, run: impl FnOnce(&mut B, &mut Context<'_, B>)) {
        for output in cx.inner(Message::Layer, |timer| timer, |cx| run(&mut self.layer, cx)) {
            match output {
                broadcast::Output::Delivered { root, payload, .. } if root != self.me => {
                    self.on_request(root, payload, cx);
                }
                broadcast::Output::Delivered { .. } | broadcast::Output::Done => {}
            }
        }
    }

    fn on_request(&mut self, from: NodeId, clock: Clock, cx: &mut Context<'_, Self>) {
        self.clock = self.clock.max(clock); // RDA12:b3
        if self.suspects.contains(from) {
            return; // RDA12:b4 It was on its way when its sender crashed.
        }
        if self.comes_before(clock, from) {
            *self.deferred.entry(from).or_default() += 1; // RDA12:b4
        } else {
            cx.send(from, Message::Reply(1));
        }
    }

    /// RDA12:b5 A node has given leave when it owes nothing any more, from this request or an earlier one.
    fn on_reply(&mut self, from: NodeId, count: u32, cx: &mut Context<'_, Self>) {
        match self.owed.get_mut(&from) {
            Some(owed) if *owed == count => {
                self.owed.remove(&from);
                self.enter_if_permitted(cx);
            }
            Some(owed) if *owed > count => *owed -= count,
            Some(_) | None => cx.violation("more replies than requests"),
        }
    }

    /// RDA12:b6 With n − |suspects| − k permissions, that is, when fewer than k who are alive still owe a reply. Where no
    /// more than k are alive, that is at once.
    fn enter_if_permitted(&mut self, cx: &mut Context<'_, Self>) {
        if matches!(self.phase, Phase::Waiting { .. }) && self.owed.len() < self.k {
            self.phase = Phase::Inside;
            cx.output(Output::Entered);
        }
    }

    /// We are inside, or waiting with the smaller (clock, id).
    fn comes_before(&self, clock: Clock, node: NodeId) -> bool {
        match self.phase {
            Phase::Idle => false,
            Phase::Waiting { clock: ours } => (ours, self.me) < (clock, node),
            Phase::Inside => true,
        }
    }
}

/// Only differences between clocks matter, and a claim before all that the living know is merely old: the smallest of theirs
/// becomes 1, and what is older 0. With k > 1 a slow node may come to owe any number of replies, so only for k = 1 this
/// makes a system that runs for ever finite.
fn shift_clocks<B: Layer<Clock>>(nodes: &mut [RobustK<B>], messages: &mut [Message<B::Message>]) {
    let known = |node: &RobustK<B>| match node.phase {
        Phase::Waiting { clock } => clock, // never later than the node's own clock
        Phase::Idle | Phase::Inside => node.clock,
    };
    let least = nodes.iter().map(known).min().unwrap_or(0);
    let shift = |clock: &mut Clock| *clock = (*clock + 1).saturating_sub(least);
    for node in &mut *nodes {
        shift(&mut node.clock);
        if let Phase::Waiting { clock } = &mut node.phase {
            shift(clock);
        }
    }
    let of_layer = messages.iter_mut().filter_map(|message| match message {
        Message::Layer(message) => Some(message),
        Message::Reply(_) => None,
    });
    B::rewrite(nodes.iter_mut().map(|node| &mut node.layer), of_layer, shift);
}
