//! The bully algorithm [GM82], as [TS07] teaches it. Steps: docs/algorithms/bully.md.
//!
//! Whoever finds the leader silent calls on all nodes of a higher number. Each of them that lives answers, and holds an
//! election of its own; whoever gets no answer is the highest, takes over, and tells everybody.
//!
//!   n0 → n1 n2 n3  Election        n1, n2 → n0  Ok   (and each calls on those above it)        n2 → all  Coordinator
//!
//! Term t belongs to node t mod n: no two nodes lead in one term, whatever goes wrong with the timing. Whoever takes over
//! does so in the first term of its own after the latest that it knows of.
//!
//! Cost: n messages if the highest living node calls and only the leader is dead, n(n−1) if the lowest does. Assumes: no
//! loss, bounded delays; FIFO not needed. Survives crashes and returns.
//! Departures: terms; a leader that is called on answers Coordinator to the caller alone; a node that returns keeps still
//! until nothing of its earlier life is under way, and only then calls.

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Election, Output, Term};
use crate::{
    Algorithm, Context, Invariant, Model, NodeId, NodeSet, Protocol, Setting, Setup, SetupError, Timing, World,
};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// ELECTION: is anybody above me alive? The latest term that I know of is this.
    Election(Term),
    /// OK: I am, and I take it from here. The latest term that I know of is this.
    Ok(Term),
    /// COORDINATOR: I lead, in this term.
    Coordinator(Term),
}

/// What a node wants to be woken for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// What it waited for has not come: an answer, a Coordinator, or anything of its earlier life.
    Silence,
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
enum Phase {
    /// Takes part in no election.
    Quiet,
    /// Leads, in the latest term that it knows of.
    Leading,
    /// Has called on those above, and none has answered.
    Calling,
    /// One of them has, and will see to it that there is a leader.
    Waiting,
    /// Is back after a crash, and still passes for dead.
    Returning,
}

/// One node of the bully algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Bully {
    me: NodeId,
    nodes: usize,
    patience: Duration,
    /// The latest term that this node knows of; 0 if of none.
    term: Term,
    phase: Phase,
}

impl Algorithm for Bully {
    const NAME: &'static str = "bully";
    const COST: &'static str = "n..n(n−1) an election, leader dead";
    const PAPER: &'static str = "GM82";
    const SETTINGS: &'static [Setting] = &[Setting::Patience];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let (nodes, patience) = (setup.each_knows_all()?, setup.patience);
        Ok(setup.ids().map(|me| Self { me, nodes, patience, term: 0, phase: Phase::Quiet }).collect())
    }
}

impl Protocol for Bully {
    const MODEL: Model =
        Model { timing: Timing::Bounded, survives_crashes: true, survives_restarts: true, ..Model::RELIABLE };
    const INVARIANT: Option<Invariant<Self>> = Some(nobody_follows_a_lower_node);
    type Message = Message;
    type Timer = Timer;
    type Family = Election;

    fn on_start(&mut self, _cx: &mut Context<'_, Self>) {}

    fn on_restart(&mut self, cx: &mut Context<'_, Self>) {
        self.wait(Phase::Returning, self.patience, cx); // GM82:8
    }

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        let Command::Start = command;
        match self.phase {
            Phase::Quiet => self.call(cx), // GM82:1
            Phase::Leading => self.tell_client(self.me, cx),
            // The election that is under way, or about to be, will do.
            Phase::Calling | Phase::Waiting | Phase::Returning => {}
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        if self.phase == Phase::Returning {
            return; // GM82:8
        }
        match message {
            Message::Election(theirs) if from < self.me => self.on_election(from, theirs, cx),
            Message::Ok(theirs) if from > self.me => self.on_ok(theirs, cx),
            Message::Coordinator(term) if self.owner_of(term) == from => self.on_coordinator(from, term, cx),
            Message::Election(_) => cx.violation("Election from a higher node"),
            Message::Ok(_) => cx.violation("Ok from a lower node"),
            Message::Coordinator(_) => cx.violation("Coordinator in somebody else's term"),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        let Timer::Silence = timer;
        match self.phase {
            Phase::Calling => self.take_over(cx),               // GM82:3
            Phase::Waiting | Phase::Returning => self.call(cx), // GM82:5, GM82:8
            Phase::Quiet | Phase::Leading => unreachable!("whoever waits for nothing has no timer"),
        }
    }
}

impl Bully {
    /// The latest term that this node knows of.
    pub(crate) fn term(&self) -> Term {
        self.term
    }

    /// GM82:1 Calls on all above; if there are none, the election is over.
    fn call(&mut self, cx: &mut Context<'_, Self>) {
        if self.me.index() + 1 == self.nodes {
            return self.take_over(cx);
        }
        let higher = NodeId::all(self.nodes).skip(self.me.index() + 1);
        cx.multicast(higher, &Message::Election(self.term));
        self.wait(Phase::Calling, self.patience, cx);
    }

    fn on_election(&mut self, from: NodeId, theirs: Term, cx: &mut Context<'_, Self>) {
        match self.phase {
            // GM82:7 The caller has missed that there is a leader, or its client was mistaken.
            Phase::Leading if theirs <= self.term => cx.send(from, Message::Coordinator(self.term)),
            // GM82:2 It called before it could hear of the leader that we know.
            Phase::Quiet if theirs < self.term => cx.send(from, Message::Ok(self.term)),
            Phase::Quiet | Phase::Leading | Phase::Calling | Phase::Waiting => {
                cx.send(from, Message::Ok(self.term)); // GM82:2
                self.contest(theirs, cx);
            }
            Phase::Returning => unreachable!("it hears nothing"),
        }
    }

    fn on_ok(&mut self, theirs: Term, cx: &mut Context<'_, Self>) {
        match self.phase {
            Phase::Calling => {
                self.term = self.term.max(theirs);
                // GM82:4 Whoever answered may have to be patient itself.
                self.wait(Phase::Waiting, self.patience * 3, cx);
            }
            Phase::Waiting => self.term = self.term.max(theirs), // GM82:4
            // The election is over.
            Phase::Quiet | Phase::Leading => {}
            Phase::Returning => unreachable!("it hears nothing"),
        }
    }

    fn on_coordinator(&mut self, from: NodeId, term: Term, cx: &mut Context<'_, Self>) {
        if from < self.me {
            self.contest(term, cx); // GM82:9 It does not know that we live.
        } else if term < self.term {
            self.call(cx); // GM82:9 It does not know of the latest term, and hears of it by our call.
        } else {
            self.follow(from, term, cx);
        }
    }

    /// GM82:6 There is a leader.
    fn follow(&mut self, leader: NodeId, term: Term, cx: &mut Context<'_, Self>) {
        if matches!(self.phase, Phase::Calling | Phase::Waiting) {
            cx.cancel_timer(Timer::Silence);
        }
        (self.phase, self.term) = (Phase::Quiet, term);
        self.tell_client(leader, cx);
    }

    /// Takes note of a term, and sees to it that there is an election.
    fn contest(&mut self, term: Term, cx: &mut Context<'_, Self>) {
        self.term = self.term.max(term);
        match self.phase {
            Phase::Quiet | Phase::Leading => self.call(cx),
            Phase::Calling | Phase::Waiting => {}
            Phase::Returning => unreachable!("it hears nothing"),
        }
    }

    /// GM82:3 Nobody above is alive.
    fn take_over(&mut self, cx: &mut Context<'_, Self>) {
        let nodes = self.nodes as Term;
        self.term = (self.term / nodes + 1) * nodes + Term::from(self.me.0);
        self.phase = Phase::Leading;
        cx.multicast(NodeSet::others(self.nodes, self.me).iter(), &Message::Coordinator(self.term));
        self.tell_client(self.me, cx);
    }

    fn owner_of(&self, term: Term) -> NodeId {
        NodeId::from_index((term % self.nodes as Term) as usize)
    }

    fn wait(&mut self, phase: Phase, time: Duration, cx: &mut Context<'_, Self>) {
        self.phase = phase;
        cx.set_timer(Timer::Silence, time..time);
    }

    fn tell_client(&self, leader: NodeId, cx: &mut Context<'_, Self>) {
        cx.output(Output::Elected { leader, term: self.term });
    }
}

/// Whoever holds no election follows a higher node, or leads, in the latest term that it knows of.
fn nobody_follows_a_lower_node(world: &World<'_, Bully>) -> Result<(), &'static str> {
    let content = |node: &&Bully| match node.phase {
        Phase::Quiet => node.term == 0 || node.owner_of(node.term) > node.me,
        Phase::Leading => node.owner_of(node.term) == node.me,
        Phase::Calling | Phase::Waiting | Phase::Returning => true,
    };
    if world.nodes.iter().all(content) { Ok(()) } else { Err("somebody follows a lower node") }
}
