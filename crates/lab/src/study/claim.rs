//! What a paper claims, and what the rows say to it. The rule stands in the file of the study; the verdict is computed.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use super::{
    StudyError,
    expression::{Relation, Rule, rule},
    point::{Filter, Point, Sample, points},
    table::{Table, Value},
};
use crate::stats::Interval;

/// A claim, as it stands in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim, in our words.
    pub text: String,
    /// Which table of the study it is about; the first, if none is named.
    pub table: Option<String>,
    /// Which rows it is about.
    #[serde(default, rename = "where")]
    pub filter: Filter,
    /// What must hold at each point.
    pub rule: String,
    /// Which points it speaks of, if not of all: a rule about the key. Those beside them are looked at, too, and the range in which
    /// it holds is told.
    pub at: Option<String>,
    /// For `~`: the part of the right side by which the left may differ.
    #[serde(default = "five_percent")]
    pub within: f64,
    /// The column along which ranges are told.
    pub over: Option<String>,
    /// The column that brackets speak of.
    #[serde(default = "algorithm")]
    pub series: String,
    /// What the paper can also be taken to mean.
    #[serde(default)]
    pub readings: Vec<Reading>,
}

/// Another way to read a claim, or its setting.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// What is different.
    pub text: String,
    /// Other rows.
    #[serde(default, rename = "where")]
    pub filter: Filter,
    /// Another rule.
    pub rule: Option<String>,
}

fn five_percent() -> f64 {
    0.05
}

fn algorithm() -> String {
    "algorithm".to_owned()
}

/// What becomes of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// At every point.
    Holds,
    /// At some points.
    OnlyIf,
    /// At none.
    DoesNot,
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holds => "holds",
            Self::OnlyIf => "holds only if",
            Self::DoesNot => "does not hold",
        })
    }
}

/// A claim that was looked at.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Judged {
    /// The claim, or how it is read.
    pub text: String,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Where, and by how much.
    pub detail: String,
    /// What comes out of it otherwise read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<Self>,
    /// The rule by which that was found.
    pub rule: String,
}

/// What a rule comes to at one point.
struct Found<'t> {
    point: Point<'t>,
    holds: bool,
    /// Whether the claim speaks of it.
    meant: bool,
    /// How far it is from being otherwise; the smaller, the closer.
    margin: f64,
    sides: Option<(Sample, Sample)>,
}

impl Claim {
    /// Looks at the rows.
    ///
    /// # Errors
    /// If a rule cannot be read, or there is nothing to look at.
    pub fn judge(&self, tables: &[Table]) -> Result<Judged, StudyError> {
        let mut judged = self.read(tables, &self.text, &self.rule, &self.filter)?;
        for reading in &self.readings {
            let rule = reading.rule.as_deref().unwrap_or(&self.rule);
            judged.readings.push(self.read(tables, &reading.text, rule, &self.filter.and(&reading.filter))?);
        }
        Ok(judged)
    }

    fn read(&self, tables: &[Table], text: &str, rule_text: &str, filter: &Filter) -> Result<Judged, StudyError> {
        let wrong = |what: String| StudyError::Claim { claim: self.text.clone(), what };
        let read = |text: &str| rule(text).map_err(|error| wrong(error.to_string()));
        let (rule, at) = (read(rule_text)?, self.at.as_deref().map(read).transpose()?);
        let named = |table: &&Table| self.table.as_ref().is_none_or(|name| *name == table.name);
        let table = tables.iter().find(named).ok_or_else(|| wrong("there is no such table".to_owned()))?;
        let mut has_series = false;
        let mut missing = None;
        for side in [&rule.left, &rule.right] {
            side.columns(&mut |column, series| {
                has_series |= series.is_some();
                if !table.has(column) {
                    missing = Some(column.to_owned());
                }
            });
        }
        if let Some(column) = missing {
            let columns = table.columns().join(", ");
            return Err(wrong(format!("there is no column \"{column}\"; there are {columns}")));
        }
        let points = points(table, filter, has_series.then_some(self.series.as_str()));
        let compare = |rule: &Rule, point: &Point<'_>| self.compare(rule, point, points.len());
        let found: Vec<Found<'_>> = points
            .iter()
            .map(|point| {
                let meant = at.as_ref().is_none_or(|at| compare(at, point).is_some_and(|(holds, ..)| holds));
                let point = point.clone();
                match compare(&rule, &point) {
                    Some((holds, margin, sides)) => Found { point, holds, meant, margin, sides: Some(sides) },
                    None => Found { point, holds: false, meant, margin: f64::INFINITY, sides: None },
                }
            })
            .collect();
        if !found.iter().any(|found| found.meant) {
            return Err(wrong("no row is meant by it; look at its `where` and `at`".to_owned()));
        }
        let (verdict, detail) = self.verdict(&found);
        Ok(Judged { text: text.to_owned(), verdict, detail, readings: Vec::new(), rule: self.in_words(rule_text) })
    }

    /// The rule, with how near is near.
    fn in_words(&self, rule: &str) -> String {
        if rule.contains('~') { format!("{rule}, within {} %", self.within * 100.0) } else { rule.to_owned() }
    }

    /// Whether a rule holds at one of so many points, and by how much. Where there are several runs, the runs of both sides are
    /// compared one by one, for they met the same clients. The more points, the surer a difference must be.
    fn compare(&self, rule: &Rule, point: &Point<'_>, points: usize) -> Option<(bool, f64, (Sample, Sample))> {
        let (left, right) = (point.sample(&rule.left)?, point.sample(&rule.right)?);
        let (holds, margin) = match (&left, &right) {
            (Sample::Text(one), Sample::Text(other)) => (rule.relation == Relation::Equal && one == other, 0.0),
            (Sample::Numbers(one), Sample::Numbers(other)) => {
                let runs = one.len().max(other.len());
                if (one.len() != runs && one.len() != 1) || (other.len() != runs && other.len() != 1) {
                    return None;
                }
                let of = |numbers: &[f64], run: usize| numbers[run.min(numbers.len() - 1)];
                let differences: Vec<f64> = (0..runs).map(|run| of(one, run) - of(other, run)).collect();
                self.relate(rule.relation, Interval::one_of(&differences, points), Interval::of(other).mean)
            }
            (Sample::Text(_), Sample::Numbers(_)) | (Sample::Numbers(_), Sample::Text(_)) => return None,
        };
        Some((holds, margin, (left, right)))
    }

    fn relate(&self, relation: Relation, difference: Interval, right: f64) -> (bool, f64) {
        // What is equal but for rounding is equal.
        let rounding = 1e-9 * right.abs().max(1e-300);
        let Interval { mean, ci95 } = difference;
        let unsure = ci95.unwrap_or(0.0) + rounding;
        let holds = match relation {
            Relation::Less => mean + unsure < 0.0,
            Relation::AtMost => mean - unsure <= 0.0,
            Relation::More => mean - unsure > 0.0,
            Relation::AtLeast => mean + unsure >= 0.0,
            Relation::Equal => mean.abs() <= unsure,
            Relation::Near => mean.abs() - unsure <= self.within * right.abs(),
        };
        let margin = match relation {
            Relation::Less | Relation::AtMost | Relation::More | Relation::AtLeast => mean.abs(),
            Relation::Equal => -mean.abs(),
            Relation::Near => (self.within * right.abs() - mean.abs()).abs(),
        };
        (holds, if right == 0.0 { margin } else { margin / right.abs() })
    }

    fn verdict(&self, found: &[Found<'_>]) -> (Verdict, String) {
        let meant: Vec<&Found<'_>> = found.iter().filter(|found| found.meant).collect();
        let (of, holding) = (meant.len(), meant.iter().filter(|found| found.holds).count());
        let verdict = match holding {
            0 => Verdict::DoesNot,
            holding if holding == of => Verdict::Holds,
            _ => Verdict::OnlyIf,
        };
        let mut told = Vec::new();
        if of > 1 {
            told.push(match holding {
                0 => format!("At none of {of} points."),
                holding if holding == of => format!("At all {of} points."),
                holding => format!("At {holding} of {of} points."),
            });
        }
        let is_everywhere = found.iter().all(|found| found.holds) || found.iter().all(|found| !found.holds);
        if !is_everywhere {
            let beyond =
                if found.len() > of { "Looking beyond what it speaks of, it holds for" } else { "It holds for" };
            told.push(format!("{beyond} {}.", self.ranges(found)));
        }
        // Where it holds, the point that comes closest to failing; where it fails, the one that fails most.
        let holds = verdict == Verdict::Holds;
        let by = |found: &&&Found<'_>| if holds { -found.margin } else { found.margin };
        let those = meant.iter().filter(|found| found.holds == holds && found.sides.is_some());
        if let Some(extreme) = those.max_by(|one, other| by(one).total_cmp(&by(other))) {
            let what = match (of, holds) {
                (1, _) => Some(""),
                // All that are equal are equally far from failing.
                (_, true) if extreme.margin == 0.0 => None,
                (_, true) => Some("Closest to failing: "),
                (_, false) => Some("Fails most: "),
            };
            told.extend(what.map(|what| format!("{what}{}.", tell(extreme, &varying(found)))));
        }
        let missing = meant.iter().filter(|found| found.sides.is_none()).count();
        if missing > 0 {
            told.push(format!("At {missing} of {of} points there is nothing to compare."));
        }
        (verdict, told.join(" "))
    }

    /// Where it holds, in words.
    fn ranges(&self, found: &[Found<'_>]) -> String {
        let varies = varying(found);
        let numeric = |key: &&&str| found.iter().all(|found| matches!(found.point.at(key), Some(Value::Number(_))));
        let over = self.over.as_deref().or_else(|| varies.iter().rfind(numeric).copied());
        let mut groups: indexmap::IndexMap<String, Vec<&Found<'_>>> = indexmap::IndexMap::new();
        for found in found {
            let rest = varies.iter().copied().filter(|key| Some(*key) != over);
            groups.entry(name(&found.point, rest)).or_default().push(found);
        }
        let mut alike: indexmap::IndexMap<String, Vec<String>> = indexmap::IndexMap::new();
        for (group, mut those) in groups {
            if let Some(over) = over {
                those.sort_by(|one, other| {
                    let at = |found: &&Found<'_>| found.point.at(over).cloned().unwrap_or(Value::Missing);
                    at(one).order(&at(other))
                });
            }
            let where_ = match over {
                _ if those.iter().all(|found| found.holds) => "everywhere".to_owned(),
                _ if those.iter().all(|found| !found.holds) => "nowhere".to_owned(),
                Some(over) => runs(&those, over),
                None => "in part".to_owned(),
            };
            alike.entry(where_).or_default().push(group);
        }
        let told = alike.into_iter().map(|(where_, groups)| match &groups[..] {
            [only] if only.is_empty() => where_,
            groups => format!("{}: {where_}", groups.join(" / ")),
        });
        told.collect::<Vec<_>>().join("; ")
    }
}

fn tell(found: &Found<'_>, keys: &[&str]) -> String {
    let Some((left, right)) = &found.sides else { return String::new() };
    let name = name(&found.point, keys.iter().copied());
    let at = if name.is_empty() { String::new() } else { format!(" at {name}") };
    if left == right { format!("{left}{at}") } else { format!("{left} against {right}{at}") }
}

/// The columns of the key in which the points differ.
fn varying<'t>(found: &[Found<'t>]) -> Vec<&'t str> {
    let Some(first) = found.first() else { return Vec::new() };
    // How much was simulated is no part of the question.
    let keys = first.point.key.iter().map(|(key, _)| *key).filter(|key| !matches!(*key, "entries" | "warmup" | "seed"));
    keys.filter(|key| found.iter().any(|found| found.point.at(key) != first.point.at(key))).collect()
}

fn name<'k>(point: &Point<'_>, keys: impl Iterator<Item = &'k str>) -> String {
    let told = keys.filter_map(|key| Some(format!("{key} {}", point.at(key)?)));
    told.collect::<Vec<_>>().join(", ")
}

/// The stretches of a column in which it holds.
fn runs(those: &[&Found<'_>], over: &str) -> String {
    let at = |found: &Found<'_>| found.point.at(over).map_or(String::new(), Value::to_string);
    let stretches = those.chunk_by(|one, other| one.holds == other.holds).filter(|stretch| stretch[0].holds);
    let told = stretches.map(|stretch| match stretch {
        [only] => format!("{over} {}", at(only)),
        [first, .., last] => format!("{over} from {} to {}", at(first), at(last)),
        [] => String::new(),
    });
    told.collect::<Vec<_>>().join(" and ")
}
