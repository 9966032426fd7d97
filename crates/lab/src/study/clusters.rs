//! Hypercubes, and the clusters C(i, s) that each node sees in them.

use std::collections::BTreeSet;

use serde::Deserialize;
use vez_algorithms::{
    NodeId,
    hypercube::{cluster, dimension},
};

use super::{
    Figure, StudyError,
    table::{Row, Table},
};
use crate::draw;

/// A hypercube, as it stands in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClustersFile {
    /// How many nodes.
    nodes: usize,
    /// What the drawing shows.
    title: String,
}

/// Larger ones are no sight.
const MOST_NODES: usize = 1 << 10;

/// A row for each node and cluster, and a drawing for each hypercube.
pub(super) fn all(study: &str, files: &[ClustersFile]) -> Result<(Table, Vec<Figure>), StudyError> {
    let keys = ["nodes", "i", "s"].map(str::to_owned).to_vec();
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for (number, file) in (1..).zip(files) {
        let nodes = file.nodes;
        if !(1..=MOST_NODES).contains(&nodes) {
            return Err(StudyError::Formula(format!("clusters: {nodes} nodes; take from 1 to {MOST_NODES}")));
        }
        for (i, s) in NodeId::all(nodes).flat_map(|i| (1..=dimension(nodes)).map(move |s| (i, s))) {
            let members: Vec<String> = cluster(nodes, i, s).map(|node| node.index().to_string()).collect();
            let mut row = Row::default();
            row.set("nodes", nodes);
            row.set("i", i.index());
            row.set("s", u64::from(s));
            row.set("members", members.join(" "));
            row.set("size", members.len());
            rows.push(row);
        }
        let cube = draw::Hypercube {
            title: file.title.clone(),
            dimension: dimension(nodes),
            arrows: Vec::new(),
            dead: BTreeSet::new(),
        };
        figures.extend(draw::hypercube(&cube).map(|svg| Figure {
            name: format!("{study}-cube-{number}"),
            title: file.title.clone(),
            svg,
            series: Vec::new(),
        }));
    }
    Ok((Table { name: "clusters".to_owned(), keys, rows }, figures))
}
