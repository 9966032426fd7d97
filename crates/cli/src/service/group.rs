//! `vez group`

use std::{ffi::OsString, os::unix::ffi::OsStrExt, process::ExitCode};

use anyhow::Result;
use vez::Kind;

use super::wrap::{Options, Want};

/// Run a command together with those of the same session, and with nobody else.
#[derive(clap::Args)]
#[command(
    override_usage = "vez group [OPTIONS] NAME SESSION [--] COMMAND...",
    after_help = "Those who say the same session run at the same time; those of another wait until all of them are done, and as many as may still join them: nobody waits for ever.

The command runs as `vez lock` runs one (see `vez lock --help`), and gets VEZ_LOCK_NAME, VEZ_LOCK_FENCE and VEZ_LOCK_CLUSTER. Those who are inside together have the same fence.

Examples:
  vez group printer a4 -- lp report.pdf           while the printer has that paper
  vez group schema v7 -- ./serve.sh               beside all others with v7

Exit code: that of the command, or 128 and its signal; 1 or CODE if another session is inside; 75 if its place was lost; 126 or 127 if the command cannot be run or found; 2 could not ask, or the node cannot tell."
)]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,
    /// The name of the group.
    name: OsString,
    /// The session: any word.
    session: OsString,
    /// The command, and its arguments.
    #[arg(trailing_var_arg = true, required = true)]
    command: Vec<OsString>,
}

impl Args {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let (name, session) = (self.name.as_bytes(), self.session.as_bytes());
        let want = Want::new(vec![&self.name], Kind::Group, |client| client.group(name).enter(session));
        self.options.run(want, &self.command).await
    }
}
