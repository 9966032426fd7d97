//! Clients that want the same again and again.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use vez::{Fence, Node};

/// So many a second.
pub(super) type Rate = f64;

const FENCE: usize = 20;
/// So often it is done before the clock is looked at, which takes as long as a part of it.
const BATCH: usize = 64;

/// Takes a lock and releases it, in this process.
pub(super) async fn in_process(node: &Arc<Node>, time: Duration) -> Result<Rate> {
    let begin = Instant::now();
    let node = Arc::clone(node);
    let again_and_again = async move {
        let mut count = 0;
        while begin.elapsed() < time {
            for _ in 0..BATCH {
                node.lock("bench/in-process").await?.release().await?;
            }
            count += BATCH;
        }
        Ok(count)
    };
    Ok(rate(together([again_and_again]).await?.into_iter().sum(), begin))
}

/// A byte that goes there and comes back.
pub(super) async fn ping_pong(time: Duration) -> Result<Rate> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let mut byte = [0];
        while stream.read(&mut byte).await? > 0 {
            stream.write_all(&byte).await?;
        }
        std::io::Result::Ok(())
    });
    let begin = Instant::now();
    let pings = async move {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (mut count, mut byte) = (0, [0]);
        while begin.elapsed() < time {
            stream.write_all(&byte).await?;
            stream.read_exact(&mut byte).await?;
            count += 1;
        }
        Ok(count)
    };
    Ok(rate(together([pings]).await?.into_iter().sum(), begin))
}

/// So many clients, each with a name of its own: how often one of them took it and gave it back.
pub(super) async fn own_names(address: SocketAddr, clients: usize, time: Duration) -> Result<Rate> {
    let begin = Instant::now();
    let client = |number| client(address, format!("bench/own/{number}"), begin + time);
    let all = together((0..clients).map(client)).await?;
    Ok(rate(all.iter().map(Vec::len).sum(), begin))
}

/// Clients at all these addresses that want the same name: how often it went from one to another.
pub(super) async fn one_name(addresses: Vec<SocketAddr>, time: Duration) -> Result<Rate> {
    let begin = Instant::now();
    let client = |address| client(address, "bench/one".into(), begin + time);
    let all = together(addresses.into_iter().map(client)).await?;
    Ok(rate(handovers(all), begin))
}

/// Runs all of them at once.
pub(super) async fn together<T: Send + 'static>(
    workers: impl IntoIterator<Item = impl Future<Output = Result<T>> + Send + 'static>,
) -> Result<Vec<T>> {
    let mut running: JoinSet<Result<T>> = workers.into_iter().collect();
    let mut all = Vec::new();
    while let Some(done) = running.join_next().await {
        all.push(done.context("a worker failed")??);
    }
    Ok(all)
}

pub(super) fn rate(count: usize, begin: Instant) -> Rate {
    count as f64 / begin.elapsed().as_secs_f64()
}

/// How often the next grant was another's.
fn handovers(grants: Vec<Vec<Fence>>) -> usize {
    let of = |(worker, grants): (usize, Vec<Fence>)| grants.into_iter().map(move |fence| (fence, worker));
    let mut all: Vec<(Fence, usize)> = grants.into_iter().enumerate().flat_map(of).collect();
    all.sort_unstable();
    all.windows(2).filter(|two| two[0].1 != two[1].1).count()
}

async fn client(address: SocketAddr, name: String, end: Instant) -> Result<Vec<Fence>> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let lock = format!("*2\r\n$4\r\nLOCK\r\n${}\r\n{name}\r\n", name.len());
    let unlock = format!("*3\r\n$6\r\nUNLOCK\r\n${}\r\n{name}\r\n$20\r\n", name.len());
    let (mut grants, mut answer) = (Vec::new(), [0; 64]);
    while Instant::now() < end {
        stream.write_all(lock.as_bytes()).await?;
        let granted = &mut answer[..b"$20\r\n".len() + FENCE + 2];
        stream.read_exact(granted).await?;
        ensure!(granted.starts_with(b"$20\r\n"), "not granted: {}", granted.escape_ascii());
        grants.push(str::from_utf8(&granted[5..5 + FENCE])?.parse()?);
        let request = [unlock.as_bytes(), &granted[5..]].concat();
        stream.write_all(&request).await?;
        let released = &mut answer[..b"+OK\r\n".len()];
        stream.read_exact(released).await?;
        ensure!(released == b"+OK\r\n", "not released: {}", released.escape_ascii());
    }
    Ok(grants)
}

/// A lock that each of the nodes wants, again and again: how often it went from one to another.
pub(super) async fn between_nodes(nodes: &[Arc<Node>], time: Duration) -> Result<Rate> {
    let begin = Instant::now();
    let all = together(nodes.iter().map(|node| worker(Arc::clone(node), "bench/handover", begin + time))).await?;
    Ok(rate(handovers(all), begin))
}

async fn worker(node: Arc<Node>, name: &'static str, end: Instant) -> Result<Vec<Fence>> {
    let mut grants = Vec::new();
    while Instant::now() < end {
        let guard = node.lock(name).await?;
        grants.push(guard.fence());
        guard.release().await?;
    }
    Ok(grants)
}
