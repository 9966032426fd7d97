//! What a study measures: rows of named values. Some columns say what was measured, its key; the others what came out.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The column that counts independent runs of the same thing.
pub const RUN: &str = "run";

/// The column that says why there is nothing else in a row.
pub const FAILURE: &str = "failure";

/// One value. In a file a value that is not there is an empty field.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// Nothing: this was not measured, or does not concern the row.
    Missing,
}

impl Value {
    /// As it stands in a CSV file.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Self::Number(number),
            _ if text.is_empty() => Self::Missing,
            _ => Self::Text(text.to_owned()),
        }
    }

    /// The number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(_) | Self::Missing => None,
        }
    }

    fn rank(&self) -> (u8, f64, &str) {
        match self {
            Self::Missing => (0, 0.0, ""),
            Self::Number(number) => (1, *number, ""),
            Self::Text(text) => (2, 0.0, text),
        }
    }

    /// Numbers by size, then texts.
    pub fn order(&self, other: &Self) -> std::cmp::Ordering {
        let ((a, x, s), (b, y, t)) = (self.rank(), other.rank());
        a.cmp(&b).then(x.total_cmp(&y)).then(s.cmp(t))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
            Self::Missing => Ok(()),
        }
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        if number.is_finite() { Self::Number(number) } else { Self::Missing }
    }
}

impl From<Option<f64>> for Value {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::Missing, Self::from)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Number(number as f64)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// One row: values by the names of their columns, in order.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Row(pub indexmap::IndexMap<String, Value>);

impl Row {
    /// What stands in a column.
    #[must_use]
    pub fn get(&self, column: &str) -> &Value {
        self.0.get(column).unwrap_or(&Value::Missing)
    }

    /// Writes something into a column.
    pub fn set(&mut self, column: impl Into<String>, value: impl Into<Value>) {
        self.0.insert(column.into(), value.into());
    }
}

/// Rows, and which of their columns are their key.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    /// What it is called, if a study has more than one.
    pub name: String,
    /// The columns that say what was measured, the number of the run not among them.
    pub keys: Vec<String>,
    /// All rows, in the order of the plan.
    pub rows: Vec<Row>,
}

impl Table {
    /// All columns: the key, the run, and then in the order in which they first come.
    #[must_use]
    pub fn columns(&self) -> Vec<&str> {
        let mut columns: indexmap::IndexSet<&str> = self.keys.iter().map(String::as_str).collect();
        if self.rows.iter().any(|row| row.0.contains_key(RUN)) {
            columns.insert(RUN);
        }
        // Kinds of messages differ from algorithm to algorithm; they come last, in the order of their names.
        let rest = || self.rows.iter().flat_map(|row| row.0.keys().map(String::as_str));
        columns.extend(rest().filter(|column| !column.starts_with("sent.")));
        let mut kinds: Vec<&str> = rest().filter(|column| column.starts_with("sent.")).collect();
        kinds.sort_unstable();
        columns.extend(kinds);
        columns.into_iter().collect()
    }

    /// The name of its file.
    #[must_use]
    pub fn file(&self, study: &str) -> String {
        if self.name.is_empty() { format!("{study}.csv") } else { format!("{study}-{}.csv", self.name) }
    }

    /// Whether there is such a column.
    #[must_use]
    pub fn has(&self, column: &str) -> bool {
        // Which kinds of messages there are is known only when one was sent.
        let sends = |row: &Row| row.0.keys().any(|column| column.starts_with("sent."));
        let is_key = self.keys.iter().any(|key| key == column);
        let is_open = column.starts_with("sent.") && !self.rows.iter().any(sends);
        is_key || is_open || self.rows.iter().any(|row| row.0.contains_key(column))
    }

    /// As CSV, with a line of names first.
    ///
    /// # Panics
    /// Never: memory takes all that is written.
    #[must_use]
    pub fn csv(&self) -> String {
        let columns = self.columns();
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&columns).expect("memory takes all");
        for row in &self.rows {
            let values = columns.iter().map(|column| row.get(column).to_string());
            writer.write_record(values).expect("memory takes all");
        }
        String::from_utf8(writer.into_inner().expect("memory takes all")).expect("texts are texts")
    }

    /// The rows of a CSV file.
    ///
    /// # Errors
    /// If it is none.
    pub fn rows_of(csv: &str) -> Result<Vec<Row>, csv::Error> {
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let columns = reader.headers()?.clone();
        let row = |record: csv::StringRecord| {
            let values =
                columns.iter().zip(record.iter()).map(|(column, text)| (column.to_owned(), Value::parse(text)));
            // A kind of message that a row says nothing of is not a column of it, nor is what did not go wrong.
            let says_nothing = |column: &str| column.starts_with("sent.") || column == FAILURE;
            Row(values.filter(|(column, value)| *value != Value::Missing || !says_nothing(column)).collect())
        };
        reader.records().map(|record| record.map(row)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[(&str, Value)]) -> Row {
        Row(values.iter().map(|(column, value)| ((*column).to_owned(), value.clone())).collect())
    }

    #[test]
    fn a_table_survives_its_file() {
        let rows = vec![
            row(&[("algorithm", "nxr".into()), (RUN, 0_u64.into()), ("sent.Token", 0.1.into()), ("wait", 0.3.into())]),
            row(&[("algorithm", "a, \"b\"".into()), (RUN, 1_u64.into()), ("wait", (1.0 / 3.0).into())]),
        ];
        let table = Table { name: String::new(), keys: vec!["algorithm".into()], rows };
        let csv = table.csv();
        assert_eq!(csv.lines().next(), Some("algorithm,run,wait,sent.Token"));
        let again = Table { rows: Table::rows_of(&csv).expect("a table"), ..table.clone() };
        assert_eq!(again.csv(), csv);
        assert_eq!(again.rows[1].get("wait"), table.rows[1].get("wait"));
        assert_eq!(again.rows[1].get("sent.Token"), &Value::Missing);
    }
}
