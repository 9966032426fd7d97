//! Failure detection: nodes find out by themselves which others have crashed.

mod hi_adsd;

use alloc::{format, string::String, vec::Vec};

pub use hi_adsd::{HiAdsd, Message as HiAdsdMessage, Timer as HiAdsdTimer};

use crate::{Family, Heard, Never, NodeId, NodeSet, Phase, Scene, Setup};

/// What the client of a detector is told. It never asks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Output {
    /// A round of tests begins.
    RoundBegan,
    /// It is over.
    RoundEnded,
    /// This node has crashed. Said once.
    Suspect(NodeId),
}

/// The family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Detector {}

impl Family for Detector {
    const NAME: &'static str = "detector";
    const LAW: &'static str = "nobody alive is suspected, and every crash is known in the end";
    type Command = Never;
    type Output = Output;
    /// Who is suspected.
    type News = NodeSet;
    const LEAVE: Option<Never> = None;

    fn wants(_setup: &Setup) -> Vec<Never> {
        Vec::new()
    }

    fn hear(suspects: &mut NodeSet, output: &Output) -> Heard {
        match output {
            Output::RoundBegan => Heard::Began,
            Output::RoundEnded => Heard::Finished,
            Output::Suspect(node) => {
                suspects.insert(*node);
                Heard::News
            }
        }
    }

    fn learns(output: &Output) -> Option<NodeId> {
        match output {
            Output::Suspect(node) => Some(*node),
            Output::RoundBegan | Output::RoundEnded => None,
        }
    }

    /// Nobody suspects a node that is alive.
    fn law(scene: &Scene<'_, Self>) -> Result<(), String> {
        for (node, client) in scene.living() {
            if let Some(wronged) = client.news.iter().find(|suspect| (scene.alive)(*suspect)) {
                return Err(format!("{node} suspects {wronged}, which is alive"));
            }
        }
        Ok(())
    }

    /// A node waits for the end of its round, and to learn of every crash.
    fn waits(scene: &Scene<'_, Self>, node: NodeId) -> bool {
        let client = scene.client(node);
        client.phase == Phase::Waiting || scene.dead().any(|dead| !client.news.contains(dead))
    }
}
