//! `vez lab check`

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use vez_algorithms::{Order, Timing, catalog::Entry};
use vez_lab::{
    check::{Bound, CannotCheck, Config, Counterexample, Report, Verdict, Workload},
    named,
    sim::DelayLaw,
    system::System,
    wanted::Wanted,
};

use super::{
    find,
    session::stopwatch,
    system::{NetworkArgs, SystemArgs, arranged},
};
use crate::output::{counted, print, progress, thousands};

/// Explore every interleaving of a small system.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  vez lab check nxr
  vez lab check fila --nodes 4 --unbounded
  vez lab check lamport --network any     # it needs FIFO: see how it fails without

Messages in time: a message takes a third of patience at most, for algorithms that count on time; with --instant, none. A counterexample
has a line where time passes; with --instant it passes unseen until a timer fires.

The worst case: messages is the most that are sent in a run until all are served, divided by the entries, and not computed if
nodes crash or clients ask for ever; bypasses is how often others who asked later enter before the same request.

Exit code: 0 all laws hold, 1 one is broken, 2 could not check.")]
pub(crate) struct Args {
    /// Which algorithm; see vez lab list.
    algorithm: String,
    /// How many nodes.
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    #[command(flatten)]
    system: SystemArgs,
    #[command(flatten)]
    network: NetworkArgs,
    /// How often each client asks.
    #[arg(long, default_value_t = 2)]
    requests: u32,
    /// Clients ask again and again, for ever.
    #[arg(long, conflicts_with = "requests")]
    unbounded: bool,
    /// Clients may ask for anything that can be asked for, instead of each always for the same.
    #[arg(long)]
    mixed: bool,
    /// How often a node may crash. What it has sent and has not arrived may be lost with it.
    #[arg(long, default_value_t = 0)]
    crashes: usize,
    /// How often a crashed node may come back, having forgotten everything.
    #[arg(long, default_value_t = 0)]
    restarts: usize,
    /// How many messages may be lost.
    #[arg(long, default_value_t = 0)]
    losses: usize,
    /// How often the failure detector may take a living node for dead, for algorithms that need one.
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    false_suspicions: usize,
    /// Take messages to arrive at once, for algorithms that count on time: far fewer states, and much that can happen left out.
    #[arg(long)]
    instant: bool,
    /// Tell states apart by all they contain, instead of by a 64-bit fingerprint.
    #[arg(long)]
    exact: bool,
    /// Give up beyond this many states.
    #[arg(long, default_value_t = 100_000_000)]
    max_states: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let entry = find(&self.algorithm)?;
        anyhow::ensure!(self.requests > 0, "requests is 0; clients that never ask show nothing, try --requests 1");
        anyhow::ensure!(
            self.restarts == 0 || self.crashes > 0,
            "nobody returns who has not crashed; add --crashes 1, or take away --restarts"
        );
        anyhow::ensure!(
            self.false_suspicions == 0 || entry.assumptions.detector,
            "{} asks no failure detector that could be wrong; + marks those that do in vez lab list",
            entry.name
        );
        anyhow::ensure!(
            !self.instant || entry.assumptions.timing == Timing::Bounded,
            "--instant makes no difference to {}, which does not count on time; * marks those that do in vez lab list",
            entry.name
        );
        let system =
            Wanted { delay: 1.0, delay_law: DelayLaw::Constant, ..self.system.wanted(self.nodes) }.system(entry)?;
        let setup = system.setup(1, 0)?;
        let config = Config {
            workload: if self.unbounded { Workload::Unbounded } else { Workload::Requests(self.requests) },
            order: self.network.order(entry),
            askers: self.system.askers,
            mixed: self.mixed,
            crashes: self.crashes,
            restarts: self.restarts,
            losses: self.losses,
            false_suspicions: self.false_suspicions,
            instant: self.instant,
            exact: self.exact,
            max_states: self.max_states,
        };
        let spinner = progress(0, "states");
        let told = &mut |states: usize| spinner.set_position(states as u64);
        let report = named::check(entry.name, &setup, &config, stopwatch, told);
        spinner.finish_and_clear();
        let report = report.expect("it is in the catalog").map_err(|error| match error {
            CannotCheck::TooManyStates(_) if entry.assumptions.timing == Timing::Bounded && !self.instant => {
                anyhow::anyhow!("{error}, or try --instant")
            }
            other => other.into(),
        })?;
        print(&if self.json {
            format!("{:#}\n", as_json(entry, &system, &config, &report))
        } else {
            describe(entry, &system, &config, &report)
        })?;
        Ok(match report.verdict {
            Verdict::Holds(_) => ExitCode::SUCCESS,
            Verdict::Violated(_) => ExitCode::from(1),
        })
    }
}

fn as_json(entry: &Entry, system: &System, config: &Config, report: &Report) -> serde_json::Value {
    let requests = match config.workload {
        Workload::Requests(requests) => json!(requests),
        Workload::Unbounded => json!("unbounded"),
    };
    let mut object = json!({
        "algorithm": entry.name, "nodes": system.nodes, "topology": system.topology, "settings": system.settings(entry.settings),
        "requests": requests, "askers": config.askers, "mixed": config.mixed, "network": config.order,
        "crashes": config.crashes, "restarts": config.restarts, "losses": config.losses, "false_suspicions": config.false_suspicions, "instant": config.instant,
        "states": report.states, "transitions": report.transitions, "depth": report.depth,
        "bytes_per_state": report.bytes_per_state, "seconds": report.elapsed.as_secs_f64(),
    });
    match &report.verdict {
        Verdict::Holds(worst) => {
            object["verdict"] = json!("holds");
            object["worst"] = json!(worst);
        }
        Verdict::Violated(counterexample) => {
            object["verdict"] = json!("violated");
            object["worst"] = json!({ "messages_per_entry": null, "bypasses": null });
            object["breach"] = json!(counterexample.breach.to_string());
            object["steps"] = json!(counterexample.steps);
            object["counterexample"] = json!(counterexample.transcript.lines().collect::<Vec<_>>());
        }
    }
    object
}

fn describe(entry: &Entry, system: &System, config: &Config, report: &Report) -> String {
    let mut text = format!(
        "{}\n{} states, {} transitions, depth {}, {:.2} s, {:.1} bytes a state\n",
        explored(entry, system, config),
        thousands(report.states as u64),
        thousands(report.transitions as u64),
        report.depth,
        report.elapsed.as_secs_f64(),
        report.bytes_per_state
    );
    match &report.verdict {
        Verdict::Holds(worst) => {
            text += &format!("holds: {}, the algorithm's own lemmas, no deadlock, no starvation\n", entry.law);
            let messages = match worst.messages_per_entry {
                Bound::AtMost(messages) => format!("{messages:.4} messages an entry"),
                Bound::Unbounded => "any number of messages an entry".to_owned(),
                Bound::Unknown => "messages an entry not computed".to_owned(),
            };
            let bypasses = match worst.bypasses {
                Bound::AtMost(bypasses) => counted(bypasses as usize, "bypass", "bypasses"),
                Bound::Unbounded => "any number of bypasses".to_owned(),
                Bound::Unknown => "bypasses not computed".to_owned(),
            };
            text += &format!("worst case: {messages}, {bypasses}\n");
        }
        Verdict::Violated(Counterexample { breach, steps, transcript }) => {
            text += &format!("violated: {breach}, after {}:\n\n{transcript}", counted(*steps, "step", "steps"));
        }
    }
    text
}

/// What was explored, in one line.
fn explored(entry: &Entry, system: &System, config: &Config) -> String {
    let whole = arranged(entry, system.nodes, config.askers, system.topology, &system.settings(entry.settings));
    let anything = if config.mixed { ", for anything" } else { "" };
    let requests = match config.workload {
        _ if entry.family == "detector" => "no clients".to_owned(),
        Workload::Requests(requests) => format!("{} each", counted(requests as usize, "request", "requests")),
        Workload::Unbounded => "requests for ever".to_owned(),
    };
    let order = match config.order {
        Order::Fifo => "messages in order",
        Order::Any => "messages in any order",
    };
    let delay = match (entry.assumptions.timing, config.instant) {
        (Timing::Any, _) => "",
        (Timing::Bounded, true) => " and at once",
        (Timing::Bounded, false) => " and in time",
    };
    let mut text = format!("{whole}, {requests}{anything}, {order}{delay}");
    for (most, one, more) in [
        (config.crashes, "crash", "crashes"),
        (config.restarts, "return", "returns"),
        (config.losses, "lost message", "lost messages"),
        (config.false_suspicions, "false suspicion", "false suspicions"),
    ] {
        if most > 0 {
            text += &format!(", up to {}", counted(most, one, more));
        }
    }
    text
}
