//! What goes to the terminal.

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use anyhow::Context;
use clap::error::ErrorKind;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Standard output. That nobody reads it any more is told apart from all other pipes that may break.
pub(crate) struct Output;

/// Whoever read our output has had enough of it.
#[derive(Debug)]
struct HadEnough;

impl std::error::Error for HadEnough {}

impl std::fmt::Display for HadEnough {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nobody reads the output")
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stdout().write(bytes).map_err(Self::tell_apart)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush().map_err(Self::tell_apart)
    }
}

impl Output {
    fn tell_apart(error: io::Error) -> io::Error {
        if error.kind() == io::ErrorKind::BrokenPipe { io::Error::new(error.kind(), HadEnough) } else { error }
    }
}

/// Writes to standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = Output;
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to standard output")
}

/// Writes a line to standard error. If nobody can read it there, nobody misses it.
pub(crate) fn tell(line: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// So many of something: `1 crash`, `2 crashes`.
pub(crate) fn counted(number: usize, one: &str, more: &str) -> String {
    format!("{} {}", thousands(number as u64), if number == 1 { one } else { more })
}

/// Says why it could not be done.
pub(crate) fn fail(error: anyhow::Error) -> ExitCode {
    if had_enough(&error) {
        return ExitCode::SUCCESS;
    }
    tell(format_args!("vez: {error:#}"));
    ExitCode::from(2)
}

/// Whether whoever read our output has had enough of it.
fn had_enough(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        inner.is_some_and(|inner| inner.is::<HadEnough>())
    })
}

/// Says in one sentence what is wrong with the command line; help and version are printed as they are.
pub(crate) fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // If nobody reads the help, nobody misses it.
        let _ = error.print();
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    }
    let text = error.to_string();
    let sentence: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let sentence = sentence.join(" ");
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    let tip = tip.map_or("see --help".to_owned(), str::to_owned);
    tell(format_args!("vez: {}; {tip}", sentence.trim_start_matches("error: ")));
    ExitCode::from(2)
}

/// A bar up to a number, or with 0 a count without an end. Only a terminal sees it.
pub(crate) fn progress(end: u64, unit: &'static str) -> ProgressBar {
    let target =
        if io::stderr().is_terminal() { ProgressDrawTarget::stderr_with_hz(8) } else { ProgressDrawTarget::hidden() };
    let (bar, template) = if end > 0 {
        (
            ProgressBar::with_draw_target(Some(end), target),
            format!("{{bar:40}} {{percent}} % of {{human_len}} {unit}, {{eta}} left {{msg}}"),
        )
    } else {
        (ProgressBar::with_draw_target(None, target), format!("{{spinner}} {{human_pos}} {unit}, {{elapsed}}"))
    };
    bar.set_style(ProgressStyle::with_template(&template).expect("a good template"));
    bar
}

/// A whole number with commas between its thousands.
pub(crate) fn thousands(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
