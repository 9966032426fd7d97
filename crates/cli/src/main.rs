//! `vez`: turns for a set of machines.

mod lab;
mod output;

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
enum Command {
    /// Simulate, check and trace distributed algorithms.
    #[command(subcommand)]
    Lab(lab::Command),
}

/// Exit codes: 0 held, 1 violated, 2 could not run.
fn main() -> ExitCode {
    let Command::Lab(command) = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return output::refuse(&error),
    };
    match command.run() {
        Ok(code) => code,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::tell(format_args!("vez: {error:#}"));
            ExitCode::from(2)
        }
    }
}
