//! Plots of a table, as a file asks for them.

use indexmap::{IndexMap, IndexSet};
use serde::Deserialize;
use vez_algorithms::catalog;

use super::{
    Figure, StudyError,
    expression::Expression,
    find,
    point::{Filter, OneOrMore, brief, points},
    reader::expression,
    table::{Table, Value},
};
use crate::plot::{Axis, Plot, Point, Series};

/// A plot, or several beside each other, as it stands in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Chart {
    /// What it shows; `{}` is where the value of `each` goes.
    pub title: String,
    /// Which table of the study; the first, if none is named.
    table: Option<String>,
    /// Which rows.
    #[serde(default, rename = "where")]
    filter: Filter,
    /// The column along which.
    x: String,
    /// What is shown: a column, or what is computed from columns.
    y: String,
    /// A line for each value of this column.
    #[serde(default = "super::claim::algorithm")]
    series: String,
    /// A plot for each value of this column.
    each: Option<String>,
    x_label: Option<String>,
    y_label: Option<String>,
    #[serde(default)]
    log_x: bool,
    #[serde(default)]
    log_y: bool,
}

impl Chart {
    /// Draws it.
    pub(super) fn draw(&self, study: &str, already: usize, tables: &[Table]) -> Result<Vec<Figure>, StudyError> {
        let wrong = |what: String| StudyError::Chart { plot: self.title.clone(), what };
        let table = find(tables, self.table.as_deref()).ok_or_else(|| wrong("there is no such table".to_owned()))?;
        let y = expression(&self.y).map_err(|error| wrong(error.to_string()))?;
        let mut columns = vec![self.x.clone(), self.series.clone()];
        columns.extend(self.each.clone());
        let mut has_series = false;
        y.columns(&mut |column, series| {
            columns.push(column.to_owned());
            has_series |= series.is_some();
        });
        if has_series {
            return Err(wrong("every series has its own line; leave the brackets out".to_owned()));
        }
        if !table.keys.contains(&self.x) {
            return Err(wrong(format!("x is \"{}\"; take one of {}", self.x, table.keys.join(", "))));
        }
        if let Some(column) = columns.iter().find(|column| !table.has(column)) {
            let there = table.columns().join(", ");
            return Err(wrong(format!("there is no column \"{column}\"; there are {there}")));
        }
        self.filter.check(table).map_err(wrong)?;
        let panels: IndexSet<String> = match &self.each {
            Some(each) => {
                let those = table.rows.iter().filter(|row| self.filter.takes(row));
                those.map(|row| row.get(each).to_string()).collect()
            }
            None => IndexSet::from([String::new()]),
        };
        let panels = panels.into_iter().enumerate();
        panels.map(|(at, panel)| self.panel(table, &y, study, already + at + 1, &panel).map_err(wrong)).collect()
    }

    fn panel(&self, table: &Table, y: &Expression, study: &str, number: usize, panel: &str) -> Result<Figure, String> {
        let mut filter = self.filter.clone();
        if let Some(each) = &self.each {
            filter.0.insert(each.clone(), OneOrMore::One(Value::parse(panel)));
        }
        let mut lines: IndexMap<String, Vec<Point>> = IndexMap::new();
        for point in points(table, &filter, None) {
            let x = match point.at(&self.x) {
                Some(Value::Text(text)) => return Err(format!("x is \"{text}\", which is no number")),
                other => other.and_then(Value::number),
            };
            let interval = point.sample(y).and_then(|sample| sample.interval());
            let name = match point.at(&self.series) {
                Some(Value::Number(number)) => format!("{} = {}", self.series, brief(*number)),
                Some(other) => other.to_string(),
                None => String::new(),
            };
            if let (Some(x), Some(interval)) = (x, interval) {
                let line = lines.entry(name.clone()).or_default();
                if line.iter().any(|other| other.x == x) {
                    let fix = "take one of them with `where`, or make a plot for each with `each`";
                    return Err(format!("{name} has several points at {} {x}; {fix}", self.x));
                }
                line.push(Point { x, y: interval.mean, ci95: interval.ci95 });
            }
        }
        let series = lines.into_iter().enumerate().map(|(at, (name, mut points))| {
            points.sort_by(|one, other| one.x.total_cmp(&other.x));
            Series { style: style(&name).unwrap_or(at), name, points }
        });
        let plot = Plot {
            title: self.title.replace("{}", panel),
            x: Axis { label: label(self.x_label.as_deref(), &self.x), log: self.log_x, zero: false },
            y: Axis { label: label(self.y_label.as_deref(), &self.y), log: self.log_y, zero: !self.log_y },
            series: series.collect(),
        };
        let name = format!("{study}-{number}");
        Ok(Figure { name, title: plot.title.clone(), svg: plot.svg(), series: plot.series })
    }
}

/// An algorithm looks the same in every plot.
fn style(name: &str) -> Option<usize> {
    // Those that are compared most come first, so that they differ most.
    const FIRST: [&str; 6] = ["nxr", "raymond", "naimi-trehel", "fila", "fila-forest", "raymond-piggyback"];
    let rest = catalog::ALL.iter().map(|entry| entry.name).filter(|name| !FIRST.contains(name));
    FIRST.into_iter().chain(rest).position(|known| known == name)
}

/// What a column is, with its unit.
fn label(given: Option<&str>, column: &str) -> String {
    given.map(str::to_owned).unwrap_or_else(|| {
        match column {
            "rate" => "λ: requests of a node in a unit of time, while it thinks",
            "nodes" => "n: nodes",
            "messages" => "messages an entry",
            "wait" => "wait for an entry, units of time",
            "sync_delay" => "from leaving to the next entering, units of time",
            "fairness" => "fairness (Jain's index)",
            "waiting" => "nodes that wait, on average",
            "busiest" => "share of the busiest node in all receipts",
            other => other,
        }
        .to_owned()
    })
}
