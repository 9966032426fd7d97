//! A command that dies with the `vez` that started it.
//!
//! A parent-death signal has to be asked for by the child itself, between its birth and its becoming the command. So the child
//! is at first another `vez`, which asks for it, makes sure that its parent still lives, and then becomes the command.

use std::{
    ffi::OsString,
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use anyhow::Result;

use super::config::PASSWORD;
use crate::output::tell;

/// The name of the hidden subcommand.
pub(crate) const NAME: &str = "become";

/// What shells say when there is no such command, and when it cannot be run.
const NOT_FOUND: u8 = 127;
const CANNOT_RUN: u8 = 126;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The process that it dies with.
    #[arg(long)]
    parent: u32,
    /// What to become.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

/// The child, not begun yet.
pub(crate) fn command(words: &[OsString]) -> Result<Command> {
    // This very program, also if another has its name by now.
    let this = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()? };
    let mut command = Command::new(this);
    command.env_remove(PASSWORD).args([NAME, "--parent", &std::process::id().to_string(), "--"]).args(words);
    Ok(command)
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Signal, getppid, set_parent_process_death_signal};
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // It may have died before that was asked for.
            if getppid().is_none_or(|parent| parent.as_raw_nonzero().get().unsigned_abs() != self.parent) {
                return Ok(ExitCode::from(CANNOT_RUN));
            }
        }
        let (program, arguments) = self.command.split_first().expect("clap wants one");
        let error = Command::new(program).args(arguments).exec();
        tell(format_args!("vez: cannot run {}: {error}", program.to_string_lossy()));
        let not_found = error.kind() == std::io::ErrorKind::NotFound;
        Ok(ExitCode::from(if not_found { NOT_FOUND } else { CANNOT_RUN }))
    }
}
