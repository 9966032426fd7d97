//! `vez lab list`

use std::{fmt::Write, process::ExitCode};

use anyhow::Result;
use vez_algorithms::{Model, Order, Timing, catalog};

use crate::output::print;

/// List the algorithms: what each assumes, costs, and where it comes from.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  vez lab list\n  vez lab list --json | jq -r '.[].name'")]
pub(crate) struct Args {
    /// Print an array of objects: name, family, assumptions, cost, paper.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        if self.json {
            print(&format!("{}\n", serde_json::to_string_pretty(catalog::ALL)?))?;
            return Ok(ExitCode::SUCCESS);
        }
        let width = catalog::ALL.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
        let mut text = format!(
            "{:width$} {:10} {:8} {:17} {:9} {}\n",
            "NAME", "FAMILY", "NETWORK", "SURVIVES", "PAPER", "MESSAGES AN ENTRY"
        );
        for entry in catalog::ALL {
            let network = match entry.assumptions.order {
                Order::Fifo => "fifo",
                Order::Any => "any",
            };
            let catalog::Entry { name, family, paper, cost, .. } = entry;
            let survives = survives(&entry.assumptions);
            let _ = writeln!(text, "{name:width$} {family:10} {network:8} {survives:17} {paper:9} {cost}");
        }
        text += "\nNetwork: the order of messages that the algorithm needs. Survives: what may go wrong without anybody alive\n\
                 waiting for ever; + with a failure detector that is never wrong, * if no message takes longer than known.\n";
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What may go wrong.
fn survives(model: &Model) -> String {
    let all =
        [(model.survives_loss, "loss"), (model.survives_crashes, "crashes"), (model.survives_restarts, "returns")];
    let words: Vec<&str> = all.iter().filter(|(survives, _)| *survives).map(|(_, word)| *word).collect();
    let words = if words.is_empty() { "-".to_owned() } else { words.join(",") };
    let needs = if model.detector { "+" } else { "" };
    let bounded = if model.timing == Timing::Bounded { "*" } else { "" };
    format!("{words}{needs}{bounded}")
}
