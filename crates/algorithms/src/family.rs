//! What families of algorithms have in common: their words, their clients, and the law.

use alloc::{format, string::String, vec::Vec};
use core::{fmt::Debug, hash::Hash};

use serde::{Deserialize, Serialize};

use crate::{Context, NodeId, OutputOf, Protocol, Setup};

/// A problem, and what it takes to tell whether an algorithm solves it: what clients say, what they are told, and what
/// must never be.
pub trait Family: Copy + Eq + Hash + Debug + Send + Sync + 'static {
    /// As one reads it in a list.
    const NAME: &'static str;
    /// The law in a few words.
    const LAW: &'static str;
    /// What a client asks of its node.
    type Command: Copy + Eq + Hash + Debug + Send + Sync + 'static;
    /// What a client is told.
    type Output: Copy + Eq + Hash + Debug + Send + Sync + 'static;
    /// What the law has to remember of what a client was told.
    type News: Clone + Eq + Hash + Debug + Default + Send + Sync + 'static;

    /// What a client says that leaves; nothing where nobody is ever inside.
    const LEAVE: Option<Self::Command>;

    /// What clients usually ask for, given the system. Nothing if the algorithm works without being asked.
    fn wants(setup: &Setup) -> Vec<Self::Command>;

    /// What a client asks for in these words, those of `Debug`, where it may ask for more than it usually does.
    fn command(_words: &str) -> Option<Self::Command> {
        None
    }

    /// Takes note of what a client is told, and says what it means for the client.
    fn hear(news: &mut Self::News, output: &Self::Output) -> Heard;

    /// Whose crash an output tells of, if any.
    fn learns(_output: &Self::Output) -> Option<NodeId> {
        None
    }

    /// The law, which holds in every state.
    ///
    /// # Errors
    /// How it is broken, in words.
    fn law(scene: &Scene<'_, Self>) -> Result<(), String>;

    /// Whether something is still owed to the client of a node that is alive. Nobody must wait for ever.
    fn waits(scene: &Scene<'_, Self>, node: NodeId) -> bool {
        scene.client(node).phase == Phase::Waiting
    }
}

/// What an output means for the client that is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// It waits from now on, although it did not ask: its node has begun something by itself.
    Began,
    /// It is inside.
    Entered,
    /// What it asked for is done. Told to a client that did not ask, this is news.
    Finished,
    /// It learns something.
    News,
}

/// The client of one node, as anybody outside sees it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Client<F: Family> {
    /// Where it stands.
    pub phase: Phase,
    /// What it asked for, while it waits or is inside.
    pub asked: Option<F::Command>,
    /// What it was told.
    pub news: F::News,
}

impl<F: Family> Default for Client<F> {
    fn default() -> Self {
        Self { phase: Phase::Idle, asked: None, news: F::News::default() }
    }
}

impl<F: Family> Client<F> {
    /// It asks.
    ///
    /// # Panics
    /// If it was waiting or inside.
    pub fn ask(&mut self, command: F::Command) {
        self.phase.ask();
        self.asked = Some(command);
    }

    /// It is told something. What comes back is what that means for it.
    ///
    /// # Errors
    /// If it cannot be told so now, in words.
    pub fn hear(&mut self, output: &F::Output) -> Result<Heard, &'static str> {
        let heard = F::hear(&mut self.news, output);
        match (heard, self.phase) {
            (Heard::Began, Phase::Idle) => self.phase.ask(),
            (Heard::Entered, Phase::Waiting) => self.phase.arrive(),
            (Heard::Finished, Phase::Waiting) => {
                self.phase = Phase::Idle;
                self.asked = None;
            }
            (Heard::Finished, Phase::Idle) => return Ok(Heard::News),
            (Heard::News, _) => {}
            (Heard::Entered, Phase::Idle | Phase::Inside) => return Err("enters without having asked"),
            (Heard::Began, Phase::Waiting | Phase::Inside) => return Err("begins anew before it has finished"),
            (Heard::Finished, Phase::Inside) => return Err("is done with what it is still inside of"),
        }
        Ok(heard)
    }

    /// It leaves.
    ///
    /// # Panics
    /// If it was not inside, or the family has nothing to leave.
    pub fn leave(&mut self) -> F::Command {
        self.phase.leave();
        self.asked = None;
        F::LEAVE.expect("whoever can enter can leave")
    }
}

/// All clients of a system at one instant.
pub struct Scene<'a, F: Family> {
    /// How many nodes there are.
    pub nodes: usize,
    /// How many may be inside, where the family has such a limit.
    pub limit: usize,
    /// Who is inside.
    pub inside: &'a [NodeId],
    /// The client of each node.
    pub client: &'a dyn Fn(NodeId) -> &'a Client<F>,
    /// Whether a node is alive.
    pub alive: &'a dyn Fn(NodeId) -> bool,
    /// Whether messages get from one node to another, if need be by way of others that are alive.
    pub connected: &'a dyn Fn(NodeId, NodeId) -> bool,
}

impl<'a, F: Family> Scene<'a, F> {
    /// The client of a node.
    #[must_use]
    pub fn client(&self, node: NodeId) -> &'a Client<F> {
        (self.client)(node)
    }

    /// The nodes that are alive, each with its client.
    pub fn living(&self) -> impl Iterator<Item = (NodeId, &'a Client<F>)> + '_ {
        NodeId::all(self.nodes).filter(|node| (self.alive)(*node)).map(|node| (node, self.client(node)))
    }

    /// The nodes that are not.
    pub fn dead(&self) -> impl Iterator<Item = NodeId> + '_ {
        NodeId::all(self.nodes).filter(|node| !(self.alive)(*node))
    }
}

/// Where a client stands. Each change asserts that the one before it was right: asking twice or leaving without having
/// entered is a fault of the driver, entering without having asked one of ours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Phase {
    /// Wants nothing.
    #[default]
    Idle,
    /// Has asked, and waits.
    Waiting,
    /// Is inside.
    Inside,
}

/// The output that says "you are inside", in every family in which one can be.
pub struct Entered;

impl Phase {
    /// Idle → Waiting.
    ///
    /// # Panics
    /// If the client was waiting or inside.
    pub fn ask(&mut self) {
        assert_eq!(*self, Self::Idle, "one request at a time");
        *self = Self::Waiting;
    }

    /// Waiting → Inside, and the client is told.
    ///
    /// # Panics
    /// If the client was not waiting.
    pub fn enter<P: Protocol>(&mut self, cx: &mut Context<'_, P>)
    where
        OutputOf<P>: From<Entered>,
    {
        self.arrive();
        cx.output(Entered.into());
    }

    /// Waiting → Inside.
    ///
    /// # Panics
    /// If the client was not waiting.
    pub fn arrive(&mut self) {
        assert_eq!(*self, Self::Waiting, "only who waits may enter");
        *self = Self::Inside;
    }

    /// Inside → Idle.
    ///
    /// # Panics
    /// If the client was not inside.
    pub fn leave(&mut self) {
        assert_eq!(*self, Self::Inside, "only who is inside may leave");
        *self = Self::Idle;
    }
}

/// Some nodes, in words.
pub(crate) fn names(nodes: &[NodeId]) -> String {
    let mut text = String::new();
    for (at, node) in nodes.iter().enumerate() {
        let between = if at == 0 { "" } else { ", " };
        text += &format!("{between}{node}");
    }
    text
}
