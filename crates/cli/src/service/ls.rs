//! `vez ls`

use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use super::{
    remote::Remote,
    tell::{self, list, table, text, time},
};
use crate::output::{print, tell as say};

/// List the names that are held or waited for.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  vez ls
  vez ls orders/ --json

Exit code: 0, also if there are none; 2 could not ask.")]
pub(crate) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Only names that begin so.
    #[arg(default_value = "")]
    prefix: String,
    /// At most so many.
    #[arg(long, default_value_t = 1000, value_name = "NUMBER")]
    count: u32,
    /// Print what is known as an object.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let (prefix, count) = (self.prefix.as_bytes(), self.count.to_string());
        let listing = self.remote.connect().await?.call(&[b"LS", prefix, b"COUNT", count.as_bytes()]).await?;
        if self.json {
            print(&format!("{listing:#}\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let nobody = if list(&listing, "silent").is_empty() { "nobody" } else { "?" };
        let rows: Vec<Vec<String>> = list(&listing, "names").iter().map(|name| row(name, nobody)).collect();
        if !rows.is_empty() {
            print(&table(&["NAME", "KIND", "HELD BY", "FOR", "WAITING", "FENCE"], &rows))?;
        }
        if listing["more"] == 1 {
            say(format_args!("vez: there are more than {count}; say --count, or how they begin"));
        }
        if let Some(silent) = tell::silent(&listing) {
            say(silent);
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn row(name: &Value, nobody: &str) -> Vec<String> {
    let holders = list(name, "holders");
    let holder = |holder: &Value| format!("node {}, {}", text(&holder["node"]), text(&holder["client"]));
    let (by, time, fence) = match holders {
        [] => (nobody.into(), String::new(), String::new()),
        [one] => (holder(one), time(&one["held_ms"]), text(&one["fence"])),
        [one, ..] => (format!("{} holders", holders.len()), time(&one["held_ms"]), text(&one["fence"])),
    };
    vec![text(&name["name"]), text(&name["kind"]), by, time, text(&name["waiters"]), fence]
}
