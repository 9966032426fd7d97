//! Timed input instead of a keyboard, so that a lecture or a test can be played again.

use std::str::FromStr;

use vez_algorithms::link::Nanos;
use vez_lab::span::seconds;

use crate::clock::nanos;

/// What somebody types, and when.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Script {
    /// In the order of the times, which count from the moment at which everybody is there.
    pub(crate) lines: Vec<(Nanos, Typed)>,
}

/// What somebody types.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Typed {
    /// A line.
    Line(String),
    /// Nothing any more: the keyboard is gone.
    Closed,
    /// The end of the process.
    End,
}

/// A script that cannot be played.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ScriptError {
    line: usize,
    what: String,
}

impl FromStr for Script {
    type Err = ScriptError;

    /// Lines of `TIME INPUT`, such as `2s x`; `TIME end` ends the process, and `#` begins a comment.
    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let mut lines: Vec<(Nanos, Typed)> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let wrong = |what| ScriptError { line: number, what };
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            let (time, typed) = line
                .split_once(char::is_whitespace)
                .ok_or_else(|| wrong(format!("\"{line}\" is not TIME INPUT, such as 2s x, or 9s end")))?;
            let time = seconds(time).map_err(wrong)?;
            if !(0.0..=86_400.0).contains(&time) {
                return Err(wrong(format!("the time is {time} s; take from 0 to a day")));
            }
            let typed = match typed.trim() {
                "end" => Typed::End,
                other => Typed::Line(other.to_owned()),
            };
            if lines.last().is_some_and(|(last, _)| *last > nanos(time)) {
                return Err(wrong("earlier than the line before; put the lines in order".to_owned()));
            }
            lines.push((nanos(time), typed));
        }
        Ok(Self { lines })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_times_and_what_is_typed() {
        let script: Script = "# a comment\n500ms 1\n2s two words # said\n\n2s end".parse().expect("a script");
        let line = |text: &str| Typed::Line(text.to_owned());
        let (half, two) = (500_000_000, 2_000_000_000);
        assert_eq!(script.lines, [(half, line("1")), (two, line("two words")), (two, Typed::End)]);
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        let wrong = |text: &str| text.parse::<Script>().expect_err("wrong").to_string();
        assert_eq!(wrong("1s x\nx"), "line 2: \"x\" is not TIME INPUT, such as 2s x, or 9s end");
        assert_eq!(wrong("soon x"), "line 1: \"soon\" is not a time; write one such as 200ms, 5s or 1.5s");
        assert_eq!(wrong("2s x\n1s x"), "line 2: earlier than the line before; put the lines in order");
        assert_eq!(wrong("-1s x"), "line 1: the time is -1 s; take from 0 to a day");
    }
}
