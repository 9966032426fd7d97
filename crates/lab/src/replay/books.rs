//! What has to be remembered of a trace to see whether it keeps its promises.

use std::collections::{BTreeMap, BTreeSet};

use vez_algorithms::{
    Algorithm, Client, Effect, EffectOf, Family, Heard, Input, Message, NodeId, NodeSet, OutputOf, Phase, Scene, Setup,
};

use super::{
    Wrong,
    difference::in_words,
    lines::{Kind, Told},
};
use crate::{reach::Links, timers::Timers};

/// A timer may fire so much too early, in parts of the time: additions are rounded.
const ROUNDING: f64 = 1e-9;

/// Whether a node has been heard of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    /// It is not in the trace so far.
    Outside,
    Alive,
    Dead,
}

struct Node<P: Algorithm> {
    life: Life,
    /// Whether all that it ever sent is in the trace.
    from_the_start: bool,
    client: Client<P::Family>,
    /// Before which time each timer that is set must not fire.
    timers: Timers<P::Timer, f64>,
}

/// The clients, the timers and the messages of a trace.
pub(super) struct Books<P: Algorithm> {
    nodes: Vec<Node<P>>,
    /// How many may be inside together.
    limit: usize,
    links: Links,
    inside: Vec<NodeId>,
    /// How many of each message were sent and have not arrived: from, to, what it says in JSON.
    in_flight: BTreeMap<(NodeId, NodeId, String), u64>,
    /// Between whom the last message was lost. A partition has no line, but nothing gets through it.
    cut_off: BTreeSet<(NodeId, NodeId)>,
    /// Those outside from whom something has come.
    heard_of: NodeSet,
    pub(super) messages: u64,
    pub(super) entries: u64,
    pub(super) objections: u64,
}

impl<P: Algorithm> Books<P> {
    pub(super) fn new(setup: &Setup, nodes: usize) -> Self {
        let node = |_| Node {
            life: Life::Outside,
            from_the_start: false,
            client: Client::default(),
            timers: Timers::default(),
        };
        Self {
            nodes: (0..nodes).map(node).collect(),
            limit: setup.k,
            links: Links::of::<P>(setup),
            inside: Vec::new(),
            in_flight: BTreeMap::new(),
            cut_off: BTreeSet::new(),
            heard_of: NodeSet::new(),
            messages: 0,
            entries: 0,
            objections: 0,
        }
    }

    /// How many nodes are in the trace.
    pub(super) fn present(&self) -> usize {
        self.nodes.iter().filter(|node| node.life != Life::Outside).count()
    }

    /// # Errors
    /// What else the node is, in words that go on after "but".
    pub(super) fn is_alive(&self, node: NodeId) -> Result<(), &'static str> {
        match self.nodes[node.index()].life {
            Life::Alive => Ok(()),
            Life::Dead => Err("it is dead"),
            Life::Outside => Err("it has not started"),
        }
    }

    /// Something happens to a node.
    ///
    /// # Errors
    /// Why it cannot, in words that go on after "but".
    pub(super) fn happen(&mut self, node: NodeId, now: f64, input: &Input<P>) -> Result<(), String> {
        if !matches!(input, Input::Start | Input::Restart) {
            self.is_alive(node)?;
        }
        let at = &mut self.nodes[node.index()];
        match input {
            Input::Start if at.life != Life::Outside => return Err("it has started before".to_owned()),
            Input::Start if self.heard_of.contains(node) => {
                return Err("somebody has received from it before".to_owned());
            }
            Input::Start => (at.life, at.from_the_start) = (Life::Alive, true),
            Input::Restart => {
                // Whoever was killed could not say so.
                self.forget(node);
                self.nodes[node.index()].life = Life::Alive;
            }
            Input::Command(command) if Some(*command) == P::Family::LEAVE => {
                match at.client.phase {
                    Phase::Inside => at.client.leave(),
                    Phase::Idle | Phase::Waiting => return Err("it is not inside".to_owned()),
                };
                self.inside.retain(|other| *other != node);
            }
            Input::Command(command) => match at.client.phase {
                Phase::Idle => at.client.ask(*command),
                Phase::Waiting => return Err("it has asked and still waits".to_owned()),
                Phase::Inside => return Err("it is inside".to_owned()),
            },
            Input::Message { from, message } => return self.receive(*from, node, message),
            Input::Timer(timer) => match at.timers.remove(*timer) {
                None => return Err("it has not set that, or has cancelled it".to_owned()),
                Some(earliest) if now < earliest - ROUNDING * earliest.max(1.0) => {
                    return Err(format!("at {now} that is too early: its range begins at {earliest}"));
                }
                Some(_) => {}
            },
            Input::Crash(_) | Input::Internal => {}
        }
        Ok(())
    }

    fn receive(&mut self, from: NodeId, to: NodeId, message: &P::Message) -> Result<(), String> {
        self.cut_off.remove(&pair(from, to));
        if !self.nodes[from.index()].from_the_start {
            self.heard_of.insert(from);
            return Ok(());
        }
        self.take_away(from, to, message).ok_or_else(|| format!("no such message is on its way from {from}"))
    }

    /// A message arrives, or never will.
    fn take_away(&mut self, from: NodeId, to: NodeId, message: &P::Message) -> Option<()> {
        let key = (from, to, text(message));
        let left = self.in_flight.get_mut(&key)?;
        *left -= 1;
        if *left == 0 {
            self.in_flight.remove(&key);
        }
        Some(())
    }

    /// The network loses or doubles a message.
    pub(super) fn on_the_way(&mut self, told: &Told) -> Result<(), Wrong> {
        let (from, to) = (told.node, told.peer(self.nodes.len())?);
        let message = told.message::<P>()?;
        if !self.nodes[from.index()].from_the_start {
            return Ok(());
        }
        let but = || Wrong::parted(format!("{} there, but no such message is on its way", in_words::<P>(told)));
        self.take_away(from, to, &message).ok_or_else(but)?;
        if told.kind == Kind::Double {
            *self.in_flight.entry((from, to, text(&message))).or_default() += 2;
        } else {
            self.cut_off.insert(pair(from, to));
        }
        Ok(())
    }

    /// # Errors
    /// Why the node cannot crash, in words that go on after "but".
    pub(super) fn crash(&mut self, node: NodeId) -> Result<(), &'static str> {
        if self.nodes[node.index()].life == Life::Dead {
            return Err("it is dead already");
        }
        self.forget(node);
        self.nodes[node.index()].life = Life::Dead;
        Ok(())
    }

    fn forget(&mut self, node: NodeId) {
        let at = &mut self.nodes[node.index()];
        at.client = Client::default();
        at.timers.clear();
        self.inside.retain(|other| *other != node);
    }

    /// What a node wanted done is done.
    pub(super) fn carry_out(&mut self, node: NodeId, now: f64, effect: EffectOf<P>) -> Result<(), Wrong> {
        let timers = &mut self.nodes[node.index()].timers;
        match effect {
            Effect::Send(to, _) if !self.links.link(node, to) => {
                return Err(Wrong::law_broken(format!("{node} sends to {to}, which is out of its reach")));
            }
            Effect::Send(to, message) => {
                self.messages += 1;
                *self.in_flight.entry((node, to, text(&message))).or_default() += 1;
            }
            Effect::SetTimer(timer, after) => {
                timers.set(timer, now + after.start.as_secs_f64());
            }
            Effect::CancelTimer(timer) => {
                timers.remove(timer);
            }
            Effect::Output(output) => self.hear(node, &output).map_err(Wrong::law_broken)?,
            Effect::Violation(_) => self.objections += 1,
        }
        Ok(())
    }

    fn hear(&mut self, node: NodeId, output: &OutputOf<P>) -> Result<(), String> {
        let heard = self.nodes[node.index()].client.hear(output).map_err(|wrong| format!("{node} {wrong}"))?;
        match heard {
            Heard::Entered => {
                self.entries += 1;
                self.inside.push(node);
            }
            Heard::Finished => self.entries += 1,
            Heard::Began | Heard::News => {}
        }
        let alive = |node: NodeId| self.nodes.get(node.index()).is_some_and(|node| node.life == Life::Alive);
        P::Family::law(&Scene {
            nodes: self.nodes.len(),
            limit: self.limit,
            inside: &self.inside,
            client: &|node| &self.nodes[node.index()].client,
            alive: &alive,
            connected: &|one, other| {
                !self.cut_off.contains(&pair(one, other)) && self.links.connected(one, other, &alive)
            },
        })
    }
}

fn text(message: &impl Message) -> String {
    serde_json::to_string(message).expect("a message has a text")
}

fn pair(one: NodeId, other: NodeId) -> (NodeId, NodeId) {
    (one.min(other), one.max(other))
}
