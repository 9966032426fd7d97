//! A node that leaves: nobody else gets what a client of it may still believe to have.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
    time::timeout,
};
use vez::{Client, Ended, Failure, LockError, Node};

const LONG: Duration = Duration::from_secs(30);

/// One that leaves, and one that stays.
async fn two() -> (TempDir, Node, Node) {
    let (folder, leaves, stays, _) = two_with(Duration::from_millis(1500)).await;
    (folder, leaves, stays)
}

/// The same with a lease that the one that leaves does not know at first, and a client that has been connected to it since then.
async fn two_with(lease: Duration) -> (TempDir, Node, Node, TcpStream) {
    let folder = tempfile::tempdir().unwrap();
    let builder =
        |number: u16| Node::builder(number, folder.path().join(number.to_string())).client_addr("127.0.0.1:0");
    let stays = builder(1).bootstrap().lease(lease).start().await.unwrap();
    let leaves = builder(2).join([stays.peer_addr().to_string()]).start().await.unwrap();
    let mut early = TcpStream::connect(leaves.client_addr().unwrap()).await.unwrap();
    early.write_all(b"PING\r\n").await.unwrap();
    let mut answer = [0; 7];
    early.read_exact(&mut answer).await.unwrap();
    for node in [&stays, &leaves] {
        timeout(LONG, node.ready()).await.expect("it becomes a member");
    }
    (folder, leaves, stays, early)
}

/// Waits for `x` there; when it was had, and the node.
async fn wait_for_x(node: Node) -> (JoinHandle<Instant>, Arc<Node>) {
    let name = vez::Name::new(b"x").unwrap();
    let node = Arc::new(node);
    let waits = Arc::clone(&node);
    let waiting = tokio::spawn(async move {
        let _guard = waits.lock("x").await.unwrap();
        Instant::now()
    });
    while !node.show(&name).await.reports.iter().any(|report| report.waiters > 0) {
        tokio::task::yield_now().await;
    }
    (waiting, node)
}

/// A client that takes `x` and then neither reads nor closes has it until its deadline, whatever its node does.
async fn check_given_until_its_deadline(mut client: TcpStream, leaves: Node, stays: Node) {
    client.write_all(b"LOCK x\r\n").await.unwrap();
    let mut granted = [0; 27];
    client.read_exact(&mut granted).await.unwrap();
    let (next, _stays) = wait_for_x(stays).await;
    let sent = Instant::now();
    client.write_all(format!("EXTEND x {} 0\r\n", granted[5..25].escape_ascii()).as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\n") {
        answer.push(client.read_u8().await.unwrap());
    }
    let left: u64 = String::from_utf8(answer).unwrap().trim_start_matches(':').trim().parse().unwrap();
    // From here on it works.
    let left_cluster = timeout(LONG, leaves.leave(Duration::ZERO)).await.expect("in time");
    let had = timeout(LONG, next).await.expect("in time").unwrap();
    assert!(had >= sent + Duration::from_millis(left), "two had it at once");
    assert_eq!(left_cluster, Ended::Left);
}

#[tokio::test]
async fn a_client_that_does_not_listen_is_given_until_its_deadline() {
    let (_folder, leaves, stays) = two().await;
    let client = TcpStream::connect(leaves.client_addr().unwrap()).await.unwrap();
    check_given_until_its_deadline(client, leaves, stays).await;
}

#[tokio::test]
async fn one_that_came_before_its_node_knew_the_lease_is_given_as_long() {
    // Longer than the usual one, which the node goes by until it has heard of this.
    let (_folder, leaves, stays, early) = two_with(Duration::from_secs(6)).await;
    check_given_until_its_deadline(early, leaves, stays).await;
}

#[tokio::test]
async fn a_guard_that_is_in_use_is_waited_for() {
    let (_folder, leaves, stays) = two().await;
    let client = Client::connect(leaves.client_addr().unwrap().to_string()).await.unwrap();
    let guard = client.lock("x").await.unwrap();
    let (next, _stays) = wait_for_x(stays).await;
    let deadline = Instant::now() + guard.deadline().remaining();
    let (left_cluster, ()) = tokio::join!(leaves.leave(Duration::ZERO), guard.lost());
    let had = timeout(LONG, next).await.expect("in time").unwrap();
    assert!(had >= deadline, "two had it at once");
    assert_eq!(left_cluster, Ended::Left);
}

#[tokio::test]
async fn a_guard_that_is_dropped_is_not_waited_for() {
    let (_folder, leaves, stays) = two().await;
    let client = Client::connect(leaves.client_addr().unwrap().to_string()).await.unwrap();
    let guard = client.lock("x").await.unwrap();
    let (next, _stays) = wait_for_x(stays).await;
    let takes_note = async {
        guard.lost().await;
        drop(guard);
    };
    tokio::join!(leaves.leave(Duration::ZERO), takes_note);
    timeout(LONG, next).await.expect("in time").unwrap();
}

#[tokio::test]
async fn who_holds_something_is_warned() {
    let (_folder, leaves, _stays) = two().await;
    let client = Client::connect(leaves.client_addr().unwrap().to_string()).await.unwrap();
    let (remote, own) = (client.lock("x").await.unwrap(), leaves.lock("y").await.unwrap());
    let comes_to_an_end = async {
        remote.danger().await;
        own.danger().await;
        assert!(!remote.is_lost() && !own.is_lost());
        remote.release().await.unwrap();
        own.release().await.unwrap();
    };
    // With as much time as they want, and they want none.
    let (ended, ()) =
        timeout(LONG, async { tokio::join!(leaves.leave(2 * LONG), comes_to_an_end) }).await.expect("in time");
    assert_eq!(ended, Ended::Left);
}

#[tokio::test]
async fn who_asks_one_that_leaves_is_told_so() {
    let (_folder, leaves, _stays) = two().await;
    let held = leaves.lock("a").await.unwrap();
    let asks = async {
        while !matches!(leaves.lock("b").now().await, Err(LockError::Refused(Failure::Leaving))) {
            tokio::task::yield_now().await;
        }
        drop(held);
    };
    let (ended, ()) = timeout(LONG, async { tokio::join!(leaves.leave(LONG), asks) }).await.expect("in time");
    assert_eq!(ended, Ended::Left);
}

#[tokio::test]
async fn one_that_has_just_begun_leaves_too() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::builder(1, folder.path().join("1")).bootstrap().start().await.unwrap();
    assert_eq!(timeout(LONG, node.leave(Duration::ZERO)).await, Ok(Ended::Left));
}
