//! A command that runs while something is held: what `vez lock`, `vez sem`, `vez group` and `vez elect` share.

pub(super) mod mismatch;
mod obtain;
mod signals;

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    process::{ExitCode, ExitStatus},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tokio::process::Command;
use vez::{Client, ClientError, Kind, Loss, RemoteGuard, turn::Turn};

use self::signals::{Signals, attend, code, end, ended_by};
use super::{child, remote::Remote, tell::plain, time, voice::Voice};

/// It was lost, and the command was ended.
const LOST: u8 = 75;

/// How it is asked for, and what becomes of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(super) remote: Remote,
    /// Do not wait. (A node that begins or settles, and cannot tell, is asked for two seconds.)
    #[arg(short = 'n', long, visible_alias = "nb", conflicts_with = "wait")]
    nonblock: bool,
    /// Wait so many seconds at most.
    #[arg(short, long, visible_alias = "timeout", value_name = "SECS", value_parser = time::parse, allow_negative_numbers = true)]
    wait: Option<Duration>,
    /// The exit code if it was not our turn in time.
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = 1)]
    conflict_exit_code: u8,
    /// Lose it if this machine cannot be heard for so long [default: as soon as its node notices].
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    ttl: Option<Duration>,
    /// How long the command has to end when it is lost.
    #[arg(long, value_name = "TIME", value_parser = time::parse, default_value = "5s")]
    grace: Duration,
    /// Say who is in the way, and how long it took. On a terminal, who waits for a second is told why in any case.
    #[arg(long)]
    verbose: bool,
}

/// What a subcommand wants to hold while its command runs.
pub(super) struct Want<'a, T> {
    /// What it is called: one name, but for several locks.
    names: Vec<&'a OsStr>,
    /// What a name has to stand for.
    kind: Kind,
    /// How it is had.
    turn: T,
}

/// A command, and what it wants.
struct Wrapper<'a, T> {
    options: &'a Options,
    want: Want<'a, T>,
    command: &'a [OsString],
    voice: Voice,
}

impl<'a, T> Want<'a, T>
where
    T: Fn(&Client) -> Turn<'_, Client>,
{
    pub(super) fn new(names: Vec<&'a OsStr>, kind: Kind, turn: T) -> Self {
        Self { names, kind, turn }
    }
}

impl Options {
    /// Runs a command while something is held.
    pub(super) async fn run<T>(&self, want: Want<'_, T>, command: &[OsString]) -> Result<ExitCode>
    where
        T: Fn(&Client) -> Turn<'_, Client>,
    {
        ensure!(
            self.ttl.is_none_or(|ttl| ttl.as_millis() > 0),
            "a --ttl of nothing would be over at once; take 1s or so"
        );
        ensure!(command[0] != "-c", "there is no shell in between; say -- sh -c '…' instead of -c '…'");
        let signals = Signals::new()?;
        Wrapper { options: self, want, command, voice: Voice::new()? }.run(signals).await
    }
}

impl<T> Wrapper<'_, T>
where
    T: Fn(&Client) -> Turn<'_, Client>,
{
    async fn run(self, mut signals: Signals) -> Result<ExitCode> {
        let guard = tokio::select! {
            guard = self.acquire() => guard?,
            signal = signals.next() => return Ok(ended_by(signal.as_raw())),
        };
        let Some(guard) = guard else { return Ok(ExitCode::from(self.options.conflict_exit_code)) };
        let mut command = Command::from(child::command(self.command)?);
        self.tell(&mut command, &guard);
        let mut child = command.spawn().context("cannot start the command")?;
        let ended = tokio::select! {
            ended = attend(&mut child, &mut signals) => Some(ended?),
            () = guard.lost() => None,
            () = self.warn(&guard) => None,
        };
        match ended {
            // What it did before its deadline it did alone.
            Some(status) if !guard.is_lost() => Ok(self.release(guard, status, &mut signals).await),
            Some(_) => {
                self.voice.say(format_args!("{} lost while the command ran", self.shown_with("was", "were")));
                Ok(ExitCode::from(LOST))
            }
            None => {
                let how = match guard.loss() {
                    Some(Loss::Told) => {
                        "its node says so: its time was over, it was taken by force, or the node leaves or is cut off"
                    }
                    Some(Loss::Unheard) | None => "its node cannot be heard any more",
                };
                self.voice.say(format_args!("{} lost, {how}; ending the command", self.shown_with("is", "are")));
                end(&mut child, self.options.grace, &mut signals).await?;
                Ok(ExitCode::from(LOST))
            }
        }
    }

    /// Tells the command what it holds. What is around it may be of another command, which this one runs within.
    fn tell(&self, command: &mut Command, guard: &RemoteGuard) {
        let fences: Vec<(&[u8], String)> =
            guard.fences().map(|(name, fence)| (name.as_bytes(), fence.to_string())).collect();
        let fence = |name: &OsStr| {
            let held = fences.iter().find(|(held, _)| *held == name.as_bytes());
            held.map(|(_, fence)| fence.as_str()).expect("what was asked for is held")
        };
        let first = self.want.names[0];
        let line = |name: &&OsStr| [fence(name).as_bytes(), b" ", name.as_bytes()].concat();
        let lines = self.want.names.iter().map(line).collect::<Vec<_>>().join(&b'\n');
        command.env("VEZ_LOCK_NAME", first).env("VEZ_LOCK_FENCE", fence(first));
        command.env("VEZ_LOCK_FENCES", OsString::from_vec(lines));
        command.env("VEZ_LOCK_CLUSTER", guard.cluster().to_string());
        match self.want.kind {
            Kind::Semaphore { .. } => command.env("VEZ_LOCK_FLOOR", guard.floor().to_string()),
            Kind::Lock | Kind::Group | Kind::ReadWrite | Kind::Election => command.env_remove("VEZ_LOCK_FLOOR"),
        };
    }

    /// Gives back what a command held that has ended in time: its code, unless the node says that it was lost before.
    async fn release(&self, guard: RemoteGuard, status: ExitStatus, signals: &mut Signals) -> ExitCode {
        let released = tokio::select! {
            released = guard.release() => released,
            _ = signals.next() => Ok(()), // The end of the connection releases it too.
        };
        let shown = self.shown();
        match released {
            Ok(()) => code(status),
            Err(ClientError::Refused { why, .. }) => {
                self.voice.say(format_args!("the command is done, and {shown} may have been lost before: {why}"));
                ExitCode::from(LOST)
            }
            Err(error) => {
                self.voice.say(format_args!("the command is done, and {shown} could not be released: {error}"));
                code(status)
            }
        }
    }

    /// Says that it will be lost, and waits until it is.
    async fn warn(&self, guard: &RemoteGuard) {
        guard.danger().await;
        if guard.loss().is_none() {
            let shown = self.shown();
            self.voice.say(format_args!("{shown} will soon be lost: its node leaves, or is not heard"));
        }
        guard.lost().await;
    }

    /// The names, as they can be shown.
    fn shown(&self) -> String {
        let names: Vec<String> = self.want.names.iter().map(|name| plain(&name.to_string_lossy())).collect();
        match &names[..] {
            [names @ .., last] if !names.is_empty() => format!("{} and {last}", names.join(", ")),
            names => names.concat(),
        }
    }

    /// The same in a sentence about one, or about several.
    fn shown_with(&self, one: &str, more: &str) -> String {
        format!("{} {}", self.shown(), if self.want.names.len() == 1 { one } else { more })
    }

    /// Who holds it, for those who ask.
    fn who(&self) -> String {
        let program = std::path::Path::new(&self.command[0]).file_name().unwrap_or_default().to_string_lossy();
        let program: String = plain(&program).chars().filter(char::is_ascii).take(32).collect();
        format!("{program}, vez[{}]", std::process::id())
    }
}
