//! How likely votes that are forgotten let two in: the formula, over majorities and probabilities.

use serde::Deserialize;

use super::{
    StudyError,
    table::{Row, Table, Value},
};
use crate::risk::{Probability, Risk};

/// A grid of votes, as it stands in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RiskFile {
    /// n
    replicas: usize,
    /// m
    majority: Vec<usize>,
    /// p
    p: Vec<f64>,
}

/// A row for each majority and probability.
pub(super) fn all(files: &[RiskFile]) -> Result<Table, StudyError> {
    let mut rows = Vec::new();
    for file in files {
        for (&m, &p) in file.majority.iter().flat_map(|m| file.p.iter().map(move |p| (m, p))) {
            let risk = Risk::new(file.replicas, m, p).map_err(|error| StudyError::Formula(format!("risk: {error}")))?;
            let log10 = |probability: Probability| Value::from(probability.log10());
            let mut row = Row::default();
            row.set("replicas", file.replicas);
            row.set("majority", m);
            row.set("p", p);
            row.set("needed", risk.needed_resets());
            row.set("log10_probability", log10(risk.probability()));
            row.set("log10_with_n_trials", log10(risk.probability_among(file.replicas)));
            rows.push(row);
        }
    }
    Ok(Table { name: "risk".to_owned(), keys: ["replicas", "majority", "p"].map(str::to_owned).to_vec(), rows })
}
