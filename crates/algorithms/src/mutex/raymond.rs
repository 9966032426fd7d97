//! Raymond's mutual exclusion on a static tree [R89], as printed and with requests that ride on the privilege.
//! Steps: docs/algorithms/raymond.md, docs/algorithms/raymond-piggyback.md.
//!
//! Every node knows which neighbour lies towards the privilege, and keeps a line of the neighbours (or itself) that have
//! asked it. One request stands for the whole line; the privilege travels back the way the requests came.
//!
//!   n2 → n1  Request        n1 → n0  Request        n0 → n1  Privilege        n1 → n2  Privilege
//!
//! Cost: twice the distance to the privilege, O(log n) on a balanced tree; at most about 4 when all compete.
//! Assumes: no loss, no crash; FIFO not needed.
//! Departures: none in `raymond`. In `raymond-piggyback` a node that gives the privilege away and wants it back says so
//! in the Privilege itself, where the paper sends a Request behind it.

use alloc::{collections::VecDeque, vec::Vec};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Mutex, TokenBased};
use crate::{Algorithm, Context, Model, Never, NodeId, Phase, Protocol, Setting, Setup, SetupError};

/// What neighbours say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// I, or somebody behind me, want the privilege.
    Request,
    /// Here is the privilege.
    Privilege,
    /// Here is the privilege, and I want it back.
    PrivilegeAndRequest,
}

/// One node of Raymond's algorithm; whether a request rides on the privilege is part of the type.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Raymond<const PIGGYBACK: bool = false> {
    me: NodeId,
    /// HOLDER: ourselves, or the neighbour towards the privilege.
    holder: NodeId,
    /// USING, and whether we ourselves want in.
    phase: Phase,
    /// REQUEST_Q: which neighbours have asked us, and we ourselves.
    line: VecDeque<NodeId>,
    /// ASKED: whether the holder has our request.
    asked: bool,
}

/// With the request riding on the privilege.
pub type RaymondPiggyback = Raymond<true>;

impl<const PIGGYBACK: bool> Algorithm for Raymond<PIGGYBACK> {
    const NAME: &'static str = if PIGGYBACK { "raymond-piggyback" } else { "raymond" };
    const COST: &'static str = "O(log n): twice the distance to the token";
    const PAPER: &'static str = "R89";
    const SETTINGS: &'static [Setting] = &[Setting::Topology];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        Ok(setup.ids().map(|me| Self::at_rest(me, setup.tree.father(me), setup.nodes())).collect())
    }
}

impl<const PIGGYBACK: bool> TokenBased for Raymond<PIGGYBACK> {
    fn at_rest(me: NodeId, father: NodeId, _nodes: usize) -> Self {
        Self { me, holder: father, phase: Phase::Idle, line: VecDeque::new(), asked: false }
    }

    fn is_token(message: &Message) -> bool {
        matches!(message, Message::Privilege | Message::PrivilegeAndRequest)
    }

    fn names_only(_: &Message, _: usize) -> bool {
        true
    }
}

impl<const PIGGYBACK: bool> Protocol for Raymond<PIGGYBACK> {
    const MODEL: Model = Model::RELIABLE;
    type Message = Message;
    type Timer = Never;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                self.phase.ask();
                self.line.push_back(self.me); // R89:1
            }
            Command::Release => self.phase.leave(), // R89:4
        }
        self.assign_privilege(cx);
        self.make_request(cx);
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Request => self.line.push_back(from), // R89:2
            Message::Privilege | Message::PrivilegeAndRequest if self.holder != from => {
                return cx.violation("a privilege from where none was");
            }
            Message::Privilege => self.holder = self.me, // R89:3
            Message::PrivilegeAndRequest => {
                self.holder = self.me;
                self.line.push_back(from);
            }
        }
        self.assign_privilege(cx);
        self.make_request(cx);
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}

impl<const PIGGYBACK: bool> Raymond<PIGGYBACK> {
    /// R89:5 The privilege is here and not in use: the first in line gets it.
    fn assign_privilege(&mut self, cx: &mut Context<'_, Self>) {
        if self.holder != self.me || self.phase == Phase::Inside {
            return;
        }
        let Some(first) = self.line.pop_front() else { return };
        self.holder = first;
        self.asked = false;
        if first == self.me {
            self.phase.enter(cx);
        } else if PIGGYBACK && !self.line.is_empty() {
            self.asked = true;
            cx.send(first, Message::PrivilegeAndRequest);
        } else {
            cx.send(first, Message::Privilege);
        }
    }

    /// R89:6 The privilege is elsewhere, somebody here wants it, and the holder does not know yet.
    fn make_request(&mut self, cx: &mut Context<'_, Self>) {
        if self.holder != self.me && !self.line.is_empty() && !self.asked {
            self.asked = true;
            cx.send(self.holder, Message::Request);
        }
    }
}
