//! A run as something to draw and to state facts about: what happened, in order, without the types of the algorithm.
//!
//! A [`Recorder`] watches a run, of the simulator or on a stage, and a [`Scene`] is what it has seen. A message is one thing
//! here, with its sending and its receipt: that is what an arrow in a drawing needs.

mod recorder;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use vez_algorithms::{NodeId, Phase};

pub use self::recorder::Recorder;

/// What happened in a small system, in order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Scene {
    /// How many nodes there are.
    pub nodes: usize,
    /// What happened at them.
    pub happenings: Vec<Happening>,
    /// What they said to each other, in the order of sending.
    pub messages: Vec<Message>,
    /// When the last thing happened.
    pub end: f64,
}

/// Something that happened at a node.
#[derive(Clone, PartialEq, Debug)]
pub struct Happening {
    /// When: in virtual time, or as the how manieth step on a stage.
    pub time: f64,
    /// Where.
    pub node: NodeId,
    /// What.
    pub what: What,
    /// Where the client of the node stands after it.
    pub phase: Phase,
    /// The state of the node after it, if it was something that happened to it and not something that it did.
    pub state: Option<Value>,
}

/// What can happen at a node. A message is named by its place in [`Scene::messages`].
#[derive(Clone, PartialEq, Debug)]
pub enum What {
    /// The system starts.
    Start,
    /// The client asks for this.
    Ask(String),
    /// The client is inside.
    Enter,
    /// The client leaves.
    Leave,
    /// The client is told something else.
    Told(String),
    /// A message is sent.
    Send {
        /// Who is to have it.
        to: NodeId,
        /// Which one.
        message: usize,
    },
    /// A message arrives.
    Receive {
        /// Who sent it.
        from: NodeId,
        /// Which one.
        message: usize,
    },
    /// A message that was sent from here is lost.
    Lost {
        /// Who was to have it.
        to: NodeId,
        /// Which one.
        message: usize,
    },
    /// A message that was sent from here will arrive a second time, as another message.
    Doubled {
        /// Who is to have it.
        to: NodeId,
        /// The second one.
        message: usize,
    },
    /// A timer is set.
    Set(String),
    /// A timer is cancelled.
    Cancel(String),
    /// A timer fires.
    Fire(String),
    /// The node crashes.
    Crash,
    /// It is back.
    Restart,
    /// The failure detector says that this node has crashed.
    Notice(NodeId),
    /// Something that is nobody else's business.
    Internal,
    /// The node objects to what a peer does.
    Object(String),
}

/// A message from its sending to its end.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    /// The name of the variant.
    pub kind: &'static str,
    /// All that it says.
    pub text: String,
    /// Who sent it.
    pub from: NodeId,
    /// Who was to have it.
    pub to: NodeId,
    /// When it was sent.
    pub sent: f64,
    /// When it arrived, if it did.
    pub received: Option<f64>,
    /// When it was lost, if it is known to be. What comes to a dead node in the simulator neither arrives nor counts as lost.
    pub lost: Option<f64>,
}

/// A time during which a node was neither idle nor well.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stay {
    /// Which node.
    pub node: NodeId,
    /// How it stood.
    pub how: How,
    /// From when.
    pub from: f64,
    /// Until when; until the end of the scene if it never ended.
    pub until: f64,
}

/// How a node stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum How {
    /// Its client waits.
    Waiting,
    /// Its client is inside.
    Inside,
    /// It has crashed.
    Dead,
}

impl Scene {
    /// Who entered, in order; whoever entered twice is there twice.
    #[must_use]
    pub fn entries(&self) -> Vec<NodeId> {
        let entered = |happening: &&Happening| happening.what == What::Enter;
        self.happenings.iter().filter(entered).map(|happening| happening.node).collect()
    }

    /// The kinds of messages, in the order in which they were first sent.
    #[must_use]
    pub fn kinds(&self) -> Vec<&'static str> {
        let mut kinds = Vec::new();
        for message in &self.messages {
            if !kinds.contains(&message.kind) {
                kinds.push(message.kind);
            }
        }
        kinds
    }

    /// What can be said of the scene in numbers, by name.
    ///
    /// | name | what it is |
    /// |---|---|
    /// | `entries` | how many entries there were |
    /// | `messages` | how many messages were sent |
    /// | `sent.KIND` | how many of that kind |
    /// | `sent_by.nX`, `received.nX` | how many that node sent, and how many arrived at it; 0 if none |
    /// | `asked.nX`, `entered.nX`, `left.nX` | when its client did so for the first time, if it did |
    /// | `end` | when the last thing happened |
    #[must_use]
    pub fn facts(&self) -> BTreeMap<String, f64> {
        let mut facts = BTreeMap::from([
            ("entries".to_owned(), self.entries().len() as f64),
            ("messages".to_owned(), self.messages.len() as f64),
            ("end".to_owned(), self.end),
        ]);
        for message in &self.messages {
            *facts.entry(format!("sent.{}", message.kind)).or_default() += 1.0;
            *facts.entry(format!("sent_by.{}", message.from)).or_default() += 1.0;
        }
        for node in NodeId::all(self.nodes) {
            facts.insert(format!("received.{node}"), 0.0);
            facts.entry(format!("sent_by.{node}")).or_default();
        }
        for Happening { time, node, what, .. } in &self.happenings {
            let verb = match what {
                What::Ask(_) => "asked",
                What::Enter => "entered",
                What::Leave => "left",
                What::Receive { .. } => {
                    *facts.entry(format!("received.{node}")).or_default() += 1.0;
                    continue;
                }
                _ => continue,
            };
            facts.entry(format!("{verb}.{node}")).or_insert(*time);
        }
        facts
    }

    /// What each node was told last, other than that it is inside.
    #[must_use]
    pub fn last_told(&self) -> BTreeMap<NodeId, String> {
        let told = self.happenings.iter().filter_map(|happening| match &happening.what {
            What::Told(words) => Some((happening.node, words.clone())),
            _ => None,
        });
        told.collect()
    }

    /// When each node waited, was inside, or was dead: node by node, in order of time.
    #[must_use]
    pub fn stays(&self) -> Vec<Stay> {
        NodeId::all(self.nodes).flat_map(|node| self.stays_of(node)).collect()
    }

    fn stays_of(&self, node: NodeId) -> Vec<Stay> {
        let mut stays = Vec::new();
        let mut now: Option<(How, f64)> = None;
        for happening in self.happenings.iter().filter(|happening| happening.node == node) {
            let is_dead = matches!(now, Some((How::Dead, _))) && happening.what != What::Restart;
            let how = match happening.phase {
                _ if is_dead || happening.what == What::Crash => Some(How::Dead),
                Phase::Idle => None,
                Phase::Waiting => Some(How::Waiting),
                Phase::Inside => Some(How::Inside),
            };
            // Whoever leaves and enters again at the same moment was not inside all the time.
            let anew = how != now.map(|(how, _)| how) || happening.what == What::Enter;
            if anew {
                stays.extend(now.map(|(how, from)| Stay { node, how, from, until: happening.time }));
                now = how.map(|how| (how, happening.time));
            }
        }
        stays.extend(now.map(|(how, from)| Stay { node, how, from, until: self.end }));
        stays
    }

    /// For each node that got a message of that kind, from whom it got its first one: the tree of a broadcast. Whoever
    /// had sent one before is a root, and has nobody above it.
    #[must_use]
    pub fn first_receipts(&self, kind: &str) -> BTreeMap<NodeId, NodeId> {
        let mut above = BTreeMap::new();
        let mut roots = BTreeSet::new();
        let of_kind = |message: &usize| self.messages.get(*message).is_some_and(|message| message.kind == kind);
        for Happening { node, what, .. } in &self.happenings {
            match what {
                What::Send { message, .. } if of_kind(message) && !above.contains_key(node) => {
                    roots.insert(*node);
                }
                What::Receive { from, message } if of_kind(message) && !roots.contains(node) => {
                    above.entry(*node).or_insert(*from);
                }
                _ => {}
            }
        }
        above
    }
}
