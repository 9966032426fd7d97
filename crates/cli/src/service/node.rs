//! `vez node`

use std::{io::IsTerminal, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, Result, bail};
use serde_json::json;
use tracing_appender::non_blocking::WorkerGuard;
use vez::{Ended, Node};

use super::{
    config::{self, Config},
    local,
    stop::Stop,
    time,
};
use crate::output::{print, tell};

/// The ports of a node that nothing is said about: for clients, for HTTP, for other nodes.
pub(crate) const PORTS: [u16; 3] = [7400, 7401, 7402];

/// How long those who hold something have when a node leaves, unless something is said.
const GRACE: Duration = Duration::from_secs(5);

/// Run one node of the lock service.
#[derive(clap::Args)]
#[command(
    after_help = "A folder that holds a node is used as it is. Otherwise the node begins a new cluster (--bootstrap) or joins one (--join); with neither it refuses, since \
a folder that was emptied must not begin a second cluster. Whatever is not said here is taken from vez.toml, with the same names.

TERM and Ctrl-C let it leave: nothing new is granted, who holds something has --grace to come to an end, and is told that it is lost. A second one ends it at once; what it \
held is free when its lease is over.

Examples:
  vez node --id 1 --data /var/lib/vez --bootstrap
  vez node --id 2 --data /var/lib/vez --join 10.0.0.1:7402 --peer 10.0.0.2:7402 --insecure

Exit code: 0 it has left, 2 could not run, or not any more."
)]
pub(crate) struct Args {
    /// The number of this node: each of a cluster has its own, from 1.
    #[arg(long, value_name = "N")]
    id: Option<u16>,
    /// The folder with its data.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where other nodes reach it [default: 127.0.0.1:7402].
    #[arg(long, value_name = "ADDR")]
    peer: Option<String>,
    /// Where other nodes are told to reach it, if that is elsewhere.
    #[arg(long, value_name = "ADDR")]
    advertise: Option<String>,
    /// Where clients reach it [default: 127.0.0.1:7400].
    #[arg(long, value_name = "ADDR")]
    client: Option<String>,
    /// Where metrics and status can be had [default: 127.0.0.1:7401].
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Begin a new cluster, if the folder holds no node.
    #[arg(long, conflicts_with = "join")]
    bootstrap: bool,
    /// Join the cluster of the node there, if the folder holds no node.
    #[arg(long, value_name = "ADDR", num_args = 1.., value_delimiter = ',')]
    join: Vec<String>,
    /// How long a membership lasts without being renewed [default: 3s, or what the cluster has].
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    lease: Option<Duration>,
    /// How long a lock by SET is kept at most, and if no time is said [default: 1m]. So much longer others wait for a node that died
    /// and may have kept one.
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    compat_ttl: Option<Duration>,
    /// How long those who hold something have when it leaves [default: 5s].
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    grace: Option<Duration>,
    /// Let other machines reach it, although nothing is encrypted.
    #[arg(long)]
    insecure: bool,
    /// A file with the password that clients have to say [or the password itself in VEZ_PASSWORD].
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// The configuration [default: vez.toml, if it is here].
    #[arg(long, env = "VEZ_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Say where it can be reached as an object.
    #[arg(long)]
    json: bool,
    /// Go on when the terminal is closed.
    #[arg(long, hide = true)]
    detach: bool,
}

impl Args {
    /// Leaves the terminal that it was started from, if that is wanted, and whatever files it was handed: who waits for the end of
    /// those waits for others.
    pub(crate) fn detach(&self) -> Result<()> {
        if self.detach {
            rustix::process::setsid().context("cannot leave the terminal")?;
            let files = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
            let numbers: Vec<i32> = files.filter_map(|file| file.file_name().to_str()?.parse().ok()).collect();
            for number in numbers.into_iter().filter(|number| *number > 2) {
                let _ = nix::unistd::close(number); // The list of them is among them, and closed.
            }
        }
        Ok(())
    }

    pub(crate) async fn run(self) -> Result<ExitCode> {
        let config = Config::read(self.config.as_deref())?;
        let _log = log();
        let address = |said: Option<String>, configured: Option<String>, port: u16| {
            said.or(configured).unwrap_or_else(|| format!("127.0.0.1:{port}"))
        };
        let Some(id) = self.id.or(config.id) else { bail!("which node is it? say --id 1, or id = 1 in vez.toml") };
        let Some(data) = self.data.or(config.data) else {
            bail!("where is its data? say --data DIR, or data = \"DIR\" in vez.toml")
        };
        let data_is = data.clone();
        let mut builder = Node::builder(id, data)
            .client_addr(address(self.client, config.client, PORTS[0]))
            .http_addr(address(self.http, config.http, PORTS[1]))
            .peer_addr(address(self.peer, config.peer, PORTS[2]));
        let join = if self.join.is_empty() && !self.bootstrap { config.join } else { self.join };
        if self.bootstrap || config.bootstrap && join.is_empty() {
            builder = builder.bootstrap();
        } else {
            builder = builder.join(join);
        }
        if let Some(advertise) = self.advertise.or(config.advertise) {
            builder = builder.advertise(advertise);
        }
        if let Some(lease) = self.lease.or(config.lease) {
            builder = builder.lease(lease);
        }
        if let Some(ttl) = self.compat_ttl.or(config.compat_ttl) {
            builder = builder.compat_ttl(ttl);
        }
        if self.insecure || config.insecure {
            builder = builder.insecure();
        }
        let file = self.password_file.or(config.password_file);
        if let Some(password) = config::password(file.as_deref())? {
            builder = builder.password(password);
        }
        allow_many_connections();
        let node = builder.start().await?;
        if !self.detach {
            local::note_node(&data_is);
        }
        if let Err(error) = print(&greeting(&node, id, self.json)) {
            tell(format_args!("vez: {error:#}")); // It runs all the same.
        }
        serve(&node, self.grace.or(config.grace).unwrap_or(GRACE)).await
    }
}

fn greeting(node: &Node, id: u16, as_json: bool) -> String {
    let (client, http) = (node.client_addr().map(|at| at.to_string()), node.http_addr().map(|at| at.to_string()));
    let peer = node.peer_addr().to_string();
    if as_json {
        return format!("{}\n", json!({ "node": id, "client": client, "http": http, "peer": peer }));
    }
    let (client, http) = (client.unwrap_or_default(), http.unwrap_or_default());
    format!("node {id}: clients at {client}, http://{http}/v1/status, other nodes at {peer}\n")
}

/// Waits until the node has ended, or is told to leave.
async fn serve(node: &Node, grace: Duration) -> Result<ExitCode> {
    let mut stop = Stop::new()?;
    let ended = tokio::select! {
        ended = node.ended() => ended,
        () = stop.told() => {
            tell("vez: leaving; once more, and it ends at once");
            tokio::select! {
                ended = node.leave(grace) => ended,
                () = stop.told() => bail!("it has ended without leaving; what it held is free when its lease is over"),
            }
        }
    };
    match ended {
        Ended::Left => Ok(ExitCode::SUCCESS),
        ended => Err(ended.into()),
    }
}

/// A connection is an open file, and what a shell allows by default are few.
pub(crate) fn allow_many_connections() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }); // Then they stay few.
}

/// What happens goes to standard error, as long as this is kept; RUST_LOG says how much. A thread of its own writes it: a node does
/// not wait for who reads, or does not.
pub(crate) fn log() -> WorkerGuard {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    let (writer, guard) = tracing_appender::non_blocking(std::io::stderr());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    guard
}
