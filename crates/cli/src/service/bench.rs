//! `vez bench`

mod load;
mod redis;
mod table;

use std::{net::SocketAddr, path::Path, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::json;
use vez::Node;

use self::load::Rate;
use super::stop::Stop;
use crate::output::{print, progress, thousands};

/// Each thing is measured so often, in turns with what it is compared with: a machine is never the same for long.
const ROUNDS: usize = 5;
const CONNECTIONS: usize = 64;
const NODES: u16 = 3;

/// Measure the lock service on this machine, beside what the machine can do at all.
#[derive(clap::Args)]
#[command(
    after_help = "Nodes, clients and what they are compared with share this machine, one after the other and in turns, so that the ratios mean something where the numbers do not. \
The bare table is a lock server without anything that makes one safe: one process, a table in memory behind the same protocol, no other node, no lease, no fence that \
survives a restart; where a lock is passed on, its three holders are clients of it. Holders at three nodes are in the processes of these, or clients by RESP.

With --redis nothing but that is measured: SET NX PX and the compare-and-delete script, by clients in this process, at the Redis server and at one of three nodes, each a process of its own. Who does not get a name that others want tries again at once.

Examples:
  vez bench
  vez bench --redis 127.0.0.1:6379
  vez bench --seconds 2 --json

Exit code: 0, whatever comes out; 2 could not run."
)]
pub(crate) struct Args {
    /// Compare with the Redis server there: the same clients lock by SET at both, as libraries for Redis do.
    #[arg(long, value_name = "ADDR")]
    redis: Option<String>,
    /// How long each measurement takes, in seconds.
    #[arg(long, default_value_t = 0.5, value_name = "SECONDS")]
    seconds: f64,
    /// Print an object.
    #[arg(long)]
    json: bool,
}

/// What was measured, a second.
struct Measured {
    in_process: Rate,
    ping_pong: Rate,
    one: Pair,
    many: Pair,
    handovers: Pair,
    resp_handovers: Pair,
}

/// Ours, and what it is compared with.
struct Pair {
    ours: Rate,
    bare: Rate,
    /// The median of the ratios of all rounds.
    ratio: f64,
}

impl Args {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let range = 0.05..=60.0;
        ensure!(range.contains(&self.seconds), "seconds is {}; take 0.05 to 60, such as --seconds 1", self.seconds);
        let time = Duration::from_secs_f64(self.seconds);
        let folder = std::env::temp_dir().join(format!("vez-bench-{}", std::process::id()));
        // If it is stopped, its nodes and their folder are not left behind.
        let mut stop = Stop::new()?;
        let said = tokio::select! {
            said = self.said(&folder, time) => said,
            () = stop.told() => Err(anyhow!("stopped before it was done")),
        };
        std::fs::remove_dir_all(&folder).ok(); // What was not made need not be removed.
        print(&said?)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Args {
    async fn said(&self, folder: &Path, time: Duration) -> Result<String> {
        if let Some(redis) = &self.redis {
            let compared = redis::compare(redis, folder, time).await?;
            return Ok(if self.json { compared.as_json() } else { compared.words() });
        }
        let measured = measure(folder, time).await?;
        Ok(if self.json { as_json(&measured) } else { words(&measured) })
    }
}

async fn measure(folder: &Path, time: Duration) -> Result<Measured> {
    let mut nodes: Vec<Arc<Node>> = Vec::new();
    for number in 1..=NODES {
        let builder = Node::builder(number, folder.join(number.to_string())).client_addr("127.0.0.1:0");
        let builder = match nodes.first() {
            None => builder.bootstrap(),
            Some(first) => builder.join([first.peer_addr().to_string()]),
        };
        let node = builder.start().await?;
        node.ready().await;
        nodes.push(Arc::new(node));
    }
    let at: Vec<SocketAddr> = nodes.iter().filter_map(|node| node.client_addr()).collect();
    let node = *at.first().context("a node that clients can reach")?;
    let table = table::start().await?;
    let bar = progress((ROUNDS * 10) as u64, "measurements");
    let (mut in_process, mut ping_pong) = (Vec::new(), Vec::new());
    let (mut one, mut many, mut handovers, mut resp_handovers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        in_process.push(load::in_process(&nodes[0], time).await?);
        ping_pong.push(load::ping_pong(time).await?);
        let own = |address, clients| load::own_names(address, clients, time);
        one.push(in_turns(round, own(node, 1), own(table, 1)).await?);
        many.push(in_turns(round, own(node, CONNECTIONS), own(table, CONNECTIONS)).await?);
        let bare = || load::one_name(vec![table; nodes.len()], time);
        handovers.push(in_turns(round, load::between_nodes(&nodes, time), bare()).await?);
        resp_handovers.push(in_turns(round, load::one_name(at.clone(), time), bare()).await?);
        bar.inc(10);
    }
    bar.finish_and_clear();
    Ok(Measured {
        in_process: median(in_process),
        ping_pong: median(ping_pong),
        one: pair(one),
        many: pair(many),
        handovers: pair(handovers),
        resp_handovers: pair(resp_handovers),
    })
}

/// Ours and what it is compared with, one after the other; in every second round the other way round.
async fn in_turns(
    round: usize,
    ours: impl Future<Output = Result<Rate>>,
    bare: impl Future<Output = Result<Rate>>,
) -> Result<(Rate, Rate)> {
    if round.is_multiple_of(2) {
        Ok((ours.await?, bare.await?))
    } else {
        let bare = bare.await?;
        Ok((ours.await?, bare))
    }
}

fn median(mut rates: Vec<Rate>) -> Rate {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn pair(rounds: Vec<(Rate, Rate)>) -> Pair {
    let ratio = median(rounds.iter().map(|(ours, bare)| ours / bare).collect());
    let (ours, bare) = rounds.into_iter().unzip();
    Pair { ours: median(ours), bare: median(bare), ratio }
}

fn as_json(measured: &Measured) -> String {
    let pair =
        |pair: &Pair| json!({ "per_second": pair.ours, "bare_table_per_second": pair.bare, "ratio": pair.ratio });
    let object = json!({
        "in_process": { "per_second": measured.in_process, "nanoseconds": 1e9 / measured.in_process },
        "loopback_ping_pong": { "per_second": measured.ping_pong },
        "resp_one_connection": pair(&measured.one),
        "resp_64_connections": pair(&measured.many),
        "handovers_between_3_nodes": pair(&measured.handovers),
        "resp_handovers_between_3_nodes": pair(&measured.resp_handovers),
    });
    format!("{object:#}\n")
}

fn words(measured: &Measured) -> String {
    let rate = |rate: Rate| thousands(rate as u64);
    let pair = |what: &str, pair: &Pair| {
        format!("{what:<46}{:>12}{:>14}{:>9.2}\n", rate(pair.ours), rate(pair.bare), pair.ratio)
    };
    let line = |what: &str, number: Rate, words: String| format!("{what:<46}{:>12}  {words}\n", rate(number));
    let mut out = format!("{:<46}{:>12}{:>14}{:>9}\n", "a second", "vez", "bare table", "ratio");
    out += &pair("lock and unlock, RESP, 1 connection", &measured.one);
    out += &pair("lock and unlock, RESP, 64 connections", &measured.many);
    out += &pair("one lock passed on between 3 nodes", &measured.handovers);
    out += &pair("the same between RESP clients of 3 nodes", &measured.resp_handovers);
    let time = format!("{:.2} µs each", 1e6 / measured.in_process);
    out += &line("lock and release in process", measured.in_process, time);
    let trips = format!("{:.1} µs each", 1e6 / measured.ping_pong);
    out += &line("a byte there and back, loopback", measured.ping_pong, trips);
    out
}
