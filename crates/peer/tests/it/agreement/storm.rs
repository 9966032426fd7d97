//! Everything at once, seed after seed; then the weather clears, and everybody must agree again.

use vez_peer::identity::MemberId;

use super::world::{ELECTION, FAIR, Weather, World, members};

/// One run: growth to `voters` out of `pool` members in the midst of it. What it prints when it fails repeats it.
fn storm(seed: u64, voters: u64, pool: u64) -> World {
    let mut world = World::new(seed, 1..=pool);
    let mut wanted = members(1..=voters);
    // Some begin in fair weather, so that there is more than one voter when the storm comes.
    if world.percent(70) {
        for _ in 0..40 {
            work(&mut world, &wanted);
            world.run(ELECTION / 5);
        }
    }
    for _ in 0..150 {
        disturb(&mut world);
        if world.percent(3) {
            let ids = world.ids();
            let rotation = world.below(pool) as usize;
            wanted = ids.iter().cycle().skip(rotation).take(voters as usize).copied().collect();
        }
        for _ in 0..3 {
            work(&mut world, &wanted);
            let time = world.below(ELECTION / 2);
            world.run(time);
        }
    }
    recover(&mut world, &wanted);
    world
}

/// Whoever leads, or thinks so, does something for those above.
fn work(world: &mut World, wanted: &std::collections::BTreeSet<MemberId>) {
    let leaders: Vec<MemberId> =
        world.running().filter(|(_, process)| process.leads().is_some()).map(|(id, _)| id).collect();
    for leader in leaders {
        if world.machines[&leader].asleep > world.now {
            continue;
        }
        if world.percent(50) {
            world.propose(leader);
        }
        if world.percent(60) {
            world.ask(leader);
        }
        if world.percent(30) {
            let none = members([]);
            world.call(leader, |process, now, cx| process.reconfigure(now, wanted, &none, cx));
        }
        if world.percent(20) {
            world.ask(leader);
        }
    }
}

fn disturb(world: &mut World) {
    let ids = world.ids();
    let (one, other) = (world.one_of(&ids), world.one_of(&ids));
    let is_about_leader = world.percent(50);
    let leader = world.leader().filter(|_| is_about_leader).unwrap_or(one);
    match world.below(14) {
        0 => world.cut.extend([(one, other)]),
        1 => world.isolate(&[leader].into()),
        2 => world.isolate(&[one, other].into()),
        3 => world.cut.extend(ids.iter().map(|id| (leader, *id)).collect::<Vec<_>>()),
        4 => world.cut.extend(ids.iter().map(|id| (*id, leader)).collect::<Vec<_>>()),
        5 | 6 => world.cut.clear(),
        7 | 8 => {
            world.weather = Weather {
                loss: world.below(3) * 15,
                doubled: world.below(3) * 20,
                delay: [1, 10, 60, 200][world.below(4) as usize] * ELECTION / 100,
                writing: [1, 10, 60, 200][world.below(4) as usize] * ELECTION / 100,
                late: [0, 10][world.below(2) as usize],
                fragile: [0, 30, 100][world.below(3) as usize],
                spread: [100, 100, 2][world.below(3) as usize],
            };
        }
        9 => {
            let who = if world.percent(70) { leader } else { one };
            let time = world.below(6 * ELECTION);
            world.send_to_sleep(who, time);
        }
        10 => world.isolate(&[leader, other].into()),
        _ => {
            let who = if world.percent(50) { leader } else { one };
            match world.machines[&who].process {
                Some(_) => world.crash(who),
                None => world.restart(who),
            }
        }
    }
}

/// The weather clears and everybody is back. Then there is one leader, and what it proposes reaches everybody wanted.
fn recover(world: &mut World, wanted: &std::collections::BTreeSet<MemberId>) {
    world.cut.clear();
    world.weather = FAIR;
    for id in world.ids() {
        world.machines.get_mut(&id).expect("known").asleep = 0;
        if world.machines[&id].process.is_none() {
            world.restart(id);
        }
    }
    for _ in 0..60 {
        world.run(ELECTION / 2);
        if let Some(leader) = world.leader() {
            let none = members([]);
            world.call(leader, |process, now, cx| process.reconfigure(now, wanted, &none, cx));
        }
    }
    let leader = world.leader().expect("there is a leader");
    assert_eq!(&world.process(leader).config().voters, wanted, "the voters are those wanted");
    assert!(world.view_of(leader) >= world.laws.highest_view(), "nothing that anybody saw is lost");
    assert!(world.propose(leader), "it can propose");
    world.ask(leader);
    world.run(ELECTION);
    assert!(!world.process(leader).is_proposing(), "it is agreed on");
    let highest = world.laws.highest_view();
    for id in wanted {
        assert_eq!(world.view_of(*id), highest, "{id} knows it");
        assert_eq!(world.process(*id).leader(), Some(leader), "{id} follows");
    }
}

/// One election after the other, by members that wait equally long, and crash once they have voted; and leaders that stood
/// still while there was an election.
fn contest(seed: u64, voters: u64) -> World {
    let mut world = World::new(seed, 1..=voters);
    let wanted = members(1..=voters);
    for _ in 0..40 {
        work(&mut world, &wanted);
        world.run(ELECTION / 5);
    }
    for _ in 0..40 {
        world.weather = Weather {
            doubled: 50,
            delay: ELECTION / 10,
            writing: ELECTION / 50,
            late: 10,
            fragile: 50,
            spread: [2, 100][world.below(2) as usize],
            ..FAIR
        };
        if let Some(leader) = world.leader() {
            let time = world.below(6 * ELECTION);
            world.send_to_sleep(leader, time);
        }
        for _ in 0..6 {
            let time = world.below(ELECTION);
            world.run(time);
            work(&mut world, &wanted);
        }
    }
    recover(&mut world, &wanted);
    world
}

/// The seeds, and the least that must have happened in all of them together: a world in which nothing happens obeys all laws.
fn check(seeds: std::ops::Range<u64>, voters: u64, pool: u64) {
    check_all(seeds, &format!("{voters} voters out of {pool}"), |seed| storm(seed, voters, pool));
}

fn check_all(seeds: std::ops::Range<u64>, name: &str, run: impl Fn(u64) -> World + std::panic::RefUnwindSafe) {
    let (mut views, mut terms, mut confirmed) = (0, 0, 0);
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| run(seed));
        let Ok(world) = outcome else { panic!("seed {seed} of {name}") };
        views += world.laws.highest_view() - 100;
        terms += world.laws.terms_led() as u64;
        confirmed += world.laws.confirmed;
    }
    assert!(views > 10 * count && terms > 4 * count && confirmed > 10 * count, "{views} {terms} {confirmed}");
}

#[test]
fn one_voter() {
    check(0..200, 1, 1);
}

#[test]
fn one_voter_that_moves() {
    check(0..200, 1, 3);
}

#[test]
fn three_voters() {
    check(0..300, 3, 3);
}

#[test]
fn three_voters_that_change() {
    check(0..200, 3, 5);
}

#[test]
fn five_voters() {
    check(0..150, 5, 5);
}

#[test]
fn five_voters_that_change() {
    check(0..100, 5, 7);
}

#[test]
fn elections_of_three() {
    check_all(0..200, "elections of 3", |seed| contest(seed, 3));
}

#[test]
fn elections_of_five() {
    check_all(0..100, "elections of 5", |seed| contest(seed, 5));
}
