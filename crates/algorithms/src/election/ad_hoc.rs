//! Election in ad hoc networks by Vasudevan, Kurose and Towsley [VKT04], as in [TS07]. Steps: docs/algorithms/ad-hoc.md.
//!
//! Whoever calls for an election sends Election to its neighbours, and they to theirs: a tree grows, in which a node's
//! parent is the first who sent it. A node answers its parent when all other neighbours have answered it, with the best
//! node it has heard of; the source picks the best of all and tells it down the tree. Of several elections at once the one
//! with the highest term goes on.
//!
//!   n0 → n1  Election(term)        n1 → n0  Ack(term, best)   (when its own neighbours have answered)
//!   n1 → n2  Election(term)        n2 → n1  Ack(term, none)   (at once: n2 has another parent)
//!   n0 → n1  Leader(term, n2)      n1 → n0  Ack(term, best)   n0 → n1  Wait(term)   (still there?)
//!
//! Cost: 4e−n+1 messages an election with e edges, and 2 for each time that a neighbour is asked again. Assumes: messages
//! that take less than half of `patience`; of `TRIES` messages to a node that lives one is answered; no restarts; a network
//! that stays connected; FIFO not needed.
//! Departures: the same message again asks whether a neighbour lives and makes up for a lost one; a node whose parent has
//! died calls for a new election.

use alloc::{collections::BTreeMap, vec::Vec};
use core::time::Duration;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Election, Output, Term};
use crate::{
    Algorithm, Context, Invariant, Model, NodeId, NodeSet, Protocol, Reach, Setting, Setup, SetupError, Timing, World,
};

/// How many messages a neighbour may leave without an answer before it is taken for dead.
const TRIES: u32 = 8;

/// A node and how well it would do as a leader: the larger, the better.
pub(super) type Candidate = (u32, NodeId);

/// What neighbours say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// There is an election.
    Election(Term),
    /// I am your child, and this is the best node below me; or I have another parent.
    Ack(Term, Option<Candidate>),
    /// I am still there, and have nothing new to say.
    Wait(Term),
    /// The election is over.
    Leader(Term, NodeId),
}

/// When a node wants to be woken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// A neighbour that lives has had time to answer.
    Again,
}

/// How far the election of the current term is.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
enum Phase {
    /// There has been none.
    Idle,
    /// Neighbours are to answer.
    Growing {
        /// Nobody, at the source.
        parent: Option<NodeId>,
        /// Who has not answered yet, and how many messages in a row it left without an answer.
        pending: BTreeMap<NodeId, u32>,
        /// Who has us for its parent.
        children: NodeSet,
        /// The best node heard of so far.
        best: Candidate,
    },
    /// The parent was told, and is to say who leads.
    Shrinking {
        parent: NodeId,
        /// How many messages in a row it left without an answer.
        unanswered: u32,
        children: NodeSet,
        best: Candidate,
    },
    /// It is over.
    Settled { leader: NodeId },
}

/// One node of the election.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct AdHoc {
    me: NodeId,
    nodes: usize,
    neighbours: NodeSet,
    capability: u32,
    patience: Duration,
    /// The highest term heard of.
    term: Term,
    phase: Phase,
}

impl Algorithm for AdHoc {
    const NAME: &'static str = "ad-hoc";
    const COST: &'static str = "4e−n+1, e edges";
    const PAPER: &'static str = "VKT04";
    const SETTINGS: &'static [Setting] = &[Setting::Topology, Setting::Patience];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let (nodes, patience) = (setup.nodes(), setup.patience);
        let node = |me| Self {
            me,
            nodes,
            neighbours: setup.neighbours(me),
            capability: capability(me),
            patience,
            term: 0,
            phase: Phase::Idle,
        };
        Ok(setup.ids().map(node).collect())
    }
}

/// What stands for battery life and the like: any numbers do that do not simply grow with those of the nodes.
fn capability(node: NodeId) -> u32 {
    (node.0 * 3 + 2) % 8
}

impl Protocol for AdHoc {
    const MODEL: Model = Model {
        reach: Reach::Neighbours,
        timing: Timing::Bounded,
        survives_loss: true,
        survives_crashes: true,
        ..Model::RELIABLE
    };
    const INVARIANT: Option<Invariant<Self>> = Some(best_leads);
    type Message = Message;
    type Timer = Timer;
    type Family = Election;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        let Command::Start = command;
        match self.phase {
            Phase::Idle | Phase::Settled { .. } => self.call(cx),
            Phase::Growing { .. } | Phase::Shrinking { .. } => {} // there is one already
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        let (Message::Election(term) | Message::Ack(term, _) | Message::Wait(term) | Message::Leader(term, _)) =
            message;
        if term < self.term {
            return; // VKT04:7 Its sender hears from us, or has heard already, of a higher one.
        }
        match message {
            Message::Election(_) if term > self.term => self.join(term, Some(from), cx), // VKT04:2, VKT04:7
            Message::Ack(..) | Message::Wait(_) | Message::Leader(..) if term > self.term => {
                cx.violation("an answer to an election that was never called");
            }
            Message::Election(_) => self.on_election(from, cx),
            Message::Ack(_, best) => self.on_ack(from, best, cx),
            Message::Wait(_) => self.on_wait(from),
            Message::Leader(_, leader) => self.on_leader(leader, cx),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Again => self.ask_again(cx),
        }
    }
}

impl AdHoc {
    /// VKT04:1 With a term that nobody else can take: those of node i are i modulo n.
    fn call(&mut self, cx: &mut Context<'_, Self>) {
        let nodes = self.nodes as Term;
        let term = (self.term / nodes + 1) * nodes + Term::from(self.me.0);
        self.join(term, None, cx);
    }

    fn join(&mut self, term: Term, parent: Option<NodeId>, cx: &mut Context<'_, Self>) {
        self.term = term;
        let others = self.neighbours.iter().filter(|node| Some(*node) != parent);
        let pending: BTreeMap<NodeId, u32> = others.map(|node| (node, 1)).collect();
        cx.multicast(pending.keys().copied(), &Message::Election(term));
        cx.set_timer(Timer::Again, self.patience..self.patience);
        let best = (self.capability, self.me);
        self.phase = Phase::Growing { parent, pending, children: NodeSet::new(), best };
        self.report_if_complete(cx);
    }

    /// The term is ours: somebody who has joined it asks, or asks again.
    fn on_election(&mut self, from: NodeId, cx: &mut Context<'_, Self>) {
        let answer = match &self.phase {
            Phase::Growing { parent, .. } if *parent == Some(from) => Message::Wait(self.term),
            Phase::Shrinking { parent, best, .. } if *parent == from => Message::Ack(self.term, Some(*best)),
            // VKT04:3
            Phase::Idle | Phase::Growing { .. } | Phase::Shrinking { .. } | Phase::Settled { .. } => {
                Message::Ack(self.term, None)
            }
        };
        cx.send(from, answer);
    }

    fn on_ack(&mut self, from: NodeId, theirs: Option<Candidate>, cx: &mut Context<'_, Self>) {
        match &mut self.phase {
            Phase::Growing { pending, children, best, .. } if pending.contains_key(&from) => {
                pending.remove(&from);
                if let Some(theirs) = theirs {
                    children.insert(from);
                    *best = theirs.max(*best); // VKT04:4
                }
                self.report_if_complete(cx);
            }
            // VKT04:6 A child that has answered asks whether we still live.
            Phase::Growing { .. } | Phase::Shrinking { .. } if theirs.is_some() => {
                cx.send(from, Message::Wait(self.term));
            }
            Phase::Settled { leader } if theirs.is_some() => cx.send(from, Message::Leader(self.term, *leader)),
            // The answer to a question that was asked again: it has been counted.
            Phase::Idle | Phase::Growing { .. } | Phase::Shrinking { .. } | Phase::Settled { .. } => {}
        }
    }

    fn on_wait(&mut self, from: NodeId) {
        match &mut self.phase {
            Phase::Growing { pending, .. } => {
                if let Some(unanswered) = pending.get_mut(&from) {
                    *unanswered = 0;
                }
            }
            Phase::Shrinking { parent, unanswered, .. } if *parent == from => *unanswered = 0,
            Phase::Idle | Phase::Shrinking { .. } | Phase::Settled { .. } => {} // overtaken by what it announced
        }
    }

    fn on_leader(&mut self, leader: NodeId, cx: &mut Context<'_, Self>) {
        match &mut self.phase {
            Phase::Shrinking { children, .. } => {
                let children = core::mem::take(children);
                self.settle(leader, &children, cx);
            }
            Phase::Growing { .. } => cx.violation("a leader before all have answered"),
            Phase::Idle | Phase::Settled { .. } => {} // asked for twice
        }
    }

    /// Nobody is waited for any more.
    fn report_if_complete(&mut self, cx: &mut Context<'_, Self>) {
        let Phase::Growing { parent, pending, children, best } = &mut self.phase else { return };
        if !pending.is_empty() {
            return;
        }
        let (children, best) = (core::mem::take(children), *best);
        match *parent {
            Some(parent) => {
                cx.send(parent, Message::Ack(self.term, Some(best))); // VKT04:4
                cx.set_timer(Timer::Again, self.patience..self.patience);
                self.phase = Phase::Shrinking { parent, unanswered: 1, children, best };
            }
            None => self.settle(best.1, &children, cx), // VKT04:5
        }
    }

    /// VKT04:5
    fn settle(&mut self, leader: NodeId, children: &NodeSet, cx: &mut Context<'_, Self>) {
        cx.cancel_timer(Timer::Again);
        self.phase = Phase::Settled { leader };
        cx.multicast(children.iter(), &Message::Leader(self.term, leader));
        cx.output(Output::Elected { leader, term: self.term });
    }

    /// VKT04:6 Whoever has been silent for too long is dead. Without such a child the tree does; without its parent a node
    /// cannot know whether the others have settled on a leader, and calls for a new election.
    fn ask_again(&mut self, cx: &mut Context<'_, Self>) {
        cx.set_timer(Timer::Again, self.patience..self.patience);
        match &mut self.phase {
            Phase::Growing { pending, .. } => {
                pending.retain(|_, unanswered| *unanswered < TRIES);
                pending.values_mut().for_each(|unanswered| *unanswered += 1);
                cx.multicast(pending.keys().copied(), &Message::Election(self.term));
                self.report_if_complete(cx);
            }
            Phase::Shrinking { unanswered, .. } if *unanswered == TRIES => self.call(cx),
            Phase::Shrinking { parent, unanswered, best, .. } => {
                *unanswered += 1;
                cx.send(*parent, Message::Ack(self.term, Some(*best)));
            }
            Phase::Idle | Phase::Settled { .. } => unreachable!("the timer is cancelled when the election is over"),
        }
    }
}

/// Nobody settles on a worse leader than itself, and as long as all live, on any but the best.
fn best_leads(world: &World<'_, AdHoc>) -> Result<(), &'static str> {
    let candidate = |node: &AdHoc| (node.capability, node.me);
    let best = world.nodes.iter().map(|node| candidate(node)).max();
    for node in world.nodes {
        let Phase::Settled { leader } = node.phase else { continue };
        let leader = (capability(leader), leader);
        if leader < candidate(node) {
            return Err("a node has settled on a leader that is worse than itself");
        }
        if world.crashed.is_empty() && Some(leader) != best {
            return Err("all live, and the best does not lead");
        }
    }
    Ok(())
}
