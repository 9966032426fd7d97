//! `vez lock`

use std::{
    ffi::OsString,
    io::IsTerminal,
    os::unix::{ffi::OsStrExt, process::ExitStatusExt},
    pin::pin,
    process::{ExitCode, ExitStatus},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, ensure};
use rustix::{
    process::{Pid, Signal, getpgid, getpgrp, kill_process},
    termios::tcgetpgrp,
};
use tokio::{
    process::Child,
    signal::unix::{SignalKind, signal},
    time::{sleep, timeout},
};
use vez::{Client, ClientError, Loss, RemoteGuard};

use super::{child, local, remote::Remote, show, tell::text, time, voice::Voice};

/// The lock was lost, and the command was ended.
const LOST: u8 = 75;
/// A node that begins, or settles in a new view, cannot tell whether a lock is free: who does not want to wait waits so long for that.
const PATIENCE: Duration = Duration::from_secs(2);
/// So long it waits before it asks again: at first, and later.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Who waits for so long is told what for.
const SOON: Duration = Duration::from_secs(1);

/// Run a command while holding a lock.
#[derive(clap::Args)]
#[command(
    after_help = "The command gets VEZ_LOCK_NAME and VEZ_LOCK_FENCE: a number that is larger for every later holder, to be shown to whatever must not be touched by two; and VEZ_LOCK_CLUSTER, since fences of two clusters cannot be compared. It has the same \
standard input, gets the signals that `vez lock` gets (Ctrl-C by itself, as the terminal sends it), and on Linux dies with it. No shell is involved.

If the lock is lost (this machine or its node cannot be heard any more), the command gets TERM, and KILL after --grace. Somebody else may have the lock by then: what it touches should refuse its fence.

What the command itself has started does not die with it: let it `exec` what it runs. Nor does a command that changes its user, such as sudo.

Where nothing is said about a node and none was ever run on this machine by this user, one is started, which stays. On machines of a cluster, say where it is in VEZ_ADDR or vez.toml.

Examples:
  vez lock backup -- pg_dump -f backup.sql orders
  vez lock -n -E 0 deploy -- ./deploy.sh      if somebody else does, that is fine
  vez lock -w 10 -E 99 report -- make report

Exit code: that of the command, or 128 and its signal; 1 or CODE if somebody else has the lock; 75 if it was lost; 126 or 127 if the command cannot be run or found; 2 could not ask, or the node cannot tell."
)]
pub(crate) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Do not wait for it. (A node that begins or settles, and cannot tell, is asked for two seconds.)
    #[arg(short = 'n', long, visible_alias = "nb", conflicts_with = "wait")]
    nonblock: bool,
    /// Wait so many seconds at most.
    #[arg(short, long, visible_alias = "timeout", value_name = "SECS", value_parser = time::parse, allow_negative_numbers = true)]
    wait: Option<Duration>,
    /// The exit code if the lock was not obtained.
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = 1)]
    conflict_exit_code: u8,
    /// Lose the lock if this machine cannot be heard for so long [default: as soon as its node notices].
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    ttl: Option<Duration>,
    /// How long the command has to end when the lock is lost.
    #[arg(long, value_name = "TIME", value_parser = time::parse, default_value = "5s")]
    grace: Duration,
    /// Say who is in the way, and how long it took. On a terminal, who waits for a second is told why in any case.
    #[arg(long)]
    verbose: bool,
    /// As flock(1) has it: nobody else at the same time. It is always so.
    #[arg(short = 'x', long, short_alias = 'e', hide = true)]
    exclusive: bool,
    /// The name of the lock.
    name: OsString,
    /// The command, and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

impl Args {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        ensure!(
            self.ttl.is_none_or(|ttl| ttl.as_millis() > 0),
            "a --ttl of nothing would be over at once; take 1s or so"
        );
        ensure!(self.command[0] != "-c", "there is no shell in between; say -- sh -c '…' instead of -c '…'");
        let (mut signals, voice) = (Signals::new()?, Voice::new()?);
        let guard = tokio::select! {
            guard = self.acquire(&voice) => guard?,
            signal = signals.next() => return Ok(ended_by(signal.as_raw())),
        };
        let Some(guard) = guard else { return Ok(ExitCode::from(self.conflict_exit_code)) };
        let mut command = tokio::process::Command::from(child::command(&self.command)?);
        command.env("VEZ_LOCK_NAME", &self.name).env("VEZ_LOCK_FENCE", guard.fence().to_string());
        command.env("VEZ_LOCK_CLUSTER", guard.cluster().to_string());
        let mut child = command.spawn().context("cannot start the command")?;
        let ended = tokio::select! {
            ended = attend(&mut child, &mut signals) => Some(ended?),
            () = guard.lost() => None,
            () = self.warn(&guard, &voice) => None,
        };
        match ended {
            // What it did before its deadline it did alone.
            Some(status) if !guard.is_lost() => Ok(self.release(guard, status, &mut signals, &voice).await),
            Some(_) => {
                voice.say(format_args!("{} was lost while the command ran", self.shown()));
                Ok(ExitCode::from(LOST))
            }
            None => {
                let how = match guard.loss() {
                    Some(Loss::Told) => {
                        "its node says so: its time was over, it was taken by force, or the node leaves or is cut off"
                    }
                    Some(Loss::Unheard) | None => "its node cannot be heard any more",
                };
                voice.say(format_args!("{} is lost, {how}; ending the command", self.shown()));
                self.end(&mut child, &mut signals).await?;
                Ok(ExitCode::from(LOST))
            }
        }
    }

    /// Finds a node, and takes the lock, if it can be had in time.
    async fn acquire(&self, voice: &Voice) -> Result<Option<RemoteGuard>> {
        let target = self.remote.target()?;
        let who = self.who();
        let client =
            if target.given { target.connect_as(Some(who)).await? } else { local::client(&target, &who).await? };
        let wait = if self.nonblock { Some(Duration::ZERO) } else { self.wait };
        let begin = Instant::now();
        let mut obtained = pin!(self.obtain(&client, wait, voice));
        let guard = tokio::select! {
            guard = &mut obtained => guard?,
            () = self.explain(&client, begin, voice) => obtained.await?,
        };
        if self.verbose {
            match &guard {
                Some(_) => {
                    let took = begin.elapsed().as_secs_f64();
                    voice.say(format_args!("getting {} took {took:.6} seconds", self.shown()));
                }
                None => {
                    let what = self.in_the_way(&client).await.0;
                    voice.say(format_args!("{} was not to be had: {what}", self.shown()));
                }
            }
        }
        Ok(guard)
    }

    /// Releases the lock of a command that has ended in time: its code, unless the node says that it was lost before.
    async fn release(&self, guard: RemoteGuard, status: ExitStatus, signals: &mut Signals, voice: &Voice) -> ExitCode {
        let released = tokio::select! {
            released = guard.release() => released,
            _ = signals.next() => Ok(()), // The end of the connection releases it too.
        };
        match released {
            Ok(()) => code(status),
            Err(ClientError::Refused { why, .. }) => {
                voice.say(format_args!("the command is done, and {} may have been lost before: {why}", self.shown()));
                ExitCode::from(LOST)
            }
            Err(error) => {
                voice.say(format_args!("the command is done, and {} could not be released: {error}", self.shown()));
                code(status)
            }
        }
    }

    /// The name of the lock, as it can be shown.
    fn shown(&self) -> String {
        super::tell::plain(&self.name.to_string_lossy())
    }

    /// Who holds it, for those who ask.
    fn who(&self) -> String {
        let program = std::path::Path::new(&self.command[0]).file_name().unwrap_or_default().to_string_lossy();
        let program: String = super::tell::plain(&program).chars().filter(char::is_ascii).take(32).collect();
        format!("{program}, vez[{}]", std::process::id())
    }

    /// Takes the lock, if it can be had in time. A node that cannot tell yet is asked again; if it goes while we wait, it or
    /// another comes back.
    async fn obtain(&self, client: &Client, wait: Option<Duration>, voice: &Voice) -> Result<Option<RemoteGuard>> {
        let begin = Instant::now();
        let tries = wait.is_some_and(|wait| wait.is_zero());
        let patience = if tries { Some(PATIENCE) } else { wait };
        let (mut told, mut pause) = (false, PAUSE);
        loop {
            let turn = client.lock(self.name.as_bytes()).ttl(self.ttl);
            let taken = match wait {
                None => turn.await.map(Some),
                Some(wait) => turn.within(wait.saturating_sub(begin.elapsed())).await,
            };
            let error = match taken {
                Ok(Some(guard)) if guard.is_lost() => continue, // This process was asleep meanwhile.
                Err(error) if error.is_temporary() || (error.is_unreachable() && !tries) => error,
                outcome => return Ok(outcome?),
            };
            if patience.is_some_and(|patience| begin.elapsed() >= patience) {
                return Err(error.into()); // Whether it is free cannot be told.
            }
            if error.is_unreachable() && !told {
                told = true;
                voice.say(format_args!("{:#}; still waiting for {}", anyhow!(error), self.shown()));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Says why we wait, once that takes a while.
    async fn explain(&self, client: &Client, begin: Instant, voice: &Voice) {
        sleep(SOON.saturating_sub(begin.elapsed())).await;
        let (what, is_usual) = self.in_the_way(client).await;
        if !is_usual || self.verbose || std::io::stderr().is_terminal() {
            voice.say(format_args!("waiting for {}: {what}", self.shown()));
        }
    }

    /// Says that the lock will be lost, and waits until it is.
    async fn warn(&self, guard: &RemoteGuard, voice: &Voice) {
        guard.danger().await;
        if guard.loss().is_none() {
            voice.say(format_args!("{} will soon be lost: its node leaves, or is not heard", self.shown()));
        }
        guard.lost().await;
    }

    /// Who has it, or what else is in the way; and whether that is as it should be.
    async fn in_the_way(&self, client: &Client) -> (String, bool) {
        let shown = client.call(&[b"SHOW", self.name.as_bytes()]).await;
        match (shown, client.call(&[b"STATUS"]).await) {
            (Ok(shown), _) => (show::in_the_way(&shown), true),
            (Err(_), Ok(status)) => {
                let (node, because) = (&status["node"], &status["because"]);
                (format!("node {} cannot tell: {}", text(node), text(because)), false)
            }
            (Err(error), Err(_)) => (error.to_string(), false),
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

/// Waits for the command, and hands it the signals that come meanwhile.
async fn attend(child: &mut Child, signals: &mut Signals) -> Result<ExitStatus> {
    loop {
        tokio::select! {
            status = child.wait() => return status.context("cannot wait for the command"),
            // What a terminal sends, it sends to the command as well.
            signal = signals.next() => if !(matches!(signal, Signal::INT | Signal::QUIT) && hears_terminal(child)) {
                send(child, signal);
            },
        }
    }
}

fn pid(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}

fn send(child: &Child, signal: Signal) {
    if let Some(pid) = pid(child) {
        let _ = kill_process(pid, signal); // It may have ended this very moment.
    }
}

fn code(status: ExitStatus) -> ExitCode {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitCode::from(u8::try_from(code).unwrap_or(2)),
        (None, signal) => ended_by(signal.unwrap_or(0)),
    }
}

/// What a shell makes of a signal.
fn ended_by(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(2))
}

/// The signals that are for the command; or for us, as long as there is none.
struct Signals(Vec<(Signal, tokio::signal::unix::Signal)>);

impl Signals {
    fn new() -> Result<Self> {
        // Whoever has started us may not have cared about its children. We do: their codes are to be had only then.
        let _children = signal(SignalKind::child()).context("cannot heed signals")?;
        use SignalKind as Kind;
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
            if is_ignored(name) {
                continue; // As nohup has it; and so has the command then.
            }
            signals.push((name, signal(kind).context("cannot heed signals")?));
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

/// Whether we, and the command with us, are who a terminal sends its signals to.
fn hears_terminal(child: &Child) -> bool {
    let terminal = std::fs::File::open("/dev/tty").ok();
    let foreground = terminal.and_then(|terminal| tcgetpgrp(terminal).ok());
    let ours = getpgrp();
    foreground == Some(ours) && pid(child).is_some_and(|child| getpgid(Some(child)) == Ok(ours))
}

/// Whether a signal was ignored when we began.
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal.as_raw() - 1)) != 0
}
