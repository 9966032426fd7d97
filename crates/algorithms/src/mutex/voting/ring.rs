//! Where the replicas are: names hashed onto a ring of nodes. Steps: docs/algorithms/voting.md.

use alloc::{collections::BTreeMap, format, vec::Vec};

/// The resource. Its i-th replica is called `rname-i`.
const NAME: &str = "rname";

/// Which replica each of as many nodes has.
pub(super) fn tenants(replicas: usize) -> Vec<usize> {
    let mut tenants: Vec<(usize, usize)> =
        placement(replicas, replicas).into_iter().enumerate().map(|(replica, node)| (node, replica)).collect();
    tenants.sort_unstable();
    tenants.into_iter().map(|(_, replica)| replica).collect()
}

/// LLCZ04:1 The place of each replica: which of the nodes of the ring it is on. The first node at or after its key that has
/// no replica yet, so that no node has two.
///
/// # Panics
/// If there are fewer nodes than replicas.
fn placement(replicas: usize, nodes: usize) -> Vec<usize> {
    let mut free: BTreeMap<(u64, usize), usize> =
        (0..nodes).map(|node| ((hash(&format!("node-{node}")), node), node)).collect();
    let place = |replica| {
        let key = hash(&format!("{NAME}-{replica}"));
        let next = free.range((key, 0)..).next().or_else(|| free.iter().next());
        let place = *next.expect("as many nodes as replicas").0;
        free.remove(&place).expect("it was found there")
    };
    (0..replicas).map(place).collect()
}

/// FNV-1a with the finaliser of SplitMix64 behind it, for FNV alone leaves the first bits of short names alike. Every process
/// computes it for itself, so it must never change.
fn hash(text: &str) -> u64 {
    let fnv = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mixed = (fnv ^ (fnv >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_hash_never_changes() {
        assert_eq!(hash(""), 0xf52a_15e9_a9b5_e89b);
        assert_eq!(hash("rname-0"), 0x102d_5744_1644_464d);
        assert_eq!(hash("node-0"), 0x39d5_7125_ce55_4e2b);
    }

    #[test]
    fn the_placement_never_changes() {
        assert_eq!(placement(3, 3), [1, 0, 2]);
        assert_eq!(placement(5, 5), [1, 4, 2, 3, 0]);
        assert_eq!(placement(5, 1000), [124, 219, 988, 447, 849]);
        assert_eq!(tenants(5), [4, 0, 2, 3, 1]);
    }

    #[test]
    fn no_node_has_two() {
        for (replicas, nodes) in [(1, 1), (32, 32), (32, 33), (500, 1000)] {
            let places = placement(replicas, nodes);
            assert_eq!(places.len(), replicas);
            assert!(places.iter().all(|place| *place < nodes));
            assert_eq!(places.iter().collect::<BTreeSet<_>>().len(), replicas);
        }
    }

    #[test]
    fn keys_spread_over_the_ring() {
        let mut quarters = [0; 4];
        for i in 0..4000 {
            quarters[(hash(&format!("{NAME}-{i}")) >> 62) as usize] += 1;
        }
        assert!(quarters.iter().all(|count| (900..1100).contains(count)), "{quarters:?}");
    }
}
