//! The numbers along an axis.

/// A whole number times a power of ten. A tick is kept like this so that its text shows no rounding noise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Decimal {
    pub(super) mantissa: i64,
    pub(super) exponent: i32,
}

impl Decimal {
    pub(super) fn value(self) -> f64 {
        format!("{}e{}", self.mantissa, self.exponent).parse().expect("Rust's own notation")
    }

    /// The text in full: `0.05`, `1,000`.
    fn plain(self) -> String {
        if self.mantissa == 0 {
            return "0".to_owned();
        }
        let decimals = usize::try_from(-self.exponent).unwrap_or(0);
        let text = format!("{:.decimals$}", self.value().abs());
        let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
        let mut grouped = String::new();
        for (index, digit) in whole.chars().enumerate() {
            if index > 0 && (whole.len() - index) % 3 == 0 {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        format!("{}{grouped}{fraction}", self.sign())
    }

    /// The text with a power of ten: `1e-40`, `1.5e7`.
    fn scientific(self) -> String {
        if self.mantissa == 0 {
            return "0".to_owned();
        }
        let digits = self.mantissa.unsigned_abs().to_string();
        let power = i64::from(self.exponent) + digits.len() as i64 - 1;
        let (first, rest) = digits.split_at(1);
        let rest = rest.trim_end_matches('0');
        let point = if rest.is_empty() { "" } else { "." };
        format!("{}{first}{point}{rest}e{power}", self.sign())
    }

    fn sign(self) -> &'static str {
        if self.mantissa < 0 { "-" } else { "" }
    }
}

/// The texts of ticks at equal distances. All are of one kind, because mixed ones are hard to compare.
pub(super) fn alike(ticks: &[Decimal]) -> Vec<String> {
    let largest = ticks.iter().map(|tick| tick.value().abs()).fold(0.0, f64::max);
    let plain = is_plain(largest);
    ticks.iter().map(|tick| if plain { tick.plain() } else { tick.scientific() }).collect()
}

/// The texts of ticks on a logarithmic axis. There 0.01 and 1e-40 may stand together, so each is for itself.
pub(super) fn each(ticks: &[Decimal]) -> Vec<String> {
    ticks.iter().map(|tick| if is_plain(tick.value().abs()) { tick.plain() } else { tick.scientific() }).collect()
}

/// Whether a number of this size is read more easily in full.
fn is_plain(size: f64) -> bool {
    (1e-4..1e7).contains(&size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimals(exponent: i32, mantissas: &[i64]) -> Vec<Decimal> {
        mantissas.iter().map(|&mantissa| Decimal { mantissa, exponent }).collect()
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(alike(&decimals(-1, &[-5, 0, 3, 10])), ["-0.5", "0", "0.3", "1.0"]);
        assert_eq!(alike(&decimals(3, &[0, 1, 1_500])), ["0", "1,000", "1,500,000"]);
        assert_eq!(alike(&decimals(6, &[-5, 0, 10, 15])), ["-5e6", "0", "1e7", "1.5e7"]);
        assert_eq!(alike(&decimals(-6, &[0, 12])), ["0", "1.2e-5"]);
        assert_eq!(each(&decimals(-40, &[1])), ["1e-40"]);
        assert_eq!(
            each(&[Decimal { mantissa: 1, exponent: -3 }, Decimal { mantissa: 2, exponent: 6 }]),
            ["0.001", "2,000,000"]
        );
    }
}
