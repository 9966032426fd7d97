//! The emulator: algorithms of `vez-algorithms` over real sockets, in real time.
//!
//! The structs are those that the simulator and the checker run; nothing in them knows the difference. What they take for
//! granted of a network, and sockets do not give, a [`link`](vez_algorithms::link) makes up for.
//!
//! - [`emulate`] runs a system on this machine, each node on a thread or in a process of its own, and measures it; [`take_part`] is
//!   one such process.
//! - [`peer`] is a process of the laboratory exercise, with a terminal, and [`resource`] what all of them want.
//! - [`frame`] is what goes over the wire.
//!
//! This is the part of the laboratory with sockets, threads and a clock: `vez-lab` has none of them, and nothing here decides
//! what an algorithm does.

pub mod clock;
mod company;
mod control;
mod event_log;
pub mod frame;
mod host;
mod node;
mod outcome;
mod peer;
mod player;
mod referee;
mod resource;
mod script;
mod settings;
mod transport;

use std::{
    hash::{BuildHasher, RandomState},
    io,
};

use vez_algorithms::{
    Algorithm, Monitored, NodeId, Setup, SetupError,
    catalog::{self, Entry, Job},
};

use self::referee::SystemInfo;
pub use self::{
    control::Invitation,
    outcome::{Emulation, Failure, Outcome, Simulated},
    peer::{Outlets, PeerError, PeerSettings, peer},
    referee::Watcher,
    resource::{ResourceError, resource},
    script::{Script, ScriptError},
    settings::{Crash, Settings, SettingsError},
    transport::Transport,
};

/// Why there was no run.
#[derive(Debug, thiserror::Error)]
pub enum CannotEmulate {
    /// The settings have a mistake.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// There can be no such system.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The machine does not play along.
    #[error("cannot {0}: {1}")]
    Io(&'static str, io::Error),
    /// A node was gone before the run began.
    #[error("{0} was gone before the run began")]
    Lost(NodeId),
    /// The referee was gone before the run began, or the other nodes did not come.
    #[error("{0} waited in vain for the run to begin")]
    Orphaned(NodeId),
}

/// Starts a node in a process of its own.
pub type Spawn<'a> = &'a dyn Fn(NodeId, Invitation) -> io::Result<std::process::Child>;

/// Emulates the algorithm of that name: on threads, or, given a way to start them, in processes. Nothing if there is no such
/// algorithm.
pub fn emulate(
    name: &str,
    settings: &Settings,
    spawn: Option<Spawn<'_>>,
    watcher: &dyn Watcher,
) -> Option<Result<Outcome, CannotEmulate>> {
    catalog::visit(name, Emulate { settings, spawn, watcher })
}

struct Emulate<'a> {
    settings: &'a Settings,
    spawn: Option<Spawn<'a>>,
    watcher: &'a dyn Watcher,
}

impl Job for Emulate<'_> {
    type Done = Result<Outcome, CannotEmulate>;

    fn with<A: Algorithm>(self) -> Self::Done {
        let system = |setup: &Setup| {
            Ok(SystemInfo { nodes: A::system(setup)?.len(), clients: A::clients(setup), wants: A::wants(setup) })
        };
        referee::emulate::<A::Family>(&Entry::of::<A>(), &system, self.settings, self.spawn, self.watcher)
    }

    fn with_detector<A: Algorithm>(self) -> Self::Done {
        self.with::<Monitored<A>>()
    }
}

/// Takes part in an emulation as one node, until it is over. Nothing if there is no such algorithm.
pub fn take_part(
    name: &str,
    node: NodeId,
    settings: &Settings,
    invitation: Invitation,
) -> Option<Result<(), CannotEmulate>> {
    let entry = catalog::find(name)?;
    Some(player::play(entry.name, node, settings, invitation))
}

/// A number that nobody can guess: the standard library draws one for every hash map.
fn random_number() -> u64 {
    RandomState::new().hash_one(clock::now()) >> 12 // readable by those who have no more than doubles
}
