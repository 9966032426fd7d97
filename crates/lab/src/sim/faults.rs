//! What goes wrong, and when.

use std::{fmt, str::FromStr};

use vez_algorithms::{NodeId, NodeSet};

use crate::random::Stream;

/// Something that goes wrong, or is mended.
#[derive(Clone, PartialEq, Debug)]
pub enum Fault {
    /// A node stops for good, or until it is restarted. What it knew is lost, and so is what arrives meanwhile.
    Crash(NodeId),
    /// The same, in the midst of its sending: the next time that it sends something, it crashes, and half of what
    /// it has sent and has not arrived is lost.
    CrashSending(NodeId),
    /// A crashed node starts again, with the state that it had in the beginning.
    Restart(NodeId),
    /// What is sent from now on arrives only within a group. Nodes in no group are a group together.
    Partition(Vec<Vec<NodeId>>),
    /// All nodes reach each other again.
    Heal,
    /// From now on a message is lost with this probability.
    Loss(f64),
    /// From now on a message arrives twice with this probability.
    Duplicate(f64),
    /// From now on each of these nodes crashes, and is back at once, so many times in a unit of time on average.
    Resets(f64, Vec<NodeId>),
}

impl fmt::Display for Fault {
    /// As it stands in a script.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |nodes: &[NodeId]| nodes.iter().map(NodeId::to_string).collect::<Vec<_>>().join(" ");
        match self {
            Self::Crash(node) => write!(f, "crash {node}"),
            Self::CrashSending(node) => write!(f, "crash {node} sending"),
            Self::Restart(node) => write!(f, "restart {node}"),
            Self::Partition(groups) => {
                write!(f, "partition {}", groups.iter().map(|group| words(group)).collect::<Vec<_>>().join(" | "))
            }
            Self::Heal => write!(f, "heal"),
            Self::Loss(probability) => write!(f, "loss {probability}"),
            Self::Duplicate(probability) => write!(f, "duplicate {probability}"),
            Self::Resets(rate, nodes) => write!(f, "resets {rate} {}", words(nodes)),
        }
    }
}

/// A fault script: faults in the order of their time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Faults {
    faults: Vec<(f64, Fault)>,
}

impl Faults {
    /// A script of its own making.
    #[must_use]
    pub fn new(mut faults: Vec<(f64, Fault)>) -> Self {
        faults.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        Self { faults }
    }

    /// All faults, each with its time.
    #[must_use]
    pub fn all(&self) -> &[(f64, Fault)] {
        &self.faults
    }

    pub(super) fn last_node(&self) -> Option<usize> {
        let nodes = self.faults.iter().flat_map(|(_, fault)| match fault {
            Fault::Crash(node) | Fault::CrashSending(node) | Fault::Restart(node) => vec![*node],
            Fault::Partition(groups) => groups.concat(),
            Fault::Resets(_, nodes) => nodes.clone(),
            Fault::Heal | Fault::Loss(_) | Fault::Duplicate(_) => Vec::new(),
        });
        nodes.map(NodeId::index).max()
    }
}

/// What is wrong with the world at the moment.
pub(super) struct Troubles {
    pub(super) crashed: Vec<bool>,
    /// Who crashes the next time that it sends.
    pub(super) breaking: NodeSet,
    pub(super) group: Option<Vec<usize>>,
    pub(super) loss: f64,
    pub(super) duplicate: f64,
    stream: Stream,
}

impl Troubles {
    /// Nothing is wrong yet.
    pub(super) fn new(nodes: usize, stream: Stream) -> Self {
        Self { crashed: vec![false; nodes], breaking: NodeSet::new(), group: None, loss: 0.0, duplicate: 0.0, stream }
    }

    pub(super) fn partition(&mut self, groups: &[Vec<NodeId>]) {
        let group = |node| groups.iter().position(|group| group.contains(&node)).unwrap_or(groups.len());
        self.group = Some(NodeId::all(self.crashed.len()).map(group).collect());
    }

    /// Whether nothing gets from one node to the other.
    #[inline]
    pub(super) fn cut(&self, from: NodeId, to: NodeId) -> bool {
        self.group.as_ref().is_some_and(|group| group[from.index()] != group[to.index()])
    }

    /// A time until something that happens so often on average.
    pub(super) fn pause(&mut self, rate: f64) -> f64 {
        self.stream.exponential() / rate
    }

    /// From a span of time one moment, all equally likely.
    pub(super) fn within(&mut self, span: f64) -> f64 {
        span * self.stream.uniform()
    }

    /// Whether something of this probability happens this time.
    #[inline]
    pub(super) fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.stream.uniform() < probability
    }
}

/// A script that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ScriptError {
    line: usize,
    what: String,
}

impl ScriptError {
    pub(super) fn new(line: usize, what: String) -> Self {
        Self { line, what }
    }
}

impl FromStr for Faults {
    type Err = ScriptError;

    /// Lines of `TIME FAULT`; `#` begins a comment.
    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let mut faults = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
            if let [at, fault @ ..] = &words[..] {
                faults.push((time(number, at)?, parse(number, fault)?));
            }
        }
        Ok(Self::new(faults))
    }
}

fn parse(line: usize, words: &[&str]) -> Result<Fault, ScriptError> {
    match words {
        ["crash", who] => Ok(Fault::Crash(node(line, who)?)),
        ["crash", who, "sending"] => Ok(Fault::CrashSending(node(line, who)?)),
        ["restart", who] => Ok(Fault::Restart(node(line, who)?)),
        ["heal"] => Ok(Fault::Heal),
        ["loss", p] => Ok(Fault::Loss(probability(line, p)?)),
        ["duplicate", p] => Ok(Fault::Duplicate(probability(line, p)?)),
        ["resets", rate, nodes @ ..] if !nodes.is_empty() => {
            let often: Option<f64> = rate.parse().ok().filter(|rate| (0.0..=1e6).contains(rate));
            let often = often.ok_or_else(|| {
                ScriptError::new(line, format!("\"{rate}\" is not a rate from 0 to 1e6, such as 0.1"))
            })?;
            Ok(Fault::Resets(often, nodes.iter().map(|who| node(line, who)).collect::<Result<_, _>>()?))
        }
        ["partition", groups @ ..] if !groups.is_empty() => {
            let group = |members: &[&str]| members.iter().map(|who| node(line, who)).collect();
            Ok(Fault::Partition(groups.split(|word| *word == "|").map(group).collect::<Result<_, _>>()?))
        }
        ["crash", ..] => {
            Err(ScriptError::new(line, "crash takes one node, such as crash n3, or crash n3 sending".into()))
        }
        ["restart", ..] => Err(ScriptError::new(line, "restart takes one node, such as restart n3".into())),
        [known @ ("loss" | "duplicate"), ..] => {
            Err(ScriptError::new(line, format!("{known} takes a probability, such as {known} 0.1")))
        }
        ["partition", ..] => Err(ScriptError::new(line, "partition takes groups, such as partition n0 n1 | n2".into())),
        ["resets", ..] => Err(ScriptError::new(line, "resets takes a rate and nodes, such as resets 0.1 n3 n4".into())),
        ["heal", ..] => Err(ScriptError::new(line, "heal takes nothing".into())),
        [] => Err(ScriptError::new(line, "a time without a fault; give one, such as 10 crash n3".into())),
        [other, ..] => Err(ScriptError::new(
            line,
            format!("unknown fault \"{other}\"; there are crash, restart, resets, partition, heal, loss and duplicate"),
        )),
    }
}

pub(super) fn time(line: usize, text: &str) -> Result<f64, ScriptError> {
    let time: Option<f64> = text.parse().ok().filter(|time| (0.0..=1e9).contains(time));
    time.ok_or_else(|| ScriptError::new(line, format!("\"{text}\" is not a time from 0 to 1e9, such as 10.5")))
}

pub(super) fn node(line: usize, text: &str) -> Result<NodeId, ScriptError> {
    let id = text.strip_prefix('n').and_then(|id| id.parse().ok()).map(NodeId);
    id.ok_or_else(|| ScriptError::new(line, format!("\"{text}\" is not a node; they are called n0, n1, and so on")))
}

fn probability(line: usize, text: &str) -> Result<f64, ScriptError> {
    let p: Option<f64> = text.parse().ok().filter(|p| (0.0..=1.0).contains(p));
    p.ok_or_else(|| ScriptError::new(line, format!("\"{text}\" is not a probability; give a number from 0 to 1")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_and_sorted() {
        let script = "# a bad day\n20 restart n3\n\n10.5 crash n3 # oops\n0 loss 0.1\n5 partition n0 n1 | n2\n6 heal\n\
                      30 crash n1 sending";
        let faults: Faults = script.parse().expect("a good script");
        assert_eq!(
            faults.all(),
            [
                (0.0, Fault::Loss(0.1)),
                (5.0, Fault::Partition(vec![vec![NodeId(0), NodeId(1)], vec![NodeId(2)]])),
                (6.0, Fault::Heal),
                (10.5, Fault::Crash(NodeId(3))),
                (20.0, Fault::Restart(NodeId(3))),
                (30.0, Fault::CrashSending(NodeId(1))),
            ]
        );
        assert_eq!(faults.last_node(), Some(3));
        let again: String = faults.all().iter().map(|(time, fault)| format!("{time} {fault}\n")).collect();
        assert_eq!(again.parse(), Ok(faults));
    }

    #[test]
    fn the_page_about_scripts_is_right() {
        let page = include_str!("../../../../docs/faults.md");
        let example = page.split("```").nth(1).and_then(|block| block.strip_prefix("text\n")).expect("an example");
        assert_eq!(example.parse::<Faults>().expect("a good script").all().len(), 4);
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
        let faults: Vec<Faults> =
            rows.map(|(fault, _)| format!("0 {}", fault.replace('\\', "")).parse().expect(fault)).collect();
        assert_eq!(faults.len(), 8, "one of each kind");
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        for (script, message) in [
            (
                "1 crsh n3",
                "line 1: unknown fault \"crsh\"; there are crash, restart, resets, partition, heal, loss and duplicate",
            ),
            ("\nx crash n3", "line 2: \"x\" is not a time from 0 to 1e9, such as 10.5"),
            ("1 crash 3", "line 1: \"3\" is not a node; they are called n0, n1, and so on"),
            ("1 crash", "line 1: crash takes one node, such as crash n3, or crash n3 sending"),
            ("1 loss 7", "line 1: \"7\" is not a probability; give a number from 0 to 1"),
            ("1", "line 1: a time without a fault; give one, such as 10 crash n3"),
        ] {
            assert_eq!(script.parse::<Faults>().expect_err(script).to_string(), message);
        }
    }
}
