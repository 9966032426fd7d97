//! A token ring that survives the loss of its token [TS07]. Steps: docs/algorithms/token-ring-regenerating.md.
//!
//! The token travels as in `token_ring`. Whoever has waited for it for long sends a probe around the same ring, behind it.
//! Whoever has the token, or has just sent it, keeps the probe: the token is only slow. A probe that comes back has met no
//! token, and its sender makes a new one. Of several probes only that of the lowest number comes back, as in [CR79]. Each
//! hop of a probe is acknowledged; who does not answer is dead, and left out from then on.
//!
//!   n0 → n1  Token                 n1 → n2  Token     (after a pause, or on leaving)
//!   n2 → n3  Probe(n2)             n3 → n2  Ack(n2)   n3 → n0  Probe(n2)   …
//!
//! Cost: as `token_ring`, and 2n messages for a new token. Assumes: messages that take less than half of `patience`; of
//! `TRIES` probes to a node that lives one is acknowledged; no restarts; FIFO not needed.
//! Departures: the source says only that a lost token must be told from a slow one and made anew; how to is ours. A node
//! that does not want in rests the token for a while.

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex, Output};
use crate::{
    Algorithm, Context, Invariant, Model, NodeId, NodeSet, Protocol, Setting, Setup, SetupError, Timing, World,
};

/// How often a node is asked before its silence is taken for its death.
const TRIES: u32 = 8;

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// The right to enter.
    Token,
    /// This node has waited for long: where is the token? To be handed on.
    Probe(NodeId),
    /// The probe of this node has arrived.
    Ack(NodeId),
}

/// When a node wants to be woken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The token has rested here long enough.
    Rest,
    /// The token that was sent has arrived by now, or never will.
    Arrive,
    /// We have waited for longer than a token takes that is neither lost nor slow.
    Wait,
    /// The acknowledgement of a probe should have come.
    Ack,
}

/// Where this node stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
enum Phase {
    /// Wants nothing.
    Idle,
    /// Wants nothing, and has the token.
    Resting,
    Waiting,
    /// Waits, and its probe is under way.
    Probing,
    /// Is inside, and has the token.
    Inside,
}

/// A probe that this node hands on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
struct Relay {
    /// Whose probe it is.
    origin: NodeId,
    /// How often it was sent to the one who is next.
    tries: u32,
}

/// One node of a token ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct TokenRingRegenerating {
    me: NodeId,
    nodes: usize,
    patience: Duration,
    phase: Phase,
    /// Whether the token that we sent last may still be on its way.
    sending: bool,
    relay: Option<Relay>,
    /// Who did not answer.
    dead: NodeSet,
}

impl Algorithm for TokenRingRegenerating {
    const NAME: &'static str = "token-ring-regenerating";
    const COST: &'static str = "1..∞, and 2n for a new token";
    const PAPER: &'static str = "TS07";
    const SETTINGS: &'static [Setting] = &[Setting::Patience];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let (nodes, patience) = (setup.nodes(), setup.patience);
        let phase = |me| if me == setup.tree.root() { Phase::Resting } else { Phase::Idle };
        let node = |me| {
            let (phase, dead) = (phase(me), NodeSet::new());
            Self { me, nodes, patience, phase, sending: false, relay: None, dead }
        };
        Ok(setup.ids().map(node).collect())
    }
}

impl Protocol for TokenRingRegenerating {
    const MODEL: Model =
        Model { timing: Timing::Bounded, survives_loss: true, survives_crashes: true, ..Model::RELIABLE };
    const INVARIANT: Option<Invariant<Self>> = Some(one_token);
    type Message = Message;
    type Timer = Timer;
    type Family = Mutex;

    fn on_start(&mut self, cx: &mut Context<'_, Self>) {
        if self.has_token() {
            self.rest(cx); // TS07:1
        }
    }

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request if self.phase == Phase::Resting => {
                cx.cancel_timer(Timer::Rest);
                self.phase = Phase::Inside;
                cx.output(Output::Entered);
            }
            Command::Request => {
                assert_eq!(self.phase, Phase::Idle, "one request at a time");
                self.phase = Phase::Waiting;
                cx.set_timer(Timer::Wait, self.wait()..self.wait());
            }
            Command::Release => {
                assert_eq!(self.phase, Phase::Inside, "only who is inside may leave");
                self.pass_on(cx); // TS07:3
            }
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Token => self.on_token(cx),
            Message::Probe(origin) => {
                cx.send(from, Message::Ack(origin));
                self.on_probe(origin, cx);
            }
            Message::Ack(origin) if self.relay.is_some_and(|relay| relay.origin == origin) => self.drop_relay(cx),
            Message::Ack(_) => {} // the token or a probe with a lower number was faster
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Rest => self.pass_on(cx),
            Timer::Arrive => self.sending = false,
            Timer::Wait => self.probe(cx),
            Timer::Ack => self.try_again(cx),
        }
    }
}

impl TokenRingRegenerating {
    fn on_token(&mut self, cx: &mut Context<'_, Self>) {
        match self.phase {
            Phase::Idle | Phase::Waiting | Phase::Probing => self.take(cx),
            Phase::Resting | Phase::Inside => cx.violation("a second token"),
        }
    }

    fn on_probe(&mut self, origin: NodeId, cx: &mut Context<'_, Self>) {
        if origin == self.me {
            if self.phase == Phase::Probing {
                self.take(cx); // TS07:8
            }
            return; // otherwise the token came, or a probe with a lower number
        }
        if self.has_token() || self.sending {
            return; // TS07:6
        }
        if self.phase == Phase::Probing {
            if self.me < origin {
                return; // TS07:7
            }
            self.phase = Phase::Waiting; // TS07:7
        }
        self.hand_on(Relay { origin, tries: 1 }, cx);
    }

    /// TS07:4
    fn probe(&mut self, cx: &mut Context<'_, Self>) {
        cx.set_timer(Timer::Wait, self.wait()..self.wait());
        self.phase = Phase::Probing;
        self.hand_on(Relay { origin: self.me, tries: 1 }, cx);
    }

    /// TS07:5 To the next one, or to nobody: if its sender has died the probe is nobody's; if we are alone it has been
    /// around.
    fn hand_on(&mut self, relay: Relay, cx: &mut Context<'_, Self>) {
        match self.next(relay.origin) {
            Some(next) => {
                self.relay = Some(relay);
                cx.send(next, Message::Probe(relay.origin));
                cx.set_timer(Timer::Ack, self.patience..self.patience);
            }
            None => {
                self.drop_relay(cx);
                if relay.origin == self.me {
                    self.take(cx); // TS07:8
                }
            }
        }
    }

    /// TS07:5 No answer.
    fn try_again(&mut self, cx: &mut Context<'_, Self>) {
        let Relay { origin, tries } = self.relay.expect("only a probe is waited for");
        if tries < TRIES {
            return self.hand_on(Relay { origin, tries: tries + 1 }, cx);
        }
        if let Some(silent) = self.next(origin) {
            self.dead.insert(silent);
        }
        self.hand_on(Relay { origin, tries: 1 }, cx);
    }

    fn drop_relay(&mut self, cx: &mut Context<'_, Self>) {
        if self.relay.take().is_some() {
            cx.cancel_timer(Timer::Ack);
        }
    }

    /// The token is here. A probe that we were handing on has found it.
    fn take(&mut self, cx: &mut Context<'_, Self>) {
        self.drop_relay(cx); // TS07:6
        if self.phase == Phase::Idle {
            return self.rest(cx);
        }
        cx.cancel_timer(Timer::Wait);
        self.phase = Phase::Inside; // TS07:2
        cx.output(Output::Entered);
    }

    fn rest(&mut self, cx: &mut Context<'_, Self>) {
        self.phase = Phase::Resting;
        cx.set_timer(Timer::Rest, self.patience..self.patience);
    }

    /// TS07:3 Who is left alone keeps the token.
    fn pass_on(&mut self, cx: &mut Context<'_, Self>) {
        let Some(next) = self.next(self.me) else {
            self.phase = Phase::Resting;
            return;
        };
        self.phase = Phase::Idle;
        self.sending = true;
        cx.send(next, Message::Token);
        cx.set_timer(Timer::Arrive, self.patience..self.patience);
    }

    fn has_token(&self) -> bool {
        matches!(self.phase, Phase::Resting | Phase::Inside)
    }

    /// The next one on the ring that lives, if we come to it before we come to `last`.
    fn next(&self, last: NodeId) -> Option<NodeId> {
        let around = (1..self.nodes).map(|hop| NodeId::from_index((self.me.index() + hop) % self.nodes));
        around.take_while(|node| !(*node == last && self.dead.contains(last))).find(|node| !self.dead.contains(*node))
    }

    /// As long as a token takes around the ring that rests with everybody, and then a probe that needs every try.
    fn wait(&self) -> Duration {
        self.patience * (TRIES + 1) * u32::try_from(self.nodes).unwrap_or(u32::MAX)
    }
}

/// Of all who live, at most one has the token or will get it.
fn one_token(world: &World<'_, TokenRingRegenerating>) -> Result<(), &'static str> {
    let lives = |node: &TokenRingRegenerating| !world.crashed.contains(node.me);
    let held = world.nodes.iter().filter(|node| lives(node) && node.has_token()).count();
    let on_its_way = world.in_flight.iter().filter(|(_, _, message)| **message == Message::Token).count();
    if held + on_its_way > 1 { Err("there are two tokens") } else { Ok(()) }
}
