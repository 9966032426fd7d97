//! Ricart–Agrawala with denials [TS07], for networks that lose messages and nodes that crash. Steps:
//! docs/algorithms/ricart-agrawala-robust.md.
//!
//! As in `ricart_agrawala` a node asks all others and enters when nobody is missing. But everybody answers at once: Ok, or
//! Denied by whoever comes first, which will say Ok when it leaves. Who is missing is asked again and again. A node that
//! denies lives; one that says nothing to `TRIES` requests is declared dead, and is missing no more.
//!
//!   n1 → n2  Request(clock)        n2 → n1  Ok(clock), or Denied(clock) now and Ok(clock) on leaving
//!
//! Cost: 2(n−1) messages an entry, and 2 more for each time that somebody is asked again. Assumes: messages that take less
//! than half of `patience`; of `TRIES` requests to a node that lives one is answered; no restarts; FIFO not needed.
//! Departures: a lost Ok is not sent again: who is denied keeps asking, so as to see that the denier lives, and gets it then.

use alloc::{collections::BTreeMap, vec::Vec};
use core::time::Duration;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex, Output};
use crate::{
    Algorithm, Canonical, Clock, Context, Model, NodeId, NodeSet, Protocol, Setting, Setup, SetupError, Timing,
};

/// How many requests a node may leave without an answer before it is declared dead.
const TRIES: u32 = 8;

/// What nodes say to each other. All of it carries the clock of a claim.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// May I come in? My claim is of this time.
    Request(Clock),
    /// As far as I am concerned, yes.
    Ok(Clock),
    /// I come before you: wait.
    Denied(Clock),
}

/// When a node wants to be woken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// Those who are missing have had time to answer.
    Again,
}

/// Where this node stands: RELEASED, WANTED or HELD.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
enum Phase {
    Idle,
    Waiting {
        /// The time of the claim.
        clock: Clock,
        /// Who has not said Ok yet, and how many requests in a row it left without an answer.
        missing: BTreeMap<NodeId, u32>,
    },
    Inside,
}

/// One node of the Ricart–Agrawala algorithm with denials.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RicartAgrawalaRobust {
    me: NodeId,
    nodes: usize,
    patience: Duration,
    /// The latest time seen in a claim.
    clock: Clock,
    phase: Phase,
    /// Whom we have denied, and the time of the claim that it was for.
    deferred: BTreeMap<NodeId, Clock>,
    /// Who was declared dead.
    dead: NodeSet,
}

impl Algorithm for RicartAgrawalaRobust {
    const NAME: &'static str = "ricart-agrawala-robust";
    const COST: &'static str = "2(n−1)+2r, r requests repeated";
    const PAPER: &'static str = "TS07";
    const SETTINGS: &'static [Setting] = &[Setting::Patience];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let (nodes, patience) = (setup.each_knows_all()?, setup.patience);
        let node = |me| Self {
            me,
            nodes,
            patience,
            clock: 0,
            phase: Phase::Idle,
            deferred: BTreeMap::new(),
            dead: NodeSet::new(),
        };
        Ok(setup.ids().map(node).collect())
    }
}

impl Protocol for RicartAgrawalaRobust {
    const MODEL: Model =
        Model { timing: Timing::Bounded, survives_loss: true, survives_crashes: true, ..Model::RELIABLE };
    const CANONICAL: Option<Canonical<Self>> = Some(shift_clocks);
    type Message = Message;
    type Timer = Timer;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                assert_eq!(self.phase, Phase::Idle, "one request at a time");
                self.clock += 1; // RA81:1
                let mut missing = BTreeMap::new();
                for node in NodeSet::others(self.nodes, self.me).iter().filter(|node| !self.dead.contains(*node)) {
                    missing.insert(node, 1);
                    cx.send(node, Message::Request(self.clock));
                }
                self.phase = Phase::Waiting { clock: self.clock, missing };
                cx.set_timer(Timer::Again, self.patience..self.patience);
                self.enter_if_unopposed(cx);
            }
            Command::Release => {
                assert_eq!(self.phase, Phase::Inside, "only who is inside may leave");
                self.phase = Phase::Idle;
                for (node, clock) in core::mem::take(&mut self.deferred) {
                    cx.send(node, Message::Ok(clock)); // RA81:5
                }
            }
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Request(theirs) => {
                self.clock = self.clock.max(theirs); // RA81:2
                if self.comes_before(theirs, from) {
                    self.deferred.insert(from, theirs);
                    cx.send(from, Message::Denied(theirs)); // TS07:1
                } else {
                    cx.send(from, Message::Ok(theirs)); // RA81:3
                }
            }
            Message::Ok(of) => {
                if let Some(missing) = self.missing(of) {
                    missing.remove(&from);
                    self.enter_if_unopposed(cx);
                }
            }
            Message::Denied(of) => {
                // TS07:3 It lives. If it is not missing its Ok was faster.
                if let Some(unanswered) = self.missing(of).and_then(|missing| missing.get_mut(&from)) {
                    *unanswered = 0;
                }
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Again => self.ask_again(cx),
        }
    }
}

impl RicartAgrawalaRobust {
    /// TS07:2 Once more to all who are missing, but for those who have been silent for too long.
    fn ask_again(&mut self, cx: &mut Context<'_, Self>) {
        let Phase::Waiting { clock, missing } = &mut self.phase else {
            unreachable!("the timer is cancelled on entering")
        };
        missing.retain(|node, unanswered| {
            if *unanswered == TRIES {
                self.dead.insert(*node); // TS07:4
                return false;
            }
            *unanswered += 1;
            cx.send(*node, Message::Request(*clock));
            true
        });
        cx.set_timer(Timer::Again, self.patience..self.patience);
        self.enter_if_unopposed(cx);
    }

    /// Who is missing for the claim of that time. An answer to a claim that is no longer ours is late, and harmless.
    fn missing(&mut self, of: Clock) -> Option<&mut BTreeMap<NodeId, u32>> {
        match &mut self.phase {
            Phase::Waiting { clock, missing } if *clock == of => Some(missing),
            Phase::Idle | Phase::Waiting { .. } | Phase::Inside => None,
        }
    }

    /// RA81:4 Everybody who lives has said Ok.
    fn enter_if_unopposed(&mut self, cx: &mut Context<'_, Self>) {
        if matches!(&self.phase, Phase::Waiting { missing, .. } if missing.is_empty()) {
            cx.cancel_timer(Timer::Again);
            self.phase = Phase::Inside;
            cx.output(Output::Entered);
        }
    }

    /// We are inside, or waiting with the smaller (clock, id).
    fn comes_before(&self, clock: Clock, node: NodeId) -> bool {
        match self.phase {
            Phase::Idle => false,
            Phase::Waiting { clock: ours, .. } => (ours, self.me) < (clock, node),
            Phase::Inside => true,
        }
    }
}

/// Only differences between clocks matter: move the smallest to zero.
fn shift_clocks(nodes: &mut [RicartAgrawalaRobust], messages: &mut [Message]) {
    let mut clocks: Vec<&mut Clock> = Vec::new();
    for node in nodes {
        clocks.push(&mut node.clock);
        clocks.extend(node.deferred.values_mut());
        if let Phase::Waiting { clock, .. } = &mut node.phase {
            clocks.push(clock);
        }
    }
    for message in messages {
        let (Message::Request(clock) | Message::Ok(clock) | Message::Denied(clock)) = message;
        clocks.push(clock);
    }
    let least = clocks.iter().map(|clock| **clock).min().unwrap_or(0);
    clocks.into_iter().for_each(|clock| *clock -= least);
}
