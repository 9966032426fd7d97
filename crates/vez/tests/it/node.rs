//! Nodes of one cluster, in one process, over real sockets and real disks.

use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;
use vez::{Ended, Failure, LockError, Name, Node, StartError};

const LEASE: Duration = Duration::from_millis(600);
const LONG: Duration = Duration::from_secs(30);

/// Some nodes, of one cluster.
struct Cluster {
    folder: TempDir,
    nodes: Vec<Node>,
}

impl Cluster {
    async fn of(nodes: u16) -> Self {
        let mut cluster = Self { folder: tempfile::tempdir().unwrap(), nodes: Vec::new() };
        for number in 1..=nodes {
            cluster.add(number).await;
        }
        cluster
    }

    fn builder(&self, number: u16) -> vez::Builder {
        Node::builder(number, self.folder.path().join(number.to_string())).client_addr("127.0.0.1:0")
    }

    async fn add(&mut self, number: u16) {
        let builder = self.builder(number);
        let builder = match self.nodes.first() {
            None => builder.bootstrap().lease(LEASE),
            Some(first) => builder.join([first.peer_addr().to_string()]),
        };
        let node = builder.start().await.unwrap();
        timeout(LONG, node.ready()).await.expect("it becomes a member");
        self.nodes.push(node);
    }
}

#[tokio::test]
async fn one_node_is_a_cluster() {
    let cluster = Cluster::of(1).await;
    let node = &cluster.nodes[0];
    let guard = node.lock("orders/42").await.unwrap();
    assert!(node.lock("orders/42").now().await.unwrap().is_none(), "it is held");
    assert!(!guard.is_lost() && guard.deadline().remaining() <= LEASE);
    let first = guard.fence();
    guard.release().await.unwrap();
    let second = node.lock("orders/42").now().await.unwrap().expect("it is free").fence();
    assert!(second > first);
}

#[tokio::test]
async fn a_lock_goes_from_node_to_node() {
    let cluster = Cluster::of(3).await;
    let mut last = None;
    for round in 0..30 {
        let node = &cluster.nodes[round % 3];
        let guard = timeout(LONG, node.lock("orders/42")).await.expect("in time").unwrap();
        assert!(Some(guard.fence()) > last, "round {round}");
        last = Some(guard.fence());
    }
}

#[tokio::test]
async fn a_folder_without_a_node_founds_nothing_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let error = Node::builder(1, folder.path()).start().await.unwrap_err();
    assert!(matches!(error, StartError::NoData(_)), "{error}");
    let error = Node::builder(1, folder.path()).bootstrap().peer_addr("0.0.0.0:0").start().await.unwrap_err();
    assert!(matches!(error, StartError::NotLoopback(_)), "{error}");
}

#[tokio::test]
async fn all_leave_and_come_back_with_larger_fences() {
    let mut cluster = Cluster::of(3).await;
    let before = cluster.nodes[1].lock("a").await.unwrap().fence();
    for node in cluster.nodes.drain(..).rev() {
        assert_eq!(timeout(LONG, node.leave(Duration::ZERO)).await.expect("in time"), Ended::Left);
    }
    let node = cluster.builder(1).start().await.unwrap();
    let after = timeout(LONG, node.lock("a")).await.expect("in time").unwrap().fence();
    assert!(after > before);
}

#[tokio::test]
async fn the_founder_finds_those_again_who_joined_it() {
    let mut cluster = Cluster::of(3).await;
    let founder = cluster.nodes.remove(0);
    assert_eq!(timeout(LONG, founder.leave(Duration::ZERO)).await.expect("in time"), Ended::Left);
    drop(founder);
    // Nobody tells it where the others are, and nobody misses it.
    let founder = cluster.builder(1).start().await.unwrap();
    timeout(LONG, founder.ready()).await.expect("it becomes a member");
    assert_eq!(founder.status().unwrap().members.len(), 3);
}

#[tokio::test]
async fn a_node_that_was_dropped_comes_back_when_its_lease_is_over() {
    let mut cluster = Cluster::of(1).await;
    let guard = cluster.nodes[0].lock("a").await.unwrap();
    let before = guard.fence();
    let node = cluster.nodes.remove(0);
    drop(node);
    timeout(LONG, guard.lost()).await.expect("what it held is lost");
    assert!(guard.is_lost());
    let again = loop {
        match cluster.builder(1).start().await {
            Ok(node) => break node,
            Err(StartError::Store(_)) => tokio::time::sleep(Duration::from_millis(5)).await, // It is being closed.
            Err(error) => panic!("{error}"),
        }
    };
    assert!(timeout(LONG, again.lock("a")).await.expect("in time").unwrap().fence() > before);
}

#[tokio::test]
async fn who_does_not_wait_any_more_has_no_place_in_the_line() {
    let cluster = Cluster::of(3).await;
    for (one, other) in [(0, 1), (1, 2), (2, 0)] {
        let guard = cluster.nodes[one].lock("a").await.unwrap();
        let waits = timeout(Duration::from_millis(20), cluster.nodes[other].lock("a")).await;
        assert!(waits.is_err(), "it is held");
        let known = cluster.nodes[other].show(&Name::new(b"a").unwrap()).await;
        assert_eq!(known.reports.iter().map(|report| report.waiters).sum::<usize>(), 0, "nobody waits");
        guard.release().await.unwrap();
        timeout(LONG, cluster.nodes[one].lock("a")).await.expect("nobody is in the way").unwrap();
    }
}

#[tokio::test]
async fn one_that_was_asleep_has_lost_and_comes_back() {
    let cluster = Cluster::of(1).await;
    let node = &cluster.nodes[0];
    let guard = node.lock("a").await.unwrap();
    // The node runs in this very thread.
    std::thread::sleep(2 * LEASE);
    assert!(guard.is_lost());
    let tried = node.lock("b").now().await;
    assert!(matches!(tried, Err(LockError::Refused(Failure::NoMember))), "{tried:?}");
    assert!(guard.release().await.is_err());
    timeout(LONG, node.lock("a")).await.expect("it comes back").unwrap();
}

#[tokio::test]
async fn what_cannot_be_is_refused_when_it_begins() {
    let cluster = Cluster::of(1).await;
    let folder = tempfile::tempdir().unwrap();
    let node = |number| Node::builder(number, folder.path()).bootstrap();
    assert!(matches!(node(0).start().await, Err(StartError::Zero)));
    for address in ["garbage", "127.0.0.1", ":7402", "127.0.0.1:99999"] {
        assert!(matches!(node(1).peer_addr(address).start().await, Err(StartError::NoAddress(_))), "{address}");
        assert!(matches!(Node::builder(1, folder.path()).join([address]).start().await, Err(StartError::NoAddress(_))));
    }
    assert!(matches!(node(1).join(["127.0.0.1:1"]).start().await, Err(StartError::BootstrapAndJoin)));
    let open = node(1).peer_addr("0.0.0.0:0").insecure().start().await;
    assert!(matches!(open, Err(StartError::Unspecified(_))));
    assert!(matches!(node(1).lease(Duration::from_secs(7200)).start().await, Err(StartError::Charter(_))));
    drop(node(1).start().await.unwrap());
    let other_lease = loop {
        match node(1).lease(2 * LEASE).start().await {
            Err(StartError::Store(_)) => tokio::time::sleep(Duration::from_millis(5)).await, // It is being closed.
            other => break other,
        }
    };
    assert!(matches!(other_lease, Err(StartError::OtherLease(..))), "{other_lease:?}");
    let other = loop {
        match node(2).start().await {
            Err(StartError::Store(_)) => tokio::time::sleep(Duration::from_millis(5)).await, // It is being closed.
            other => break other,
        }
    };
    assert!(matches!(other, Err(StartError::OtherNumber(_, 1, 2))), "{other:?}");
    // One that has joined nobody may be told otherwise.
    let joins = |lease| cluster.builder(4).join(["127.0.0.1:1"]).lease(lease);
    drop(joins(LEASE).start().await.unwrap());
    let joined = loop {
        match joins(2 * LEASE).start().await {
            Err(StartError::Store(_)) => tokio::time::sleep(Duration::from_millis(5)).await, // It is being closed.
            other => break other,
        }
    };
    assert!(joined.is_ok(), "{joined:?}");
    let joins =
        cluster.builder(3).join([cluster.nodes[0].peer_addr().to_string()]).lease(2 * LEASE).start().await.unwrap();
    assert!(matches!(timeout(LONG, joins.ended()).await, Ok(Ended::Refused { .. })), "it insists on another lease");
}
