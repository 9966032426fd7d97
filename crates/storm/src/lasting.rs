//! One thing goes wrong, and goes on going wrong: after a few leases the others must be served all the same.

use std::collections::BTreeSet;

use crate::{
    clock::Clock,
    plan::{Fault, MILLISECOND, Mishap, Plan, SECOND},
    quiet,
    world::World,
};

const NODES: usize = 5;
/// When it begins to go wrong, and how long that lasts.
const BEGINS: u64 = 8;
const LASTS: u64 = 26;
/// So many seconds after it began, everything is as it can be: its lease has run out twice, and a view has been settled.
const MENDED: u64 = BEGINS + 14;

/// What happens when nothing but this goes wrong: the second, and what.
fn what_happens(seed: u64, faults: Vec<Fault>) -> Vec<(u64, String)> {
    let mut plan = Plan::draw(seed, NODES, 60);
    plan.wild = false;
    plan.clocks = (0..NODES as u64).map(|machine| Clock::new(SECOND * (1 + machine), 0)).collect();
    plan.keepers.clear(); // What is kept is waited for, and that takes longer.
    plan.faults = faults;
    let mut lines = Vec::new();
    quiet::catch(|| World::telling(&plan, &mut |line| lines.push(line)).pass()).expect("all laws are kept");
    let split = |line: String| {
        let (second, what) = line.trim_start().split_once('.').expect("a time");
        (second.parse().expect("a number"), what.to_owned())
    };
    lines.into_iter().map(split).collect()
}

/// The longest that nobody was let in, in seconds, once it could be mended.
fn longest_drought(faults: Vec<Fault>) -> u64 {
    let happens = what_happens(3, faults);
    let granting: BTreeSet<u64> =
        happens.into_iter().filter(|(_, what)| what.contains(" grants ")).map(|(second, _)| second).collect();
    let dry = |second: &u64| !granting.contains(second);
    let mut longest = 0;
    for from in MENDED..BEGINS + LASTS {
        longest = longest.max((from..BEGINS + LASTS).take_while(dry).count() as u64);
    }
    longest
}

fn cut(is_cut: impl Fn(usize, usize) -> bool) -> Vec<Fault> {
    let pairs = (0..NODES).flat_map(|from| (0..NODES).map(move |to| (from, to)));
    let links = pairs.filter(|(from, to)| from != to && is_cut(*from, *to)).collect();
    vec![Fault { at: BEGINS * SECOND, what: Mishap::Cut { links, lasts: LASTS * SECOND } }]
}

fn crashes(machine: usize, every: u64, down: u64) -> Vec<Fault> {
    let crash = |at| Fault { at, what: Mishap::Crash { machine, down, written: true, wiped: false, reboots: false } };
    (0..LASTS * SECOND / every).map(|number| crash(BEGINS * SECOND + number * every)).collect()
}

#[test]
fn nobody_stalls_the_whole() {
    let both = |one: usize, other: usize| move |from, to| (from, to) == (one, other) || (to, from) == (one, other);
    let slow = |machine, latency| {
        vec![Fault { at: BEGINS * SECOND, what: Mishap::SlowDisk { machine, lasts: LASTS * SECOND, latency } }]
    };
    let mut cases = vec![("nothing goes wrong".to_owned(), vec![])];
    for machine in [0, 3] {
        cases.extend([
            (format!("m{machine} is not heard"), cut(|from, _| from == machine)),
            (format!("m{machine} does not hear"), cut(|_, to| to == machine)),
            (format!("m{machine} neither hears nor is heard"), cut(|from, to| from == machine || to == machine)),
            (format!("m{machine} and m2 do not hear each other"), cut(both(machine, 2))),
            (format!("m{machine} does not hear m2"), cut(|from, to| (from, to) == (2, machine))),
            (format!("m{machine} crashes again and again"), crashes(machine, 500 * MILLISECOND, 5 * MILLISECOND)),
            (format!("m{machine} is away"), crashes(machine, LASTS * SECOND, LASTS * SECOND)),
            (format!("m{machine} has a slow disk"), slow(machine, 2 * SECOND)),
        ]);
    }
    let stalled = cases.into_iter().filter_map(|(what, faults)| {
        let drought = longest_drought(faults);
        (drought > 3).then(|| format!("{what}: nobody is let in for {drought} s"))
    });
    assert_eq!(stalled.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn who_leaves_is_told_so_and_soon() {
    for machine in 0..NODES {
        for seed in 0..6 {
            let leave = Mishap::Leave { machine, away: 20 * SECOND };
            let happens = what_happens(seed, vec![Fault { at: BEGINS * SECOND, what: leave }]);
            let stops = happens.iter().filter(|(_, what)| what.contains(" stops: "));
            let stops: Vec<_> = stops.map(|(second, what)| (*second, &what[4..])).collect();
            let [(second, what)] = stops[..] else { panic!("m{machine}, seed {seed}: {stops:?}") };
            assert_eq!(what, format!("m{machine} stops: Left"), "seed {seed}");
            assert!(second <= BEGINS + 2, "m{machine}, seed {seed}: after {} s", second - BEGINS);
        }
    }
}
