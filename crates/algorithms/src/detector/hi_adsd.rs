//! Hi-ADSD, hierarchical adaptive distributed system-level diagnosis [DN98], as [RDA12] uses it.
//! Steps: docs/algorithms/hi-adsd.md.
//!
//! Each node sees the others as log n clusters, of 1, 2, 4, … nodes. Once in a period it tests them one cluster after the
//! other: it asks the nodes of a cluster in turn until one answers, and that one tells what it knows of the cluster.
//!
//!   n0 → n4  AreYouAlive { cluster: 3 }      n4 → n0  IAmAlive { suspects }
//!   (n4 is silent for longer than a message and its answer take: it has crashed)
//!   n0 → n6  AreYouAlive { cluster: 3 }      and so on through the cluster
//!
//! Cost: from log n to n−1 tests a round at each node. Assumes: no loss, and that whoever lives answers in time.
//! Departures: a round tests all clusters, as in [RDA12], not one of them. Crashes last for ever.

use alloc::{borrow::ToOwned, vec::Vec};
use core::time::Duration;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Detector, Output};
use crate::{
    Algorithm, Context, Model, Never, NodeId, NodeSet, Protocol, Setting, Setup, SetupError, Timing,
    hypercube::{cluster, cluster_of, dimension},
};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// A test, on behalf of this cluster of mine, in which you are.
    AreYouAlive {
        /// s
        cluster: u32,
    },
    /// Yes, and of that cluster these have crashed.
    IAmAlive {
        /// Whom the sender suspects there.
        suspects: NodeSet,
    },
}

/// What a node wants to be woken for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The next round is due.
    Round,
    /// The node that was asked should have answered by now.
    Answer,
}

/// One node of Hi-ADSD.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct HiAdsd {
    me: NodeId,
    nodes: usize,
    /// How long to wait for an answer.
    patience: Duration,
    /// From one round to the next.
    period: Duration,
    /// Who has crashed.
    suspects: NodeSet,
    /// Whom it has asked and not heard yet. Nobody between two rounds.
    asked: Option<NodeId>,
}

impl Algorithm for HiAdsd {
    const NAME: &'static str = "hi-adsd";
    const COST: &'static str = "log n..n−1 tests a round";
    const PAPER: &'static str = "DN98";
    const SETTINGS: &'static [Setting] = &[Setting::Patience, Setting::Period];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let nodes = setup.each_knows_all()?;
        let (patience, period) = (setup.patience, setup.period);
        if patience.is_zero() || period.is_zero() {
            return Err(SetupError(
                "hi-adsd must wait for answers and between its rounds; take a patience and a period above 0".to_owned(),
            ));
        }
        let node = |me| Self { me, nodes, patience, period, suspects: NodeSet::new(), asked: None };
        Ok(setup.ids().map(node).collect())
    }
}

impl Protocol for HiAdsd {
    const MODEL: Model = Model { timing: Timing::Bounded, survives_crashes: true, ..Model::RELIABLE };
    type Message = Message;
    type Timer = Timer;
    type Family = Detector;

    fn on_start(&mut self, cx: &mut Context<'_, Self>) {
        self.begin_round(cx);
    }

    fn on_command(&mut self, command: Never, _cx: &mut Context<'_, Self>) {
        match command {}
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            // DN98:3 What is told of the cluster: those who are in it as the one who asks sees it, and so are we.
            Message::AreYouAlive { cluster } if from != self.me && cluster == cluster_of(from, self.me) => {
                let concerned = |suspect: &NodeId| *suspect != from && cluster_of(from, *suspect) == cluster;
                let suspects = self.suspects.iter().filter(concerned).collect();
                cx.send(from, Message::IAmAlive { suspects });
            }
            Message::AreYouAlive { .. } => cx.violation("a test on behalf of a cluster that we are not in"),
            Message::IAmAlive { suspects } if self.asked == Some(from) => self.on_answer(from, &suspects, cx),
            Message::IAmAlive { .. } => cx.violation("an answer to no test, or too late"),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Round if self.asked.is_none() => self.begin_round(cx),
            // The last round is not over: this one is left out.
            Timer::Round => cx.set_timer(Timer::Round, self.period..self.period),
            Timer::Answer => {
                let silent = self.asked.expect("only who waits for an answer runs out of patience");
                self.suspect(silent, cx); // DN98:5
                let s = cluster_of(self.me, silent);
                let next = cluster(self.nodes, self.me, s).skip_while(|node| *node != silent).nth(1);
                match next {
                    Some(next) => self.test(next, cx),
                    None => self.test_clusters_from(s + 1, cx),
                }
            }
        }
    }
}

impl HiAdsd {
    /// DN98:1 Once in a period.
    fn begin_round(&mut self, cx: &mut Context<'_, Self>) {
        cx.output(Output::RoundBegan);
        cx.set_timer(Timer::Round, self.period..self.period);
        self.test_clusters_from(1, cx);
    }

    /// DN98:2 In every cluster the first node is tested first, suspected or not. Some cluster may have no node at all.
    fn test_clusters_from(&mut self, s: u32, cx: &mut Context<'_, Self>) {
        match (s..=dimension(self.nodes)).find_map(|s| cluster(self.nodes, self.me, s).next()) {
            Some(first) => self.test(first, cx),
            None => {
                self.asked = None; // DN98:6
                cx.output(Output::RoundEnded);
            }
        }
    }

    fn test(&mut self, node: NodeId, cx: &mut Context<'_, Self>) {
        self.asked = Some(node);
        cx.send(node, Message::AreYouAlive { cluster: cluster_of(self.me, node) });
        cx.set_timer(Timer::Answer, self.patience..self.patience);
    }

    /// DN98:4 What the one who answers knows of its cluster is known here, too, and the next cluster is tested.
    fn on_answer(&mut self, from: NodeId, suspects: &NodeSet, cx: &mut Context<'_, Self>) {
        let s = cluster_of(self.me, from);
        let in_cluster = |node: NodeId| node != self.me && cluster_of(self.me, node) == s;
        if self.suspects.contains(from) {
            return cx.violation("an answer of a node that has crashed");
        }
        if suspects.contains(from) || suspects.iter().any(|node| node.index() >= self.nodes || !in_cluster(node)) {
            return cx.violation("suspects that are not in the cluster, or speak for themselves");
        }
        for node in suspects.iter() {
            self.suspect(node, cx);
        }
        cx.cancel_timer(Timer::Answer);
        self.test_clusters_from(s + 1, cx);
    }

    /// Each suspect is named once.
    fn suspect(&mut self, node: NodeId, cx: &mut Context<'_, Self>) {
        if self.suspects.insert(node) {
            cx.output(Output::Suspect(node));
        }
    }
}
