//! Many names, each used once: nothing of them stays.
//!
//! ```text
//! cargo run --release -p vez --example names -- 10000000
//! ```
//!
//! Three nodes in one process. What is counted is what is allocated and not freed, before and after; it ends with 1 if that has grown by
//! more than a tenth.

use std::{
    alloc::System,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use vez::Node;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// So many use names at the same time.
const WORKERS: u64 = 64;
/// A name that is not used for so long is forgotten.
const IDLE: Duration = Duration::from_secs(1);

/// What may be allocated in the end, beside what was before.
#[allow(dead_code, reason = "the tests use few names, and leave some room")]
const MOST_GROWTH: f64 = 1.1;

/// What came out.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What was allocated after a first round of a tenth of them.
    pub base_bytes: usize,
    /// What was allocated at the end of the last round, while names were still known.
    pub busy_bytes: usize,
    /// What was allocated when all was forgotten.
    pub rest_bytes: usize,
    /// What the system counts, at the end.
    pub resident_bytes: usize,
    /// How long it took.
    pub time: Duration,
}

/// Uses so many names, once each, on three nodes.
///
/// # Errors
/// If the nodes cannot be started.
pub(crate) async fn run(names: u64) -> Result<Outcome, Box<dyn std::error::Error + Send + Sync>> {
    let folder = tempfile::tempdir()?;
    let mut nodes: Vec<Arc<Node>> = Vec::new();
    for number in 1..=3 {
        let builder = Node::builder(number, folder.path().join(number.to_string())).idle(IDLE);
        let builder = match nodes.first() {
            None => builder.bootstrap(),
            Some(first) => builder.join([first.peer_addr().to_string()]),
        };
        nodes.push(Arc::new(builder.start().await?));
    }
    for node in &nodes {
        node.ready().await;
    }
    let begin = Instant::now();
    // What is allocated once, for good, is not counted: buffers, tables of a size that is needed again and again.
    let next = Arc::new(AtomicU64::new(0));
    use_names(&nodes, &next, names / 10).await?;
    forgotten(&nodes).await;
    let base_bytes = live_bytes();
    use_names(&nodes, &next, names).await?;
    let busy_bytes = live_bytes();
    forgotten(&nodes).await;
    Ok(Outcome {
        base_bytes,
        busy_bytes,
        rest_bytes: live_bytes(),
        resident_bytes: resident_bytes(),
        time: begin.elapsed(),
    })
}

async fn use_names(
    nodes: &[Arc<Node>],
    next: &Arc<AtomicU64>,
    end: u64,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let (node, next) = (Arc::clone(&nodes[worker as usize % nodes.len()]), Arc::clone(next));
        workers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return Ok::<_, vez::LockError>(());
                }
                drop(node.lock(format!("name/{number:016}")).await?);
            }
        });
    }
    while let Some(done) = workers.join_next().await {
        done??;
    }
    next.store(end, Ordering::Relaxed);
    Ok(())
}

/// Waits until no node knows any name.
async fn forgotten(nodes: &[Arc<Node>]) {
    let knows = |node: &Arc<Node>| node.status().is_none_or(|status| (status.names, status.unacknowledged) != (0, 0));
    while nodes.iter().any(knows) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn live_bytes() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

#[allow(dead_code, reason = "the tests call what is above")]
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    use std::io::Write;
    let names = std::env::args().nth(1).map_or(Ok(1_000_000), |names| names.parse())?;
    let outcome = run(names).await?;
    let megabytes = |bytes: usize| bytes as f64 / 1e6;
    writeln!(
        std::io::stdout(),
        "{names} names in {:.0} s: {:.2} MB allocated after a tenth of them, {:.1} MB when the last was used, {:.2} MB when all were forgotten; {:.0} MB resident",
        outcome.time.as_secs_f64(),
        megabytes(outcome.base_bytes),
        megabytes(outcome.busy_bytes),
        megabytes(outcome.rest_bytes),
        megabytes(outcome.resident_bytes),
    )?;
    if outcome.rest_bytes as f64 > outcome.base_bytes as f64 * MOST_GROWTH {
        return Err("something of them stays: it is more than a tenth above what it was".into());
    }
    Ok(())
}
