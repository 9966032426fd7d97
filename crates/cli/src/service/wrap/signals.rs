//! The command as a process: its signals, its end and its code.

use std::{
    os::unix::process::ExitStatusExt,
    process::{ExitCode, ExitStatus},
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::{
    process::{Pid, Signal, getpgid, getpgrp, kill_process},
    termios::tcgetpgrp,
};
use tokio::{
    process::Child,
    signal::unix::{SignalKind, signal},
    time::timeout,
};

/// Waits for the command, and hands it the signals that come meanwhile.
pub(super) async fn attend(child: &mut Child, signals: &mut Signals) -> Result<ExitStatus> {
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

/// Ends the command: politely at first.
pub(super) async fn end(child: &mut Child, grace: Duration, signals: &mut Signals) -> Result<()> {
    send(child, Signal::TERM);
    if timeout(grace, attend(child, signals)).await.is_err() {
        child.kill().await.context("cannot end the command")?;
    }
    Ok(())
}

fn pid(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}

fn send(child: &Child, signal: Signal) {
    if let Some(pid) = pid(child) {
        let _ = kill_process(pid, signal); // It may have ended this very moment.
    }
}

pub(super) fn code(status: ExitStatus) -> ExitCode {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitCode::from(u8::try_from(code).unwrap_or(2)),
        (None, signal) => ended_by(signal.unwrap_or(0)),
    }
}

/// What a shell makes of a signal.
pub(super) fn ended_by(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(2))
}

/// The signals that are for the command; or for us, as long as there is none.
pub(super) struct Signals(Vec<(Signal, tokio::signal::unix::Signal)>);

impl Signals {
    pub(super) fn new() -> Result<Self> {
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

    pub(super) async fn next(&mut self) -> Signal {
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
