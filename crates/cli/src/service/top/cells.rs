//! What stands in the tables, on the screen and on paper.

use serde_json::Value;

use super::{
    picture::{Holder, Name, Node, Picture, Totals},
    tell::{plain, time},
};
use crate::output::{counted, thousands};

/// What is not known.
const UNKNOWN: &str = "-";
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// So much a second: with a digit behind the point where that says something.
pub(super) fn rate(rate: Option<f64>) -> String {
    match rate {
        None => UNKNOWN.into(),
        Some(rate) if rate > 0.0 && rate < 9.95 => format!("{rate:.1}"),
        Some(rate) => thousands(rate.round() as u64),
    }
}

pub(super) fn percent(part: Option<f64>) -> String {
    part.map_or(UNKNOWN.into(), |part| format!("{:.0} %", part * 100.0))
}

pub(super) fn count(count: Option<u64>) -> String {
    count.map_or(UNKNOWN.into(), thousands)
}

pub(super) fn role(node: &Node) -> &'static str {
    match (node.leads, node.votes) {
        (true, _) => "leads",
        (_, true) => "votes",
        _ => UNKNOWN,
    }
}

pub(super) fn kind(name: &Name) -> String {
    name.kind.as_deref().map_or(UNKNOWN.into(), plain)
}

pub(super) fn waiters(name: &Name) -> String {
    name.waiters.map_or("?".into(), thousands)
}

pub(super) fn longest_wait(name: &Name) -> String {
    name.longest_wait_ms.map_or(UNKNOWN.into(), wait)
}

/// As `vez show` says it, and of long ones no more than two units: a column has no room for more.
fn wait(milliseconds: u64) -> String {
    let said = time(&Value::from(milliseconds));
    if milliseconds < 60_000 { said } else { said.split(' ').take(2).collect::<Vec<_>>().join(" ") }
}

/// Who holds a name: the first, in the words of `client`, and how many more.
pub(super) fn holder(name: &Name, client: fn(&str) -> &str) -> (String, String) {
    let who = |holder: &Holder| {
        let part = holder.part.as_deref().map_or_else(String::new, |part| format!(", {}", plain(part)));
        let node = holder.node.map_or(UNKNOWN.into(), |node| node.to_string());
        format!("node {node}, {}{part}", plain(client(&holder.client)))
    };
    match name.holders.as_deref() {
        None => ("?".into(), String::new()),
        Some([]) => (UNKNOWN.into(), String::new()),
        Some([one]) => (who(one), String::new()),
        Some([one, more @ ..]) => (who(one), format!(" +{}", more.len())),
    }
}

/// A client that has a name is known by that: `10.0.0.7:51234 (billing)`.
pub(super) fn short(client: &str) -> &str {
    let name = client.split_once(" (").and_then(|(_, name)| name.strip_suffix(')'));
    name.filter(|name| !name.is_empty()).unwrap_or(client)
}

/// Who they are. So many letters tell a cluster from others; with none it is left out.
pub(super) fn cluster(picture: &Picture, letters: usize) -> Vec<String> {
    let cluster = picture.cluster.as_deref().map_or(UNKNOWN.into(), plain);
    let begin: String = cluster.chars().take(letters).collect();
    let cluster = if begin.len() < cluster.len() { begin + "…" } else { cluster };
    let view = picture.view.map_or(UNKNOWN.into(), |view| view.to_string());
    let leader = picture.leader.map_or("nobody leads".into(), |leader| format!("node {leader} leads"));
    let mut words = vec![format!("view {view}"), counted(picture.nodes.len(), "member", "members"), leader];
    if letters > 0 {
        words.insert(0, format!("cluster {cluster}"));
    }
    words
}

/// How the node that was asked is, if it does not serve everything.
pub(super) fn standing(picture: &Picture) -> String {
    let asked = picture.asked.map_or(UNKNOWN.into(), |node| node.to_string());
    format!("node {asked} is {}: {}", plain(&picture.state), plain(&picture.because))
}

/// What they do.
pub(super) fn totals(totals: &Totals) -> Vec<String> {
    vec![
        format!("{} grants/s", rate(totals.grants_per_second)),
        format!("{} at once", percent(totals.at_once)),
        format!("{} hand-overs/s", rate(totals.handovers_per_second)),
        counted(totals.connections as usize, "client", "clients"),
        format!("{} waiting", thousands(totals.waiters)),
    ]
}

/// Rates as bars, the newest to the right, all that fit; `most` is a whole bar.
pub(super) fn trend(rates: &[f64], most: f64, width: usize) -> String {
    let bar = |rate: f64| {
        let eighths = if most > 0.0 { (rate / most * BARS.len() as f64).ceil() as usize } else { 0 };
        // Nothing is no bar: the least is above it.
        eighths.checked_sub(1).map_or(' ', |at| BARS[at.min(BARS.len() - 1)])
    };
    let bars: String = rates[rates.len().saturating_sub(width)..].iter().map(|rate| bar(*rate)).collect();
    format!("{bars:>width$}")
}
