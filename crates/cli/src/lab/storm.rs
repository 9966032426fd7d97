//! `vez lab storm`

use std::{process::ExitCode, time::Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use vez_storm::{Outcome, Storm};

use crate::output::{print, progress, tell, thousands};

/// More than this are surely a slip of the keyboard.
const MOST_SEEDS: u64 = 10_000_000;
const NODES: std::ops::RangeInclusive<usize> = 1..=32;
const SECONDS: std::ops::RangeInclusive<u64> = 60..=3600;

/// Let everything go wrong around whole clusters of the lock service, many times.
#[derive(clap::Args)]
#[command(
    after_help = "In each storm a cluster of the lock service lives through crashes, instant and late restarts, lost, doubled and reordered \
messages, one-way and bridge partitions, pauses longer than the lease, wrong clocks, slow and failing disks, members that leave and join, and clients that ask \
for locks, semaphores, groups, readers and writers and elections, wait, try, give up, hold and vanish, resize semaphores and observe elections. Then nothing goes wrong any more. The laws: \
those whose lease has not run out exclude each other; fences only grow, and no two grants share one; nobody waits for ever, and no wait ends before its time; no \
permit is made up or lost, and no size; observers see who leads; a view has the same members for all; memory returns to its base. One seed in eight has clocks that are worse than declared: in those only the fences have to hold.

Examples:
  vez lab storm --seeds 100
  vez lab storm --seeds 1 --seed 17            # this one again
  vez lab storm --seeds 1 --seed 17 --tell     # and what happened in it, line by line

Exit code: 0 all laws held, 1 one was broken, 2 could not run."
)]
pub(crate) struct Args {
    /// How many machines.
    #[arg(long, default_value_t = 5, value_name = "NUMBER")]
    nodes: usize,
    /// How many storms.
    #[arg(long, default_value_t = 2000, value_name = "NUMBER")]
    seeds: u64,
    /// The seed of the first.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long each lasts, in simulated seconds.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    seconds: u64,
    /// Tell what happens in the first storm, line by line.
    #[arg(long)]
    tell: bool,
    /// Print an object.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        ensure!(
            (1..=MOST_SEEDS).contains(&self.seeds),
            "seeds is {}; take at least 1 and at most {}, such as --seeds 100",
            self.seeds,
            thousands(MOST_SEEDS)
        );
        ensure!(NODES.contains(&self.nodes), "nodes is {}; take from 1 to 32, such as --nodes 5", self.nodes);
        ensure!(
            SECONDS.contains(&self.seconds),
            "seconds is {}; take from 60, so that a storm can calm down, to 3600, such as --seconds 120",
            self.seconds
        );
        let storm = Storm { nodes: self.nodes, seeds: self.seeds, first_seed: self.seed, seconds: self.seconds };
        if self.tell {
            // What came of it is said below; here is what happened.
            let _ = vez_storm::tell(&storm, self.seed, &mut tell);
        }
        let began = Instant::now();
        let bar = progress(self.seeds, "storms");
        let outcome = vez_storm::run(&storm, &|| bar.inc(1));
        bar.finish_and_clear();
        let seconds = began.elapsed().as_secs_f64();
        if self.json {
            print(&format!("{}\n", serde_json::to_string_pretty(&as_json(&storm, &outcome, seconds))?))?;
        } else {
            print(&describe(&storm, &outcome))?;
        }
        if let Some(broken) = &outcome.first {
            let again = format!("vez lab storm --nodes {} --seconds {}", self.nodes, self.seconds);
            tell(format_args!("vez: {broken}\nvez: to see it: {again} --seeds 1 --seed {} --tell", broken.seed));
        }
        Ok(ExitCode::from(u8::from(outcome.first.is_some())))
    }
}

fn as_json(storm: &Storm, outcome: &Outcome, seconds: f64) -> serde_json::Value {
    let Outcome { seeds, tally, broken, .. } = outcome;
    let violation = outcome.first.as_ref().map(|first| first.violation.as_str());
    json!({
        "seeds": seeds, "first_seed": storm.first_seed, "simulated_seconds": seeds * storm.seconds,
        "grants": tally.grants, "crashes": tally.crashes, "restarts": tally.restarts,
        "partitions": tally.partitions, "view_changes": tally.view_changes, "forgotten": tally.forgotten,
        "pauses": tally.pauses, "leases_lost": tally.leases_lost, "observations": tally.observations, "resizes": tally.resizes,
        "kept": tally.kept, "collected": tally.collected,
        "bereft": tally.bereft,
        "violations": broken.len(), "broken_seeds": broken, "violation": violation, "seconds": seconds,
    })
}

fn describe(storm: &Storm, outcome: &Outcome) -> String {
    let tally = &outcome.tally;
    let hours = (outcome.seeds * storm.seconds) as f64 / 3600.0;
    let counted = [
        ("grants", tally.grants),
        ("crashes", tally.crashes),
        ("restarts", tally.restarts),
        ("partitions", tally.partitions),
        ("pauses", tally.pauses),
        ("leases lost", tally.leases_lost),
        ("view changes", tally.view_changes),
        ("names forgotten", tally.forgotten),
        ("resizes", tally.resizes),
        ("observations", tally.observations),
        ("locks kept for whoever knows a value", tally.kept),
        ("times that several locks were had at once", tally.collected),
    ];
    let bereft = (tally.bereft > 0).then_some(("storms that lost too many disks, and ended there", tally.bereft));
    let line = |(what, count)| format!("{:>15}  {}\n", thousands(count), what);
    let counted: String = counted.into_iter().chain(bereft).map(line).collect();
    let verdict = match outcome.broken.len() {
        0 => "all laws held".to_owned(),
        1 => "one broke a law".to_owned(),
        many => format!("{} broke a law", thousands(many as u64)),
    };
    format!("{} storms of {} nodes, {hours:.1} hours: {verdict}\n{counted}", thousands(outcome.seeds), storm.nodes)
}
