//! The points of a table: rows that differ in nothing but their run, or their series, belong together.

use std::fmt;

use indexmap::IndexMap;
use serde::Deserialize;

use super::{
    expression::Expression,
    table::{RUN, Row, Table, Value},
};
use crate::stats::Interval;

/// Which rows are meant: for some columns, which values they may have.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Filter(pub IndexMap<String, OneOrMore>);

/// One value or several, as a file has them.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore {
    /// Several.
    More(Vec<Value>),
    /// One.
    One(Value),
}

impl OneOrMore {
    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[Value] {
        match self {
            Self::More(values) => values,
            Self::One(value) => std::slice::from_ref(value),
        }
    }
}

impl Filter {
    /// Whether a row is meant.
    #[must_use]
    pub fn takes(&self, row: &Row) -> bool {
        // An empty text means that there is nothing.
        let is = |value: &Value, found: &Value| value == found || (*value == "".into() && *found == Value::Missing);
        self.0.iter().all(|(column, values)| values.all().iter().any(|value| is(value, row.get(column))))
    }

    /// This filter, and another that has the last word where both speak of a column.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.0.extend(other.0.clone());
        both
    }
}

/// One point: what the rows have in common, and the rows, by series.
#[derive(Clone, Debug)]
pub struct Point<'t> {
    /// The columns that say which point it is.
    pub key: Vec<(&'t str, &'t Value)>,
    rows: IndexMap<&'t str, Vec<&'t Row>>,
}

/// What came out of an expression at a point.
#[derive(Clone, PartialEq, Debug)]
pub enum Sample {
    /// A number for each run; one, if the runs have no part in it.
    Numbers(Vec<f64>),
    /// A text.
    Text(String),
}

impl Sample {
    /// The mean of the numbers.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        match self {
            Self::Numbers(numbers) => Some(Interval::of(numbers)),
            Self::Text(_) => None,
        }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Numbers(numbers) => {
                let Interval { mean, ci95 } = Interval::of(numbers);
                f.write_str(&brief(mean))?;
                ci95.filter(|ci95| *ci95 > 0.0).map_or(Ok(()), |ci95| write!(f, " ± {}", brief(ci95)))
            }
        }
    }
}

/// A number with four digits, or all if it is whole.
#[must_use]
pub fn brief(number: f64) -> String {
    let size = number.abs();
    if number == number.trunc() && size < 1e9 {
        return format!("{number}");
    }
    match size {
        ..1e-3 => format!("{number:.1e}"),
        ..1.0 => format!("{number:.4}"),
        ..10.0 => format!("{number:.3}"),
        ..100.0 => format!("{number:.2}"),
        ..1e6 => format!("{number:.1}"),
        _ => format!("{number:.3e}"),
    }
}

/// The points of a table, in the order of their first rows. If `series` names a column, rows that differ in it stand side by
/// side at one point.
#[must_use]
pub fn points<'t>(table: &'t Table, filter: &Filter, series: Option<&str>) -> Vec<Point<'t>> {
    let mut points: IndexMap<String, Point<'t>> = IndexMap::new();
    for row in table.rows.iter().filter(|row| filter.takes(row)) {
        let keys = table.keys.iter().map(String::as_str).filter(|key| Some(*key) != series);
        let key: Vec<(&str, &Value)> = keys.map(|key| (key, row.get(key))).collect();
        let name = format!("{key:?}");
        let point = points.entry(name).or_insert_with(|| Point { key, rows: IndexMap::new() });
        let of = match series.map(|series| row.get(series)) {
            Some(Value::Text(text)) => text.as_str(),
            Some(Value::Number(_) | Value::Missing) | None => "",
        };
        point.rows.entry(of).or_default().push(row);
    }
    points.into_values().collect()
}

impl Point<'_> {
    /// What stands in a column of the key.
    #[must_use]
    pub fn at(&self, column: &str) -> Option<&Value> {
        self.key.iter().find(|(key, _)| *key == column).map(|(_, value)| *value)
    }

    /// What comes out of an expression here; nothing, if something is missing.
    #[must_use]
    pub fn sample(&self, expression: &Expression) -> Option<Sample> {
        match expression {
            Expression::Number(number) => Some(Sample::Numbers(vec![*number])),
            Expression::Text(text) => Some(Sample::Text(text.clone())),
            Expression::Column(column, series) => self.column(column, series.as_deref()),
            Expression::Call(function, parts) => {
                let parts: Vec<Vec<f64>> = parts
                    .iter()
                    .map(|part| match self.sample(part)? {
                        Sample::Numbers(numbers) => Some(numbers),
                        Sample::Text(_) => None,
                    })
                    .collect::<Option<_>>()?;
                let runs = parts.iter().map(Vec::len).max()?;
                let fits = |part: &Vec<f64>| part.len() == 1 || part.len() == runs;
                let run = |run: usize| {
                    let values: Vec<f64> = parts.iter().map(|part| part[run.min(part.len() - 1)]).collect();
                    Some(function.of(&values)).filter(|value| value.is_finite())
                };
                parts.iter().all(fits).then(|| (0..runs).map(run).collect::<Option<_>>().map(Sample::Numbers))?
            }
        }
    }

    fn column(&self, column: &str, series: Option<&str>) -> Option<Sample> {
        if let Some(value) = self.at(column) {
            return match value {
                Value::Number(number) => Some(Sample::Numbers(vec![*number])),
                Value::Text(text) => Some(Sample::Text(text.clone())),
                Value::Missing => None,
            };
        }
        let mut rows = self.rows.get(series.unwrap_or(""))?.clone();
        rows.sort_by(|one, other| one.get(RUN).order(other.get(RUN)));
        if let [only] = rows[..]
            && let Value::Text(text) = only.get(column)
        {
            return Some(Sample::Text(text.clone()));
        }
        // A kind of message that no column speaks of was not sent.
        let none_sent = column.starts_with("sent.").then_some(0.0);
        rows.iter().map(|row| row.get(column).number().or(none_sent)).collect::<Option<_>>().map(Sample::Numbers)
    }
}
