//! A central coordinator whose crash is survived: `central` [TS07] with an election, `bully` [GM82], and a line that the
//! next coordinator puts together again. Steps: docs/algorithms/central-failover.md.
//!
//! Whoever waits makes sure now and then that the coordinator is alive, and the coordinator that whoever is inside is. If
//! the coordinator is silent, an election follows. Everybody tells the one elected whether it waits or is inside, and only
//! when all have, or are dead, does anybody get in again.
//!
//!   n1 → n0  Request        n0 → n1  Grant   (at once, or when n1's turn comes)        n1 → n0  Release
//!   n1 → n0  Ping           n0 → n1  Pong    (while n1 waits; the other way round while it is inside)
//!   n1, n2, n3: Election(…)  until n3 is elected        n1 → n3  Report(Waiting)        n3 → n1  Grant
//!
//! Cost: 3 messages an entry, none for the coordinator's own, and 2 for every period that somebody waits, or is inside. Assumes: no loss, bounded delays, no
//! returns; FIFO not needed. Survives crashes.
//! Departures: the lecture only says that the coordinator is a single point of failure; all that is done about it is ours.

use alloc::{collections::VecDeque, vec::Vec};
use core::time::Duration;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex};
use crate::{
    Algorithm, Context, Model, NodeId, NodeSet, Phase, Protocol, Setting, Setup, SetupError, Timing,
    election::{self, Bully, Term},
};

/// What clients and coordinator say to each other. What belongs to a term says so.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// Put me in the line.
    Request(Term),
    /// It is your turn.
    Grant(Term),
    /// My turn is over.
    Release(Term),
    /// Are you alive?
    Ping,
    /// I am.
    Pong,
    /// You were elected: this is where I stand.
    Report(Term, Phase),
    /// Who leads now?
    Election(<Bully as Protocol>::Message),
}

/// What a node wants to be woken for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// We wait: time to ping the coordinator, or to give it up if it has not answered.
    Coordinator,
    /// We coordinate: time to ping whoever is inside, or to give it up.
    Holder,
    /// We were elected, and whoever has not said where it stands is dead.
    Unreported,
    /// The election wants to be woken.
    Election(<Bully as Protocol>::Timer),
}

/// What a node is to the others.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
enum Role {
    Client,
    /// The coordinator, while it finds out who waits and who is inside.
    Rebuilding {
        /// Whose report has not come.
        missing: NodeSet,
        inside: Option<NodeId>,
        /// Who was inside, and has left before its report came.
        left: Option<NodeId>,
        waiting: NodeSet,
        /// Who asks since.
        line: VecDeque<NodeId>,
    },
    /// The coordinator.
    Serving {
        /// Who is inside or about to be, then who waits.
        line: VecDeque<NodeId>,
    },
    /// Was the coordinator until it heard of a later term.
    Deposed,
}

/// Whether a node makes sure that another one is alive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
enum Watch {
    Off,
    /// The next Ping is due in a while.
    Resting,
    /// A Ping is not answered yet.
    Pinged,
}

/// One node of a system that replaces its coordinator.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct CentralFailover {
    me: NodeId,
    nodes: usize,
    patience: Duration,
    period: Duration,
    phase: Phase,
    coordinator: NodeId,
    /// In which the coordinator was elected; 0 for the first one, which nobody elects.
    term: Term,
    role: Role,
    /// On while we wait for another node.
    coordinator_watch: Watch,
    /// On while we coordinate and another node is inside.
    holder_watch: Watch,
    election: Bully,
}

impl Algorithm for CentralFailover {
    const NAME: &'static str = "central-failover";
    const COST: &'static str = "3(n−1)/n, and 2 a period for each that waits or is inside";
    const PAPER: &'static str = "TS07";
    const SETTINGS: &'static [Setting] = &[Setting::Patience, Setting::Period];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let (nodes, coordinator) = (setup.each_knows_all()?, setup.tree.root());
        let node = |(me, election)| Self {
            me,
            nodes,
            patience: setup.patience,
            period: setup.period,
            phase: Phase::Idle,
            coordinator,
            term: 0,
            role: if me == coordinator { Role::Serving { line: VecDeque::new() } } else { Role::Client },
            coordinator_watch: Watch::Off,
            holder_watch: Watch::Off,
            election,
        };
        Ok(setup.ids().zip(Bully::system(setup)?).map(node).collect())
    }
}

impl Protocol for CentralFailover {
    const MODEL: Model = Model { timing: Timing::Bounded, survives_crashes: true, ..Model::RELIABLE };
    type Message = Message;
    type Timer = Timer;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                self.phase.ask();
                cx.send(self.coordinator, Message::Request(self.term)); // FAILOVER:1
                self.watch_coordinator(cx);
            }
            Command::Release => {
                self.phase.leave();
                cx.send(self.coordinator, Message::Release(self.term)); // FAILOVER:1
            }
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            // FAILOVER:7 Whatever the sender wanted, it has told the coordinator of our term, or will, where it stands.
            Message::Request(term) | Message::Grant(term) | Message::Release(term) | Message::Report(term, _)
                if term < self.term => {}
            Message::Request(_) => self.on_request(from, cx),
            Message::Grant(_) if self.phase == Phase::Waiting => {
                self.phase.enter(cx); // FAILOVER:1
                self.watch_coordinator(cx);
            }
            Message::Grant(_) => cx.violation("Grant with no request pending"),
            Message::Release(_) => self.on_release(from, cx),
            Message::Ping => cx.send(from, Message::Pong),
            Message::Pong => self.on_pong(from, cx),
            Message::Report(_, phase) => self.on_report(from, phase, cx),
            Message::Election(message) => self.elect(|bully, cx| bully.on_message(from, message, cx), cx),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Coordinator if self.coordinator_watch == Watch::Resting => {
                self.coordinator_watch = self.ping(self.coordinator, timer, cx); // FAILOVER:2
            }
            // FAILOVER:4
            Timer::Coordinator => self.elect(|bully, cx| bully.on_command(election::Command::Start, cx), cx),
            Timer::Holder => {
                let holder = self.holder().expect("a holder is watched only while there is one");
                match self.holder_watch {
                    Watch::Resting => self.holder_watch = self.ping(holder, timer, cx), // FAILOVER:3
                    Watch::Pinged => self.give_up(holder, cx),
                    Watch::Off => unreachable!("nobody is watched"),
                }
            }
            Timer::Unreported => self.serve(cx), // FAILOVER:6
            Timer::Election(timer) => self.elect(|bully, cx| bully.on_timer(timer, cx), cx),
        }
    }
}

impl CentralFailover {
    /// Lets something happen to our part of the election.
    fn elect(&mut self, run: impl FnOnce(&mut Bully, &mut Context<'_, Bully>), cx: &mut Context<'_, Self>) {
        let outputs = cx.inner::<Bully>(Message::Election, Timer::Election, |cx| run(&mut self.election, cx));
        for election::Output::Elected { leader, term } in outputs {
            if term > self.term {
                self.follow(leader, term, cx);
            }
            self.watch_coordinator(cx);
        }
        if self.election.term() > self.term {
            self.step_down(cx);
        }
    }

    /// FAILOVER:8 Somebody has followed a later coordinator, and would not report to us: its silence does not mean that it
    /// is dead. There will be another election.
    fn step_down(&mut self, cx: &mut Context<'_, Self>) {
        match self.role {
            Role::Rebuilding { .. } => cx.cancel_timer(Timer::Unreported),
            Role::Serving { .. } => {}
            Role::Client | Role::Deposed => return,
        }
        self.role = Role::Deposed;
        self.watch_holder(cx);
    }

    /// FAILOVER:5 There is a new coordinator, and it will hear from us what it has to know.
    fn follow(&mut self, leader: NodeId, term: Term, cx: &mut Context<'_, Self>) {
        (self.coordinator, self.term) = (leader, term);
        if matches!(self.role, Role::Rebuilding { .. }) {
            cx.cancel_timer(Timer::Unreported);
        }
        if leader == self.me {
            let me = Some(self.me);
            self.role = Role::Rebuilding {
                missing: NodeSet::others(self.nodes, self.me),
                inside: me.filter(|_| self.phase == Phase::Inside),
                left: None,
                waiting: me.filter(|_| self.phase == Phase::Waiting).into_iter().collect(),
                line: VecDeque::new(),
            };
            cx.set_timer(Timer::Unreported, self.patience..self.patience);
        } else {
            self.role = Role::Client;
            cx.send(leader, Message::Report(term, self.phase));
        }
        self.watch_holder(cx);
    }

    fn on_request(&mut self, from: NodeId, cx: &mut Context<'_, Self>) {
        match &mut self.role {
            Role::Serving { line } => {
                line.push_back(from); // FAILOVER:1
                if line.len() == 1 {
                    self.grant(cx);
                }
            }
            Role::Rebuilding { line, .. } => line.push_back(from), // FAILOVER:6
            Role::Deposed => {} // FAILOVER:8 It will report to the next coordinator that it waits.
            Role::Client => cx.violation("Request to a node that does not coordinate"),
        }
    }

    fn on_release(&mut self, from: NodeId, cx: &mut Context<'_, Self>) {
        match &mut self.role {
            Role::Serving { line } if line.front() == Some(&from) => {
                line.pop_front(); // FAILOVER:1
                self.grant(cx);
            }
            Role::Serving { .. } => {} // FAILOVER:3 It left and died, and was given up meanwhile.
            Role::Rebuilding { inside, .. } if *inside == Some(from) => *inside = None,
            Role::Rebuilding { left, .. } => *left = Some(from), // FAILOVER:6 It has overtaken the report.
            Role::Deposed => {}                                  // FAILOVER:8 It will report that it is not inside.
            Role::Client => cx.violation("Release to a node that does not coordinate"),
        }
    }

    fn on_report(&mut self, from: NodeId, phase: Phase, cx: &mut Context<'_, Self>) {
        let Role::Rebuilding { missing, inside, left, waiting, .. } = &mut self.role else {
            if self.role != Role::Deposed {
                cx.violation("a Report that comes too late");
            }
            return; // FAILOVER:8 It will report to the next coordinator as well.
        };
        missing.remove(from);
        let all_have = missing.is_empty();
        match phase {
            Phase::Idle => {}
            Phase::Waiting => {
                waiting.insert(from);
            }
            Phase::Inside if *left == Some(from) => {}
            Phase::Inside => *inside = Some(from),
        }
        if all_have {
            cx.cancel_timer(Timer::Unreported);
            self.serve(cx); // FAILOVER:6
        }
    }

    /// FAILOVER:6 All that live have said where they stand.
    fn serve(&mut self, cx: &mut Context<'_, Self>) {
        let Role::Rebuilding { inside, waiting, line, .. } = &self.role else {
            unreachable!("only who was just elected waits for reports")
        };
        let (entered, line) = (*inside, inside.iter().copied().chain(waiting.iter()).chain(line.iter().copied()));
        self.role = Role::Serving { line: line.collect() };
        match entered {
            Some(_) => self.watch_holder(cx),
            None => self.grant(cx),
        }
    }

    /// Lets the first in line in.
    fn grant(&mut self, cx: &mut Context<'_, Self>) {
        self.watch_holder(cx);
        if let Role::Serving { line } = &self.role
            && let Some(&next) = line.front()
        {
            cx.send(next, Message::Grant(self.term));
        }
    }

    /// FAILOVER:3 Whoever was inside is dead, and will not ask again.
    fn give_up(&mut self, holder: NodeId, cx: &mut Context<'_, Self>) {
        if let Role::Serving { line } = &mut self.role {
            line.retain(|node| *node != holder);
        }
        self.grant(cx);
    }

    fn ping(&self, node: NodeId, timer: Timer, cx: &mut Context<'_, Self>) -> Watch {
        cx.send(node, Message::Ping);
        cx.set_timer(timer, self.patience..self.patience);
        Watch::Pinged
    }

    fn on_pong(&mut self, from: NodeId, cx: &mut Context<'_, Self>) {
        if self.holder() == Some(from) {
            self.watch_holder(cx);
        } else if self.coordinator == from {
            self.watch_coordinator(cx);
        }
        // Otherwise its turn, or ours, has come to an end meanwhile.
    }

    /// Another node that is inside, or about to be, if we coordinate.
    fn holder(&self) -> Option<NodeId> {
        match &self.role {
            Role::Serving { line } => line.front().copied().filter(|node| *node != self.me),
            Role::Client | Role::Rebuilding { .. } | Role::Deposed => None,
        }
    }

    /// FAILOVER:3 While another node is inside, make sure now and then that it is alive.
    fn watch_holder(&mut self, cx: &mut Context<'_, Self>) {
        self.holder_watch = self.watch(self.holder().is_some(), self.holder_watch, Timer::Holder, cx);
    }

    /// FAILOVER:2 While we wait for another node, make sure now and then that it is alive.
    fn watch_coordinator(&mut self, cx: &mut Context<'_, Self>) {
        let waits = self.phase == Phase::Waiting && self.coordinator != self.me;
        self.coordinator_watch = self.watch(waits, self.coordinator_watch, Timer::Coordinator, cx);
    }

    /// Begins a watch anew, or ends it.
    fn watch(&self, on: bool, before: Watch, timer: Timer, cx: &mut Context<'_, Self>) -> Watch {
        if on {
            cx.set_timer(timer, self.period..self.period);
            return Watch::Resting;
        }
        if before != Watch::Off {
            cx.cancel_timer(timer);
        }
        Watch::Off
    }
}
