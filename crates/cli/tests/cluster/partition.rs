//! Nodes that cannot hear each other.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use vez::{Client, ClientError};

use crate::{
    machines::{LONG, eventually},
    network::Network,
};

const LEASE: Duration = Duration::from_millis(1500);

/// Tries until it is answered: whether the lock was free.
async fn try_lock(client: &Client, name: &str) -> bool {
    match client.lock(name).now().await {
        Ok(guard) => guard.is_some(),
        Err(ClientError::Refused { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_minority_grants_nothing_and_the_majority_goes_on() {
    let network = Network::new(3, LEASE).await;
    let alone = network.machines.leader().await % 3 + 1;
    let (one, other) = (alone % 3 + 1, (alone + 1) % 3 + 1);
    let (inside, outside) = (network.machines.client(alone).await, network.machines.client(one).await);
    // Its token stays with the one that will be alone: no message would be needed to take it again.
    let held = network.machines.lock(alone, "t").await;
    let warm = inside.lock("warm").await.unwrap();
    warm.release().await.unwrap();
    network.cut(alone, one);
    network.cut(alone, other);
    let begin = Instant::now();
    let majority = async {
        let next = network.machines.lock(one, "t").await;
        assert!(held.is_lost(), "two have it at once");
        assert!(next.fence() > held.fence());
        let fence = next.fence();
        drop(next);
        assert!(network.machines.lock(other, "t").await.fence() > fence);
    };
    // What was asked for later than a lease after the cut is not granted there, for as long as it lasts.
    let minority = async {
        let mut late = 0;
        while late < 50 {
            let is_late = begin.elapsed() > LEASE;
            let granted = try_lock(&inside, "warm").await;
            assert!(!(granted && is_late), "the minority has granted something");
            late += u32::from(is_late);
            sleep(LEASE / 50).await;
        }
    };
    tokio::join!(majority, minority);
    timeout(LONG, held.lost()).await.expect("it hears of it");
    network.heal();
    let back = timeout(LONG, inside.lock("t")).await.expect("it comes back").unwrap();
    assert!(back.fence() > held.fence());
    drop(back);
    outside.lock("t").await.unwrap();
}

#[tokio::test]
async fn a_bridge_partition_ends_by_itself() {
    let network = Network::new(3, LEASE).await;
    // Two that do not hear each other, and one that hears both: somebody has to go, so that the others can go on.
    let leader = network.machines.leader().await;
    let (one, other) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    let before = network.machines.members(leader).await;
    assert_eq!(before.len(), 3);
    network.cut(one, other);
    // All want something of all: of what the others are home to, and of what they had last.
    let names: Vec<String> = (0..20).map(|number| format!("bridge/{number}")).collect();
    let served = async |number: u16| {
        let client = network.machines.client(number).await;
        for name in &names {
            while timeout(LONG, client.lock(name)).await.expect("in the end it is served").is_err() {
                sleep(LEASE / 50).await; // It was let go, or its node settles in a new view.
            }
        }
    };
    // It may come back at once, as another.
    let one_goes = eventually(async || {
        let members = network.machines.members(leader).await;
        !members.is_empty() && members != before
    });
    tokio::select! {
        () = one_goes => {}
        _ = async { tokio::join!(served(one), served(other)) } => panic!("all are served, as if nothing had been cut"),
    }
    // Whoever stays goes on.
    served(leader).await;
    tokio::select! {
        () = served(one) => {}
        () = served(other) => {}
    }
    network.heal();
    for number in 1..=3 {
        network.machines.ready(number).await;
        network.machines.lock(number, "t").await;
    }
}
