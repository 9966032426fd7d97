//! `vez sem`

use std::{ffi::OsString, os::unix::ffi::OsStrExt, process::ExitCode};

use anyhow::{Result, ensure};
use vez::{ClientError, Kind};

use super::{
    tell::plain,
    wrap::{Options, Want, mismatch},
};
use crate::output::tell;

/// Run a command while holding units of a semaphore.
#[derive(clap::Args)]
#[command(
    override_usage = "vez sem [OPTIONS] NAME --limit UNITS [--take UNITS] [--] COMMAND...
       vez sem [OPTIONS] NAME --resize UNITS",
    after_help = "All who use it at the same time say the same --limit. Who asks first is served first: one who takes many is not kept waiting by those who take few and came later. With --resize it has another number of units from now on, also for those who hold some: \
if it shrinks, nobody loses anything, but nobody is let in until it fits. That is for one that is in use; otherwise whoever takes it next says how many there are.

The command runs as `vez lock` runs one (see `vez lock --help`), and gets VEZ_LOCK_NAME, VEZ_LOCK_FENCE and VEZ_LOCK_CLUSTER. Several are inside at a time, so a fence that is smaller than another need not be of one who has lost its units: VEZ_LOCK_FLOOR is the smallest that may still be inside, \
and what the command touches should refuse fences below the largest floor that it has seen.

Examples:
  vez sem db --limit 5 -- ./query.sh              five at a time
  vez sem memory --limit 64 --take 16 -- ./train.sh
  vez sem -n db --limit 5 -- ./query.sh           if there is room now
  vez sem db --resize 8

Exit code: that of the command, or 128 and its signal; 1 or CODE if there is no room; 75 if its units were lost; 126 or 127 if the command cannot be run or found; 2 could not ask, or the node cannot tell. With --resize: 0 it has so many, 1 it is not in use, 2 could not ask, or it is no semaphore."
)]
pub(crate) struct Args {
    /// The name of the semaphore.
    name: OsString,
    /// How many units there are.
    #[arg(long, value_name = "UNITS", value_parser = clap::value_parser!(u32).range(1..), required_unless_present = "resize")]
    limit: Option<u32>,
    /// How many of them the command takes.
    #[arg(long, value_name = "UNITS", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 1)]
    take: u32,
    /// From now on there are so many.
    #[arg(long, value_name = "UNITS", value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(conflicts_with_all = ["limit", "take", "command", "nonblock", "wait", "ttl"])]
    resize: Option<u32>,
    #[command(flatten)]
    options: Options,
    /// The command, and its arguments.
    #[arg(trailing_var_arg = true, required_unless_present = "resize")]
    command: Vec<OsString>,
}

impl Args {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        if let Some(units) = self.resize {
            return self.resize(units).await;
        }
        let (units, weight) = (self.limit.expect("clap wants one"), self.take);
        let name = plain(&self.name.to_string_lossy());
        ensure!(weight <= units, "{name} has {units} units and can never give {weight}; say --take {units} at most");
        let name = self.name.as_bytes();
        let want = Want::new(vec![&self.name], Kind::Semaphore { units }, |client| {
            client.semaphore(name, units).acquire(weight)
        });
        self.options.run(want, &self.command).await
    }

    async fn resize(&self, units: u32) -> Result<ExitCode> {
        let client = self.options.remote.connect().await?;
        match client.semaphore(self.name.as_bytes(), units).resize(units).await {
            Ok(_) => Ok(ExitCode::SUCCESS),
            Err(ClientError::Refused { code, why }) if code == "ERR" => {
                tell(format_args!("vez: {why}"));
                Ok(ExitCode::FAILURE)
            }
            Err(error) => {
                let kind = Kind::Semaphore { units };
                Err(mismatch::explained(&client, &[&self.name], kind, error).await)
            }
        }
    }
}
