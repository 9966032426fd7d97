//! Broadcast: what one node says reaches all that are alive, each once, unless the one who says it crashes.

mod direct;
mod spanning_tree;

use alloc::{collections::BTreeMap, format, string::String, vec, vec::Vec};

pub use direct::Direct;
use serde::{Serialize, de::DeserializeOwned};
pub use spanning_tree::SpanningTree;

use crate::{Family, Heard, NodeId, Phase, Protocol, Scene, Setup, SetupError};

/// What a client asks of its node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Command<T = ()> {
    /// Tell this to everybody.
    Broadcast(T),
}

/// What a client is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Output<T = ()> {
    /// Somebody, perhaps this node itself, says this.
    Delivered {
        /// Who.
        root: NodeId,
        /// The how manieth broadcast of that node this is, from 1.
        number: u64,
        /// What.
        payload: T,
    },
    /// Everybody who is alive has what this node said last.
    Done,
}

/// What the law remembers of the deliveries at a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Deliveries {
    /// By root, the number of the last broadcast that was delivered.
    last: BTreeMap<NodeId, u64>,
    /// A broadcast that came again, or after a later one.
    wrong: Option<(NodeId, u64)>,
}

/// The family, for what people say: anything that can be copied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Broadcast<T = ()>(core::marker::PhantomData<T>);

/// What can be broadcast.
pub trait Payload:
    Copy + Ord + core::hash::Hash + core::fmt::Debug + Default + Serialize + DeserializeOwned + Send + Sync + 'static
{
}
impl<T> Payload for T where
    T: Copy
        + Ord
        + core::hash::Hash
        + core::fmt::Debug
        + Default
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// A broadcast as a layer below another algorithm, which says what is spread.
pub trait Layer<T: Payload>: Protocol<Family = Broadcast<T>> {
    /// The layer of each node.
    ///
    /// # Errors
    /// If it cannot run on such a system.
    fn layers(setup: &Setup) -> Result<Vec<Self>, SetupError>;

    /// Rewrites nodes and messages in flight into an equivalent state: the numbers of broadcasts become the smallest with
    /// which the same will happen, and what is still to be spread becomes what the algorithm above says. It is part of that
    /// one's [`Protocol::CANONICAL`].
    fn rewrite<'a>(
        nodes: impl Iterator<Item = &'a mut Self>,
        messages: impl Iterator<Item = &'a mut Self::Message>,
        payload: impl FnMut(&mut T),
    );
}

impl<T: Payload> Family for Broadcast<T> {
    const NAME: &'static str = "broadcast";
    const LAW: &'static str = "everything said reaches all once";
    type Command = Command<T>;
    type Output = Output<T>;
    type News = Deliveries;
    const LEAVE: Option<Command<T>> = None;

    fn wants(_setup: &Setup) -> Vec<Command<T>> {
        vec![Command::Broadcast(T::default())]
    }

    fn hear(news: &mut Deliveries, output: &Output<T>) -> Heard {
        match *output {
            Output::Delivered { root, number, .. } => {
                if news.last.insert(root, number).is_some_and(|last| last >= number) {
                    news.wrong = Some((root, number));
                }
                Heard::News
            }
            Output::Done => Heard::Finished,
        }
    }

    /// Nobody is told the same thing twice, or something older than before, or what was never said; and when a root
    /// is done, all who live have it.
    fn law(scene: &Scene<'_, Self>) -> Result<(), String> {
        for (node, client) in scene.living() {
            if let Some((root, number)) = client.news.wrong {
                return Err(format!("broadcast {number} of {root} comes to {node} again or too late"));
            }
            for (root, number) in &client.news.last {
                if (scene.alive)(*root) && scene.client(*root).news.last.get(root) < Some(number) {
                    return Err(format!("broadcast {number} of {root} comes to {node}, but {root} never sent it"));
                }
            }
            if client.phase == Phase::Idle && scene.living().any(|(other, _)| lacks(scene, other, node)) {
                return Err(format!("{node} is done, but not all have its last broadcast"));
            }
        }
        Ok(())
    }

    /// A node waits for its own broadcast to be done. That all have it then is the law.
    fn waits(scene: &Scene<'_, Self>, node: NodeId) -> bool {
        scene.client(node).phase == Phase::Waiting
    }
}

/// Whether a node does not yet have the last broadcast of another.
fn lacks<T: Payload>(scene: &Scene<'_, Broadcast<T>>, node: NodeId, root: NodeId) -> bool {
    let of_root = |at: NodeId| scene.client(at).news.last.get(&root).copied().unwrap_or(0);
    of_root(node) < of_root(root)
}
