//! `vez show`

use std::{ffi::OsString, os::unix::ffi::OsStrExt, process::ExitCode};

use anyhow::Result;
use serde_json::Value;

use super::{
    remote::Remote,
    tell::{self, list, text, time},
};
use crate::output::{print, tell as say};

/// So many of those who are inside together are named to somebody who waits.
const MOST_NAMED: usize = 3;

/// Show who holds a name, who waits for it, and why.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  vez show orders/42
  vez show orders/42 --json

Exit code: 0 somebody holds it or waits for it, 1 nobody, 2 could not ask.")]
pub(crate) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Which.
    name: OsString,
    /// Print what is known as an object.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let shown = self.remote.connect().await?.call(&[b"SHOW", self.name.as_bytes()]).await?;
        print(&if self.json { format!("{shown:#}\n") } else { words(&shown) })?;
        if let Some(silent) = tell::silent(&shown).filter(|_| !self.json) {
            say(silent);
        }
        Ok(if is_used(&shown) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn is_used(shown: &Value) -> bool {
    !list(shown, "holders").is_empty() || shown["waiters"].as_u64() > Some(0)
}

/// One sentence for somebody who waits.
pub(super) fn in_the_way(shown: &Value) -> String {
    let held = held_by(list(shown, "holders").iter()).unwrap_or_else(|| {
        let reasons = list(shown, "because").iter().map(because);
        reasons.collect::<Vec<_>>().join("; ")
    });
    match shown["waiters"].as_u64().unwrap_or(0) {
        0 => held,
        waiters => format!("{held}; {waiters} in line"),
    }
}

/// Who holds it besides the client of that name, if anybody does.
pub(super) fn held_by_others(shown: &Value, client: &str) -> Option<String> {
    held_by(list(shown, "holders").iter().filter(|holder| !text(&holder["client"]).contains(client)))
}

fn held_by<'a>(holders: impl Iterator<Item = &'a Value>) -> Option<String> {
    let holders: Vec<String> = holders.map(holder).collect();
    let named = holders.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join("; ");
    match holders.len().saturating_sub(MOST_NAMED) {
        _ if holders.is_empty() => None,
        0 => Some(format!("held by {named}")),
        more => Some(format!("held by {named}; and {more} more")),
    }
}

fn holder(holder: &Value) -> String {
    let (client, fence) = (text(&holder["client"]), text(&holder["fence"]));
    let (node, part, held) = (text(&holder["node"]), part(holder), time(&holder["held_ms"]));
    format!("node {node}, client {client}{part}, for {held}, fence {fence}")
}

/// What somebody has of it or wants of it, if that is not all.
fn part(client: &Value) -> String {
    client["part"].as_str().map_or_else(String::new, |part| format!(", {}", tell::plain(part)))
}

fn because(because: &Value) -> String {
    format!("node {}: {}", text(&because["node"]), text(&because["because"]))
}

/// All that is known of a name.
pub(super) fn words(shown: &Value) -> String {
    let kind = if is_used(shown) { text(&shown["kind"]) } else { "not in use".into() };
    let mut out = format!(
        "{}: {kind}, home node {}, view {}\n",
        text(&shown["name"]),
        text(&shown["home"]),
        text(&shown["view"])
    );
    let mut lines = |label: &str, lines: Vec<String>| {
        for (at, line) in lines.into_iter().enumerate() {
            out += &format!("{:<9}{line}\n", if at == 0 { label } else { "" });
        }
    };
    lines("held by", list(shown, "holders").iter().map(holder).collect());
    let waiter = |waiter: &Value| {
        let (node, part, waited) = (text(&waiter["node"]), part(waiter), time(&waiter["waited_ms"]));
        format!("node {node}, client {}{part}, for {waited}", text(&waiter["client"]))
    };
    let mut waiting: Vec<String> = list(shown, "waiting").iter().map(waiter).collect();
    let all = shown["waiters"].as_u64().unwrap_or(0);
    let more = all.saturating_sub(waiting.len() as u64);
    waiting.extend((more > 0).then(|| format!("and {more} more")));
    lines("waiting", waiting);
    lines("why", list(shown, "because").iter().map(because).collect());
    out
}
