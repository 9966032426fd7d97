//! The crate `rslock`, unchanged, against the nodes of a cluster.
//!
//!   rslock host:port,host:port,…           all that it does, and one line `ok: N checks`
//!   rslock --kill host:port,host:port,…    takes a lock at the first node, says `holding`, waits for a line on standard input
//!                                          (that node is dead then), goes on at the others
//!   rslock --kept host:port,host:port,…    the same, and what was acquired at the first node is still its owner's
//!
//! The first check that fails is told on standard error, and the exit code is 1.
//!
//! A manager has one server here. It is made to ask several that know nothing of each other, and to count votes; the nodes of
//! a cluster are one server, and the second would say what the first has granted already.

use std::{
    process::exit,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use redis::aio::MultiplexedConnection;
use rslock::{Lock, LockError, LockManager};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    time::sleep,
};

/// Whatever takes longer does not come at all.
const LONG: Duration = Duration::from_secs(30);
const TTL: Duration = Duration::from_secs(10);
/// How long a lock lasts that is not released because its node was killed.
const PX: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);

static CHECKS: AtomicU32 = AtomicU32::new(0);

fn check(is_so: bool, sentence: &str) {
    CHECKS.fetch_add(1, Ordering::Relaxed);
    if !is_so {
        eprintln!("rslock: {sentence}");
        exit(1);
    }
}

fn is_refused<T>(result: Result<T, LockError>, sentence: &str) {
    check(matches!(result, Err(LockError::Unavailable)), sentence);
}

fn name(what: &str) -> String {
    format!("rslock/{}/{what}", std::process::id())
}

fn manager(address: &str, tries: u32) -> LockManager {
    let mut manager = LockManager::new(vec![format!("redis://{address}/")]);
    manager.set_retry(tries, PAUSE);
    manager
}

async fn connection(address: &str) -> MultiplexedConnection {
    let client = redis::Client::open(format!("redis://{address}/")).expect("it is an address");
    client.get_multiplexed_async_connection().await.expect("the node answers")
}

async fn ask<T: redis::FromRedisValue>(address: &str, words: &[&str]) -> T {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(word);
    }
    command.query_async(&mut connection(address).await).await.expect("it is answered")
}

/// Of several tries, the first that succeeds.
async fn patiently(manager: &LockManager, key: &str, ttl: Duration) -> Lock {
    let begin = Instant::now();
    loop {
        match manager.lock(key, ttl).await {
            Ok(lock) => return lock,
            Err(error) if begin.elapsed() > LONG => check(false, &format!("some time it is granted: {error}")),
            Err(_) => sleep(PAUSE).await,
        }
    }
}

async fn acquire_and_release(here: &str, there: &str) {
    let (mine, other) = (manager(here, 1), manager(there, 1));
    let key = name("plain");
    let lock = mine.lock(key.as_str(), TTL).await.expect("it is free");
    check(lock.val.len() == 20 && lock.validity_time > 5000, "it is acquired, for some time");
    check(ask::<Vec<u8>>(there, &["GET", &key]).await == lock.val, "its value, any bytes, is seen at another node");
    is_refused(other.lock(key.as_str(), TTL).await, "another does not get it");
    check(mine.is_freed(&lock).await.is_ok_and(|freed| !freed), "it is not freed yet");
    check(other.is_freed(&lock).await.is_ok_and(|freed| !freed), "nor for another node");

    let lock = mine.extend(&lock, 3 * TTL).await.expect("it is ours");
    let left: i64 = ask(there, &["PTTL", &key]).await;
    check(left > 20_000 && left <= 30_000, "extended by 30 s, it has these");
    mine.unlock(&lock).await;
    let freed = other.is_freed(&lock).await;
    check(matches!(freed, Err(LockError::RedisKeyNotFound)), "after the release it is gone");
    is_refused(mine.extend(&lock, TTL).await, "what was released cannot be extended");

    let guard = other.acquire(key.as_str(), TTL).await.expect("it is free");
    mine.unlock(&lock).await;
    check(matches!(mine.is_freed(&lock).await, Err(LockError::RedisKeyMismatch)), "a foreign release does nothing");
    guard.release().await;
    check(ask::<i64>(here, &["EXISTS", &key]).await == 0, "that of its owner does");
}

async fn expiry(here: &str, there: &str) {
    let key = name("expiry");
    let (mine, other) = (manager(here, 1), manager(there, 1));
    let begin = Instant::now();
    let lock = mine.lock(key.as_str(), Duration::from_secs(1)).await.expect("it is free");
    let next = patiently(&other, &key, TTL).await;
    check(begin.elapsed() >= Duration::from_secs(1), "nobody else gets it before its time is over");
    is_refused(mine.extend(&lock, TTL).await, "whose time is over cannot extend it");
    mine.unlock(&lock).await;
    check(other.is_freed(&next).await.is_ok_and(|freed| !freed), "and takes nothing away");
    next.release().await;
}

async fn blocking(here: &str, there: &str) {
    let key = name("blocking");
    let lock = manager(here, 1).lock(key.as_str(), TTL).await.expect("it is free");
    let waits = tokio::spawn({
        let (other, key) = (manager(there, 3), key.clone());
        async move { other.acquire(key.as_str(), TTL).await.expect("it is granted some time") }
    });
    sleep(10 * PAUSE).await;
    check(!waits.is_finished(), "one who waits does not get what is held");
    lock.release().await;
    let guard = waits.await.expect("it waits in peace");
    check(guard.lock.lock_manager.is_freed(&guard.lock).await.is_ok_and(|freed| !freed), "and gets it then");
    guard.release().await;
}

/// Reads, waits and writes under the lock, from several clients at several nodes: nobody's count may be lost.
async fn crowd(addresses: &[String]) {
    const EACH: u32 = 8;
    let count = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = addresses
        .iter()
        .chain(addresses)
        .map(|address| {
            let (manager, count) = (manager(address, 1), Arc::clone(&count));
            tokio::spawn(async move {
                for _ in 0..EACH {
                    let lock = patiently(&manager, &name("crowd"), 2 * TTL).await;
                    let before = count.load(Ordering::Relaxed);
                    sleep(Duration::from_millis(1)).await;
                    count.store(before + 1, Ordering::Relaxed);
                    lock.release().await;
                }
            })
        })
        .collect();
    let all = EACH * u32::try_from(tasks.len()).expect("they are few");
    for task in tasks {
        task.await.expect("it counts in peace");
    }
    let left = count.load(Ordering::Relaxed);
    check(left == all, &format!("of {all} that counted under the lock, {left} are left"));
}

async fn everything(addresses: &[String]) {
    let (here, there) = (&addresses[0], &addresses[addresses.len() - 1]);
    acquire_and_release(here, there).await;
    acquire_and_release(there, here).await;
    expiry(here, there).await;
    blocking(here, there).await;
    crowd(addresses).await;
    println!("ok: {} checks", CHECKS.load(Ordering::Relaxed));
}

async fn killed(addresses: &[String], kept: bool) {
    let (first, second) = (manager(&addresses[0], 1), manager(&addresses[1], 1));
    let (key, kept_key) = (name("killed"), name("own"));
    let own = if kept { Some(first.lock(kept_key.as_str(), 3 * TTL).await.expect("it is free")) } else { None };
    let over = Instant::now() + PX;
    let lock = first.lock(key.as_str(), PX).await.expect("it is free");
    println!("holding");
    let mut line = String::new();
    BufReader::new(tokio::io::stdin()).read_line(&mut line).await.expect("somebody says so");

    check(first.extend(&lock, TTL).await.is_err(), "the node is gone: a request fails");
    let next = patiently(&second, &key, TTL).await;
    check(Instant::now() >= over, "nobody else gets it before its time is over");
    let next = second.extend(&next, TTL).await.expect("it is a lock like any other");
    second.unlock(&next).await;
    if let Some(own) = own {
        is_refused(second.lock(kept_key.as_str(), TTL).await, "what was acquired at a node that is gone is kept");
        let own = second.extend(&own, TTL).await.expect("it is extended by another node");
        second.unlock(&own).await;
        let next = second.lock(kept_key.as_str(), TTL).await.expect("it was released by another node");
        second.unlock(&next).await;
    }
    everything(&addresses[1..]).await;
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let addresses = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    match &arguments[..] {
        [all] => everything(&addresses(all)).await,
        [how, all] if how == "--kill" || how == "--kept" => killed(&addresses(all), how == "--kept").await,
        _ => check(false, "write rslock [--kill|--kept] host:port,host:port,…"),
    }
}
