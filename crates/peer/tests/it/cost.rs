//! What the common cases cost, in messages between members.

use crate::cluster::{Cluster, name};
use vez_peer::ask::Ask;

/// How many messages something takes.
fn cost(cluster: &mut Cluster, run: impl FnOnce(&mut Cluster)) -> usize {
    let before = cluster.messages;
    run(cluster);
    cluster.messages - before
}

/// An entry and the way out.
fn visit(cluster: &mut Cluster, node: usize, ask: Ask) -> usize {
    cost(cluster, |cluster| {
        let fence = cluster.ask(node, &name(), ask).expect("nobody else is there");
        cluster.leave(node, &name(), fence);
    })
}

#[test]
fn a_lock_that_was_used_here_last_costs_nothing() {
    let (mut cluster, name) = (Cluster::new(), name());
    let elsewhere = (cluster.home(&name) + 1) % 3;
    assert_eq!(visit(&mut cluster, elsewhere, Ask::Lock), 2, "a request to the home, and the token");
    for _ in 0..10 {
        assert_eq!(visit(&mut cluster, elsewhere, Ask::Lock), 0);
    }
}

#[test]
fn passing_a_lock_on_costs_one_message() {
    let (mut cluster, name) = (Cluster::new(), name());
    let (one, other) = ((cluster.home(&name) + 1) % 3, (cluster.home(&name) + 2) % 3);
    let fence = cluster.ask(one, &name, Ask::Lock).expect("nobody else is there");
    assert_eq!(cluster.ask(other, &name, Ask::Lock), None);
    let granted = cluster.granted.len();
    assert_eq!(cost(&mut cluster, |cluster| cluster.leave(one, &name, fence)), 1);
    assert_eq!(cluster.granted.len(), granted + 1, "and the other is inside");
}

#[test]
fn clients_of_one_node_pass_a_lock_on_for_nothing() {
    let (mut cluster, name) = (Cluster::new(), name());
    let node = (cluster.home(&name) + 1) % 3;
    let fence = cluster.ask(node, &name, Ask::Lock).expect("nobody else is there");
    assert_eq!(cost(&mut cluster, |cluster| assert_eq!(cluster.ask(node, &name, Ask::Lock), None)), 0);
    assert_eq!(cost(&mut cluster, |cluster| cluster.leave(node, &name, fence)), 0);
    let (_, next) = cluster.granted[1];
    assert!(next > fence);
}

#[test]
fn what_has_a_ledger_costs_three_messages_or_none_at_home() {
    let asks = [
        Ask::Semaphore { units: 3, weight: 2 },
        Ask::Group { label: b"red".to_vec() },
        Ask::Read,
        Ask::Write,
        Ask::Elect { value: b"me".to_vec() },
    ];
    for ask in asks {
        let (mut cluster, name) = (Cluster::new(), name());
        let home = cluster.home(&name);
        assert_eq!(visit(&mut cluster, (home + 1) % 3, ask.clone()), 3, "{ask:?}");
        assert_eq!(visit(&mut cluster, home, ask.clone()), 0, "{ask:?}");
    }
}
