//! Stretches of time, as people write them: `10`, `0.5`, `500ms`, `2m`.

use std::time::Duration;

/// Seconds, or a number with a unit.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds)
            .map_err(|_| format!("{text} is no time that passes; write 10, 0.5 or 500ms"));
    }
    humantime::parse_duration(text).map_err(|_| format!("{text} is no time; write 10, 0.5 or 500ms"))
}
