//! The points of a table: rows that differ in nothing but their run, or their series, belong together.

use std::fmt;

use indexmap::IndexMap;
use serde::Deserialize;

use super::{
    expression::Expression,
    table::{FAILURE, RUN, Row, Table, Value},
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

impl Filter {
    /// Whether a table has such columns, and of each at least one of the values.
    pub(super) fn check(&self, table: &Table) -> Result<(), String> {
        for (column, values) in &self.0 {
            if !table.has(column) {
                return Err(format!("there is no column \"{column}\"; there are {}", table.columns().join(", ")));
            }
            let only = Self(IndexMap::from([(column.clone(), values.clone())]));
            if !table.rows.iter().any(|row| only.takes(row)) {
                return Err(format!("no row has what its `where` asks for: {only}"));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (column, values)) in self.0.iter().enumerate() {
            let between = if at == 0 { "" } else { ", " };
            let words = |value: &Value| match value {
                Value::Text(text) if text.is_empty() => "nothing".to_owned(),
                other => other.to_string(),
            };
            let values = values.all().iter().map(words).collect::<Vec<_>>().join(" or ");
            write!(f, "{between}{column} is {values}")?;
        }
        Ok(())
    }
}

/// One point: what the rows have in common, and the rows, by series, in the order of their runs. A run that went wrong for one of
/// them is left out for all, so that what remains can be compared run by run.
#[derive(Clone, Debug)]
pub struct Point<'t> {
    /// The columns that say which point it is.
    pub key: Vec<(&'t str, &'t Value)>,
    /// How many runs were left out.
    pub failed: usize,
    rows: IndexMap<String, Vec<&'t Row>>,
}

/// What came out of an expression at a point.
#[derive(Clone, PartialEq, Debug)]
pub enum Sample {
    /// What does not depend on chance.
    Exact(f64),
    /// A number for each run.
    Runs(Vec<f64>),
    /// A text.
    Text(String),
}

impl Sample {
    /// The mean of the numbers.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        match self {
            Self::Exact(number) => Some(Interval { mean: *number, ci95: None }),
            Self::Runs(numbers) => Some(Interval::of(numbers)),
            Self::Text(_) => None,
        }
    }

    /// The number of a run.
    fn number(&self, run: usize) -> Option<f64> {
        match self {
            Self::Exact(number) => Some(*number),
            Self::Runs(numbers) => numbers.get(run).copied(),
            Self::Text(_) => None,
        }
    }

    /// What comes of several, run by run; nothing if that is no number.
    pub(super) fn combine(parts: &[Self], function: impl Fn(&[f64]) -> f64) -> Option<Self> {
        let runs = parts.iter().filter_map(|part| match part {
            Self::Runs(numbers) => Some(numbers.len()),
            Self::Exact(_) | Self::Text(_) => None,
        });
        let of_run = |run: usize| {
            let numbers: Vec<f64> = parts.iter().map(|part| part.number(run)).collect::<Option<_>>()?;
            Some(function(&numbers)).filter(|number| number.is_finite())
        };
        match runs.max() {
            None => of_run(0).map(Self::Exact),
            Some(runs) => (0..runs).map(of_run).collect::<Option<_>>().map(Self::Runs),
        }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Exact(number) => f.write_str(&brief(*number)),
            Self::Runs(numbers) => {
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
        let point = points.entry(name).or_insert_with(|| Point { key, failed: 0, rows: IndexMap::new() });
        let of = series.map_or(String::new(), |series| row.get(series).to_string());
        point.rows.entry(of).or_default().push(row);
    }
    let mut points: Vec<Point<'t>> = points.into_values().collect();
    points.iter_mut().for_each(Point::settle);
    points
}

impl Point<'_> {
    /// Puts runs in order, and leaves those out that went wrong.
    fn settle(&mut self) {
        let rows = || self.rows.values().flatten();
        let failed: Vec<Value> =
            rows().filter(|row| row.0.contains_key(FAILURE)).map(|row| row.get(RUN).clone()).collect();
        self.failed = rows().filter(|row| failed.contains(row.get(RUN))).count();
        for rows in self.rows.values_mut() {
            rows.retain(|row| !failed.contains(row.get(RUN)));
            rows.sort_by(|one, other| one.get(RUN).order(other.get(RUN)));
        }
    }

    /// What stands in a column of the key.
    #[must_use]
    pub fn at(&self, column: &str) -> Option<&Value> {
        self.key.iter().find(|(key, _)| *key == column).map(|(_, value)| *value)
    }

    /// Whether there is a series of that name here.
    #[must_use]
    pub fn has_series(&self, series: &str) -> bool {
        self.rows.contains_key(series)
    }

    /// What comes out of an expression here; nothing, if something is missing.
    #[must_use]
    pub fn sample(&self, expression: &Expression) -> Option<Sample> {
        match expression {
            Expression::Number(number) => Some(Sample::Exact(*number)),
            Expression::Text(text) => Some(Sample::Text(text.clone())),
            Expression::Column(column, series) => self.column(column, series.as_deref()),
            Expression::Call(function, parts) => {
                let parts: Vec<Sample> = parts.iter().map(|part| self.sample(part)).collect::<Option<_>>()?;
                Sample::combine(&parts, |numbers| function.of(numbers))
            }
        }
    }

    fn column(&self, column: &str, series: Option<&str>) -> Option<Sample> {
        let exact = |value: &Value| match value {
            Value::Number(number) => Some(Sample::Exact(*number)),
            Value::Text(text) => Some(Sample::Text(text.clone())),
            Value::Missing => None,
        };
        if let Some(value) = self.at(column) {
            return exact(value);
        }
        let rows = self.rows.get(series.unwrap_or(""))?;
        // A kind of message that no column speaks of was not sent.
        let none_sent = column.starts_with("sent.").then_some(0.0);
        match rows[..] {
            [] => None,
            [only] if !only.0.contains_key(RUN) => exact(only.get(column)).or(none_sent.map(Sample::Exact)),
            _ => rows.iter().map(|row| row.get(column).number().or(none_sent)).collect::<Option<_>>().map(Sample::Runs),
        }
    }
}
