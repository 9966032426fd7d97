//! `vez leave`

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, Result};

use super::{remote::Remote, time};

/// Make a node leave its cluster politely.
#[derive(clap::Args)]
#[command(
    after_help = "Nothing new is granted there; who holds something has --grace to come to an end, and is then told that it is lost. Then the node ends. Its folder stays, and it can be \
started again.

Examples:
  vez leave
  vez leave --addr 10.0.0.2:7400 --grace 30s

Exit code: 0 it has ended, 2 could not ask."
)]
pub(crate) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// How long those who hold something have.
    #[arg(long, value_name = "TIME", value_parser = time::parse, default_value = "5s")]
    grace: Duration,
}

impl Args {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        self.remote.connect().await?.leave(self.grace).await.context("cannot leave")?;
        Ok(ExitCode::SUCCESS)
    }
}
