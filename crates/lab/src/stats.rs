//! A little statistics.

use std::fmt;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean of independent replications, and how far it may be off.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width of Student's 95 % interval; a single replication has none.
    pub ci95: Option<f64>,
}

impl Interval {
    /// The interval of these values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        Self::one_of(values, 1)
    }

    /// The interval of these values, so wide that so many such intervals are all right together in 95 of 100 cases (Bonferroni).
    #[must_use]
    pub fn one_of(values: &[f64], intervals: usize) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        if values.len() < 2 {
            return Self { mean, ci95: None };
        }
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let student = StudentsT::new(0.0, 1.0, n - 1.0).expect("at least one degree of freedom");
        let outside = 0.025 / intervals.max(1) as f64;
        Self { mean, ci95: Some(-student.inverse_cdf(outside) * (variance / n).sqrt()) }
    }

    /// Whether the interval contains the value.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.mean - value).abs() <= self.ci95.unwrap_or(0.0)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(4);
        write!(f, "{:.digits$}", self.mean)?;
        self.ci95.map_or(Ok(()), |ci95| write!(f, " ± {ci95:.digits$}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_interval() {
        // Ten values from 1 to 10: s = 3.0277, t(9) = 2.2622.
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let interval = Interval::of(&values);
        assert_eq!(interval.mean, 5.5);
        assert!((interval.ci95.expect("ten values") - 2.1659).abs() < 1e-4);
        assert_eq!(interval.to_string(), "5.5000 ± 2.1659");
        // t(9) for one of ten: 0.25 % on either side.
        assert!((Interval::one_of(&values, 10).ci95.expect("ten values") - 3.5333).abs() < 1e-3);
        assert_eq!(Interval::of(&[7.0]), Interval { mean: 7.0, ci95: None });
    }
}
