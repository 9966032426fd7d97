//! A picture on paper.

use anyhow::{Context, Result};

use super::{
    cells,
    picture::{Name, Node, Picture},
    state::Sort,
    tell::{plain, table},
};

/// For programs.
pub(super) fn json(picture: &Picture) -> Result<String> {
    let object = serde_json::to_string_pretty(picture).context("cannot write what was seen")?;
    Ok(object + "\n")
}

/// For people.
pub(super) fn words(picture: Picture) -> String {
    let mut out = cells::cluster(&picture, usize::MAX).join(", ") + "\n";
    if picture.state == "ready" {
        out += &(cells::totals(&picture.totals()).join(", ") + "\n");
    } else {
        out += &format!("{}\n", cells::standing(&picture));
    }
    let nodes: Vec<Vec<String>> = picture.nodes.iter().map(node).collect();
    if !nodes.is_empty() {
        let heading = ["NODE", "STATE", "ROLE", "CLIENTS", "IN USE", "GRANTS/S", "AT ONCE", "HAND-OVERS/S", "ADDRESS"];
        out += &format!("\n{}", table(&heading, &nodes));
    }
    let mut names: Vec<&Name> = picture.names.iter().collect();
    Sort::default().sort(&mut names);
    if !names.is_empty() {
        let heading = ["NAME", "KIND", "GRANTS/S", "WAITING", "LONGEST", "HELD BY"];
        out += &format!("\n{}", table(&heading, &names.into_iter().map(name).collect::<Vec<_>>()));
    }
    if picture.more {
        out += "there are more names in use; say how they begin\n";
    }
    out
}

fn node(node: &Node) -> Vec<String> {
    vec![
        node.node.to_string(),
        plain(&node.state),
        cells::role(node).into(),
        cells::count(node.connections),
        cells::count(node.used_names),
        cells::rate(node.grants_per_second),
        cells::percent(node.at_once),
        cells::rate(node.handovers_per_second),
        plain(&node.address),
    ]
}

fn name(name: &Name) -> Vec<String> {
    let (first, more) = cells::holder(name, |client| client);
    vec![
        plain(&name.name),
        cells::kind(name),
        cells::rate(name.grants_per_second),
        cells::waiters(name),
        cells::longest_wait(name),
        first + &more,
    ]
}
