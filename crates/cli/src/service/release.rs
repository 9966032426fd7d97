//! `vez release`

use std::{ffi::OsString, os::unix::ffi::OsStrExt, process::ExitCode};

use anyhow::Result;
use vez::{ClientError, Fence};

use super::remote::Remote;
use crate::output::tell;

/// Take a lock from whoever holds it.
#[derive(clap::Args)]
#[command(
    after_help = "It goes through the node of whoever holds it, which is told that it has lost it; its fence is the one that `vez show` prints, so that nobody else loses it. \
A node that cannot be reached cannot be asked: evict it instead.

Examples:
  vez release --force orders/42 --fence 00503808322474868753

Exit code: 0 it was taken, 1 nobody holds it so, or that cannot be told, 2 could not ask."
)]
pub(crate) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Yes, although whoever holds it counts on it.
    #[arg(long, required = true)]
    force: bool,
    /// Which.
    name: OsString,
    /// Which acquisition of it.
    #[arg(long)]
    fence: Fence,
}

impl Args {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let fence = self.fence.to_string();
        match self.remote.connect().await?.call(&[b"REVOKE", self.name.as_bytes(), fence.as_bytes()]).await {
            Ok(_) => Ok(ExitCode::SUCCESS),
            Err(ClientError::Refused { why, .. }) => {
                tell(format_args!("vez: {why}"));
                Ok(ExitCode::FAILURE)
            }
            Err(error) => Err(error.into()),
        }
    }
}
