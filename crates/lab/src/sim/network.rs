//! How long messages take, and in which order they arrive.

use std::str::FromStr;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use vez_algorithms::{NodeId, Order};

use crate::random::{Purpose, Stream};

/// How the delay of a message varies, given the number T.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DelayLaw {
    /// T times a number between 0 and 1, all equally likely.
    Uniform,
    /// T.
    Constant,
    /// Exponentially distributed with mean T.
    Exponential,
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
        })
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
            law: config.delay_law,
            streams: NodeId::all(nodes).map(stream).collect(),
            last: (config.order == Order::Fifo).then(IndexMap::default),
        }
    }

    /// When a message that is sent now arrives.
    pub(super) fn arrival(&mut self, now: f64, from: NodeId, to: NodeId) -> f64 {
        let stream = &mut self.streams[from.index()];
        let mut at = now
            + self.delay
                * match self.law {
                    DelayLaw::Uniform => stream.uniform(),
                    DelayLaw::Constant => 1.0,
                    DelayLaw::Exponential => stream.exponential(),
                };
        if let Some(last) = &mut self.last {
            let last = last.entry((from, to)).or_insert(0.0);
            at = at.max(*last);
            *last = at;
        }
        at
    }
}
