//! STA, broadcast over a spanning tree of the hypercube [RDA12]. Steps: docs/algorithms/spanning-tree.md.
//!
//! The root sends to one node of each of its clusters, and that one to the smaller clusters that it sees within: a tree of
//! depth log n. Whoever is known to have crashed is passed over. Everybody acknowledges to the root; if some do not in
//! time, the root spreads its message again.
//!
//!   n0 → n4  Tree { root: n0, hops: 3 }      n4 → n6  Tree { root: n0, hops: 2 }      n6 → n7, n4 → n5, …
//!   n4, n6, n5, n7 → n0  Ack
//!
//! Cost: n−1 messages and n−1 acknowledgements. Assumes: no loss; a detector that is never wrong, perhaps late.
//! Departures: what was printed wrong is corrected (see the page); messages have numbers of their own instead of timestamps;
//! only clusters in which somebody has not acknowledged are tried again. Safety and progress do not rest on the time.

use alloc::{
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};
use core::time::Duration;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Broadcast, Command, Layer, Output, Payload};
use crate::{
    Algorithm, Context, Model, NodeId, NodeSet, Protocol, Setting, Setup, SetupError, Timing,
    hypercube::{cluster, cluster_of, dimension},
};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message<T = ()> {
    /// Take this, and pass it on to your clusters below that of `hops`.
    Tree {
        /// r: who says it.
        root: NodeId,
        /// The how manieth broadcast of the root this is: its timestamp.
        number: u64,
        /// msg
        payload: T,
        /// How deep the tree still is from here.
        hops: u32,
    },
    /// I have it.
    Ack {
        /// To whom this goes.
        root: NodeId,
        /// Which of its broadcasts.
        number: u64,
    },
}

/// What a node wants to be woken for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// All acknowledgements should have come by now.
    Acks,
}

/// A broadcast of this node that not all have acknowledged.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct UnderWay<T> {
    payload: T,
    /// Who has not acknowledged it, and is not known to have crashed.
    missing: NodeSet,
}

/// One node of the spanning-tree broadcast.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct SpanningTree<T = ()> {
    me: NodeId,
    nodes: usize,
    /// How long the root waits for acknowledgements.
    patience: Duration,
    suspects: NodeSet,
    /// last_msg: by root, the number of its last broadcast that came here. Our own are among them.
    last: BTreeMap<NodeId, u64>,
    under_way: Option<UnderWay<T>>,
    /// req_queue: what is to be said after that.
    line: VecDeque<T>,
}

impl<T: Payload> Algorithm for SpanningTree<T> {
    const NAME: &'static str = "spanning-tree";
    const COST: &'static str = "2(n−1)";
    const PAPER: &'static str = "RDA12";
    const SETTINGS: &'static [Setting] = &[Setting::Patience];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        Self::layers(setup)
    }
}

impl<T: Payload> Layer<T> for SpanningTree<T> {
    fn layers(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let nodes = setup.each_knows_all()?;
        let node = |me| Self {
            me,
            nodes,
            // The paper's 2 log n messages, where a patience is the time of four.
            patience: setup.patience * dimension(nodes).max(2) / 2,
            suspects: NodeSet::new(),
            last: BTreeMap::new(),
            under_way: None,
            line: VecDeque::new(),
        };
        Ok(setup.ids().map(node).collect())
    }

    /// Only differences matter between the numbers of one root, and what everybody has is all equally old: it becomes 0.
    fn rewrite<'a>(
        nodes: impl Iterator<Item = &'a mut Self>,
        messages: impl Iterator<Item = &'a mut Message<T>>,
        mut rewrite: impl FnMut(&mut T),
    ) {
        let mut nodes: Vec<&mut Self> = nodes.collect();
        let everybody_has = |root: NodeId| nodes.iter().map(|node| node.last_of(root)).min().unwrap_or(0);
        let old: Vec<u64> = NodeId::all(nodes.first().map_or(0, |node| node.nodes)).map(everybody_has).collect();
        let renumber = |root: NodeId, number: &mut u64| *number = number.saturating_sub(old[root.index()]);
        for node in &mut nodes {
            node.last.iter_mut().for_each(|(root, number)| renumber(*root, number));
            node.last.retain(|_, number| *number > 0);
            let under_way = node.under_way.iter_mut().map(|under_way| &mut under_way.payload);
            under_way.chain(&mut node.line).for_each(&mut rewrite);
        }
        for message in messages {
            match message {
                Message::Tree { root, number, payload, .. } => {
                    renumber(*root, number);
                    rewrite(payload);
                }
                Message::Ack { root, number } => renumber(*root, number),
            }
        }
    }
}

impl<T: Payload> Protocol for SpanningTree<T> {
    const MODEL: Model = Model { timing: Timing::Bounded, detector: true, survives_crashes: true, ..Model::RELIABLE };
    type Message = Message<T>;
    type Timer = Timer;
    type Family = Broadcast<T>;

    fn on_command(&mut self, command: Command<T>, cx: &mut Context<'_, Self>) {
        let Command::Broadcast(payload) = command;
        self.line.push_back(payload); // RDA12:a1
        self.begin_next(cx);
    }

    fn on_message(&mut self, from: NodeId, message: Message<T>, cx: &mut Context<'_, Self>) {
        match message {
            Message::Tree { root, hops, .. } if !self.is_below(root, hops) => {
                cx.violation("a Tree that has lost its way")
            }
            Message::Tree { root, number, payload, hops } => self.on_tree(root, number, payload, hops, cx),
            Message::Ack { root, number } => self.on_ack(from, root, number, cx),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Acks => self.spread(cx), // RDA12:a7
        }
    }

    /// RDA12:a6 Whoever has crashed is not waited for.
    fn on_crash(&mut self, node: NodeId, cx: &mut Context<'_, Self>) {
        self.suspects.insert(node);
        if let Some(under_way) = &mut self.under_way {
            under_way.missing.remove(node);
        }
        self.end_if_acknowledged(cx);
    }
}

impl<T: Payload> SpanningTree<T> {
    /// RDA12:a2 One broadcast at a time: the next one begins when all have acknowledged the last.
    fn begin_next(&mut self, cx: &mut Context<'_, Self>) {
        while self.under_way.is_none()
            && let Some(payload) = self.line.pop_front()
        {
            let number = self.last_of(self.me) + 1;
            self.last.insert(self.me, number);
            cx.output(Output::Delivered { root: self.me, number, payload });
            let others = NodeSet::others(self.nodes, self.me);
            let missing: NodeSet = others.iter().filter(|node| !self.suspects.contains(*node)).collect();
            if missing.is_empty() {
                cx.output(Output::Done);
            } else {
                self.under_way = Some(UnderWay { payload, missing });
                self.spread(cx);
            }
        }
    }

    /// RDA12:a3 To one node of each cluster in which somebody has not acknowledged; at first that is every cluster.
    fn spread(&mut self, cx: &mut Context<'_, Self>) {
        let under_way = self.under_way.as_ref().expect("only a root spreads, and only while somebody is missing");
        let (root, number, payload) = (self.me, self.last_of(self.me), under_way.payload);
        for s in 1..=dimension(self.nodes) {
            if under_way.missing.iter().any(|node| cluster_of(root, node) == s) {
                self.pass_on(s, &Message::Tree { root, number, payload, hops: s }, cx);
            }
        }
        cx.set_timer(Timer::Acks, self.patience..self.patience);
    }

    /// To the first node of a cluster that has not crashed, if there is one.
    fn pass_on(&self, s: u32, tree: &Message<T>, cx: &mut Context<'_, Self>) {
        let alive = cluster(self.nodes, self.me, s).find(|node| !self.suspects.contains(*node));
        cx.multicast(alive, tree);
    }

    fn on_tree(&mut self, root: NodeId, number: u64, payload: T, hops: u32, cx: &mut Context<'_, Self>) {
        // RDA12:a4 What counts is who said it, not who passed it on, and whether it is newer than what we had.
        if number > self.last_of(root) {
            self.last.insert(root, number);
            cx.output(Output::Delivered { root, number, payload });
            cx.send(root, Message::Ack { root, number });
        }
        // RDA12:a5 Even what we had: the copy may be for those whom the first one did not reach.
        for s in (1..hops).rev() {
            self.pass_on(s, &Message::Tree { root, number, payload, hops: s }, cx);
        }
    }

    /// RDA12:a6
    fn on_ack(&mut self, from: NodeId, root: NodeId, number: u64, cx: &mut Context<'_, Self>) {
        let current = root == self.me && number == self.last_of(root);
        match &mut self.under_way {
            Some(under_way) if current && under_way.missing.contains(from) => {
                under_way.missing.remove(from);
                self.end_if_acknowledged(cx);
            }
            // It was on its way when its sender crashed: nobody waits for it any more.
            Some(_) | None if self.suspects.contains(from) => {}
            Some(_) | None => cx.violation("an Ack that nobody waits for"),
        }
    }

    fn end_if_acknowledged(&mut self, cx: &mut Context<'_, Self>) {
        if self.under_way.as_ref().is_some_and(|under_way| under_way.missing.is_empty()) {
            self.under_way = None;
            cx.cancel_timer(Timer::Acks);
            cx.output(Output::Done);
            self.begin_next(cx);
        }
    }

    /// Whether such a Tree may come here.
    fn is_below(&self, root: NodeId, hops: u32) -> bool {
        root != self.me && root.index() < self.nodes && (1..=cluster_of(root, self.me)).contains(&hops)
    }

    fn last_of(&self, root: NodeId) -> u64 {
        self.last.get(&root).copied().unwrap_or(0)
    }
}
