//! `vez lab emulate`

use std::{
    env,
    fmt::Write as _,
    fs::File,
    io::{BufWriter, Write as _},
    net::SocketAddr,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, json};
use vez_algorithms::{NodeId, catalog::Entry};
use vez_emulator::{Crash, Emulation, Invitation, Outcome, Settings, Simulated, Transport, Watcher};
use vez_lab::{sim::Report, span::seconds, trace::Header, wanted::Wanted};

use super::{
    find,
    measured::{Unit, describe},
    session::interruption,
    system::SystemArgs,
};
use crate::output::{counted, print, progress, tell, thousands};

/// How long an answer may take, if nobody says otherwise: this machine is quick, and sometimes busy.
const PATIENCE: Duration = Duration::from_millis(100);

/// About how long a message takes, for those who ask again after about that time.
const DELAY: f64 = 0.001;

/// Run an algorithm over real sockets, and measure it beside the simulator.
#[derive(clap::Args)]
#[command(
    after_help = "Each node has a socket on this machine, with a port that the system chooses. A referee stands for \
the shared resource: it hears of every entry and exit, and applies the law. What an algorithm takes for granted of its network, \
and UDP does not give (that nothing is lost, or the order), links between the nodes provide; what they send is counted apart. \
Beside what was measured stands what the simulator says of the same load, delays and losses. See docs/emulator.md.

TIME is such as 300us, 200ms, 5s or 2m. Patience is 100ms by default. With --json, times are in seconds.

Examples:
  vez lab emulate fila
  vez lab emulate lamport --loss 0.1
  vez lab emulate maekawa --transport tcp --processes --nodes 9
  vez lab emulate central-failover --processes --crash n0@200ms
  vez lab emulate nxr --entries 50 --trace nxr.jsonl && vez lab replay nxr.jsonl

Exit code: 0 measured, 1 a law was broken or nothing moves any more, 2 could not run."
)]
pub(crate) struct Args {
    /// Which algorithm; see vez lab list. Of the families mutex, semaphore and group.
    algorithm: String,
    /// How many nodes.
    #[arg(long, default_value_t = 8)]
    nodes: usize,
    #[command(flatten)]
    system: SystemArgs,
    /// Which sockets: udp or tcp.
    #[arg(long, default_value = "udp")]
    transport: Transport,
    /// Run each node in a process of its own.
    #[arg(long)]
    processes: bool,
    /// The run ends with this entry.
    #[arg(long, default_value_t = 1000)]
    entries: u64,
    /// How long a client stays inside.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = seconds, allow_hyphen_values = true)]
    hold: f64,
    /// How long a client thinks before it asks: on average, exponentially distributed. 0 to ask again at once.
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = seconds, allow_hyphen_values = true)]
    think: f64,
    /// Which share of all datagrams to lose, on purpose.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    loss: f64,
    /// Let a node crash so long after the beginning, such as n3@200ms; with --processes by a signal that it cannot catch. May be
    /// given more than once.
    #[arg(long, value_name = "NODE@TIME")]
    crash: Vec<Crash>,
    /// Where the clients' times, the losses and all other chance come from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write all that happens down as JSON Lines, as vez lab trace does; vez lab replay compares it with the algorithm.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Be this node of an emulation that another process referees.
    #[arg(long, hide = true, requires_all = ["referee", "key"])]
    as_node: Option<u32>,
    #[arg(long, hide = true)]
    referee: Option<SocketAddr>,
    #[arg(long, hide = true)]
    key: Option<u64>,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let entry = find(&self.algorithm)?;
        let settings = self.settings(entry)?;
        if let (Some(node), Some(referee), Some(key)) = (self.as_node, self.referee, self.key) {
            let part = vez_emulator::take_part(entry.name, NodeId(node), &settings, Invitation { referee, key });
            part.expect("it is in the catalog")?;
            return Ok(ExitCode::SUCCESS);
        }
        settings.validate()?;
        // What cannot be written should be known before the run, not after.
        let file = self.trace.as_deref().map(create).transpose()?;
        let bar = progress(self.entries, "entries");
        let interrupted = interruption()?;
        let terminal = Terminal { bar: &bar, interrupted: &interrupted };
        let spawn: vez_emulator::Spawn<'_> = &spawn;
        let outcome = vez_emulator::emulate(entry.name, &settings, self.processes.then_some(spawn), &terminal);
        bar.finish_and_clear();
        let outcome = outcome.expect("it is in the catalog")?;
        if let (Some(file), Some(path)) = (file, &self.trace) {
            write(file, &settings.header(entry, self.processes), &outcome.trace)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        self.tell(entry, &outcome)
    }

    fn settings(&self, entry: &Entry) -> Result<Settings> {
        let mut system = Wanted { delay: DELAY, ..self.system.wanted(self.nodes) }.system(entry)?;
        if self.system.options.patience.is_none() {
            system.patience = PATIENCE;
        }
        if self.system.options.period.is_none() {
            system.period = system.patience * 10;
        }
        Ok(Settings {
            system,
            transport: self.transport,
            entries: self.entries,
            askers: self.system.askers,
            hold: self.hold,
            think: self.think,
            loss: self.loss,
            seed: self.seed,
            crashes: self.crash.clone(),
            trace: self.trace.is_some(),
        })
    }

    fn tell(&self, entry: &Entry, outcome: &Outcome) -> Result<ExitCode> {
        let Outcome { failure, report, emulation, .. } = outcome;
        match failure {
            Some(failure) if self.json => {
                let object = json!({
                    "algorithm": entry.name, "nodes": self.nodes, "violations": u8::from(failure.law_broken),
                    "failure": failure.to_string(), "entries": report.entries, "emulation": emulation,
                });
                // Whoever does not read it still gets the exit code.
                let _ = print(&format!("{object:#}\n"));
            }
            Some(failure) => tell(format_args!("vez: {failure}")),
            None if self.json => {
                let whole = Whole { report, emulation };
                print(&format!("{}\n", serde_json::to_string_pretty(&whole)?))?;
            }
            None => print(&self.describe(entry, report, emulation))?,
        }
        Ok(ExitCode::from(u8::from(failure.is_some())))
    }

    fn describe(&self, entry: &Entry, report: &Report, emulation: &Emulation) -> String {
        let unit = Unit::Milliseconds;
        let load = if self.think > 0.0 {
            format!("each thinks for {} on average", unit.time(self.think))
        } else {
            "each asks again at once".to_owned()
        };
        let kind = if emulation.processes { "processes" } else { "threads" };
        let loss = if self.loss > 0.0 { format!(", {} of them lost", self.loss) } else { String::new() };
        let frames = match self.transport {
            Transport::Udp => "datagrams",
            Transport::Tcp => "connections",
        };
        let world = format!(
            "{kind}, {} {frames}{loss}; {} inside; seed {}",
            self.transport,
            unit.time(emulation.stay),
            self.seed
        );
        let mut report = report.clone();
        for setting in ["patience", "period"] {
            if let Some(Value::Number(time)) = report.settings.get_mut(setting) {
                let time = unit.time(time.as_f64().unwrap_or_default());
                report.settings.insert(setting.to_owned(), time.into());
            }
        }
        let report = &report;
        let mut text = describe(entry, report, &load, &world, unit);
        let [p50, p95, p99] = emulation.delay_quantiles.map(|time| unit.time(time));
        let _ = writeln!(text, "delay of a message     {}", unit.time(report.delay));
        let _ = writeln!(text, "  p50, p95, p99        {p50}, {p95}, {p99}");
        let _ = writeln!(text, "  longest              {}", unit.time(emulation.slowest));
        let link = &emulation.link;
        if link.acknowledgements > 0 {
            let _ = writeln!(
                text,
                "links                  {} acknowledgements, {} sent again, {} had come before, {} held back, {} lost",
                thousands(link.acknowledgements),
                thousands(link.resent),
                thousands(link.duplicates),
                thousands(link.held_back),
                thousands(emulation.lost),
            );
        }
        if !emulation.refused.is_empty() {
            let kinds: Vec<String> =
                emulation.refused.iter().map(|(kind, count)| format!("{} {kind}", thousands(*count))).collect();
            let _ = writeln!(text, "refused                {}", kinds.join(", "));
        }
        let _ = writeln!(text, "simulated              {}", simulated(emulation.simulated.as_ref()));
        let _ = writeln!(
            text,
            "\n{} delivered in {:.2} s, {} an entry",
            counted(report.deliveries as usize, "message", "messages"),
            report.seconds,
            unit.time(report.seconds / report.entries.max(1) as f64)
        );
        text
    }
}

/// What the simulator says of the same.
fn simulated(simulated: Option<&Simulated>) -> String {
    let Some(Simulated { messages_per_entry, violations, .. }) = simulated else {
        return "comes to no end under this load and with these delays".to_owned();
    };
    let broken = match violations {
        0 => String::new(),
        violations => {
            let times = counted(*violations as usize, "time", "times");
            format!("; the law broken {times}, by delays that the algorithm takes to be impossible")
        }
    };
    format!("{messages_per_entry} messages an entry, under this load and with these delays{broken}")
}

/// A report as a simulation has it, and what only sockets have.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    report: &'a Report,
    emulation: &'a Emulation,
}

struct Terminal<'a> {
    bar: &'a indicatif::ProgressBar,
    interrupted: &'a AtomicBool,
}

impl Watcher for Terminal<'_> {
    fn listening(&self, addresses: &[SocketAddr]) {
        let ports: Vec<String> = addresses.iter().map(|address| address.port().to_string()).collect();
        self.bar.println(format!("on ports {} of {}", ports.join(", "), addresses[0].ip()));
    }

    fn has_had_enough(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn entries(&self, entries: u64) {
        self.bar.set_position(entries);
    }

    fn odd(&self, what: &str) {
        self.bar.suspend(|| tell(format_args!("vez: {what}")));
    }
}

/// The same command, as one node.
fn spawn(node: NodeId, Invitation { referee, key }: Invitation) -> std::io::Result<std::process::Child> {
    let mut command = Command::new(env::current_exe()?);
    let mut typed = env::args_os().skip(1);
    // Right behind `lab emulate`: what follows may be anything, and end with `--`.
    command.args(typed.by_ref().take(2));
    command.args(["--as-node", &node.0.to_string(), "--referee", &referee.to_string(), "--key", &key.to_string()]);
    command.args(typed);
    // Ctrl-C is for the referee: a node ends when that one does.
    command.process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()
}

/// Opens a file to be written later. Until then what is in it stays.
pub(super) fn create(path: &Path) -> Result<File> {
    let file = File::options().write(true).create(true).truncate(false).open(path);
    file.with_context(|| format!("cannot write {}", path.display()))
}

fn write(file: File, header: &Header, lines: &[String]) -> std::io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    let mut file = BufWriter::new(file);
    writeln!(file, "{}", serde_json::to_string(header)?)?;
    for line in lines {
        file.write_all(line.as_bytes())?;
    }
    file.flush()
}
