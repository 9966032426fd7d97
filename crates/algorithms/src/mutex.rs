//! Mutual exclusion: at most one node is inside at a time, and whoever asks gets in.

mod central;
mod central_denying;
mod fila;
mod fila_forest;
mod lamport;
mod maekawa;
mod naimi_trehel;
mod nxr;
mod raymond;
mod ricart_agrawala;
mod suzuki_kasami;
mod token_ring;

use serde::Serialize;

pub use central::Central;
pub use central_denying::CentralDenying;
pub use fila::Fila;
pub use fila_forest::FilaForest;
pub use lamport::Lamport;
pub use maekawa::Maekawa;
pub use naimi_trehel::NaimiTrehel;
pub use nxr::Nxr;
pub use raymond::{Raymond, RaymondPiggyback};
pub use ricart_agrawala::{RicartAgrawala, RicartAgrawalaClock};
pub use suzuki_kasami::SuzukiKasami;
pub use token_ring::TokenRing;

use crate::{Algorithm, Context, NodeId, Protocol};

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
}

/// An algorithm of this family.
pub trait Mutex: Algorithm<Command = Command, Output = Output> {}
impl<A: Algorithm<Command = Command, Output = Output>> Mutex for A {}

/// The law of the family, given who is inside.
///
/// # Errors
/// Two nodes that are inside together.
pub fn law(inside: &[NodeId]) -> Result<(), (NodeId, NodeId)> {
    match inside {
        [] | [_] => Ok(()),
        [one, other, ..] => Err((*one, *other)),
    }
}

/// Where a client stands. Each change asserts that the one before it was right: asking twice or leaving without having
/// entered is a fault of the driver, entering without having asked one of ours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize)]
pub enum Phase {
    /// Wants nothing.
    #[default]
    Idle,
    /// Has asked, and waits.
    Waiting,
    /// Is inside.
    Inside,
}

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
    pub fn enter<P: Protocol<Output = Output>>(&mut self, cx: &mut Context<'_, P>) {
        self.arrive();
        cx.output(Output::Entered);
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
