//! The command `vez`. It is a library so that tests can link its parts; the binary calls [`main`].

#[cfg(feature = "lab")]
mod lab;
mod output;
pub mod service;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Vez gives a set of machines turns: locks without a lock server.
#[derive(Parser)]
#[command(name = "vez", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[cfg_attr(not(feature = "lab"), expect(clippy::large_enum_variant, reason = "there is one, for a moment"))]
enum Command {
    #[command(flatten)]
    Service(service::Command),
    /// Simulate, check and trace distributed algorithms.
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Lab(lab::Command),
    /// Not in this build.
    #[cfg(not(feature = "lab"))]
    #[command(hide = true, disable_help_flag = true)]
    Lab(NoLab),
}

/// Whatever was asked of a laboratory that is not in this build.
#[cfg(not(feature = "lab"))]
#[derive(clap::Args)]
struct NoLab {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<String>,
}

#[cfg(not(feature = "lab"))]
impl NoLab {
    fn run(self) -> anyhow::Result<ExitCode> {
        anyhow::bail!(
            "this build has no laboratory; install it with cargo install --locked --path crates/cli --features lab"
        )
    }
}

/// Runs the command line of this process.
///
/// Exit codes: 0 held, 1 violated or refused, 2 could not run; a verb that runs a command has the exit code of that command.
#[must_use]
pub fn main() -> ExitCode {
    let ran = match Cli::try_parse() {
        Ok(Cli { command: Command::Lab(command) }) => command.run(),
        Ok(Cli { command: Command::Service(command) }) => command.run(),
        Err(error) => return output::refuse(&error),
    };
    ran.unwrap_or_else(output::fail)
}
