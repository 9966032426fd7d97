//! `vez lab ordeal`

use std::{fmt::Write, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use vez_algorithms::catalog::{self, Entry};
use vez_lab::{
    named::{self, Detector, Record},
    ordeal::{CannotSummarise, NotSurvived, Ordeals, Summary},
    sim::Config,
    trace::Tail,
};

use super::{find, system::in_words, trace::write_trace};
use crate::output::{print, progress, tell, thousands};

/// More than this are surely a slip of the keyboard.
const MOST: u64 = 10_000_000;

/// Simulate an algorithm under random faults, many times.
#[derive(clap::Args)]
#[command(
    after_help = "In each ordeal a few nodes ask at random times while what the algorithm claims to survive goes wrong: crashes, half of them in the \
midst of sending, returns, lost messages. Then nothing goes wrong any more, and they go on asking for a while. The law must hold throughout, and in the end everybody who lives must have been served.

Examples:
  vez lab ordeal robust-k
  vez lab ordeal                                                   # every algorithm that survives anything
  vez lab ordeal bully --first 17 --ordeals 1 --trace bully.jsonl   # one of them again, written down

Exit code: 0 survived, 1 not survived, 2 could not run."
)]
pub(crate) struct Args {
    /// Which algorithms; by default all that survive anything.
    algorithms: Vec<String>,
    /// How many ordeals for each.
    #[arg(long, default_value_t = 1000, value_name = "NUMBER")]
    ordeals: u64,
    /// The number of the first.
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    first: u64,
    /// Who tells of crashes, for algorithms that must be told.
    #[arg(long, default_value = "hi-adsd", value_name = "WHO")]
    detector: Detector,
    /// Where all randomness comes from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the ordeal that was not survived, or the only one, down as vez lab trace would.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print an array of objects.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        ensure!(
            (1..=MOST).contains(&self.ordeals),
            "ordeals is {}; take at least 1 and at most {MOST}, such as --ordeals 100",
            self.ordeals
        );
        let end = self.first.checked_add(self.ordeals);
        let end =
            end.with_context(|| format!("first is {}; there are not so many after it, try --first 0", self.first))?;
        let mut names = self.algorithms.clone();
        if names.is_empty() {
            let tolerant = catalog::ALL.iter().filter(|entry| survives_something(entry));
            names.extend(tolerant.map(|entry| entry.name.to_owned()));
        }
        ensure!(
            self.trace.is_none() || names.len() == 1,
            "a trace is of one algorithm, and there are {}; name one, such as vez lab ordeal bully",
            names.len()
        );
        let mut results = Vec::new();
        for name in &names {
            let entry = find(name)?;
            ensure!(
                survives_something(entry),
                "{name} claims to survive nothing, and so nothing would go wrong; vez lab list says who does"
            );
            results.push((name.as_str(), self.endure(entry, end)?));
        }
        print(&if self.json { as_json(&results)? } else { describe(&results) })?;
        Ok(ExitCode::from(u8::from(results.iter().any(|(_, result)| result.is_err()))))
    }

    fn endure(&self, entry: &Entry, end: u64) -> Result<Result<Summary, NotSurvived>> {
        let ordeals = Ordeals { numbers: self.first..end, seed: self.seed };
        let bar = progress(end - self.first, entry.name);
        let result = named::ordeal(entry.name, self.detector, &ordeals, &|| bar.inc(1));
        bar.finish_and_clear();
        match result.expect("it is in the catalog") {
            Ok(summary) => {
                if self.ordeals == 1 {
                    let config =
                        named::draw(entry.name, self.detector, self.seed, self.first).expect("it is in the catalog");
                    self.write(entry, &config, self.first)?;
                } else if self.trace.is_some() {
                    tell(
                        "vez: all were survived, and none was written down; --ordeals 1 writes the one that --first names",
                    );
                }
                Ok(Ok(summary))
            }
            Err(CannotSummarise::Config(error)) => Err(error.into()),
            Err(CannotSummarise::NotSurvived(failed)) => {
                self.explain(entry, &failed);
                self.write(entry, &failed.config, failed.number)?;
                Ok(Err(*failed))
            }
        }
    }

    fn write(&self, entry: &Entry, config: &Config, number: u64) -> Result<()> {
        match &self.trace {
            // It fails as before, if it did.
            Some(path) => write_trace(entry, self.detector, config, number, Some(path)).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Says what went wrong, shows the last events, and names the command that repeats it.
    fn explain(&self, entry: &Entry, failed: &NotSurvived) {
        let NotSurvived { number, failure, config } = failed;
        let mut tail = Tail { from: failure.time - 20.0 * config.delay, lines: std::collections::VecDeque::new() };
        // It fails as before: that is what it is run for.
        let _ = named::watch(entry.name, self.detector, config, *number, Record::Tail(&mut tail));
        let (system, settings) = (&config.system, in_words(&config.system.settings(entry.settings)));
        tell(format_args!("{} nodes, {}{settings}; what goes wrong:", system.nodes, system.topology));
        config.faults.all().iter().for_each(|(time, fault)| tell(format_args!("{time:.6} {fault}")));
        tell("the last events:");
        tail.lines.iter().for_each(tell);
        let (name, seed) = (entry.name, self.seed);
        let detector = match self.detector {
            Detector::HiAdsd => "",
            Detector::Oracle => " --detector oracle",
        };
        let again = format!("vez lab ordeal {name} --first {number} --ordeals 1 --seed {seed}{detector}");
        tell(format_args!("vez: {name}: {failed}\nvez: to see all of it: {again} --trace {name}.jsonl"));
    }
}

fn survives_something(entry: &Entry) -> bool {
    let model = entry.assumptions;
    model.survives_crashes || model.survives_restarts || model.survives_loss
}

type Outcome<'a> = (&'a str, Result<Summary, NotSurvived>);

fn as_json(results: &[Outcome<'_>]) -> Result<String> {
    let objects: Vec<_> = results
        .iter()
        .map(|(name, result)| match result {
            Ok(summary) => json!({
                "algorithm": name, "survived": true, "ordeals": summary.ordeals, "entries": summary.entries,
                "messages": summary.messages, "crashes": summary.crashes, "restarts": summary.restarts,
                "losses": summary.losses,
            }),
            Err(failed) => json!({
                "algorithm": name, "survived": false, "ordeal": failed.number, "failure": failed.failure.to_string(),
            }),
        })
        .collect();
    Ok(format!("{}\n", serde_json::to_string_pretty(&objects)?))
}

fn describe(results: &[Outcome<'_>]) -> String {
    let width = results.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(9);
    let mut text = format!(
        "{:width$} {:>9} {:>9} {:>9} {:>9} {:>9} {:>12}\n",
        "ALGORITHM", "ORDEALS", "ENTRIES", "CRASHES", "RETURNS", "LOST", "MESSAGES"
    );
    for (name, result) in results {
        let _ = match result {
            Ok(summary) => writeln!(
                text,
                "{name:width$} {:>9} {:>9} {:>9} {:>9} {:>9} {:>12}  survived",
                thousands(summary.ordeals),
                thousands(summary.entries),
                thousands(summary.crashes),
                thousands(summary.restarts),
                thousands(summary.losses),
                thousands(summary.messages)
            ),
            Err(failed) => writeln!(text, "{name:width$} not survived: {failed}"),
        };
    }
    text
}
