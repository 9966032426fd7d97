//! The same clients, who lock as libraries for Redis do, at a Redis server and at nodes.

use std::{
    ffi::OsString,
    net::SocketAddr,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpStream, lookup_host},
    process::{Child, Command},
    time::sleep,
};
use vez::Client;

use super::{CONNECTIONS, NODES, Pair, ROUNDS, in_turns, load, pair};
use crate::{
    output::{progress, thousands},
    service::child,
};

/// So many want the same name.
const CONTENDERS: usize = 8;
/// As the documentation of Redis has it.
const COMPARE_AND_DELETE: &str =
    r#"if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end"#;
/// Nothing takes so long, and nothing is kept for longer than a lease library would.
const PX: &str = "10000";
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(10);

/// What was measured, a second, beside Redis.
pub(super) struct Compared {
    version: String,
    one: Pair,
    many: Pair,
    contended: Pair,
    spread: Pair,
}

/// Nodes, each a process of its own in a session of its own, as a Redis server is: some kernels share the processors out among
/// sessions. They end with this.
struct Nodes {
    _children: Vec<Child>,
    clients: Vec<SocketAddr>,
}

/// Measures both, in turns.
pub(super) async fn compare(redis: &str, folder: &Path, time: Duration) -> Result<Compared> {
    let redis = lookup_host(redis).await.ok().and_then(|mut found| found.next());
    let redis = redis.context("that is no address of a Redis server; write HOST:PORT, such as 127.0.0.1:6379")?;
    let version = version(redis).await?;
    let nodes = Nodes::start(folder).await?;
    let node = nodes.clients[0];
    let bar = progress((ROUNDS * 8) as u64, "measurements");
    let (mut one, mut many, mut contended, mut spread) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let own = |address, clients| own_names(address, clients, time);
        one.push(in_turns(round, own(node, 1), own(redis, 1)).await?);
        many.push(in_turns(round, own(node, CONNECTIONS), own(redis, CONNECTIONS)).await?);
        let same = |addresses| one_name(addresses, time);
        contended.push(in_turns(round, same(vec![node; CONTENDERS]), same(vec![redis; CONTENDERS])).await?);
        let everywhere = nodes.clients.iter().copied().cycle().take(CONTENDERS).collect();
        spread.push(in_turns(round, same(everywhere), same(vec![redis; CONTENDERS])).await?);
        bar.inc(8);
    }
    bar.finish_and_clear();
    Ok(Compared { version, one: pair(one), many: pair(many), contended: pair(contended), spread: pair(spread) })
}

/// What it is, if it is a Redis server.
async fn version(redis: SocketAddr) -> Result<String> {
    let mut stream = TcpStream::connect(redis).await.with_context(|| {
        format!("nobody answers at {redis}; start a Redis server there, such as `redis-server --port {}`", redis.port())
    })?;
    stream.write_all(b"INFO server\r\n").await?;
    let (mut reader, mut line) = (BufReader::new(stream), String::new());
    while reader.read_line(&mut line).await? > 0 && !line.contains("_version:") && !line.starts_with('-') {
        line.clear();
    }
    match line.trim_end().split_once(':') {
        Some(("redis_version", version)) => Ok(version.to_owned()),
        Some(("vez_version", _)) => bail!("what answers at {redis} is a node of vez; say where a Redis server is"),
        _ => bail!("what answers at {redis} is no Redis server, or wants a password: {}", line.trim_end()),
    }
}

impl Nodes {
    async fn start(folder: &Path) -> Result<Self> {
        let (mut children, mut clients, mut first) = (Vec::new(), Vec::new(), None::<String>);
        for number in 1..=NODES {
            let words = ["node", "--detach", "--json", "--id", &number.to_string(), "--data"].map(OsString::from);
            let this = std::env::current_exe()?.into_os_string();
            // In its own session it does not hear when a terminal is closed. So it dies with this process, whatever ends that.
            let mut command = Command::from(child::command(&[&[this], &words[..]].concat())?);
            command.arg(folder.join(number.to_string()));
            command.args(["--client", "127.0.0.1:0", "--http", "127.0.0.1:0", "--peer", "127.0.0.1:0"]);
            match &first {
                None => command.arg("--bootstrap"),
                Some(first) => command.args(["--join", first.as_str()]),
            };
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
            // Nothing of what surrounds it is meant for it.
            command.env_remove("VEZ_CONFIG").env_remove("VEZ_PASSWORD").current_dir(std::env::temp_dir());
            let mut child = command.spawn().context("cannot start a node")?;
            let mut line = String::new();
            let out = child.stdout.take().context("a node says nothing")?;
            BufReader::new(out).read_line(&mut line).await?;
            let greeting: Value = serde_json::from_str(&line).context("a node does not begin")?;
            let at = |key: &str| greeting[key].as_str().map(str::to_owned).context("a node does not say where it is");
            first.get_or_insert(at("peer")?);
            ready(&at("client")?).await?;
            clients.push(at("client")?.parse()?);
            children.push(child);
        }
        Ok(Self { _children: children, clients })
    }
}

/// Waits until a node serves everything.
async fn ready(address: &str) -> Result<()> {
    let begin = Instant::now();
    loop {
        let status = async { Client::connect(address).await?.call(&[b"STATUS"]).await };
        if status.await.is_ok_and(|status| status["state"] == "ready") {
            return Ok(());
        }
        ensure!(begin.elapsed() < PATIENCE, "a node does not become ready");
        sleep(PAUSE).await;
    }
}

/// A client that locks as libraries do.
struct Locker {
    stream: TcpStream,
    set: Vec<u8>,
    delete: Vec<u8>,
    answer: Vec<u8>,
}

impl Locker {
    async fn new(address: SocketAddr, name: &str, value: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut locker = Self { stream, set: Vec::new(), delete: Vec::new(), answer: Vec::with_capacity(128) };
        locker.ask(&request(&["SCRIPT", "LOAD", COMPARE_AND_DELETE])).await?;
        // A length, and then the sum.
        let sum = if locker.answer.ends_with(b"$40\r\n") { locker.hear().await? } else { locker.answer.clone() };
        let sum = str::from_utf8(&sum)?.trim().trim_start_matches("$40\r\n").to_owned();
        locker.set = request(&["SET", name, value, "NX", "PX", PX]);
        locker.delete = request(&["EVALSHA", &sum, "1", name, value]);
        Ok(locker)
    }

    /// Whether it is had.
    async fn lock(&mut self) -> Result<bool> {
        let set = std::mem::take(&mut self.set);
        self.ask(&set).await?;
        self.set = set;
        match &self.answer[..] {
            b"+OK\r\n" => Ok(true),
            b"$-1\r\n" => Ok(false),
            other => bail!("not locked: {}", other.escape_ascii()),
        }
    }

    async fn unlock(&mut self) -> Result<()> {
        let delete = std::mem::take(&mut self.delete);
        self.ask(&delete).await?;
        self.delete = delete;
        ensure!(self.answer == b":1\r\n", "not unlocked: {}", self.answer.escape_ascii());
        Ok(())
    }

    async fn ask(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await?;
        self.answer = self.hear().await?;
        Ok(())
    }

    /// The next that is said, up to the end of a line.
    async fn hear(&mut self) -> Result<Vec<u8>> {
        let mut heard = std::mem::take(&mut self.answer);
        heard.clear();
        while !heard.ends_with(b"\r\n") {
            ensure!(self.stream.read_buf(&mut heard).await? > 0, "it has hung up");
        }
        Ok(heard)
    }
}

fn request(words: &[&str]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request += &format!("${}\r\n{word}\r\n", word.len());
    }
    request.into_bytes()
}

/// So many clients, each with a name of its own: how often one of them took it and gave it back.
async fn own_names(address: SocketAddr, clients: usize, time: Duration) -> Result<load::Rate> {
    let begin = Instant::now();
    let names = (0..clients).map(|number| (address, format!("bench/set/{number}"), number));
    again_and_again(names.collect(), begin, begin + time).await
}

/// Clients that want the same name, and try until they have it: how often one of them did.
async fn one_name(addresses: Vec<SocketAddr>, time: Duration) -> Result<load::Rate> {
    let begin = Instant::now();
    let names = addresses.into_iter().enumerate().map(|(number, at)| (at, "bench/same".to_owned(), number));
    again_and_again(names.collect(), begin, begin + time).await
}

async fn again_and_again(
    clients: Vec<(SocketAddr, String, usize)>,
    begin: Instant,
    end: Instant,
) -> Result<load::Rate> {
    let all = load::together(clients.into_iter().map(move |it| one_client(it, end))).await?;
    Ok(load::rate(all.into_iter().sum(), begin))
}

async fn one_client((address, name, number): (SocketAddr, String, usize), end: Instant) -> Result<usize> {
    let mut locker = Locker::new(address, &name, &format!("client {number:06} of the bench")).await?;
    let mut count = 0;
    while Instant::now() < end {
        if locker.lock().await? {
            locker.unlock().await?;
            count += 1;
        }
    }
    Ok(count)
}

impl Compared {
    pub(super) fn as_json(&self) -> String {
        let pair = |pair: &Pair| json!({ "per_second": pair.ours, "redis_per_second": pair.bare, "ratio": pair.ratio });
        let object = json!({
            "redis_version": self.version,
            "set_and_delete_one_connection": pair(&self.one),
            "set_and_delete_64_connections": pair(&self.many),
            "one_name_8_connections": pair(&self.contended),
            "one_name_8_connections_at_3_nodes": pair(&self.spread),
        });
        format!("{object:#}\n")
    }

    pub(super) fn words(&self) -> String {
        let pair = |what: &str, pair: &Pair| {
            let (ours, redis) = (thousands(pair.ours as u64), thousands(pair.bare as u64));
            format!("{what:<52}{ours:>10}{redis:>14}{:>9.2}\n", pair.ratio)
        };
        let redis = format!("redis {}", self.version);
        let mut out = format!("{:<52}{:>10}{redis:>14}{:>9}\n", "a second", "vez", "ratio");
        out += &pair("SET NX and compare-and-delete, 1 connection", &self.one);
        out += &pair("SET NX and compare-and-delete, 64 connections", &self.many);
        out += &pair("one name that 8 connections want", &self.contended);
        out += &pair("the same, with those of vez spread over 3 nodes", &self.spread);
        out
    }
}
