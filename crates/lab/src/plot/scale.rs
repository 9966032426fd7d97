//! Which values an axis spans, and which of them get a tick.

use super::{
    Axis,
    tick::{Decimal, alike, each},
};

/// Values beyond this, or below its inverse, are not shown: sums and powers of ten must stay finite.
pub(super) const LARGEST: f64 = 1e300;

/// The free stretch beyond the outermost values, as a share of the axis.
const MARGIN: f64 = 0.04;

/// The values from one end of an axis to the other. On a logarithmic axis the ends are the logarithms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
    /// Whether all values are whole: then half a node makes no tick.
    whole: bool,
}

/// A labelled place on the axis, from 0 at its beginning to 1 at its end.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Tick {
    pub(super) place: f64,
    pub(super) text: String,
}

/// Ticks with their texts.
type Labelled = Vec<(Decimal, String)>;

/// Whether this axis can show the value.
pub(super) fn can_show(axis: &Axis, value: f64) -> bool {
    value.abs() <= LARGEST && (!axis.log || value >= 1.0 / LARGEST)
}

impl Scale {
    /// The scale that shows all these values; there is none without values.
    pub(super) fn over(axis: &Axis, values: impl Iterator<Item = f64>) -> Option<Self> {
        let (min, max, whole) = values.fold(None, |range, value| {
            let (min, max, whole) = range.unwrap_or((value, value, true));
            Some((value.min(min), value.max(max), whole && value.fract() == 0.0))
        })?;
        let (low, high) = if axis.log { logarithmic(min, max) } else { linear(min, max, axis.zero) };
        Some(Self { low, high, log: axis.log, whole })
    }

    /// Where the value stands: 0 at the beginning of the axis, 1 at its end. Zero and less are infinitely far below a
    /// logarithmic axis.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = if self.log { libm::log10(value.max(0.0)) } else { value };
        (value - self.low) / (self.high - self.low)
    }

    /// The densest sensible ticks that fit.
    pub(super) fn ticks(&self, fit: impl Fn(&[Tick]) -> bool) -> Vec<Tick> {
        let mut sparsest = Vec::new();
        for candidate in self.candidates() {
            let tick = |(decimal, text): (Decimal, String)| Tick { place: self.place(decimal.value()), text };
            let ticks: Vec<Tick> = candidate.into_iter().map(tick).collect();
            if fit(&ticks) {
                return ticks;
            }
            sparsest = ticks;
        }
        sparsest
    }

    /// The places of the small ticks without text: they show that an axis is logarithmic.
    pub(super) fn small_ticks(&self) -> Vec<f64> {
        if !self.log {
            return Vec::new();
        }
        let mantissas: &[i64] = match self.high - self.low {
            ..=8.0 => &[1, 2, 3, 4, 5, 6, 7, 8, 9],
            ..=60.0 => &[1],
            _ => &[],
        };
        self.decades(mantissas, 1).into_iter().map(|tick| self.place(tick.value())).collect()
    }

    /// Sets of ticks with their texts, the densest first.
    fn candidates(&self) -> Vec<Labelled> {
        if !self.log {
            return steps(self.low, self.high, self.whole).collect();
        }
        let mut found = Vec::new();
        if self.high - self.low < 2.5 {
            let fine = self.decades(&[1, 2, 5], 1);
            if fine.len() < 3 {
                found.extend(steps(libm::exp10(self.low), libm::exp10(self.high), self.whole));
            }
            found.push(labelled(fine, each));
        }
        found.extend([1, 2, 3, 5, 10, 20, 50, 100].map(|stride| labelled(self.decades(&[1], stride), each)));
        found
    }

    /// These digits in every decade of a logarithmic axis, or in every second, third and so on.
    fn decades(&self, mantissas: &[i64], stride: i32) -> Vec<Decimal> {
        let powers = self.low.floor() as i32..=self.high.ceil() as i32;
        powers
            .filter(|power| power.rem_euclid(stride) == 0)
            .flat_map(|exponent| mantissas.iter().map(move |&mantissa| Decimal { mantissa, exponent }))
            .filter(|tick| (0.0..=1.0).contains(&self.place(tick.value())))
            .collect()
    }
}

/// Ticks at equal distances of 1, 2 or 5 times a power of ten, the densest first.
fn steps(low: f64, high: f64, whole: bool) -> impl Iterator<Item = Labelled> {
    let finest = libm::log10(high - low).floor() as i32 - 1;
    let finest = if whole { finest.max(0) } else { finest };
    (finest..finest + 3).flat_map(|exponent| [1, 2, 5].map(|digit| (digit, exponent))).map(move |(digit, exponent)| {
        let step = Decimal { mantissa: digit, exponent }.value();
        let range = (low / step).ceil() as i64..=(high / step).floor() as i64;
        labelled(range.map(|index| Decimal { mantissa: index * digit, exponent }).collect(), alike)
    })
}

fn labelled(ticks: Vec<Decimal>, texts: fn(&[Decimal]) -> Vec<String>) -> Labelled {
    let texts = texts(&ticks);
    ticks.into_iter().zip(texts).collect()
}

/// The ends of a linear axis. Values that differ by no more than rounding count as equal: their differences would need
/// numbers with many digits.
fn linear(min: f64, max: f64, zero: bool) -> (f64, f64) {
    let (min, max) = if zero { (min.min(0.0), max.max(0.0)) } else { (min, max) };
    let size = min.abs().max(max.abs());
    let (min, max) = match size {
        _ if size < 1.0 / LARGEST => (0.0, 1.0),
        _ if max - min < size * 1e-6 => (min - size / 2.0, max + size / 2.0),
        _ => (min, max),
    };
    let margin = (max - min) * MARGIN;
    (if zero && min == 0.0 { min } else { min - margin }, if zero && max == 0.0 { max } else { max + margin })
}

/// The logarithms of the ends of a logarithmic axis.
fn logarithmic(min: f64, max: f64) -> (f64, f64) {
    let (min, max) = (libm::log10(min), libm::log10(max));
    let (min, max) = if max - min < 1e-4 { (min - 0.5, max + 0.5) } else { (min, max) };
    let margin = (max - min) * MARGIN;
    (min - margin, max + margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(log: bool, zero: bool, values: &[f64]) -> Scale {
        Scale::over(&Axis { label: String::new(), log, zero }, values.iter().copied()).expect("values")
    }

    fn texts(scale: &Scale, most: usize) -> Vec<String> {
        scale.ticks(|ticks| ticks.len() <= most).into_iter().map(|tick| tick.text).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(texts(&scale(false, true, &[3.0, 9.7]), 7), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(texts(&scale(false, false, &[0.3, 0.5]), 5), ["0.30", "0.35", "0.40", "0.45", "0.50"]);
        assert_eq!(texts(&scale(false, false, &[1.0, 3.0]), 9), ["1", "2", "3"]);
        assert_eq!(texts(&scale(false, true, &[-70.0, -20.0]), 5), ["-60", "-40", "-20", "0"]);
    }

    #[test]
    fn logarithmic_ticks_suit_the_range() {
        assert_eq!(texts(&scale(true, false, &[3.0, 255.0]), 7), ["5", "10", "20", "50", "100", "200"]);
        assert_eq!(texts(&scale(true, false, &[0.001, 1e4]), 9).len(), 8);
        assert_eq!(texts(&scale(true, false, &[1e-40, 1.0]), 5), ["1e-40", "1e-30", "1e-20", "1e-10", "1"]);
        assert_eq!(texts(&scale(true, false, &[98.0, 103.0]), 6), ["98", "99", "100", "101", "102", "103"]);
    }

    #[test]
    fn values_stand_in_order_with_free_space_around() {
        for (log, values) in [(false, [-1e300, 1e300]), (false, [1e-290, 3e-290]), (true, [1e-300, 1e300])] {
            let scale = scale(log, false, &values);
            let [low, high] = values.map(|value| scale.place(value));
            assert!(0.0 < low && low < 0.1 && 0.9 < high && high < 1.0, "{values:?} at {low} and {high}");
        }
    }

    #[test]
    fn equal_values_stand_in_the_middle() {
        for (log, value) in [(false, 42.0), (false, -1e-9), (true, 1e-40), (true, 1.0)] {
            let scale = scale(log, false, &[value, value * (1.0 + 1e-15)]);
            assert!((scale.place(value) - 0.5).abs() < 1e-6);
            assert!(!texts(&scale, 9).is_empty());
        }
        assert_eq!(scale(false, true, &[0.0]).place(0.0), 0.0);
    }
}
