//! Nodes that are killed, stopped and restarted.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use vez::fence::Register;

use crate::machines::{LONG, Machines, eventually};

const LEASE: Duration = Duration::from_millis(1500);

/// How long it took until a waiter on `waits` had the lock of one whose node was killed, in leases.
async fn leases_until_freed(machines: &mut Machines, killed: u16, waits: u16) -> f64 {
    let held = machines.lock(killed, "t").await;
    let client = machines.client(waits).await;
    let waiter = tokio::spawn(async move { client.lock("t").await });
    machines.waiters(waits, "t", 1).await;
    let begin = Instant::now();
    machines.nodes[usize::from(killed) - 1].kill();
    let next = timeout(LONG, waiter).await.expect("it is its turn some time").unwrap().unwrap();
    let took = begin.elapsed().as_secs_f64() / LEASE.as_secs_f64();
    assert!(next.fence() > held.fence());
    timeout(LONG, held.lost()).await.expect("whoever held it hears of it");
    next.release().await.unwrap();
    machines.restart(killed);
    machines.ready(killed).await;
    took
}

/// The machine may be busy with something else: of some attempts, one is not disturbed.
async fn check_freed(mut killed: impl AsyncFnMut(&Machines) -> u16) {
    let mut machines = Machines::new(3, LEASE).await;
    let mut all = Vec::new();
    for _ in 0..4 {
        let killed = killed(&machines).await;
        let took = leases_until_freed(&mut machines, killed, killed % 3 + 1).await;
        if took <= 1.5 {
            return;
        }
        all.push(took);
    }
    panic!("it took {all:?} leases");
}

#[tokio::test]
async fn what_a_killed_node_held_is_free_after_a_lease_and_a_half() {
    check_freed(async |machines| machines.leader().await % 3 + 1).await;
}

#[tokio::test]
async fn what_a_killed_leader_held_is_free_after_a_lease_and_a_half() {
    check_freed(async |machines| machines.leader().await).await;
}

#[tokio::test]
async fn one_that_was_asleep_past_its_lease_has_lost_and_the_resource_refuses_it() {
    let machines = Machines::new(3, LEASE).await;
    let sleeper = machines.leader().await % 3 + 1;
    let mut resource = Register::default();
    let held = machines.lock(sleeper, "t").await;
    resource.admit("t", held.fence()).unwrap();
    machines.node(sleeper).send(Signal::STOP);
    let next = machines.lock(sleeper % 3 + 1, "t").await;
    resource.admit("t", next.fence()).unwrap();
    machines.node(sleeper).send(Signal::CONT);
    timeout(LONG, held.lost()).await.expect("it hears of it");
    assert!(resource.admit("t", held.fence()).is_err(), "and if it had not, the resource would know");
    assert!(held.release().await.is_err());
    machines.ready(sleeper).await;
    next.release().await.unwrap();
    assert!(machines.lock(sleeper, "t").await.fence() > resource_fence(&mut resource));
}

/// What a client of its node that does nothing hears when that wakes up.
#[tokio::test]
async fn one_that_was_asleep_past_its_lease_tells_its_clients() {
    let machines = Machines::new(3, LEASE).await;
    let sleeper = machines.leader().await % 3 + 1;
    let mut client = TcpStream::connect(&machines.node(sleeper).client).await.unwrap();
    client.write_all(b"LOCK t\r\nHELLO 3\r\n").await.unwrap();
    let mut granted = [0; 27];
    client.read_exact(&mut granted).await.unwrap();
    machines.node(sleeper).send(Signal::STOP);
    let _next = machines.lock(sleeper % 3 + 1, "t").await;
    machines.node(sleeper).send(Signal::CONT);
    let mut told = String::new();
    let _ = timeout(LONG, client.read_to_string(&mut told)).await.expect("its connection ends");
    let lost = format!(">3\r\n$4\r\nlost\r\n$1\r\nt\r\n{}", str::from_utf8(&granted).unwrap());
    assert!(told.ends_with(&lost), "{told}");
}

#[tokio::test]
async fn one_that_was_asleep_past_its_lease_does_not_say_that_a_client_has_it_still() {
    let machines = Machines::new(3, LEASE).await;
    let sleeper = machines.leader().await % 3 + 1;
    let mut client = TcpStream::connect(&machines.node(sleeper).client).await.unwrap();
    client.write_all(b"LOCK t\r\n").await.unwrap();
    let mut granted = [0; 27];
    client.read_exact(&mut granted).await.unwrap();
    machines.node(sleeper).send(Signal::STOP);
    let _next = machines.lock(sleeper % 3 + 1, "t").await;
    // It is the first that it hears when it wakes up.
    client.write_all(b"LOCK t WAIT 0\r\n").await.unwrap();
    machines.node(sleeper).send(Signal::CONT);
    let mut told = String::new();
    let _ = timeout(LONG, client.read_to_string(&mut told)).await.expect("its connection ends");
    assert!(told.is_empty() || told.starts_with("-LOST "), "{told}");
}

#[tokio::test]
async fn a_node_hears_of_another_cluster() {
    let mut machines = Machines::new(3, LEASE).await;
    assert_eq!(machines.node(1).status().await.unwrap()["strangers"].as_array().unwrap().len(), 0);
    let cluster = machines.node(2).status().await.unwrap()["cluster"].clone();
    machines.nodes[0].kill();
    std::fs::remove_dir_all(machines.file("1")).unwrap();
    // It should have joined; it founds a cluster of its own.
    machines.restart(1);
    let other = async |number: u16| machines.node(number).status().await.map(|status| status["strangers"][0].clone());
    eventually(async || other(1).await.is_some_and(|stranger| stranger["cluster"] == cluster)).await;
    // And those that it left know too.
    let theirs = machines.node(1).status().await.unwrap()["cluster"].clone();
    eventually(async || other(2).await.is_some_and(|stranger| stranger["cluster"] == theirs)).await;
}

/// The highest fence that a resource has seen.
fn resource_fence(resource: &mut Register) -> vez::Fence {
    let stale = resource.admit("t", "0".parse().unwrap()).unwrap_err();
    stale.seen
}

#[tokio::test]
async fn fences_grow_when_all_are_killed_and_restarted() {
    let mut machines = Machines::new(3, LEASE).await;
    let mut highest = machines.lock(1, "t").await.fence();
    for round in 0..2 {
        for node in &mut machines.nodes {
            node.kill();
        }
        for number in 1..=3 {
            machines.restart(number);
        }
        for number in 1..=3 {
            let fence = machines.lock(number, "t").await.fence();
            assert!(fence > highest, "round {round}, node {number}: {fence} after {highest}");
            highest = fence;
        }
    }
    eventually(async || {
        machines.node(1).status().await.is_some_and(|status| status["members"].as_array().unwrap().len() == 3)
    })
    .await;
}
