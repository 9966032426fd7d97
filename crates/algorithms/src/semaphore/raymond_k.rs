//! Raymond's k-exclusion [RK89], by permission. Steps: docs/algorithms/raymond-k.md.
//!
//! A node asks all others and enters with n−k replies: then no more than k−1 others can be inside. Replies that come later
//! are paid off against what is owed, so that none is taken for an answer to a later request.
//!
//!   n1 → n2  Request(clock)        n2 → n1  Reply(1)       at once, or, on leaving, one Reply(count) for all that wait
//!
//! Cost: from 2n−k−1 to 2(n−1) messages an entry. Assumes: no loss; FIFO not needed. With k crashes it stops.
//! Departures: "wait until" became an event. The permissions are not counted: who still owes a reply is known anyway.

use alloc::{collections::BTreeMap, vec::Vec};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Output, Semaphore};
use crate::{
    Algorithm, Canonical, Clock, Context, Invariant, Model, Never, NodeId, NodeSet, Protocol, Setting, Setup,
    SetupError, World,
};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// May I come in? My claim is of this time.
    Request(Clock),
    /// As far as I am concerned, yes: to so many of your requests.
    Reply(u32),
}

/// Where this node stands.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
enum Phase {
    Idle,
    Waiting {
        /// The time of the claim.
        clock: Clock,
    },
    Inside,
}

/// One node of Raymond's k-exclusion.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RaymondK {
    me: NodeId,
    nodes: usize,
    k: usize,
    /// The latest time seen in a claim.
    clock: Clock,
    phase: Phase,
    /// reply_count: how many replies others owe us. Who owes none is not in it.
    owed: BTreeMap<NodeId, u32>,
    /// defer_count: how many replies we keep back.
    deferred: BTreeMap<NodeId, u32>,
}

impl Algorithm for RaymondK {
    const NAME: &'static str = "raymond-k";
    const COST: &'static str = "2n−k−1..2(n−1)";
    const PAPER: &'static str = "RK89";
    const SETTINGS: &'static [Setting] = &[Setting::K];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let (nodes, k) = (setup.each_knows_all()?, setup.k_of_n()?);
        let (owed, deferred) = (BTreeMap::new(), BTreeMap::new());
        let node = Self { me: NodeId(0), nodes, k, clock: 0, phase: Phase::Idle, owed, deferred };
        Ok(setup.ids().map(|me| Self { me, ..node.clone() }).collect())
    }
}

impl Protocol for RaymondK {
    const MODEL: Model = Model::RELIABLE;
    const INVARIANT: Option<Invariant<Self>> = Some(replies_balance);
    const CANONICAL: Option<Canonical<Self>> = Some(shift_clocks);
    type Message = Message;
    type Timer = Never;
    type Family = Semaphore;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Acquire(units) => {
                assert_eq!(units, 1, "one unit at a time");
                assert_eq!(self.phase, Phase::Idle, "one request at a time");
                self.clock += 1; // RK89:1
                self.phase = Phase::Waiting { clock: self.clock };
                let others = NodeSet::others(self.nodes, self.me);
                for node in others.iter() {
                    *self.owed.entry(node).or_default() += 1; // RK89:2
                }
                cx.multicast(others.iter(), &Message::Request(self.clock));
                self.enter_if_permitted(cx);
            }
            Command::Release => {
                assert_eq!(self.phase, Phase::Inside, "only who is inside may leave");
                self.phase = Phase::Idle;
                for (node, count) in core::mem::take(&mut self.deferred) {
                    cx.send(node, Message::Reply(count)); // RK89:6
                }
            }
            Command::Resize(_) => panic!("the number of units is fixed"),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Request(clock) => {
                self.clock = self.clock.max(clock); // RK89:3
                if self.comes_before(clock, from) {
                    *self.deferred.entry(from).or_default() += 1; // RK89:4
                } else {
                    cx.send(from, Message::Reply(1));
                }
            }
            Message::Reply(count) => self.on_reply(from, count, cx),
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}

impl RaymondK {
    /// RK89:5 A node has given leave when it owes nothing any more, from this request or an earlier one.
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

    /// RK89:5 With n−k replies, that is, when fewer than k of the others still owe one.
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

/// Every reply owed has a reason: the request is on its way, or kept back, or the reply is on its way.
fn replies_balance(world: &World<'_, RaymondK>) -> Result<(), &'static str> {
    let alive = |node: NodeId| !world.crashed.contains(node);
    let nodes = || NodeId::all(world.nodes.len()).filter(|node| alive(*node));
    for (asker, other) in nodes().flat_map(|asker| nodes().map(move |other| (asker, other))) {
        let count = |of: &BTreeMap<NodeId, u32>, node| of.get(node).copied().unwrap_or(0);
        let in_flight = world.in_flight.iter().map(|(from, to, message)| match message {
            Message::Request(_) if (*from, *to) == (asker, other) => 1,
            Message::Reply(count) if (*from, *to) == (other, asker) => *count,
            Message::Request(_) | Message::Reply(_) => 0,
        });
        let reasons = in_flight.sum::<u32>() + count(&world.nodes[other.index()].deferred, &asker);
        if count(&world.nodes[asker.index()].owed, &other) != reasons {
            return Err("a reply is owed for no reason, or there is a reason and none is owed");
        }
    }
    Ok(())
}

/// Only differences between clocks matter, and a claim before all that nodes know is merely old: the smallest of theirs becomes
/// 1, and what is older 0. With k > 1 a slow node may come to owe any number of replies, so only for k = 1 this makes a
/// system that runs for ever finite.
fn shift_clocks(nodes: &mut [RaymondK], messages: &mut [Message]) {
    let known = |node: &RaymondK| match node.phase {
        Phase::Waiting { clock } => clock, // never later than the node's own clock
        Phase::Idle | Phase::Inside => node.clock,
    };
    let least = nodes.iter().map(known).min().unwrap_or(0);
    let shift = |clock: &mut Clock| *clock = (*clock + 1).saturating_sub(least);
    for node in nodes {
        shift(&mut node.clock);
        if let Phase::Waiting { clock } = &mut node.phase {
            shift(clock);
        }
    }
    for message in messages {
        if let Message::Request(clock) = message {
            shift(clock);
        }
    }
}
