//! How long messages take, and in which order they arrive.

use std::{str::FromStr, sync::Arc};

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use vez_algorithms::{NodeId, Order};

use crate::random::{Purpose, Stream};

/// How the delay of a message varies, given the number T.
#[derive(Clone, PartialEq, Debug)]
pub enum DelayLaw {
    /// T times a number between 0 and 1, all equally likely.
    Uniform,
    /// T.
    Constant,
    /// Exponentially distributed with mean T.
    Exponential,
    /// Any of these, all equally likely; T is their mean. At least one.
    Measured(Arc<[f64]>),
}

impl FromStr for DelayLaw {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "uniform" => Ok(Self::Uniform),
            "constant" => Ok(Self::Constant),
            "exponential" => Ok(Self::Exponential),
            other => Err(format!("unknown delay law \"{other}\"; there are uniform, constant and exponential")),
        }
    }
}

impl std::fmt::Display for DelayLaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Uniform => "uniform",
            Self::Constant => "constant",
            Self::Exponential => "exponential",
            Self::Measured(_) => "measured",
        })
    }
}

impl serde::Serialize for DelayLaw {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The links between all nodes.
pub(super) struct Network {
    delay: f64,
    law: DelayLaw,
    /// For each sender.
    streams: Vec<Stream>,
    /// If messages cannot overtake each other: when the last one on a link arrives.
    last: Option<IndexMap<(NodeId, NodeId), f64, FxBuildHasher>>,
}

impl Network {
    pub(super) fn new(config: &super::Config, nodes: usize, run: u64) -> Self {
        let stream = |node| Stream::new(config.seed, run, node, Purpose::Delays);
        Self {
            delay: config.delay,
            law: config.delay_law.clone(),
            streams: NodeId::all(nodes).map(stream).collect(),
            last: (config.order == Order::Fifo).then(IndexMap::default),
        }
    }

    /// When a message that is sent now arrives.
    #[inline]
    pub(super) fn arrival(&mut self, now: f64, from: NodeId, to: NodeId) -> f64 {
        let stream = &mut self.streams[from.index()];
        let delay = match &self.law {
            DelayLaw::Uniform => self.delay * stream.uniform(),
            DelayLaw::Constant => self.delay,
            DelayLaw::Exponential => self.delay * stream.exponential(),
            DelayLaw::Measured(delays) => delays[stream.below(delays.len())],
        };
        let mut at = now + delay;
        if let Some(last) = &mut self.last {
            let last = last.entry((from, to)).or_insert(0.0);
            at = at.max(*last);
            *last = at;
        }
        at
    }
}
