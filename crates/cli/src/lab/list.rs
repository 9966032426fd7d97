//! `vez lab list`

use std::{fmt::Write, process::ExitCode};

use anyhow::Result;
use vez_algorithms::{Order, catalog};

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
        let mut text = format!("{:22} {:7} {:8} {:9} {}\n", "NAME", "FAMILY", "NETWORK", "PAPER", "MESSAGES AN ENTRY");
        for entry in catalog::ALL {
            let network = match entry.assumptions.order {
                Order::Fifo => "fifo",
                Order::Any => "any",
            };
            let _ = writeln!(text, "{:22} {:7} {network:8} {:9} {}", entry.name, entry.family, entry.paper, entry.cost);
        }
        text += "\nNetwork: the order of messages that the algorithm needs. All assume that none is lost and no node crashes.\n";
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
