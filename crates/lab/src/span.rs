//! How a span of time is written, by people and in a line of JSON.

use std::{ops::Range, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Parses a time with its unit, into seconds: 200ms, 5s, 1.5s, 300us, 2m. Only 0 may omit the unit.
///
/// # Errors
/// If it is none, in words.
pub fn seconds(text: &str) -> Result<f64, String> {
    let unit_at = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "" if number == "0" => 0.0,
        "" if number.parse::<f64>().is_ok() => return Err(format!("{text} has no unit; write {text}ms or {text}s")),
        _ => return Err(format!("\"{text}\" is not a time; write one such as 200ms, 5s or 1.5s")),
    };
    match number.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number * scale),
        Ok(_) | Err(_) => Err(format!("\"{text}\" is not a time; write one such as 200ms, 5s or 1.5s")),
    }
}

/// A number, unless that would lose something.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Units {
    Number(f64),
    /// To the nanosecond.
    Text(String),
}

impl From<Duration> for Units {
    fn from(time: Duration) -> Self {
        let number = time.as_secs_f64();
        match Duration::try_from_secs_f64(number) {
            Ok(same) if same == time => Self::Number(number),
            Ok(_) | Err(_) => Self::Text(format!("{}.{:09}", time.as_secs(), time.subsec_nanos())),
        }
    }
}

impl TryFrom<Units> for Duration {
    type Error = String;

    fn try_from(units: Units) -> Result<Self, String> {
        match units {
            Units::Number(number) => {
                Self::try_from_secs_f64(number).map_err(|_| format!("{number} is no span of time"))
            }
            Units::Text(text) => {
                let (seconds, nanos) = text.split_once('.').filter(|(_, nanos)| nanos.len() == 9).unzip();
                let nanos = nanos.and_then(|nanos| nanos.parse().ok()).filter(|nanos: &u32| *nanos < 1_000_000_000);
                let seconds = seconds.and_then(|seconds| seconds.parse().ok());
                let time = seconds.zip(nanos).map(|(seconds, nanos)| Self::new(seconds, nanos));
                time.ok_or_else(|| format!("\"{text}\" is no span of time"))
            }
        }
    }
}

pub(crate) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    Units::from(*time).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Units::deserialize(deserializer)?.try_into().map_err(D::Error::custom)
}

/// From one to another.
pub(crate) mod range {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(range: &Range<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        [Units::from(range.start), Units::from(range.end)].serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Range<Duration>, D::Error> {
        let [from, to] = <[Units; 2]>::deserialize(deserializer)?;
        let time = |units: Units| Duration::try_from(units).map_err(D::Error::custom);
        Ok(time(from)?..time(to)?)
    }
}
