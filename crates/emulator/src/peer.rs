//! One process of the laboratory exercise: a terminal, a keyboard, and datagrams that a person can read.
//!
//! Everybody is told the same addresses, in the same order, and its own place among them. Nothing happens before all are
//! there; then a line typed is an internal event, if it is the number of the process, and asks for the critical section
//! otherwise. Every event prints a line with the logical clock after it.

mod gathering;
mod process;
mod words;

use std::{
    io::{self, Write},
    net::SocketAddr,
};

use vez_algorithms::{
    Algorithm, SetupError,
    catalog::{self, Job},
};
use vez_lab::system::System;

use self::process::Peer;
use crate::script::Script;

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
    /// Somebody else is there.
    #[error("cannot listen on {address}: {error}; is process {id} already running?")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Which process that is.
        id: usize,
        /// Why not.
        error: io::Error,
    },
    /// Not everybody came.
    #[error("waited for a minute, and {0} did not come; start every process with the same addresses")]
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
    #[error("cannot write what happens")]
    Output(#[from] io::Error),
}

/// Where a process writes.
pub struct Outlets<'a> {
    /// What happens, a line each.
    pub terminal: &'a mut dyn Write,
    /// The same as a trace, if it is wanted.
    pub trace: Option<&'a mut dyn Write>,
}

/// Runs one process of the algorithm of that name: until its script ends, or for ever. Nothing if there is no such algorithm.
pub fn peer<'a>(name: &str, settings: &'a PeerSettings, outlets: Outlets<'a>) -> Option<Result<(), PeerError>> {
    catalog::visit(name, Run { settings, outlets })
}

struct Run<'a> {
    settings: &'a PeerSettings,
    outlets: Outlets<'a>,
}

impl Job for Run<'_> {
    type Done = Result<(), PeerError>;

    fn with<A: Algorithm>(self) -> Self::Done {
        Peer::<A>::open(self.settings, self.outlets)?.run()
    }
}

/// The system with as many nodes as there are addresses. Some algorithms have more nodes than clients.
fn system_of<A: Algorithm>(settings: &PeerSettings) -> Result<(System, Vec<A>), PeerError> {
    let processes = settings.addresses.len();
    let of = |nodes| {
        let system = System { nodes, ..settings.system.clone() };
        let all = A::system(&system.setup(settings.seed, 0)?)?;
        Ok::<_, SetupError>((system, all))
    };
    let fits = |nodes| of(nodes).ok().filter(|(_, all)| all.len() == processes);
    if let Some(found) = (1..=processes).rev().find_map(fits) {
        return Ok(found);
    }
    let least = of(1).map_or(2, |(_, all)| all.len());
    let fix = format!("give at least {least} addresses");
    Err(PeerError::Processes { name: A::NAME, processes, fix })
}
