//! `vez up`

use std::{
    fmt::Write,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::json;
use tokio::{task::JoinSet, time::timeout};
use vez::{Ended, Node, StartError};

use super::{local, node::PORTS, stop::Stop, time};
use crate::output::{counted, print, tell};

const MOST_NODES: u16 = 64;
/// Whoever is no member by then has something in its way: after a crash, a lease that must run out.
const SOON: Duration = Duration::from_secs(5);
/// The ports of the next node are so much higher.
const STEP: u16 = 10;

/// Run a cluster of the lock service on this machine, to try it.
#[derive(clap::Args)]
#[command(
    after_help = "The nodes share one process. The first is reached where clients look for a node, the next on ports that are 10 higher, and so on. Their data is kept in \
the folder of the user, so that fences only grow, also over restarts. Ctrl-C or TERM ends all of them.

Examples:
  vez up
  vez up --nodes 5 --data /tmp/cluster

Exit code: 0 it was ended, 2 could not run."
)]
pub(crate) struct Args {
    /// How many nodes.
    #[arg(long, default_value_t = 3, value_name = "NUMBER")]
    nodes: u16,
    /// The folder with their data [default: that of the user].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// How long a membership lasts without being renewed [default: 3s].
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    lease: Option<Duration>,
    /// Say where they can be reached as an object.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        ensure!(
            (1..=MOST_NODES).contains(&self.nodes),
            "nodes is {}; take at least 1 and at most {MOST_NODES}",
            self.nodes
        );
        let begin = Instant::now();
        let _log = std::env::var_os("RUST_LOG").map(|_| super::node::log());
        let data = match &self.data {
            Some(data) => data.clone(),
            None => local::cluster()?,
        };
        super::node::allow_many_connections();
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        for number in 1..=self.nodes {
            let node = self.start(number, &data, nodes.first()).await?;
            nodes.push(Arc::new(node));
        }
        local::note_node(&data);
        if !self.json {
            let words = counted(nodes.len(), "node, with its data", "nodes of one cluster, with their data");
            print(&format!("{words} in {}\n", data.display()))?;
        }
        print(&self.where_they_are(&nodes))?;
        for (number, node) in (1..).zip(&nodes) {
            if timeout(SOON, node.ready()).await.is_err() {
                tell(format_args!("vez: node {number} is no member yet; `vez status` says what it waits for"));
                node.ready().await;
            }
        }
        if !self.json {
            let time = begin.elapsed().as_secs_f64();
            print(&format!(
                "\nready after {time:.1} s. In another terminal:\n  vez lock demo -- sleep 30\n  vez show demo\nCtrl-C ends it.\n"
            ))?;
        }
        attend(&nodes, Stop::new()?).await
    }

    async fn start(&self, number: u16, data: &std::path::Path, first: Option<&Arc<Node>>) -> Result<Node> {
        let [client, http, peer] = PORTS.map(|port| format!("127.0.0.1:{}", port + STEP * (number - 1)));
        let mut builder =
            Node::builder(number, data.join(number.to_string())).client_addr(client).http_addr(http).peer_addr(peer);
        builder = match first {
            None => builder.bootstrap(),
            Some(first) => builder.join([first.peer_addr().to_string()]),
        };
        if let Some(lease) = self.lease {
            builder = builder.lease(lease);
        }
        builder.start().await.map_err(|error| {
            let hint = match error {
                StartError::Bind(..) | StartError::Store(_) => "; if another one runs already, `vez status` shows it",
                _ => "",
            };
            anyhow!("node {number} does not start: {:#}{hint}", anyhow!(error))
        })
    }

    fn where_they_are(&self, nodes: &[Arc<Node>]) -> String {
        let mut text = String::new();
        for (number, node) in (1..).zip(nodes) {
            let text_of = |at: Option<std::net::SocketAddr>| at.map(|at| at.to_string()).unwrap_or_default();
            let (client, http, peer) = (text_of(node.client_addr()), text_of(node.http_addr()), node.peer_addr());
            let _ = if self.json {
                let peer = peer.to_string();
                writeln!(text, "{}", json!({ "node": number, "client": client, "http": http, "peer": peer }))
            } else {
                writeln!(text, "  node {number}  clients {client}  http://{http}/v1/status")
            };
        }
        text
    }
}

/// Waits until all have ended: by themselves, or since we are told to stop.
async fn attend(nodes: &[Arc<Node>], mut stop: Stop) -> Result<ExitCode> {
    let mut running: JoinSet<Ended> = JoinSet::new();
    for node in nodes {
        let node = Arc::clone(node);
        running.spawn(async move { node.ended().await });
    }
    let (mut leaving, mut failed) = (false, false);
    while !running.is_empty() {
        tokio::select! {
            Some(ended) = running.join_next() => match ended.context("a node did not end as it should")? {
                Ended::Left => {}
                ended => {
                    failed = true;
                    tell(format_args!("vez: a node has ended: {ended}"));
                }
            },
            () = stop.told() => {
                ensure!(!leaving, "they have ended without leaving; started again, they wait for a lease");
                leaving = true;
                tell("vez: ending; once more, and it ends at once");
                for node in nodes {
                    let node = Arc::clone(node);
                    tokio::spawn(async move { node.leave(Duration::ZERO).await });
                }
            }
        }
    }
    ensure!(!failed, "not all of them could go on");
    Ok(ExitCode::SUCCESS)
}
