//! `vez lock`

use std::{
    ffi::OsString,
    io::IsTerminal,
    os::unix::process::ExitStatusExt,
    process::{ExitCode, ExitStatus},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::Child,
    signal::unix::{SignalKind, signal},
    time::{sleep, timeout},
};
use vez::{Client, ClientError, RemoteGuard, Wanted};

use super::{child, local, remote::Remote};
use crate::output::tell;

/// The lock was lost, and the command was ended.
const LOST: u8 = 75;
/// A node that begins, or settles in a new view, cannot tell whether a lock is free: who does not want to wait waits so long for that.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// Run a command while holding a lock.
#[derive(clap::Args)]
#[command(
    after_help = "The command gets VEZ_LOCK_NAME and VEZ_LOCK_FENCE: a number that is larger for every later holder, to be shown to whatever must not be touched by two. It has the same \
standard input, gets the signals that `vez lock` gets, and on Linux dies with it. No shell is involved.

If the lock is lost (this machine or its node cannot be heard any more), the command gets TERM, and KILL after --grace.

Where nothing is said about a node and none is on this machine, one is started, which stays.

Examples:
  vez lock backup -- pg_dump -f backup.sql orders
  vez lock -n deploy -- ./deploy.sh || echo 'somebody else deploys'
  vez lock -w 10 -E 99 report -- make report

Exit code: that of the command, or 128 and its signal; 1 or CODE if the lock was not obtained; 75 if it was lost; 126 or 127 if the command cannot be run or found; 2 could not ask."
)]
pub(crate) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Do not wait.
    #[arg(short = 'n', long, visible_alias = "nb", conflicts_with = "wait")]
    nonblock: bool,
    /// Wait so many seconds at most.
    #[arg(short, long, visible_alias = "timeout", value_name = "SECS")]
    wait: Option<f64>,
    /// The exit code if the lock was not obtained.
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = 1)]
    conflict_exit_code: u8,
    /// Lose the lock if this machine cannot be heard for so long [default: as soon as its node notices].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    ttl: Option<Duration>,
    /// How long the command has to end when the lock is lost.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "5s")]
    grace: Duration,
    /// The name of the lock.
    name: OsString,
    /// The command, and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

impl Args {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let seconds = self.wait.unwrap_or(0.0);
        ensure!(seconds.is_finite() && seconds >= 0.0, "the wait is {seconds} seconds; take 0 or more, such as -w 10");
        ensure!(
            self.ttl.is_none_or(|ttl| ttl.as_millis() > 0),
            "a --ttl of nothing would be over at once; take 1s or so"
        );
        let target = self.remote.target()?;
        let client = if target.given { target.connect().await? } else { local::client(&target).await? };
        let wait = if self.nonblock { Some(Duration::ZERO) } else { self.wait.map(Duration::from_secs_f64) };
        let name = std::os::unix::ffi::OsStrExt::as_bytes(&*self.name);
        let Some(guard) = obtain(&client, name, Wanted { ttl: self.ttl, wait }).await? else {
            return Ok(ExitCode::from(self.conflict_exit_code));
        };
        let mut command = tokio::process::Command::from(child::command(&self.command)?);
        command.env("VEZ_LOCK_NAME", &self.name).env("VEZ_LOCK_FENCE", guard.fence().to_string());
        let mut signals = Signals::new()?;
        let mut child = command.spawn().context("cannot start the command")?;
        let ended = tokio::select! {
            ended = attend(&mut child, &mut signals) => Some(ended?),
            () = guard.lost() => None,
        };
        match ended {
            // What it did before its deadline it did alone.
            Some(status) if !guard.is_lost() => {
                if let Err(error) = guard.release().await {
                    tell(format_args!("vez: the command is done, and its lock could not be released: {error}"));
                }
                Ok(code(status))
            }
            Some(_) => {
                tell("vez: the lock was lost while the command ran");
                Ok(ExitCode::from(LOST))
            }
            None => {
                tell("vez: the lock was lost; ending the command");
                self.end(&mut child, &mut signals).await?;
                Ok(ExitCode::from(LOST))
            }
        }
    }

    /// Ends the command: politely at first.
    async fn end(&self, child: &mut Child, signals: &mut Signals) -> Result<()> {
        send(child, Signal::TERM);
        if timeout(self.grace, attend(child, signals)).await.is_err() {
            child.kill().await.context("cannot end the command")?;
        }
        Ok(())
    }
}

/// Takes the lock, if it can be had in time. A node that cannot tell yet is asked again.
async fn obtain(client: &Client, name: &[u8], wanted: Wanted) -> Result<Option<RemoteGuard>> {
    let begin = Instant::now();
    let patience = wanted.wait.map(|wait| if wait.is_zero() { PATIENCE } else { wait });
    loop {
        match client.lock_with(name, wanted).await {
            Err(ClientError::Refused(why)) if is_temporary(&why) => {
                if patience.is_some_and(|patience| begin.elapsed() >= patience) {
                    tell(format_args!("vez: {why}"));
                    return Ok(None);
                }
                sleep(PAUSE).await;
            }
            outcome => return Ok(outcome?),
        }
    }
}

fn is_temporary(why: &str) -> bool {
    ["TRYAGAIN ", "NOMEMBER "].iter().any(|code| why.starts_with(code))
}

/// Waits for the command, and hands it the signals that come meanwhile.
async fn attend(child: &mut Child, signals: &mut Signals) -> Result<ExitStatus> {
    loop {
        tokio::select! {
            status = child.wait() => return status.context("cannot wait for the command"),
            signal = signals.next() => send(child, signal),
        }
    }
}

fn send(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = kill_process(pid, signal); // It may have ended this very moment.
    }
}

fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(2);
    ExitCode::from(u8::try_from(code).unwrap_or(2))
}

/// The signals that are handed on.
struct Signals(Vec<(Signal, tokio::signal::unix::Signal)>);

impl Signals {
    fn new() -> Result<Self> {
        use SignalKind as Kind;
        // Whatever a terminal sends, it sends to the command as well.
        let from_terminal = std::io::stdin().is_terminal();
        let always = [
            (Signal::TERM, Kind::terminate()),
            (Signal::HUP, Kind::hangup()),
            (Signal::USR1, Kind::user_defined1()),
            (Signal::USR2, Kind::user_defined2()),
            (Signal::INT, Kind::interrupt()),
            (Signal::QUIT, Kind::quit()),
        ];
        let mut signals = Vec::new();
        for (name, kind) in always {
            let heeded = signal(kind).context("cannot heed signals")?;
            let doubled = from_terminal && matches!(name, Signal::INT | Signal::QUIT);
            if !doubled {
                signals.push((name, heeded));
            }
        }
        Ok(Self(signals))
    }

    async fn next(&mut self) -> Signal {
        std::future::poll_fn(|cx| {
            for (name, signal) in &mut self.0 {
                if signal.poll_recv(cx).is_ready() {
                    return std::task::Poll::Ready(*name);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}
