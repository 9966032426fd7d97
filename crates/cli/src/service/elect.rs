//! `vez elect`

use std::{
    ffi::OsString,
    io,
    os::{fd::AsFd, unix::ffi::OsStrExt},
    pin::pin,
    process::ExitCode,
};

use anyhow::{Error, Result, ensure};
use rustix::system::uname;
use serde_json::{Value, json};
use tokio::{io::Interest, net::unix::pipe::Sender};
use vez::{Client, ClientError, Kind};

use super::{
    tell::{plain, text},
    wrap::{Options, Want, mismatch},
};
use crate::output::print;

/// Run a command while leading, or see who leads.
#[derive(clap::Args)]
#[command(
    override_usage = "vez elect [OPTIONS] NAME [--value VALUE] [--] COMMAND...
       vez elect [OPTIONS] NAME [--observe] [--json]",
    after_help = "With a command, it is run as soon as nobody else leads, and leads until it ends; the others see the value. Without one, who leads now is printed: FENCE VALUE, or - if nobody does. With --observe that is printed now and whenever it changes, a line each, until Ctrl-C \
or until nobody reads it. One who led only while the node could not be heard, or while nobody read, may be left out.

The command runs as `vez lock` runs one (see `vez lock --help`), and gets VEZ_LOCK_NAME, VEZ_LOCK_FENCE and VEZ_LOCK_CLUSTER. When it does not lead any more it gets TERM, and KILL after --grace; another may lead by then, with a larger fence.

Examples:
  vez elect scheduler -- ./schedule.sh
  vez elect scheduler --value 10.0.0.1:80 -- ./schedule.sh
  vez elect scheduler
  vez elect scheduler --observe --json

Exit code: with a command that of the command, or 128 and its signal; 1 or CODE if somebody else leads; 75 if it ceased to lead; 126 or 127 if the command cannot be run or found. Without one, 0 somebody leads, 1 nobody. In any case, 2 could not ask, or the node cannot tell."
)]
pub(crate) struct Args {
    /// The name of the election.
    name: OsString,
    /// What the others are to see, such as an address [default: this machine and process].
    #[arg(long)]
    value: Option<OsString>,
    /// Print who leads, now and whenever it changes.
    #[arg(long)]
    observe: bool,
    /// Print who leads as an object, one a line.
    #[arg(long, conflicts_with = "command")]
    json: bool,
    #[command(flatten)]
    options: Options,
    /// The command, and its arguments.
    #[arg(trailing_var_arg = true)]
    command: Vec<OsString>,
}

impl Args {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let has_command = !self.command.is_empty();
        ensure!(!(self.observe && has_command), "--observe only looks, and runs no command; leave out one of the two");
        ensure!(
            self.value.is_none() || has_command,
            "--value is what the others see of one who leads; say what to run meanwhile: -- COMMAND"
        );
        match (has_command, self.observe) {
            (true, _) => self.lead().await,
            (false, true) => self.observe().await,
            (false, false) => self.look().await,
        }
    }

    async fn lead(&self) -> Result<ExitCode> {
        let (name, value) = (self.name.as_bytes(), self.value.clone().unwrap_or_else(this_process));
        let campaign =
            Want::new(vec![&self.name], Kind::Election, |client| client.elect(name).campaign(value.as_bytes()));
        self.options.run(campaign, &self.command).await
    }

    /// Who leads now.
    async fn look(&self) -> Result<ExitCode> {
        let client = self.options.remote.connect().await?;
        let leader = match client.call(&[b"LEADER", self.name.as_bytes()]).await {
            Ok(leader) => leader,
            Err(error) => return Err(self.explained(&client, error).await),
        };
        self.print(&leader[0], &leader[1])?;
        Ok(if leader.is_null() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    /// Who leads, now and from now on.
    async fn observe(&self) -> Result<ExitCode> {
        let client = self.options.remote.connect().await?;
        let mut observer = client.elect(self.name.as_bytes()).observe().await?;
        let mut unread = pin!(unread());
        loop {
            let leader = tokio::select! {
                leader = observer.next() => leader,
                () = &mut unread => return Ok(ExitCode::SUCCESS),
            };
            match leader {
                Ok(None) => self.print(&Value::Null, &Value::Null)?,
                Ok(Some(leader)) => {
                    let value = String::from_utf8_lossy(&leader.value);
                    self.print(&json!(leader.fence.to_string()), &json!(value))?;
                }
                Err(error) => return Err(self.explained(&client, error).await),
            }
        }
    }

    async fn explained(&self, client: &Client, error: ClientError) -> Error {
        mismatch::explained(client, &[&self.name], Kind::Election, error).await
    }

    /// One line, at once.
    fn print(&self, fence: &Value, value: &Value) -> Result<()> {
        let line = if self.json {
            json!({ "name": self.name.to_string_lossy(), "fence": fence, "value": value }).to_string()
        } else if fence.is_null() {
            "-".into()
        } else {
            format!("{} {}", text(fence), plain(value.as_str().unwrap_or_default()))
        };
        print(&format!("{line}\n"))
    }
}

/// Waits until nobody reads what we print. Leaders change seldom: that would be noticed late by printing.
async fn unread() {
    let output = io::stdout().as_fd().try_clone_to_owned().and_then(Sender::from_owned_fd_unchecked);
    match output {
        Ok(output) => drop(output.ready(Interest::ERROR).await),
        Err(_) => std::future::pending().await, // It is a file, which has no reader.
    }
}

/// What others see of one who does not say what they are to see.
fn this_process() -> OsString {
    format!("{}[{}]", uname().nodename().to_string_lossy(), std::process::id()).into()
}
