//! What is emulated.

use std::{str::FromStr, time::Duration};

use serde_json::json;
use vez_algorithms::{Model, NodeId, Timing, catalog::Entry, link::Service};
use vez_lab::{named::Detector, span::seconds, system::System, trace::Header};

use crate::transport::Transport;

/// More nodes than this are more sockets and threads than a machine likes to have.
pub(crate) const MAX_NODES: usize = 64;

/// Longer than this nobody thinks or stays.
const MAX_SECONDS: f64 = 3600.0;

/// What is emulated, in seconds of real time.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// The nodes, and how they are arranged.
    pub system: System,
    /// Which sockets.
    pub transport: Transport,
    /// How many entries there are to be.
    pub entries: u64,
    /// How many of the clients ask, the first ones; all if none is given.
    pub askers: Option<usize>,
    /// How long a client stays inside.
    pub hold: f64,
    /// How long a client thinks on average before it asks.
    pub think: f64,
    /// How likely it is that a frame gets lost, on purpose.
    pub loss: f64,
    /// Where the clients, the losses and what algorithms leave to chance come from.
    pub seed: u64,
    /// Who crashes, and when.
    pub crashes: Vec<Crash>,
    /// Whether to write everything down.
    pub trace: bool,
}

/// A node that crashes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Crash {
    /// Which one.
    pub node: NodeId,
    /// How many seconds after the beginning.
    pub at: f64,
}

impl FromStr for Crash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('@').and_then(|(node, at)| Some((node.strip_prefix('n')?.parse().ok()?, at)));
        let (node, at) = parts.ok_or_else(|| format!("\"{text}\" is not NODE@TIME, such as n3@200ms"))?;
        Ok(Self { node: NodeId(node), at: seconds(at)? })
    }
}

/// A mistake in [`Settings`]. Nothing was run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SettingsError {
    /// Nobody is ever inside.
    #[error(
        "nobody is ever inside of {name}, which is of the family {family}; emulate one of mutex, semaphore or group"
    )]
    Family {
        /// The algorithm.
        name: &'static str,
        /// Its family.
        family: &'static str,
    },
    /// A number that makes no sense.
    #[error("{name} is {value}; {fix}")]
    Number {
        /// What it is called.
        name: &'static str,
        /// What it is.
        value: String,
        /// What it should be.
        fix: String,
    },
    /// Losses on a transport that has none.
    #[error("tcp loses nothing; take --transport udp, or leave --loss away")]
    LossOverTcp,
    /// Somebody crashes who is not there.
    #[error("{node} is to crash, but the last of {nodes} nodes is n{}", nodes.saturating_sub(1))]
    NoSuchNode {
        /// Who.
        node: NodeId,
        /// How many there are.
        nodes: usize,
    },
}

impl Settings {
    /// Looks for mistakes.
    ///
    /// # Errors
    /// The first one found.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let number = |name, value: String, fix: &str| Err(SettingsError::Number { name, value, fix: fix.to_owned() });
        let nodes = self.system.nodes;
        if !(2..=MAX_NODES).contains(&nodes) {
            return number("nodes", nodes.to_string(), &format!("take from 2 to {MAX_NODES}"));
        }
        if self.entries == 0 {
            return number("entries", "0".to_owned(), "there must be something to measure, such as --entries 1000");
        }
        for (name, value) in [("hold", self.hold), ("think", self.think)] {
            if !(0.0..=MAX_SECONDS).contains(&value) {
                return number(name, format!("{value} s"), "take from 0 to 3600 s, such as 1ms");
            }
        }
        if !(0.0..=0.9).contains(&self.loss) {
            return number("loss", self.loss.to_string(), "take a share from 0 to 0.9, such as 0.1");
        }
        if self.loss > 0.0 && self.transport == Transport::Tcp {
            return Err(SettingsError::LossOverTcp);
        }
        for crash in &self.crashes {
            if !(0.0..=MAX_SECONDS).contains(&crash.at) {
                return number("crash", format!("at {} s", crash.at), "take a time from 0 to 3600 s, such as n3@200ms");
            }
        }
        Ok(())
    }

    /// The first line of a trace.
    #[must_use]
    pub fn header(&self, entry: &Entry, processes: bool) -> Header {
        let world = json!({
            "driver": "emulator", "transport": self.transport, "processes": processes, "loss": self.loss,
            "hold": self.hold, "think": self.think,
        });
        let world = world.as_object().cloned().unwrap_or_default();
        let detector = entry.assumptions.detector.then_some(Detector::HiAdsd);
        Header::new(entry.name, &self.system, (self.seed, 0), detector, world)
    }

    /// What the links owe an algorithm: what its model asks for, and the sockets do not give anyway.
    #[must_use]
    pub fn service(&self, model: &Model) -> Service {
        match self.transport {
            Transport::Udp => Service::for_model(model),
            Transport::Tcp => Service::Once,
        }
    }

    /// How many of the clients ask.
    #[must_use]
    pub fn askers(&self, clients: usize) -> usize {
        self.askers.unwrap_or(clients).min(clients)
    }

    /// If nobody enters for so long while somebody waits, nobody ever will. An algorithm that waits for answers waits that
    /// long for each of several nodes, several times.
    pub(crate) fn give_up_after(&self, model: &Model) -> Duration {
        // Of what is sent and acknowledged so much gets through: what takes three seconds takes longer in proportion.
        let through = (1.0 - self.loss).powi(2);
        let without_timers = Duration::from_secs_f64(3.0 / through);
        match model.timing {
            Timing::Any => without_timers,
            Timing::Bounded => {
                let waits = u32::try_from(20 * self.system.nodes).unwrap_or(u32::MAX);
                without_timers + self.system.patience * waits + self.system.period * 4
            }
        }
    }
}
