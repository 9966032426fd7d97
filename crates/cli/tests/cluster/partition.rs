//! Nodes that cannot hear each other.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use vez::{Client, ClientError};

use crate::{machines::LONG, network::Network};

const LEASE: Duration = Duration::from_millis(1500);

/// Tries until it is answered: whether the lock was free.
async fn try_lock(client: &Client, name: &str) -> bool {
    match client.try_lock(name).await {
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
    timeout(LONG, held.lost()).await.expect("it hears of it");
    // From then on nothing is granted there, for as long as it lasts.
    let majority = async {
        let fence = network.machines.lock(one, "t").await.fence();
        assert!(fence > held.fence());
        assert!(network.machines.lock(other, "t").await.fence() > fence);
    };
    let minority = async {
        for _ in 0..50 {
            assert!(!try_lock(&inside, "warm").await, "the minority has granted something");
            sleep(LEASE / 50).await;
        }
    };
    tokio::join!(majority, minority);
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
    network.cut(one, other);
    // One of them still has to do with the leader, and all that it asks for is served.
    let names: Vec<String> = (0..20).map(|number| format!("bridge/{number}")).collect();
    for name in &names {
        let client = network.machines.client(leader).await;
        timeout(LONG, client.lock(name)).await.expect("in the end it is served").unwrap().release().await.unwrap();
    }
    let served = async |number: u16| {
        let client = network.machines.client(number).await;
        for name in &names {
            timeout(LONG, client.lock(name)).await.ok()?.ok()?;
        }
        Some(())
    };
    let served = tokio::select! {
        Some(()) = served(one) => true,
        Some(()) = served(other) => true,
        else => false,
    };
    assert!(served, "of the two, one stays");
    network.heal();
    for number in 1..=3 {
        network.machines.ready(number).await;
        network.machines.lock(number, "t").await;
    }
}
