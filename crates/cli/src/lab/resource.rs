//! `vez lab resource`

use std::{net::SocketAddr, process::ExitCode};

use anyhow::Result;
use vez_emulator::{ResourceError, resource};

use super::{peer::address, session::interruption};
use crate::output::{Output, tell};

/// Be the shared resource of the laboratory exercise.
#[derive(clap::Args)]
#[command(
    after_help = "It says who is inside, with the logical clock of that process, and ends if two are inside together.
The processes are started by vez lab peer. Ctrl-C ends it.

Example:
  vez lab resource :10001

Exit code: 0 interrupted, 1 two were inside together, 2 could not run."
)]
pub(crate) struct Args {
    /// Where it listens: HOST:PORT, or :PORT on this machine.
    #[arg(value_parser = address, default_value = ":10001")]
    address: SocketAddr,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let interrupted = interruption()?;
        match resource(self.address, &mut Output, &interrupted) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(ResourceError::LawBroken(what)) => {
                tell(format_args!("vez: {what}"));
                Ok(ExitCode::from(1))
            }
            Err(error) => Err(error.into()),
        }
    }
}
