//! What a program printed, beside what happens here, line by line.

use std::collections::BTreeMap;

use serde::Deserialize;
use vez_algorithms::NodeId;

use super::table::{Row, Value};
use crate::scene::{Happening, Scene, What};

/// What was printed, as it stands in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lines {
    /// The field of a node's state that every line ends with.
    field: String,
    /// The kinds of messages whose sending has a line of its own.
    sends: Vec<String>,
    /// The kinds of messages whose receipt also tells of the field's value at one's own request, or of 0 without one.
    asks: Vec<String>,
    /// The lines of each node; under any other name, who enters.
    printed: BTreeMap<String, Vec<String>>,
}

/// A row for each line that was printed, with what happens here in its place.
pub(super) fn compare(name: &str, scene: &Scene, lines: &Lines) -> Vec<Row> {
    let mut rows = Vec::new();
    for (node, printed) in &lines.printed {
        let ours = match NodeId::all(scene.nodes).find(|id| id.to_string() == *node) {
            Some(node) => happened(scene, node, lines),
            None => entered(scene, lines),
        };
        for number in 0..printed.len().max(ours.len()) {
            let mut row = Row::default();
            row.set("scene", name);
            row.set("node", node.as_str());
            row.set("line", number + 1);
            row.set("printed", printed.get(number).map_or("nothing", String::as_str));
            row.set("ours", ours.get(number).map_or("nothing", String::as_str));
            rows.push(row);
        }
    }
    rows
}

/// Who enters, in order: what somebody prints whom all visit.
fn entered(scene: &Scene, lines: &Lines) -> Vec<String> {
    let all = NodeId::all(scene.nodes).flat_map(|node| {
        let mut now = 0.0;
        let mut entries = Vec::new();
        for happening in scene.happenings.iter().filter(|happening| happening.node == node) {
            now = field(happening, lines).unwrap_or(now);
            if happening.what == What::Enter {
                entries.push((happening.time, format!("{node} enters; {now}")));
            }
        }
        entries
    });
    let mut all: Vec<(f64, String)> = all.collect();
    all.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    all.into_iter().map(|(_, line)| line).collect()
}

fn field(happening: &Happening, lines: &Lines) -> Option<f64> {
    happening.state.as_ref()?.get(&lines.field)?.as_f64()
}

/// What happens at a node, in the words of the printed lines.
fn happened(scene: &Scene, node: NodeId, lines: &Lines) -> Vec<String> {
    let mut told = Vec::new();
    let (mut now, mut asked) = (0.0, 0.0);
    for happening in scene.happenings.iter().filter(|happening| happening.node == node) {
        now = field(happening, lines).unwrap_or(now);
        let message = |message: &usize| &scene.messages[*message];
        let is = |kinds: &[String], which: &usize| kinds.iter().any(|kind| kind == message(which).kind);
        let line = match &happening.what {
            What::Internal => "internal event".to_owned(),
            What::Ask(_) => {
                asked = now;
                "request".to_owned()
            }
            What::Enter => "enter".to_owned(),
            What::Leave => {
                asked = 0.0;
                "leave".to_owned()
            }
            What::Receive { from, message: which } if is(&lines.asks, which) => {
                format!("{} from {from}, my T {}", message(which).text, Value::Number(asked))
            }
            What::Receive { from, message: which } => format!("{} from {from}", message(which).kind),
            What::Send { to, message: which } if is(&lines.sends, which) => {
                format!("{} to {to}", message(which).kind)
            }
            _ => continue,
        };
        told.push(format!("{line}; {now}"));
    }
    told
}
