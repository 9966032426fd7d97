//! One process of the laboratory exercise: a terminal, a keyboard, and datagrams that a person can read.
//!
//! Everybody is told the same addresses, in the same order, and its own place among them. Nothing happens before all are
//! there; then a line typed is an internal event, if it is the number of the process, and asks for the critical section
//! otherwise. Every event prints a line with the logical clock after it.

mod gathering;
mod opening;
mod process;
mod words;

use std::{
    io::{self, Write},
    net::SocketAddr,
    sync::atomic::AtomicBool,
};

use vez_algorithms::{SetupError, catalog};
use vez_lab::system::System;

use self::process::Peer;
use crate::{script::Script, transport::advice};

/// One process, and where the others are.
#[derive(Clone, PartialEq, Debug)]
pub struct PeerSettings {
    /// Which of the addresses is ours: from 1.
    pub id: usize,
    /// Where everybody is.
    pub addresses: Vec<SocketAddr>,
    /// Where the resource is.
    pub resource: SocketAddr,
    /// The system, apart from the number of its nodes.
    pub system: System,
    /// How long to stay inside, in seconds.
    pub hold: f64,
    /// How long to hold back what comes from a process, in seconds: so one can choose an order where UDP has none.
    pub delays: Vec<(usize, f64)>,
    /// What is typed when, instead of a keyboard.
    pub script: Option<Script>,
    /// Where chance comes from.
    pub seed: u64,
}

/// Why a process ends.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// Not one of the addresses.
    #[error("there are {addresses} addresses, so ID is from 1 to {addresses}, not {id}")]
    NoSuchId {
        /// What was asked for.
        id: usize,
        /// How many there are.
        addresses: usize,
    },
    /// Two processes cannot be in one place.
    #[error("{0} is given twice; every process, and the resource, needs a port of its own")]
    SameAddress(SocketAddr),
    /// Only locks are made for one critical section.
    #[error("{name} is of the family {family}; the exercise is about mutex")]
    Family {
        /// The algorithm.
        name: &'static str,
        /// Its family.
        family: &'static str,
    },
    /// There can be no such system.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// There cannot be so few.
    #[error("{name} cannot be run by {processes} processes; {fix}")]
    Processes {
        /// The algorithm.
        name: &'static str,
        /// How many addresses there are.
        processes: usize,
        /// How many it takes.
        fix: String,
    },
    /// Perhaps somebody else is there.
    #[error(
        "cannot listen on {address}: {error}{}",
        advice(error, "; is this process, or another one, already running there?")
    )]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// An address that means all of them.
    #[error("{0} is no place where others could find a process; give the address of one network, such as 127.0.0.1")]
    Nowhere(SocketAddr),
    /// Not everybody came.
    #[error(
        "waited for a minute, and {0} did not come; give every process the same addresses, and the same --resource"
    )]
    Missing(String),
    /// Somebody does not want us.
    #[error("{who} refuses: {why}")]
    Refused {
        /// Who.
        who: String,
        /// Its words.
        why: String,
    },
    /// A peer or the algorithm did what cannot be.
    #[error("{0}")]
    Broken(String),
    /// The terminal, or the trace, is gone.
    #[error("cannot write what happens to the terminal or the trace: {0}")]
    Output(io::Error),
}

// Not as a cause of it: a terminal that is gone is no success, whoever closed it.
impl From<io::Error> for PeerError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Where a process writes, and who ends it.
pub struct Outlets<'a> {
    /// What happens, a line each.
    pub terminal: &'a mut dyn Write,
    /// The same as a trace, if it is wanted.
    pub trace: Option<&'a mut dyn Write>,
    /// Whether somebody wants it to end.
    pub interrupted: &'a AtomicBool,
}

/// Runs one process of the algorithm of that name: until its script ends, or for ever. Nothing if there is no such algorithm.
pub fn peer<'a>(name: &str, settings: &'a PeerSettings, outlets: Outlets<'a>) -> Option<Result<(), PeerError>> {
    let entry = catalog::find(name)?;
    Some(Peer::open(entry, settings, outlets).and_then(Peer::run))
}
