//! `vez lab ordeal`

use std::{fmt::Write, process::ExitCode};

use anyhow::{Result, ensure};
use serde_json::json;
use vez_algorithms::{
    Algorithm,
    catalog::{self, Job},
};
use vez_lab::{
    ordeal::{self, CannotSummarise, NotSurvived, Ordeals, Summary},
    sim,
    trace::Tail,
};

use super::with;
use crate::output::{print, progress, thousands};

/// Simulate an algorithm under random faults, many times.
#[derive(clap::Args)]
#[command(
    after_help = "In each ordeal a few nodes ask at random times while what the algorithm claims to survive goes wrong: crashes, returns, \
lost messages. The law must hold throughout, and in the end everybody who lives must have been served.

Examples:
  vez lab ordeal robust-k
  vez lab ordeal                                (every algorithm that survives anything)
  vez lab ordeal bully --first 17 --ordeals 1   (one of them again)

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
    /// Where all randomness comes from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print an array of objects.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        ensure!(self.ordeals > 0, "ordeals is 0; there must be at least one, such as --ordeals 100");
        let end = self.first.saturating_add(self.ordeals);
        let names = if self.algorithms.is_empty() { tolerant() } else { self.algorithms.clone() };
        let mut results = Vec::new();
        for name in &names {
            let ordeals = Ordeals { numbers: self.first..end, seed: self.seed };
            results.push((name.as_str(), with(name, Endure { ordeals })??));
        }
        print(&if self.json { as_json(&results)? } else { describe(&results) })?;
        Ok(ExitCode::from(u8::from(results.iter().any(|(_, result)| result.is_err()))))
    }
}

/// Every algorithm that survives anything.
fn tolerant() -> Vec<String> {
    let survives = |entry: &&catalog::Entry| {
        let model = entry.assumptions;
        model.survives_crashes || model.survives_restarts || model.survives_loss
    };
    catalog::ALL.iter().filter(survives).map(|entry| entry.name.to_owned()).collect()
}

struct Endure {
    ordeals: Ordeals,
}

impl Job for Endure {
    type Done = Result<Result<Summary, NotSurvived>>;

    fn with<A: Algorithm>(self) -> Self::Done {
        let bar = progress(self.ordeals.numbers.end - self.ordeals.numbers.start, A::NAME);
        let result = ordeal::run::<A>(&self.ordeals, &|| bar.inc(1));
        bar.finish_and_clear();
        match result {
            Ok(summary) => Ok(Ok(summary)),
            Err(CannotSummarise::Config(error)) => Err(error.into()),
            Err(CannotSummarise::NotSurvived(failed)) => {
                explain::<A>(&self.ordeals, &failed);
                Ok(Err(*failed))
            }
        }
    }
}

/// Says what went wrong and shows the last events.
fn explain<A: Algorithm>(ordeals: &Ordeals, failed: &NotSurvived) {
    let config = &failed.config;
    let mut tail = Tail { from: failed.failure.time - 20.0 * config.delay, lines: std::collections::VecDeque::new() };
    // It fails as before: that is what it is run for.
    let _ = sim::watch::<A>(config, failed.number, &mut tail);
    eprintln!("{} nodes, k = {}, {}; what goes wrong:", config.system.nodes, config.system.k, config.system.topology);
    config.faults.all().iter().for_each(|(time, fault)| eprintln!("{time:>14.6}  {fault:?}"));
    eprintln!("the last events:");
    tail.lines.iter().for_each(|line| eprintln!("{line}"));
    eprintln!("vez: {}: {failed}", A::NAME);
    eprintln!(
        "vez: to repeat it: vez lab ordeal {} --first {} --ordeals 1 --seed {}",
        A::NAME,
        failed.number,
        ordeals.seed
    );
}

type Outcome<'a> = (&'a str, Result<Summary, NotSurvived>);

fn as_json(results: &[Outcome<'_>]) -> Result<String> {
    let objects: Vec<_> = results
        .iter()
        .map(|(name, result)| match result {
            Ok(summary) => json!({
                "algorithm": name, "survived": true, "ordeals": summary.ordeals, "entries": summary.entries,
                "messages": summary.messages, "crashes": summary.crashes, "restarts": summary.restarts,
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
        "{:width$} {:>9} {:>9} {:>9} {:>9} {:>12}\n",
        "ALGORITHM", "ORDEALS", "ENTRIES", "CRASHES", "RETURNS", "MESSAGES"
    );
    for (name, result) in results {
        let _ = match result {
            Ok(summary) => writeln!(
                text,
                "{name:width$} {:>9} {:>9} {:>9} {:>9} {:>12}  survived",
                thousands(summary.ordeals),
                thousands(summary.entries),
                thousands(summary.crashes),
                thousands(summary.restarts),
                thousands(summary.messages)
            ),
            Err(failed) => writeln!(text, "{name:width$} not survived: {failed}"),
        };
    }
    text
}
