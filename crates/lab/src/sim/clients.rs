//! The clients of a system: when they ask.

use std::{collections::VecDeque, str::FromStr};

use vez_algorithms::{self as algorithms, Family, NodeId};

use super::faults::{ScriptError, node, time};
use crate::random::{Purpose, Stream};

/// When clients ask.
#[derive(Clone, PartialEq, Debug)]
pub enum Arrivals {
    /// One client a node, which thinks for an exponentially distributed time, asks, enters, leaves and thinks again.
    Closed {
        /// One over the mean time of thinking.
        rate: f64,
    },
    /// One client a node, which asks at once, enters, leaves, and asks again after the same time always.
    Periodic {
        /// One over that time.
        rate: f64,
    },
    /// Clients come to each node as a Poisson process and wait there for those before them.
    Queued {
        /// How many come to a node in a unit of time.
        rate: f64,
    },
    /// One client a node, which asks again as soon as it has left.
    Saturated,
    /// As the script says.
    Scripted(Script),
}

impl Arrivals {
    /// As one calls it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Closed { .. } => "closed",
            Self::Periodic { .. } => "periodic",
            Self::Queued { .. } => "queued",
            Self::Saturated => "saturated",
            Self::Scripted(_) => "scripted",
        }
    }

    /// How often a node's client asks, where a rate says so.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        match self {
            Self::Closed { rate } | Self::Periodic { rate } | Self::Queued { rate } => Some(*rate),
            Self::Saturated | Self::Scripted(_) => None,
        }
    }
}

/// Some nodes that have more than their share of clients.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct Hot {
    /// How many: the first ones.
    pub nodes: usize,
    /// The share of the whole load that comes from them.
    pub share: f64,
}

impl Hot {
    fn factor(self, node: NodeId, nodes: usize) -> f64 {
        let (share, of) =
            if node.index() < self.nodes { (self.share, self.nodes) } else { (1.0 - self.share, nodes - self.nodes) };
        share * nodes as f64 / of as f64
    }
}

impl FromStr for Hot {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(':').and_then(|(nodes, share)| Some((nodes.parse().ok()?, share.parse().ok()?)));
        let (nodes, share) = parts
            .ok_or_else(|| format!("\"{text}\" is not NODES:SHARE; 1:0.9 gives nine tenths of the load to one node"))?;
        Ok(Self { nodes, share })
    }
}

/// A list of requests, each with its time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Script {
    asks: Vec<(f64, NodeId)>,
}

impl Script {
    /// These nodes ask one after the other, each so long after the one before.
    #[must_use]
    pub fn every(interval: f64, nodes: impl IntoIterator<Item = NodeId>) -> Self {
        let asks = nodes.into_iter().enumerate().map(|(i, node)| (interval * (i + 1) as f64, node)).collect();
        Self { asks }
    }

    /// These requests, each with its time.
    #[must_use]
    pub fn of(asks: Vec<(f64, NodeId)>) -> Self {
        Self { asks }
    }

    pub(super) fn last_node(&self) -> Option<usize> {
        self.asks.iter().map(|(_, node)| node.index()).max()
    }

    pub(super) fn asks(&self) -> &[(f64, NodeId)] {
        &self.asks
    }
}

impl FromStr for Script {
    type Err = ScriptError;

    /// Lines of `TIME NODE`, such as `0.5 n3`; `#` begins a comment.
    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let mut asks = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
            match words[..] {
                [] => {}
                [at, who] => asks.push((time(number, at)?, node(number, who)?)),
                [..] => return Err(ScriptError::new(number, format!("\"{line}\" is not TIME NODE, such as 0.5 n3"))),
            }
        }
        Ok(Self { asks })
    }
}

/// The client of one node.
pub(super) struct Client<F: Family> {
    /// As the law sees it.
    pub(super) seen: algorithms::Client<F>,
    /// Counts the lives of the node: what was meant for an earlier one no longer counts.
    pub(super) life: u32,
    /// When the requests came that wait behind it at the same node.
    pub(super) backlog: VecDeque<f64>,
    stream: Stream,
    /// The mean time between requests, or of thinking.
    interval: f64,
    /// Whether that time varies.
    is_random: bool,
}

impl<F: Family> Client<F> {
    pub(super) fn new(config: &super::Config, run: u64, node: NodeId) -> Self {
        let share = config.hot.map_or(1.0, |hot| hot.factor(node, config.system.nodes));
        let interval = config.arrivals.rate().map_or(0.0, |rate| 1.0 / (rate * share));
        Self {
            seen: algorithms::Client::default(),
            life: 0,
            backlog: VecDeque::new(),
            stream: Stream::new(config.seed, run, node, Purpose::Arrivals),
            interval,
            is_random: matches!(config.arrivals, Arrivals::Closed { .. } | Arrivals::Queued { .. }),
        }
    }

    /// Which of several things the client wants this time.
    pub(super) fn choose(&mut self, wants: &[F::Command]) -> F::Command {
        if wants.len() == 1 { wants[0] } else { wants[self.stream.below(wants.len())] }
    }

    /// How long until this client asks next.
    pub(super) fn pause(&mut self) -> f64 {
        if self.is_random { self.interval * self.stream.exponential() } else { self.interval }
    }
}
