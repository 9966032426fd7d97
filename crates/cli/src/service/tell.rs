//! What nodes answer, in words. They answer the same to everybody: this is how it reads on a terminal.

use std::fmt::Write;

use serde_json::Value;

/// A list within an answer; none is an empty one.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Text, a number, or nothing, as it is shown.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => plain(text),
        other => other.to_string(),
    }
}

/// Without anything that a terminal would act on.
pub(super) fn plain(text: &str) -> String {
    text.chars()
        .flat_map(|letter| if letter.is_control() { letter.escape_default().collect() } else { vec![letter] })
        .collect()
}

/// A stretch of time that people read.
pub(super) fn time(milliseconds: &Value) -> String {
    let milliseconds = milliseconds.as_u64().unwrap_or(0);
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{:.1} s", milliseconds as f64 / 1e3),
        _ => {
            let seconds = milliseconds / 1000;
            humantime::format_duration(std::time::Duration::from_secs(seconds)).to_string()
        }
    }
}

/// Rows below a heading, each column as wide as it has to be.
pub(super) fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let heading: Vec<String> = heading.iter().map(ToString::to_string).collect();
    let all = || std::iter::once(&heading).chain(rows);
    let width = |column: usize| all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..heading.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in all() {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end()); // A String takes everything.
    }
    out
}

/// Who said nothing, if anybody did.
pub(super) fn silent(answer: &Value) -> Option<String> {
    let silent: Vec<String> = list(answer, "silent").iter().map(text).collect();
    (!silent.is_empty()).then(|| format!("vez: node {} did not answer: there may be more", silent.join(", ")))
}
