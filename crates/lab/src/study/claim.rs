//! What a paper claims, and what the rows say to it. The rule stands in the file of the study; the verdict is computed.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use super::{
    StudyError,
    expression::Comparison,
    find,
    point::{Filter, Point, points},
    question::{Answer, Found, Question},
    reader::rule,
    table::{RUN, Table, Value},
};

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
    /// The part of the right side by which the left may differ for `~`, 0.05 by default, and for `<=` and `>=`, 0.01 by default.
    pub within: Option<f64>,
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
    /// Other points that it speaks of.
    pub at: Option<String>,
}

pub(super) fn algorithm() -> String {
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
    /// Nowhere is it clear whether it does.
    Untold,
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
            Self::Untold => "cannot be told",
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

impl Claim {
    /// Looks at the rows.
    ///
    /// # Errors
    /// If a rule cannot be read, or there is nothing to look at.
    pub fn judge(&self, tables: &[Table]) -> Result<Judged, StudyError> {
        let itself = Reading { text: self.text.clone(), filter: Filter::default(), rule: None, at: None };
        let mut judged = self.read(tables, &itself)?;
        for reading in &self.readings {
            judged.readings.push(self.read(tables, reading)?);
        }
        Ok(judged)
    }

    fn wrong(&self, what: impl Into<String>) -> StudyError {
        StudyError::Claim { claim: self.text.clone(), what: what.into() }
    }

    fn read(&self, tables: &[Table], reading: &Reading) -> Result<Judged, StudyError> {
        let text = reading.rule.as_deref().unwrap_or(&self.rule);
        let read = |text: &str| rule(text).map_err(|error| self.wrong(error.to_string()));
        let (rule, at) = (read(text)?, reading.at.as_deref().or(self.at.as_deref()).map(read).transpose()?);
        if self.within.is_some_and(|within| !(0.0..=1.0).contains(&within)) {
            return Err(self.wrong("within is a part of the right side; take a number from 0 to 1"));
        }
        let table = find(tables, self.table.as_deref()).ok_or_else(|| self.wrong("there is no such table"))?;
        let filter = self.filter.and(&reading.filter);
        let wrong = |what: String| {
            let itself = self.text == reading.text;
            self.wrong(if itself { what } else { format!("read as \"{}\": {what}", reading.text) })
        };
        filter.check(table).map_err(wrong)?;
        if let Some(over) = self.over.as_ref().filter(|over| !table.keys.contains(over)) {
            return Err(wrong(format!("over is \"{over}\"; take one of {}", table.keys.join(", "))));
        }
        self.series_of(at.as_deref().unwrap_or_default(), table)?;
        let series = self.series_of(&rule, table)?;
        let points = points(table, &filter, (!series.is_empty()).then_some(self.series.as_str()));
        for name in &series {
            if !points.iter().any(|point| point.has_series(name)) {
                return Err(wrong(format!("no row has the {} \"{name}\"; look at its `where`", self.series)));
            }
        }
        let question = Question { rule, at, within: self.within, points: points.len() };
        let found: Vec<Found<'_>> = points.into_iter().map(|point| question.ask(point)).collect();
        if !found.iter().any(|found| found.meant) {
            return Err(wrong("no row is meant by it; look at its `where` and `at`".to_owned()));
        }
        let (verdict, detail) = self.verdict(&found);
        let at = reading.at.as_ref().or(self.at.as_ref()).map(|at| format!("at {at}"));
        let where_ = (!filter.0.is_empty()).then(|| format!("where {filter}"));
        let whole = [
            Some(text.to_owned()),
            question.nearness(!table.rows.iter().any(|row| row.0.contains_key(RUN))),
            at,
            where_,
        ];
        let rule = whole.into_iter().flatten().collect::<Vec<_>>().join(", ");
        Ok(Judged { text: reading.text.clone(), verdict, detail, readings: Vec::new(), rule })
    }

    /// The series that a rule speaks of. What it speaks of must be there.
    fn series_of(&self, rule: &[Comparison], table: &Table) -> Result<Vec<String>, StudyError> {
        let (mut all, mut missing) = (Vec::new(), None);
        for side in rule.iter().flat_map(|part| [&part.left, &part.right]) {
            side.columns(&mut |column, series| {
                all.extend(series.map(str::to_owned));
                if !table.has(column) {
                    missing = Some(column.to_owned());
                }
            });
        }
        match missing {
            Some(column) => {
                let there = table.columns().join(", ");
                Err(self.wrong(format!("there is no column \"{column}\"; there are {there}")))
            }
            None => Ok(all),
        }
    }

    fn verdict(&self, found: &[Found<'_>]) -> (Verdict, String) {
        let meant: Vec<&Found<'_>> = found.iter().filter(|found| found.meant).collect();
        let count = |answer: Answer| meant.iter().filter(|found| found.answer == answer).count();
        let (of, yes, no, unclear) = (meant.len(), count(Answer::Yes), count(Answer::No), count(Answer::Unclear));
        let verdict = match (yes, no) {
            (0, 0) => Verdict::Untold,
            (0, _) => Verdict::DoesNot,
            (yes, 0) if yes == of => Verdict::Holds,
            (_, _) => Verdict::OnlyIf,
        };
        let mut told = Vec::new();
        if of > 1 {
            told.push(match yes {
                0 => format!("At none of {of} points."),
                2 if of == 2 => "At both points.".to_owned(),
                yes if yes == of => format!("At all {of} points."),
                yes => format!("At {yes} of {of} points: {}.", self.ranges(&meant)),
            });
        }
        let missing = meant.iter().filter(|found| found.sides.is_none()).count();
        if missing > 0 {
            told.push(format!("At {missing} there is nothing to compare."));
        }
        if unclear > missing {
            told.push(format!("At {} the runs do not tell: they are too few, or differ too much.", unclear - missing));
        }
        let beyond: Vec<&Found<'_>> = found.iter().filter(|found| !found.meant).collect();
        if !beyond.is_empty() {
            told.push(format!("Outside of what it speaks of it holds for {}.", self.ranges(&beyond)));
        }
        told.extend(extreme(&meant, verdict, &varying(&found.iter().collect::<Vec<_>>())));
        let failed: usize = meant.iter().map(|found| found.point.failed).sum();
        if failed > 0 {
            told.push(format!("{failed} runs that went wrong are left out."));
        }
        (verdict, told.join(" "))
    }

    /// Where it holds, in words.
    fn ranges(&self, found: &[&Found<'_>]) -> String {
        let varies = varying(found);
        let numeric = |key: &&&str| found.iter().all(|found| matches!(found.point.at(key), Some(Value::Number(_))));
        let over = self.over.as_deref().or_else(|| varies.iter().rfind(numeric).copied());
        let mut groups: indexmap::IndexMap<String, Vec<&Found<'_>>> = indexmap::IndexMap::new();
        for &found in found {
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
                _ if those.iter().all(|found| found.answer == Answer::Yes) => "all of them".to_owned(),
                _ if those.iter().all(|found| found.answer != Answer::Yes) => "none of them".to_owned(),
                Some(over) => runs(&those, over),
                None => "in part".to_owned(),
            };
            alike.entry(where_).or_default().push(group);
        }
        let is_same = alike.len() == 1;
        let told = alike.into_iter().map(
            |(where_, groups)| {
                if is_same { where_ } else { format!("{}: {where_}", groups.join(" / ")) }
            },
        );
        told.collect::<Vec<_>>().join("; ")
    }
}

/// The point that comes closest to failing if it holds, or fails most if it does not, in words.
fn extreme(meant: &[&Found<'_>], verdict: Verdict, keys: &[&str]) -> Option<String> {
    let answer = match verdict {
        Verdict::Holds => Answer::Yes,
        Verdict::OnlyIf if !meant.iter().any(|found| found.answer == Answer::No) => Answer::Unclear,
        Verdict::OnlyIf | Verdict::DoesNot => Answer::No,
        Verdict::Untold => Answer::Unclear,
    };
    let those = meant.iter().filter(|found| found.answer == answer && found.sides.is_some());
    let found = those.min_by(|one, other| one.margin.total_cmp(&other.margin))?;
    let what = match (meant.len(), answer) {
        (1, _) => "",
        // All that are equal are equally far from failing.
        (_, Answer::Yes) if found.margin == 0.0 => return None,
        (_, Answer::Yes) => "Closest to failing: ",
        (_, Answer::No) => "Fails most: ",
        (_, Answer::Unclear) => "For instance: ",
    };
    Some(format!("{what}{}.", tell(found, keys)))
}

fn tell(found: &Found<'_>, keys: &[&str]) -> String {
    let Some([(first, left), (second, right)]) = &found.sides else { return String::new() };
    let name = name(&found.point, keys.iter().copied());
    let at = if name.is_empty() { String::new() } else { format!(" at {name}") };
    let says_itself = *second == right.to_string() || second.parse::<f64>().is_ok();
    match (says_itself, left == right) {
        (true, _) => format!("{first} is {left}{at}"),
        (false, true) => format!("{first} and {second} are {left}{at}"),
        (false, false) => format!("{first} is {left}, {second} is {right}{at}"),
    }
}

/// The columns of the key in which the points differ.
fn varying<'t>(found: &[&Found<'t>]) -> Vec<&'t str> {
    let Some(first) = found.first() else { return Vec::new() };
    // How much was simulated is no part of the question.
    let keys = first.point.key.iter().map(|(key, _)| *key).filter(|key| !matches!(*key, "entries" | "warmup" | "seed"));
    keys.filter(|key| found.iter().any(|found| found.point.at(key) != first.point.at(key))).collect()
}

fn name<'k>(point: &Point<'_>, keys: impl Iterator<Item = &'k str>) -> String {
    let known = keys.filter_map(|key| Some((key, point.at(key).filter(|value| **value != Value::Missing)?)));
    let told = known.map(|(key, value)| format!("{key} {value}"));
    told.collect::<Vec<_>>().join(", ")
}

/// The stretches of a column in which it holds.
fn runs(those: &[&Found<'_>], over: &str) -> String {
    let at = |found: &Found<'_>| found.point.at(over).map_or(String::new(), Value::to_string);
    let holds = |found: &&Found<'_>| found.answer == Answer::Yes;
    let stretches = those.chunk_by(|one, other| holds(one) == holds(other)).filter(|stretch| holds(&stretch[0]));
    let told = stretches.map(|stretch| match stretch {
        [only] => format!("{over} {}", at(only)),
        [first, .., last] => format!("{over} from {} to {}", at(first), at(last)),
        [] => String::new(),
    });
    told.collect::<Vec<_>>().join(" and ")
}
