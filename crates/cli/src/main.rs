//! `vez`: turns for a set of machines.

mod lab;
mod output;
mod service;

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
    #[command(flatten)]
    Service(service::Command),
    /// Simulate, check and trace distributed algorithms.
    #[command(subcommand)]
    Lab(lab::Command),
}

/// Exit codes: 0 held, 1 violated or refused, 2 could not run; what runs a command has that of it.
fn main() -> ExitCode {
    let ran = match Cli::try_parse() {
        Ok(Cli { command: Command::Lab(command) }) => command.run(),
        Ok(Cli { command: Command::Service(command) }) => command.run(),
        Err(error) => return output::refuse(&error),
    };
    ran.unwrap_or_else(output::fail)
}
