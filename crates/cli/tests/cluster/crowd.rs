//! More connections than a process may have.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::timeout,
};
use vez::Client;

use crate::machines::{LONG, Machines, eventually, processor};

const LEASE: Duration = Duration::from_millis(1500);
/// What the process may open; half of that are clients.
const FILES: u32 = 128;

/// Connects to a port very often. Those that stay, and what the last one is told.
async fn crowd(address: &str) -> (Vec<TcpStream>, String) {
    let mut crowd = Vec::new();
    for _ in 0..FILES {
        crowd.push(TcpStream::connect(address).await.unwrap());
    }
    let (mut last, mut told) = (crowd.pop().unwrap(), String::new());
    // It is closed with a word that was not read yet, if it is.
    let _ = timeout(LONG, last.read_to_string(&mut told)).await.expect("it is closed");
    (crowd, told)
}

/// Whether the second node says by HTTP that it is ready.
async fn is_ready(machines: &Machines) -> bool {
    let mut reader = TcpStream::connect(&machines.node(2).http).await.unwrap();
    let _ = reader.write_all(b"GET /readyz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").await;
    let mut ready = String::new();
    // It may be closed with something unread.
    let _ = timeout(LONG, reader.read_to_string(&mut ready)).await.expect("it answers");
    ready.ends_with("ready\n")
}

#[tokio::test]
async fn those_who_ask_and_do_not_read_are_not_kept() {
    let _processor = processor().await;
    let mut machines = Machines::new(1, LEASE).await;
    let node = machines.start_limited(2, FILES);
    machines.nodes.push(node);
    machines.ready(2).await;
    let mut crowd = JoinSet::new();
    for _ in 0..FILES {
        let mut stream = TcpStream::connect(&machines.node(2).http).await.unwrap();
        crowd.spawn(async move {
            let requests = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n".repeat(1 << 16);
            let _ = stream.write_all(&requests).await;
            std::future::pending::<()>().await; // It is kept, and not read from.
        });
    }
    eventually(async || !is_ready(&machines).await).await;
    eventually(async || is_ready(&machines).await).await;
}

#[tokio::test]
async fn those_who_are_too_many_do_not_disturb_the_others() {
    let mut machines = Machines::new(1, LEASE).await;
    let node = machines.start_limited(2, FILES);
    machines.nodes.push(node);
    machines.ready(2).await;
    let client = Client::connect(&machines.node(2).client).await.unwrap();
    let held = client.lock("t").await.unwrap();

    let (_clients, told) = crowd(&machines.node(2).client).await;
    assert_eq!(told, "-ERR too many clients are connected; close some, or connect to another node\r\n");
    assert!(is_ready(&machines).await);

    let (_readers, told) = crowd(&machines.node(2).http).await;
    assert!(told.starts_with("HTTP/1.1 503 "), "{told}");
    let (_strangers, told) = crowd(&machines.node(2).peer).await;
    assert_eq!(told, "");
    // What it held it holds still, and a node that comes now is heard.
    assert!(!held.is_lost());
    held.release().await.unwrap();
    let node = machines.start(3, &[]);
    machines.nodes.push(node);
    machines.ready(3).await;
    let fence = machines.lock(3, "t").await.fence();
    assert!(timeout(LONG, client.lock("t")).await.expect("in time").unwrap().fence() > fence);
}
