//! Storms pass, the same seed is the same storm, and there is nothing that never happens in one.

use std::env;

use vez_storm::{Outcome, Storm, run, tell};

fn storm(seeds: u64) -> Storm {
    Storm { nodes: 5, seeds, first_seed: 1, seconds: 60 }
}

/// How many storms: 200, or 2,000 with `VEZ_THOROUGH`, unless `VEZ_STORMS` has a number.
fn weather() -> Outcome {
    let usual = if env::var_os("VEZ_THOROUGH").is_some() { 2000 } else { 200 };
    let seeds = env::var("VEZ_STORMS").map_or(usual, |text| text.parse().expect("VEZ_STORMS is a number"));
    run(&storm(seeds), &|| {})
}

#[test]
fn all_laws_hold() {
    let outcome = weather();
    if let Some(broken) = outcome.first {
        panic!("{broken}");
    }
    let tally = outcome.tally;
    let counted = [
        tally.grants,
        tally.crashes,
        tally.restarts,
        tally.partitions,
        tally.view_changes,
        tally.forgotten,
        tally.observations,
        tally.resizes,
        tally.kept,
        tally.collected,
        tally.pauses,
        tally.leases_lost,
    ];
    assert!(counted.iter().all(|count| *count > 0), "something never happens: {tally:?}");
}

#[test]
fn clusters_of_other_sizes() {
    for nodes in [1, 2, 3, 4, 6, 8] {
        let outcome = run(&Storm { nodes, seeds: 20, first_seed: 1, seconds: 60 }, &|| {});
        if let Some(broken) = outcome.first {
            panic!("{nodes} nodes: {broken}");
        }
    }
}

#[test]
fn the_same_seed_is_the_same_storm() {
    let told = || {
        let mut lines = Vec::new();
        let tally = tell(&storm(1), 7, &mut |line| lines.push(line));
        (lines, tally)
    };
    let (one, other) = (told(), told());
    assert!(one.0.len() > 100, "a storm has something to tell");
    assert_eq!(one, other);
}
