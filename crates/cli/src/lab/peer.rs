//! `vez lab peer`

use std::{
    fs::{self, File},
    io,
    net::{Ipv4Addr, SocketAddr, ToSocketAddrs},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, Result, ensure};
use vez_emulator::{Outlets, PeerError, PeerSettings, Script, peer};
use vez_lab::span::seconds;

use super::{emulate::create, find, session::interruption, system::SystemArgs};
use crate::output::{Output, tell};

/// Be one process of the laboratory exercise: a terminal that asks for the critical section.
#[derive(clap::Args)]
#[command(
    after_help = "Start the resource and every process in a terminal of its own, in any order, within a minute, all with \
the same addresses. An address is HOST:PORT, or :PORT on this machine. Then type: the ID of the process is an internal event, \
x or anything else asks for the critical section; what is typed while it waits or is inside is ignored. Every event is a line \
with the logical clock after it. Ctrl-C ends the process. See docs/exercise.md.

The processes speak in UDP datagrams that a person can read: tcpdump -i lo -A udp portrange 10001-10004

A script has lines of TIME INPUT, such as 2s x, with times from the moment at which all are there; TIME end ends the process.

Examples:
  vez lab resource :10001
  vez lab peer 1 :10002 :10003 :10004
  vez lab peer 2 :10002 :10003 :10004 --hold 10s
  vez lab peer 3 :10002 :10003 :10004 --script three --trace three.jsonl
  vez lab peer 1 :10002 :10003 --algorithm suzuki-kasami

Exit code: 0 the script has ended, 1 somebody did what the algorithm rules out, 2 could not run."
)]
pub(crate) struct Args {
    /// Which of the addresses is this process: 1 for the first.
    id: usize,
    /// Where all processes are, in the same order for all.
    #[arg(required = true, value_name = "ADDRESS", value_parser = address)]
    addresses: Vec<SocketAddr>,
    /// Where the resource is.
    #[arg(long, value_name = "ADDRESS", default_value = ":10001", value_parser = address)]
    resource: SocketAddr,
    /// Which algorithm of the family mutex; see vez lab list.
    #[arg(long, default_value = "ricart-agrawala-clock", value_name = "NAME")]
    algorithm: String,
    #[command(flatten)]
    system: SystemArgs,
    /// How long to stay inside.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = seconds, allow_hyphen_values = true)]
    hold: f64,
    /// Hold back what comes from a process for some time, such as 2=300ms: UDP has no order, so one can choose it.
    #[arg(long, value_name = "ID=TIME", value_parser = delay)]
    delay: Vec<(usize, f64)>,
    /// Play timed input from a file, instead of the keyboard.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Write all that happens to this process down as JSON Lines, as vez lab trace does.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Where chance comes from, for algorithms that leave something to it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let entry = find(&self.algorithm)?;
        ensure!(
            (0.0..=3600.0).contains(&self.hold),
            "hold is {} s; take a time from 0 to an hour, such as 5s",
            self.hold
        );
        let stranger = self.delay.iter().find(|(id, _)| !(1..=self.addresses.len()).contains(id));
        ensure!(
            stranger.is_none(),
            "--delay {}=… is about nobody; IDs are from 1 to {}",
            stranger.map_or(0, |(id, _)| *id),
            self.addresses.len()
        );
        let system = self.system.wanted(self.addresses.len()).system(entry)?;
        let settings = PeerSettings {
            id: self.id,
            addresses: self.addresses,
            resource: self.resource,
            system,
            hold: self.hold,
            delays: self.delay,
            script: self.script.as_ref().map(read).transpose()?,
            seed: self.seed,
        };
        let mut trace = self.trace.as_deref().map(create).transpose()?.map(Fresh::new);
        let mut terminal = Output;
        let trace = trace.as_mut().map(|trace| trace as &mut dyn io::Write);
        let interrupted = interruption()?;
        let outlets = Outlets { terminal: &mut terminal, trace, interrupted: &interrupted };
        match peer(entry.name, &settings, outlets).expect("it is in the catalog") {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(PeerError::Broken(what)) => {
                tell(format_args!("vez: {what}"));
                Ok(ExitCode::from(1))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// A file that loses what is in it only when something new is written.
struct Fresh {
    file: File,
    is_fresh: bool,
}

impl Fresh {
    fn new(file: File) -> Self {
        Self { file, is_fresh: true }
    }
}

impl io::Write for Fresh {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if std::mem::take(&mut self.is_fresh) && self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn read(path: &PathBuf) -> Result<Script> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse().with_context(|| path.display().to_string())
}

/// HOST:PORT, or :PORT on this machine.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let whole = match text.strip_prefix(':') {
        Some(port) => format!("{}:{port}", Ipv4Addr::LOCALHOST),
        None => text.to_owned(),
    };
    let found = whole.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.filter(|found| found.port() > 0).ok_or_else(|| format!("\"{text}\" is no address; give one such as :10002"))
}

fn delay(text: &str) -> Result<(usize, f64), String> {
    let parts = text.split_once('=').and_then(|(id, time)| Some((id.parse().ok()?, time)));
    let (id, time) = parts.ok_or_else(|| format!("\"{text}\" is not ID=TIME, such as 2=300ms"))?;
    let time = seconds(time)?;
    if (0.0..=3600.0).contains(&time) {
        Ok((id, time))
    } else {
        Err(format!("\"{text}\" waits too long or not at all"))
    }
}
