//! Mutual exclusion: at most one node is inside at a time, and whoever asks gets in.

mod central;
mod central_denying;
mod central_failover;
pub mod fila;
mod fila_forest;
mod lamport;
mod maekawa;
mod naimi_trehel;
mod nxr;
mod raymond;
mod ricart_agrawala;
mod ricart_agrawala_robust;
mod suzuki_kasami;
mod token_ring;
mod token_ring_regenerating;
mod voting;

use alloc::{format, string::String, vec, vec::Vec};

pub use central::Central;
pub use central_denying::CentralDenying;
pub use central_failover::CentralFailover;
pub use fila::Fila;
pub use fila_forest::FilaForest;
pub use lamport::Lamport;
pub use maekawa::Maekawa;
pub use naimi_trehel::NaimiTrehel;
pub use nxr::Nxr;
pub use raymond::{Raymond, RaymondPiggyback};
pub use ricart_agrawala::{RicartAgrawala, RicartAgrawalaClock};
pub use ricart_agrawala_robust::RicartAgrawalaRobust;
pub use suzuki_kasami::SuzukiKasami;
pub use token_ring::TokenRing;
pub use token_ring_regenerating::TokenRingRegenerating;
pub use voting::{Voting, majority_of};

use crate::{Entered, Family, Heard, Never, NodeId, Protocol, Scene, Setup};

/// What a client of mutual exclusion asks of its node. It takes turns: Request, then, once inside, Release.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Let me in.
    Request,
    /// I am leaving.
    Release,
}

/// What a client of mutual exclusion is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Output {
    /// You are inside.
    Entered,
    /// Not now; you wait no longer.
    Busy,
}

impl From<Entered> for Output {
    fn from(_: Entered) -> Self {
        Self::Entered
    }
}

/// An algorithm in which one token goes round, and who is inside has it: one node of it can be set up alone, and whatever is
/// to be kept once in the whole system can ride on the token.
pub trait TokenBased: Protocol<Family = Mutex, Timer = Never> {
    /// A node at rest in a system of so many; `father` is the next one on the way to the token, or itself if the token is here.
    fn at_rest(me: NodeId, father: NodeId, nodes: usize) -> Self;

    /// Whether the token goes along with a message.
    fn is_token(message: &Self::Message) -> bool;

    /// Whether everybody that a message names is one of so many nodes. A node believes that of what it receives.
    fn names_only(message: &Self::Message, nodes: usize) -> bool;
}

/// The family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mutex {}

impl Family for Mutex {
    const NAME: &'static str = "mutex";
    const LAW: &'static str = "at most one inside";
    type Command = Command;
    type Output = Output;
    type News = ();
    const LEAVE: Option<Command> = Some(Command::Release);

    fn wants(_setup: &Setup) -> Vec<Command> {
        vec![Command::Request]
    }

    fn hear(_news: &mut (), output: &Output) -> Heard {
        match output {
            Output::Entered => Heard::Entered,
            Output::Busy => Heard::Finished,
        }
    }

    /// At most one is inside.
    fn law(scene: &Scene<'_, Self>) -> Result<(), String> {
        match scene.inside {
            [] | [_] => Ok(()),
            [one, other, ..] => Err(format!("{one} and {other} are inside together")),
        }
    }
}
