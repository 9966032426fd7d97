//! What a rule comes to at a point: yes, no, or that one cannot tell.
//!
//! Where chance has a part in it, the runs of both sides are compared one by one, for they met the same clients, and the
//! interval of the differences must lie on one side of the limit. A claim that is asked at many points would fail by chance
//! at some of them, so the interval is as wide as it must be for all of them together.

use super::{
    expression::{Comparison, Relation},
    point::{Point, Sample},
};
use crate::stats::Interval;

/// What a comparison comes to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Answer {
    No,
    Unclear,
    Yes,
}

/// What a rule comes to at one point.
pub(super) struct Found<'t> {
    pub(super) point: Point<'t>,
    pub(super) answer: Answer,
    /// Whether the claim speaks of it.
    pub(super) meant: bool,
    /// By how much the comparison that is closest to failing, or fails most, does not: as a part of its right side.
    pub(super) margin: f64,
    /// Its sides, with the words for them, if there is something to compare.
    pub(super) sides: Option<[(String, Sample); 2]>,
}

/// A rule, and of which points a claim speaks.
pub(super) struct Question {
    pub(super) rule: Vec<Comparison>,
    pub(super) at: Option<Vec<Comparison>>,
    pub(super) within: Option<f64>,
    /// How many points are asked about.
    pub(super) points: usize,
}

impl Question {
    /// Asks at a point.
    pub(super) fn ask<'t>(&self, point: Point<'t>) -> Found<'t> {
        let asked = |rule: &[Comparison]| {
            let answers = rule.iter().map(|part| self.compare(part, &point));
            // All parts must be true, so the worst of them is the answer.
            answers.min_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)))
        };
        let is_true = |rule: &Vec<Comparison>| asked(rule).is_some_and(|(answer, ..)| answer == Answer::Yes);
        let meant = self.at.as_ref().is_none_or(is_true);
        let (answer, margin, sides) = asked(&self.rule).unwrap_or((Answer::Unclear, 0.0, None));
        Found { point, answer, meant, margin, sides }
    }

    /// How near is near, if that matters: without chance it does for `~` only.
    pub(super) fn nearness(&self, is_exact: bool) -> Option<String> {
        let slack = self.rule.iter().map(|part| self.slack(part.relation, is_exact)).find(|slack| *slack > 0.0)?;
        Some(format!("within {} %", 100.0 * slack))
    }

    /// The part of the right side that makes no difference.
    fn slack(&self, relation: Relation, is_exact: bool) -> f64 {
        match relation {
            Relation::Less | Relation::More | Relation::Equal => 0.0,
            Relation::AtMost | Relation::AtLeast if is_exact => 0.0,
            Relation::AtMost | Relation::AtLeast => self.within.unwrap_or(0.01),
            Relation::Near => self.within.unwrap_or(0.05),
        }
    }

    fn compare(&self, part: &Comparison, point: &Point<'_>) -> (Answer, f64, Option<[(String, Sample); 2]>) {
        let (Some(left), Some(right)) = (point.sample(&part.left), point.sample(&part.right)) else {
            return (Answer::Unclear, 0.0, None);
        };
        let [one, other] = part.words.clone();
        let sides = Some([(one, left.clone()), (other, right.clone())]);
        if let (Sample::Text(one), Sample::Text(other)) = (&left, &right) {
            let equal = part.relation == Relation::Equal && one == other;
            return (if equal { Answer::Yes } else { Answer::No }, 0.0, sides);
        }
        let difference = Sample::combine(&[left, right.clone()], |numbers| numbers[0] - numbers[1]);
        let (Some(difference), Some(right)) = (difference, right.interval()) else {
            return (Answer::Unclear, 0.0, None);
        };
        let (mean, unsure) = match &difference {
            // What is equal but for rounding is equal.
            Sample::Exact(number) => (*number, 1e-9 * right.mean.abs()),
            Sample::Runs(numbers) => {
                let Interval { mean, ci95 } = Interval::one_of(numbers, self.points);
                (mean, ci95.unwrap_or(f64::INFINITY))
            }
            Sample::Text(_) => return (Answer::Unclear, 0.0, None),
        };
        let is_exact = matches!(difference, Sample::Exact(_));
        let slack = self.slack(part.relation, is_exact);
        let (answer, margin) = relate(part.relation, mean, unsure, slack * right.mean.abs(), is_exact);
        (answer, if right.mean == 0.0 { margin } else { margin / right.mean.abs() }, sides)
    }
}

/// Whether a difference that is known up to `unsure` is as it should be, and by how much.
fn relate(relation: Relation, mean: f64, unsure: f64, slack: f64, is_exact: bool) -> (Answer, f64) {
    let margin = match relation {
        Relation::Less | Relation::AtMost => slack - mean,
        Relation::More | Relation::AtLeast => slack + mean,
        Relation::Equal => -mean.abs(),
        Relation::Near => slack - mean.abs(),
    };
    let answer = match relation {
        // Without chance: yes or no. Rounding counts for equality, and against strict inequality.
        Relation::Less | Relation::More if is_exact => yes_if(margin > unsure),
        Relation::AtMost | Relation::AtLeast | Relation::Equal | Relation::Near if is_exact => {
            yes_if(margin >= -unsure)
        }
        // Equality that depends on chance can be refuted, and never shown.
        Relation::Equal => match margin {
            margin if margin < -unsure => Answer::No,
            _ => Answer::Unclear,
        },
        Relation::Less | Relation::More | Relation::AtMost | Relation::AtLeast | Relation::Near => match margin {
            margin if margin > unsure => Answer::Yes,
            margin if margin < -unsure || (margin == 0.0 && unsure == 0.0) => Answer::No,
            _ => Answer::Unclear,
        },
    };
    (answer, margin)
}

fn yes_if(it_is_so: bool) -> Answer {
    if it_is_so { Answer::Yes } else { Answer::No }
}
