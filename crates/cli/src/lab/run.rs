//! `vez lab run`

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use vez_lab::{
    named::{self, Detector, Record},
    sim::{CannotReport, Config, Failure, Report},
    trace::Tail,
    wanted::Wanted,
};

use super::{
    find,
    measured::{Unit, describe},
    session::stopwatch,
    system::LoadArgs,
};
use crate::output::{print, progress, tell, thousands};

/// Simulate an algorithm and measure messages and waiting times.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  vez lab run nxr --nodes 31 --rate 0.5
  vez lab run fila --arrivals saturated --runs 5 --json
  vez lab run maekawa --nodes 31 --quorum plane
  echo '10 crash n0' > faults && vez lab run central --faults faults

Exit code: 0 measured, 1 a law was broken or nothing moves any more, 2 could not run.")]
pub(crate) struct Args {
    /// Which algorithm; see vez lab list.
    algorithm: String,
    #[command(flatten)]
    load: LoadArgs,
    /// How many entries of each run are measured: by default 100,000, or with --until as many as there are. A script is
    /// played to its end instead.
    #[arg(long)]
    entries: Option<u64>,
    /// How many entries come before them and are not. By default 1000; 0 for a script, with --until, or if something goes
    /// wrong.
    #[arg(long)]
    warmup: Option<u64>,
    /// How many independent runs.
    #[arg(long, default_value_t = 10)]
    runs: u64,
    /// Only the run of this number.
    #[arg(long, value_name = "NUMBER", conflicts_with = "runs", value_parser = clap::value_parser!(u64).range(..u64::MAX))]
    run: Option<u64>,
    /// Count how often the law is broken, instead of stopping at the first time.
    #[arg(long)]
    keep_going: bool,
    /// Print one JSON object.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print a line of names and a line of values.
    #[arg(long)]
    csv: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let entry = find(&self.algorithm)?;
        let (entries, warmup, keep_going) = (self.entries, self.warmup, self.keep_going);
        let wanted = Wanted { entries, warmup, keep_going, runs: self.runs, ..self.load.wanted()? };
        let config = wanted.config(entry)?;
        let config = Config { runs: self.run.map_or(config.runs.clone(), |run| run..run + 1), ..config };
        let runs = config.runs.end - config.runs.start;
        let expected = if config.until.is_some() { 0 } else { config.entries + config.warmup };
        let bar = progress(expected.saturating_mul(runs), "entries");
        let detector = self.load.detector;
        let result = named::run(entry.name, detector, &config, stopwatch, &|entries| bar.set_position(entries));
        bar.finish_and_clear();
        match result.expect("it is in the catalog") {
            Ok(mut report) => {
                if entry.assumptions.detector {
                    report.settings.extend(self.load.detection(&config));
                }
                print(&match (self.json, self.csv) {
                    (true, _) => format!("{}\n", serde_json::to_string_pretty(&report)?),
                    (_, true) => csv(&report)?,
                    (false, false) => {
                        let (load, world) = (self.load.describe(entry), self.load.describe_world(entry, &config));
                        format!("{}\n{}", describe(entry, &report, &load, &world, Unit::Virtual), delivered(&report))
                    }
                })?;
                Ok(ExitCode::from(u8::from(report.violations > 0)))
            }
            Err(CannotReport::Config(error)) => Err(error.into()),
            Err(CannotReport::Failure(failure)) => {
                explain(entry.name, detector, &config, &failure, self.json)?;
                Ok(ExitCode::from(1))
            }
        }
    }
}

fn delivered(report: &Report) -> String {
    format!(
        "{} messages delivered in {:.2} s of simulation, {:.1} million a second; ± is a 95 % interval over the runs\n",
        thousands(report.deliveries),
        report.seconds,
        report.deliveries as f64 / report.seconds.max(f64::EPSILON) / 1e6
    )
}

fn csv(report: &Report) -> Result<String> {
    let (mut names, mut values) = (Vec::new(), Vec::new());
    flatten("", &serde_json::to_value(report)?, &mut names, &mut values);
    Ok(format!("{}\n{}\n", names.join(","), values.join(",")))
}

/// `{"wait": {"mean": 1}}` becomes a column `wait_mean`.
fn flatten(name: &str, value: &serde_json::Value, names: &mut Vec<String>, values: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (field, value) in fields {
                let name = if name.is_empty() { field.clone() } else { format!("{name}_{field}") };
                flatten(&name, value, names, values);
            }
        }
        serde_json::Value::Null => {
            names.push(name.to_owned());
            values.push(String::new());
        }
        serde_json::Value::String(text) => {
            names.push(name.to_owned());
            values.push(text.clone());
        }
        serde_json::Value::Array(items) => {
            let items: Vec<&str> = items.iter().filter_map(serde_json::Value::as_str).collect();
            names.push(name.to_owned());
            values.push(items.join("; "));
        }
        other => {
            names.push(name.to_owned());
            values.push(other.to_string());
        }
    }
}

/// Says what went wrong in a run, shows its last events, and names the command that repeats it.
fn explain(name: &str, detector: Detector, config: &Config, failure: &Failure, json: bool) -> Result<()> {
    let replay = replay_command(failure.run, std::env::args_os().map(|word| word.to_string_lossy().into_owned()));
    if json {
        let object = json!({
            "algorithm": name, "nodes": config.system.nodes, "violations": u8::from(failure.law_broken),
            "failure": failure.to_string(), "run": failure.run, "replay": replay,
        });
        return print(&format!("{object:#}\n"));
    }
    let mut tail = Tail { from: failure.time - 20.0 * config.delay, lines: std::collections::VecDeque::new() };
    // It fails as before: that is what it is run for.
    let _ = named::watch(name, detector, config, failure.run, Record::Tail(&mut tail));
    tell("the last events of the run:");
    tail.lines.iter().for_each(tell);
    tell(format_args!("vez: {failure}\nvez: to repeat it: {replay}"));
    Ok(())
}

/// Whether a shell takes this as it is.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c)
}

/// The command that was typed, for one run only.
fn replay_command(run: u64, typed: impl Iterator<Item = String>) -> String {
    let mut command = vec!["vez".to_owned()];
    let mut skip = false;
    for word in typed.skip(1) {
        if std::mem::take(&mut skip) {
            continue;
        }
        match word.as_str() {
            "--runs" | "--run" => skip = true,
            "--json" | "--csv" => {}
            other if other.starts_with("--runs=") || other.starts_with("--run=") => {}
            other if other.chars().all(is_plain) => command.push(other.to_owned()),
            other => command.push(format!("'{}'", other.replace('\'', r"'\''"))),
        }
    }
    format!("{} --run {run}", command.join(" "))
}
