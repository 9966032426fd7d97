//! `vez evict`: a node that does not go by itself.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::timeout;

use crate::machines::{LONG, Machines, vez};

const LEASE: Duration = Duration::from_millis(1500);

async fn evict(machines: &Machines, asked: u16, words: &[&str]) -> (Option<i32>, String) {
    let mut command = vez();
    command.args(["evict", "--addr", &machines.node(asked).client]).args(words);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[tokio::test]
async fn one_that_is_evicted_has_lost_what_it_held() {
    let machines = Machines::new(3, LEASE).await;
    let held = machines.lock(3, "t").await;
    let (code, words) = evict(&machines, 1, &["3"]).await;
    assert_eq!((code, words.starts_with("vez: node 3 has gone")), (Some(0), true), "{words}");
    timeout(LONG, held.lost()).await.expect("it is told");
    assert!(machines.lock(1, "t").await.fence() > held.fence());
    // It runs, and joins again.
    machines.ready(3).await;
    // The number may be written as an id, and the node may be the leader, or the one that is asked.
    let leader = machines.leader().await;
    let status = machines.node(leader).status().await.unwrap();
    let id = status["leader_id"].as_str().unwrap();
    assert_eq!(evict(&machines, leader, &[id]).await.0, Some(0));
    let wrong = evict(&machines, leader % 3 + 1, &["9"]).await;
    assert_eq!(wrong.0, Some(1));
    assert!(wrong.1.starts_with("vez: there is no node 9; there are "), "{}", wrong.1);
}

#[tokio::test]
async fn an_eviction_that_nobody_can_decide_is_not_called_done() {
    let machines = Machines::new(3, LEASE).await;
    let leader = machines.leader().await;
    let (asked, other) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    for stopped in [leader, other] {
        machines.node(stopped).send(Signal::STOP);
    }
    let (code, words) = evict(&machines, asked, &["--wait", "3s", &other.to_string()]).await;
    for stopped in [leader, other] {
        machines.node(stopped).send(Signal::CONT);
    }
    assert_eq!((code, words.contains("is still there after 3s")), (Some(1), true), "{words}");
}
