//! How likely it is that coordinators that forget let a second process in: the formula of the algorithm `voting`.
//!
//! One process is inside with m of n votes, so n−m are free. A second one gets in with m votes, which takes 2m−n of the m
//! coordinators that voted for the first to forget it. If each forgets with probability p while the first is inside, and they
//! do so independently, then k of the m forget with probability C(m,k) pᵏ (1−p)ᵐ⁻ᵏ, and the sum over k from 2m−n to m is asked
//! for. The trials are the m that voted, not all n.
//!
//! It may be far below what a floating-point number can hold, so it is computed with numbers of any exponent.

use std::fmt;

use thiserror::Error;
use vez_algorithms::{SetupError, mutex::majority_of};

/// A vote, and how forgetful the coordinators are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Risk {
    replicas: usize,
    majority: usize,
    reset_probability: f64,
}

/// What cannot be computed.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum RiskError {
    /// That is no majority of that many.
    #[error(transparent)]
    Majority(#[from] SetupError),
    /// That is no probability.
    #[error("{0} is no probability; take a number from 0 to 1")]
    Probability(f64),
}

impl Risk {
    /// A vote among so many replicas, of which so many make a majority, if each coordinator forgets with this probability
    /// while somebody is inside.
    ///
    /// # Errors
    /// If it is no majority, or no probability.
    pub fn new(replicas: usize, majority: usize, reset_probability: f64) -> Result<Self, RiskError> {
        majority_of(replicas, majority)?;
        if !(0.0..=1.0).contains(&reset_probability) {
            return Err(RiskError::Probability(reset_probability));
        }
        Ok(Self { replicas, majority, reset_probability })
    }

    /// n
    #[must_use]
    pub const fn replicas(&self) -> usize {
        self.replicas
    }

    /// m
    #[must_use]
    pub const fn majority(&self) -> usize {
        self.majority
    }

    /// p
    #[must_use]
    pub const fn reset_probability(&self) -> f64 {
        self.reset_probability
    }

    /// 2m−n: how many of those that voted must forget before a second process can get in.
    #[must_use]
    pub const fn needed_resets(&self) -> usize {
        2 * self.majority - self.replicas
    }

    /// That at least so many of the m forget.
    #[must_use]
    pub fn probability(&self) -> Probability {
        self.probability_among(self.majority)
    }

    /// That at least so many of this number of coordinators forget, if not the m that voted are asked about.
    ///
    /// # Panics
    /// If there are fewer coordinators than must forget.
    #[must_use]
    pub fn probability_among(&self, coordinators: usize) -> Probability {
        let (m, p, least) = (coordinators, self.reset_probability, self.needed_resets());
        assert!(m >= least, "more than there are cannot forget");
        if p == 0.0 || p == 1.0 {
            return Probability::from(p);
        }
        let (forget, remember) = (Probability::from(p), Probability::from(1.0 - p));
        let mut term = forget.power(least).times(remember.power(m - least));
        // C(m, least) = C(m, m − least)
        for i in 1..=m - least {
            term = term.times(Probability::from((least + i) as f64 / i as f64));
        }
        let mut sum = term;
        for k in least..m {
            // From P[k] to P[k+1].
            let ratio = (m - k) as f64 / (k + 1) as f64 * (p / (1.0 - p));
            term = term.times(Probability::from(ratio));
            sum = sum.plus(term);
        }
        sum.at_most_one()
    }

    /// The same replicas with every majority that there is, the smallest first.
    pub fn every_majority(self) -> impl Iterator<Item = Self> {
        (self.replicas / 2 + 1..=self.replicas).map(move |majority| Self { majority, ..self })
    }
}

/// A number that is not negative, and may be smaller than any `f64`: `fraction` · 2^`exponent`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Probability {
    /// 0, or at least ½ and less than 1.
    fraction: f64,
    exponent: i64,
}

impl Probability {
    fn from(number: f64) -> Self {
        let (fraction, exponent) = libm::frexp(number);
        Self { fraction, exponent: i64::from(exponent) }
    }

    fn times(self, other: Self) -> Self {
        let product = Self::from(self.fraction * other.fraction);
        Self { exponent: product.exponent + self.exponent + other.exponent, ..product }
    }

    fn plus(self, other: Self) -> Self {
        let (small, large) = if self.exponent < other.exponent { (self, other) } else { (other, self) };
        // Beyond the digits of a fraction it makes no difference.
        let shift = (small.exponent - large.exponent).max(-128);
        let sum = Self::from(large.fraction + libm::ldexp(small.fraction, shift as i32));
        Self { exponent: sum.exponent + large.exponent, ..sum }
    }

    fn power(self, exponent: usize) -> Self {
        let (mut power, mut square, mut left) = (Self::from(1.0), self, exponent);
        while left > 0 {
            if left % 2 == 1 {
                power = power.times(square);
            }
            square = square.times(square);
            left /= 2;
        }
        power
    }

    /// A sum that rounding has made larger than it can be.
    fn at_most_one(self) -> Self {
        if self.exponent > 0 { Self::from(1.0) } else { self }
    }

    /// As an ordinary number, unless it is too small for one with all its digits.
    #[must_use]
    pub fn as_f64(self) -> Option<f64> {
        let number = libm::ldexp(self.fraction, self.exponent.max(-100_000) as i32);
        (number >= f64::MIN_POSITIVE || self.fraction == 0.0).then_some(number)
    }

    /// Its decimal logarithm; nothing for 0.
    #[must_use]
    pub fn log10(self) -> Option<f64> {
        let log10 = libm::log10(self.fraction) + self.exponent as f64 * std::f64::consts::LOG10_2;
        (self.fraction > 0.0).then_some(log10)
    }
}

impl fmt::Display for Probability {
    /// Four digits and a power of ten.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match (self.as_f64(), self.log10()) {
            (Some(0.0), _) | (_, None) => "0".to_owned(),
            (Some(number), Some(_)) => format!("{number:.3e}"),
            (None, Some(log10)) => {
                let whole = log10.floor();
                let digits = format!("{:.3e}", libm::exp10(log10 - whole));
                let (digits, carry) = digits.split_once('e').expect("a power of ten");
                let exponent = whole as i64 + carry.parse::<i64>().expect("a whole number");
                format!("{digits}e{exponent}")
            }
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn risk(replicas: usize, majority: usize, p: f64) -> Risk {
        Risk::new(replicas, majority, p).expect("it can be computed")
    }

    /// A whole number of any size: base 2³², the lowest digit first.
    #[derive(Clone, Debug)]
    struct Big(Vec<u32>);

    impl Big {
        fn times(mut self, factor: u32) -> Self {
            let mut carry = 0;
            for digit in &mut self.0 {
                let product = u64::from(*digit) * u64::from(factor) + carry;
                (*digit, carry) = (product as u32, product >> 32);
            }
            self.0.push(carry as u32);
            self
        }

        fn over(mut self, divisor: u32) -> Self {
            let mut rest = 0;
            for digit in self.0.iter_mut().rev() {
                let dividend = (rest << 32) | u64::from(*digit);
                (*digit, rest) = ((dividend / u64::from(divisor)) as u32, dividend % u64::from(divisor));
            }
            assert_eq!(rest, 0, "it divides");
            self
        }

        fn plus(mut self, other: &Self) -> Self {
            self.0.resize(self.0.len().max(other.0.len()) + 1, 0);
            let mut carry = 0;
            for (at, digit) in self.0.iter_mut().enumerate() {
                let sum = u64::from(*digit) + u64::from(other.0.get(at).copied().unwrap_or(0)) + carry;
                (*digit, carry) = (sum as u32, sum >> 32);
            }
            self
        }

        /// Divided by a power of two, to all the digits that there is room for.
        fn over_power_of_two(&self, exponent: i64) -> Probability {
            let Some(top) = self.0.iter().rposition(|digit| *digit != 0) else { return Probability::from(0.0) };
            let digit = |at: usize| u128::from(self.0.get(at).copied().unwrap_or(0));
            let (low, lower) = (top.checked_sub(1).map_or(0, digit), top.checked_sub(2).map_or(0, digit));
            let number = Probability::from(((digit(top) << 64) | (low << 32) | lower) as f64);
            Probability { exponent: number.exponent + 32 * (top as i64 - 2) - exponent, ..number }
        }
    }

    /// The same sum in whole numbers, for p = a/2ˢ.
    fn exact(n: u32, m: u32, a: u32, s: u32) -> Probability {
        let mut sum = Big(vec![0]);
        for k in 2 * m - n..=m {
            let mut term = Big(vec![1]);
            for i in 1..=k {
                term = term.times(m - k + i).over(i);
            }
            term = (0..k).fold(term, |term, _| term.times(a));
            term = (0..m - k).fold(term, |term, _| term.times((1 << s) - a));
            sum = sum.plus(&term);
        }
        sum.over_power_of_two(i64::from(s) * i64::from(m))
    }

    #[track_caller]
    fn same(one: Probability, other: Probability) {
        let ratio = libm::ldexp(one.fraction / other.fraction, (one.exponent - other.exponent) as i32);
        assert!((ratio - 1.0).abs() < 1e-12, "{one} and {other}: {ratio}");
    }

    #[test]
    fn as_in_whole_numbers() {
        for n in (1..=12).chain([31, 32, 33, 100]) {
            for m in n / 2 + 1..=n {
                for (a, s) in [(1, 1), (3, 2), (1, 10), (1023, 10), (1, 30)] {
                    let p = f64::from(a) / f64::from(1 << s);
                    same(risk(n as usize, m as usize, p).probability(), exact(n, m, a, s));
                }
            }
        }
    }

    #[test]
    fn by_hand() {
        // n = 3, m = 2, p = ½: one of the two that voted: ¾. n = m = 3: all three: ⅛.
        assert_eq!(risk(3, 2, 0.5).probability().as_f64(), Some(0.75));
        assert_eq!(risk(3, 3, 0.5).probability().as_f64(), Some(0.125));
        // n = 4, m = 3, p = ¼: two or three of three: (3·3 + 1)/64.
        assert_eq!(risk(4, 3, 0.25).probability().as_f64(), Some(10.0 / 64.0));
        assert_eq!(risk(1, 1, 0.3).probability().as_f64(), Some(0.3));
    }

    #[test]
    fn nobody_forgets_or_everybody() {
        assert_eq!(risk(32, 24, 0.0).probability().to_string(), "0");
        assert_eq!(risk(32, 24, 0.0).probability().log10(), None);
        assert_eq!(risk(32, 24, 1.0).probability().as_f64(), Some(1.0));
        let almost = risk(16_384, 8_193, 0.999_999).probability().as_f64();
        assert!(almost.is_some_and(|p| p <= 1.0 && p > 0.999), "{almost:?}");
    }

    /// The lecture's example: nodes stay for three hours, ten seconds inside.
    #[test]
    fn below_ten_to_the_minus_forty() {
        let risk = risk(32, 24, 10.0 / (3.0 * 3600.0));
        assert_eq!(risk.needed_resets(), 16);
        assert_eq!(risk.probability().to_string(), "2.132e-43");
    }

    #[test]
    fn smaller_than_any_ordinary_number() {
        let tiny = risk(32, 32, 1e-30).probability();
        assert_eq!((tiny.as_f64(), tiny.to_string().as_str()), (None, "1.000e-960"));
        assert!(tiny.log10().is_some_and(|log10| (log10 + 960.0).abs() < 1e-9));
        let small = risk(1000, 1000, 0.5).probability();
        assert_eq!((small.as_f64(), small.to_string().as_str()), (Some(0.5_f64.powi(1000)), "9.333e-302"));
        let smaller = risk(1100, 1100, 0.5).probability();
        assert_eq!((smaller.as_f64(), smaller.to_string().as_str()), (None, "7.362e-332"));
    }

    #[test]
    fn a_larger_majority_is_safer() {
        let every: Vec<Probability> = risk(32, 24, 0.01).every_majority().map(|risk| risk.probability()).collect();
        assert_eq!(every.len(), 16);
        assert!(every.windows(2).all(|pair| pair[0].log10() > pair[1].log10()));
    }

    #[test]
    fn what_makes_no_sense() {
        let sentence = |n, m, p| Risk::new(n, m, p).expect_err("it makes no sense").to_string();
        assert_eq!(sentence(4, 3, 1.5), "1.5 is no probability; take a number from 0 to 1");
        assert_eq!(sentence(4, 3, f64::NAN), "NaN is no probability; take a number from 0 to 1");
        assert_eq!(sentence(4, 2, 0.5), "2 of 4 votes are no majority, and two could have them; take at least 3");
    }
}
