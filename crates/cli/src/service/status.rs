//! `vez status`

use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use super::{
    remote::Remote,
    tell::{list, table, text, time},
};
use crate::output::{counted, print};

/// Show how a node is, and who the members of its cluster are.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  vez status
  vez status --addr 10.0.0.2:7400 --json

Exit code: 0 the node serves everything, 1 it does not now, 2 could not ask.")]
pub(crate) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Print what it says as an object.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let status = self.remote.connect().await?.call(&[b"STATUS"]).await?;
        print(&if self.json { format!("{status:#}\n") } else { words(&status) })?;
        Ok(if status["state"] == "ready" { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn words(status: &Value) -> String {
    let mut out = format!("node {}: {}, {}\n", text(&status["node"]), text(&status["state"]), text(&status["because"]));
    out += &format!("cluster {}, view {}\n", text(&status["cluster"]), text(&status["view"]));
    if !status["lease_left_ms"].is_null() {
        out += &format!("its lease lasts for another {}\n", time(&status["lease_left_ms"]));
    }
    let counted = |key: &str, one, more| counted(status[key].as_u64().map_or(0, |number| number as usize), one, more);
    let names = counted("names", "name known", "names known");
    out += &format!(
        "{}, {}, {names}\n",
        counted("sessions", "session", "sessions"),
        counted("used_names", "name in use", "names in use")
    );
    if !status["pledge_ms"].is_null() {
        let kept = counted("kept", "lock by SET", "locks by SET");
        out += &format!("{kept}; if it dies, others wait for {} longer\n", time(&status["pledge_ms"]));
    }
    let member = |member: &Value| {
        let leads = if member["id"] == status["leader_id"] { "leads" } else { "" };
        let votes = if member["votes"] == 1 { "votes" } else { "" };
        vec![text(&member["node"]), text(&member["address"]), votes.into(), leads.into(), text(&member["id"])]
    };
    for stranger in list(status, "strangers") {
        out += &format!(
            "a node of another cluster speaks to this one: {}, of cluster {}\n",
            text(&stranger["address"]),
            text(&stranger["cluster"])
        );
    }
    let rows: Vec<_> = list(status, "members").iter().map(member).collect();
    if !rows.is_empty() {
        out += "\n";
        out += &table(&["NODE", "ADDRESS", "VOTES", "LEADS", "ID"], &rows);
    }
    out
}
