//! One thing at a time.

use std::collections::BTreeSet;

use vez_peer::{
    agreement::{Entry, Message, SNAPSHOT_AFTER},
    identity::MemberId,
};

use super::world::{ELECTION, FAIR, PACE, Weather, World, members};

/// A cluster with these voters, in fair weather, and its leader.
fn cluster(seed: u64, voters: std::ops::RangeInclusive<u64>) -> (World, MemberId) {
    let mut world = World::new(seed, voters.clone());
    reach(&mut world, &members(voters));
    let leader = world.leader().expect("somebody leads");
    (world, leader)
}

/// The voters become these.
fn reach(world: &mut World, wanted: &BTreeSet<MemberId>) {
    let is_reached = |world: &World| {
        world.leader().is_some_and(|leader| {
            let config = world.process(leader).config();
            config.voters == *wanted && !config.is_joint() && config.non_voters.is_empty()
        })
    };
    for _ in 0..100 {
        if is_reached(world) {
            // One that has lost its vote leads no longer.
            world.run(4 * ELECTION);
            return assert!(world.leader().is_some());
        }
        if let Some(leader) = world.leader() {
            let none = members([]);
            world.call(leader, |process, now, cx| process.reconfigure(now, wanted, &none, cx));
        }
        world.run(ELECTION / 10);
    }
    panic!("the voters are not {wanted:?}");
}

/// The leader proposes, and everybody who runs and is told of it knows the view soon.
fn agree(world: &mut World) {
    let leader = world.leader().expect("somebody leads");
    assert!(world.propose(leader));
    assert!(!world.propose(leader), "one at a time");
    world.run(ELECTION);
    let highest = world.laws.highest_view();
    let config = world.process(leader).config();
    for (id, _) in world.running().filter(|(id, _)| config.contains(*id)) {
        assert_eq!(world.view_of(id), highest, "{id} of {config:?}");
    }
}

#[test]
fn who_is_alone_agrees_with_itself_and_is_back_at_once() {
    let (mut world, only) = cluster(1, 1..=1);
    for _ in 0..3 {
        agree(&mut world);
    }
    world.crash(only);
    world.restart(only);
    assert!(world.process(only).leads().is_none());
    world.run(ELECTION / 10);
    assert_eq!((world.leader(), world.view_of(only)), (Some(only), 103), "nobody had to be waited for");
    agree(&mut world);
}

#[test]
fn one_becomes_three_becomes_five_and_a_dead_one_is_replaced() {
    let mut world = World::new(2, 1..=6);
    for voters in [members(1..=1), members(1..=3), members(1..=5)] {
        reach(&mut world, &voters);
        agree(&mut world);
    }
    let dead = MemberId(3);
    world.crash(dead);
    world.run(4 * ELECTION);
    reach(&mut world, &members([1, 2, 4, 5, 6]));
    agree(&mut world);
}

#[test]
fn who_has_not_caught_up_gets_no_vote() {
    let mut world = World::new(10, 1..=4);
    reach(&mut world, &members(1..=3));
    world.crash(MemberId(4));
    let leader = world.leader().expect("somebody leads");
    for _ in 0..50 {
        let (wanted, none) = (members(1..=4), members([]));
        world.call(leader, |process, now, cx| process.reconfigure(now, &wanted, &none, cx));
        world.run(ELECTION / 5);
    }
    let config = world.process(leader).config();
    assert_eq!((config.voters, config.new_voters, config.non_voters), (members(1..=3), members([]), members([4])));
}

#[test]
fn who_has_not_answered_since_it_was_to_have_a_vote_gets_none() {
    let mut world = World::new(32, 1..=2);
    reach(&mut world, &members([1]));
    let leader = world.leader().expect("somebody leads");
    let (wanted, other, none) = (members([2]), members([2]), members([]));
    world.call(leader, |process, now, cx| process.reconfigure(now, &members([1]), &other, cx));
    world.run(ELECTION);
    assert!(world.process(leader).caught_up(MemberId(2)), "it was there a moment ago");
    world.cut.insert((MemberId(2), leader));
    for _ in 0..20 {
        world.call(leader, |process, now, cx| process.reconfigure(now, &wanted, &none, cx));
        world.run(ELECTION / 10);
    }
    assert_eq!(world.process(leader).config().all_voters().collect::<BTreeSet<_>>(), members([1]));
    world.cut.clear();
    reach(&mut world, &wanted);
}

#[test]
fn what_is_agreed_on_does_not_become_less_when_a_leader_steps_down() {
    let (mut world, leader) = cluster(31, 1..=3);
    agree(&mut world);
    world.run(4 * ELECTION);
    let (applied, before) = (world.process(leader).applied(), world.process(leader).agreed_config());
    assert_eq!(before.voters, members(1..=3));
    for other in world.ids() {
        world.cut.extend([(leader, other), (other, leader)]);
    }
    world.run(20 * ELECTION);
    assert!(world.process(leader).leads().is_none(), "it hears nobody");
    assert_eq!(world.process(leader).applied(), applied, "its views are as they were");
    assert_eq!(world.process(leader).agreed_config(), before, "and so is who has a vote");
}

#[test]
fn what_is_agreed_on_is_told_at_once() {
    let (mut world, leader) = cluster(11, 1..=3);
    world.weather = Weather { delay: PACE.heartbeat / 20, writing: PACE.heartbeat / 20, ..FAIR };
    for _ in 0..20 {
        assert!(world.propose(leader));
        world.run(PACE.heartbeat / 3);
        let highest = world.laws.highest_view();
        assert!(world.ids().into_iter().all(|id| world.view_of(id) == highest && highest > 100));
        world.run(PACE.heartbeat / 5);
    }
}

#[test]
fn disks_that_are_slower_than_elections_only_take_longer() {
    for seed in 0..10 {
        let (mut world, leader) = cluster(seed, 1..=3);
        world.weather.writing = 2 * ELECTION;
        world.crash(leader);
        world.restart(leader);
        assert!(world.run_until(300 * ELECTION, |world| world.leader().is_some()), "seed {seed}");
    }
}

#[test]
fn whoever_leads_can_be_taken_the_vote() {
    let (mut world, leader) = cluster(3, 1..=3);
    let others: BTreeSet<MemberId> = world.ids().into_iter().filter(|id| *id != leader).collect();
    reach(&mut world, &others);
    assert_ne!(world.leader(), Some(leader));
    agree(&mut world);
}

#[test]
fn a_late_joiner_gets_a_snapshot_and_logs_stay_short() {
    let mut world = World::new(4, 1..=4);
    reach(&mut world, &members(1..=3));
    for _ in 0..2 * SNAPSHOT_AFTER {
        let leader = world.leader().expect("somebody leads");
        world.propose(leader);
        world.run(ELECTION / 5);
    }
    assert!(world.laws.highest_view() > 100 + SNAPSHOT_AFTER);
    for (id, process) in world.running() {
        assert!(process.log_length() <= SNAPSHOT_AFTER as usize, "{id}");
        assert!(world.machines[&id].disk.entries.len() <= SNAPSHOT_AFTER as usize, "{id}: on disk as well");
    }
    world.sent = Some(Vec::new());
    reach(&mut world, &members(1..=4));
    agree(&mut world);
    let snapshots =
        world.sent.take().expect("kept").into_iter().filter(|sent| matches!(sent.2, Message::Snapshot { .. }));
    assert_eq!(snapshots.map(|(_, to, _)| to).collect::<Vec<_>>(), [MemberId(4)], "one, to the one who needs it");
    assert_eq!(world.machines[&MemberId(4)].disk.snapshot.views.as_ref().map(|views| views.cluster.0), Some(7));
}

#[test]
fn who_does_not_hear_the_leader_does_not_end_its_term() {
    let (mut world, leader) = cluster(5, 1..=3);
    let deaf = *world.ids().iter().find(|id| **id != leader).expect("there are others");
    let term = world.process(leader).term();
    world.cut.insert((leader, deaf));
    world.run(100 * ELECTION);
    assert_eq!(world.process(leader).leads().map(|leading| leading.term), Some(term));
    world.cut.clear();
    world.run(10 * ELECTION);
    assert_eq!(world.process(deaf).leader(), Some(leader), "and it follows when it hears again");
    assert_eq!(world.process(leader).term(), term);
}

#[test]
fn who_was_cut_off_and_returns_does_not_end_a_term() {
    let (mut world, leader) = cluster(6, 1..=5);
    let away = *world.ids().iter().find(|id| **id != leader).expect("there are others");
    let term = world.process(leader).term();
    world.isolate(&[away].into());
    world.run(100 * ELECTION);
    world.cut.clear();
    agree(&mut world);
    assert_eq!((world.leader(), world.process(leader).term()), (Some(leader), term));
}

#[test]
fn a_leader_that_hears_nobody_steps_down() {
    let (mut world, leader) = cluster(7, 1..=3);
    world.cut = world.ids().into_iter().map(|from| (from, leader)).collect();
    let stepped_down = world.run_until(4 * ELECTION, |world| world.process(leader).leads().is_none());
    assert!(stepped_down, "its heartbeats would keep the others from electing");
    assert!(world.run_until(10 * ELECTION, |world| world.leader().is_some()));
    assert_ne!(world.leader(), Some(leader));
}

#[test]
fn a_leader_that_hears_nobody_steps_down_however_often_it_is_asked() {
    let (mut world, leader) = cluster(12, 1..=3);
    world.cut = world.ids().into_iter().map(|from| (from, leader)).collect();
    for _ in 0..80 {
        world.ask(leader);
        world.run(PACE.heartbeat / 3);
    }
    assert!(world.process(leader).leads().is_none());
}

#[test]
fn a_round_needs_a_majority_that_answers_it() {
    let (mut world, leader) = cluster(8, 1..=3);
    world.ask(leader);
    let before = world.laws.confirmed;
    assert!(world.run_until(ELECTION, |world| world.laws.confirmed > before));
    // What is under way was sent before the round began, and its answers come after. They do not count.
    world.weather.delay = ELECTION;
    world.run(ELECTION / 5);
    world.cut.extend(world.ids().into_iter().map(|to| (leader, to)));
    let round = world.call(leader, |process, now, cx| process.confirm(now, cx)).expect("it leads");
    assert!(!world.run_until(ELECTION, |world| world.process(leader).is_confirmed(round)));
}

#[test]
fn who_is_alone_confirms_at_once_unless_it_writes() {
    let (mut world, only) = cluster(9, 1..=1);
    let round = world.call(only, |process, now, cx| process.confirm(now, cx)).expect("it leads");
    assert!(world.process(only).is_confirmed(round) && world.process(only).confirmed() == round);
    assert!(world.propose(only));
    let round = world.call(only, |process, now, cx| process.confirm(now, cx)).expect("it leads");
    let again = world.call(only, |process, now, cx| process.confirm(now, cx)).expect("it leads");
    assert_eq!(round, again, "it has not been sent yet");
    assert!(!world.process(only).is_confirmed(round), "what it has on disk is not known");
    world.run(ELECTION / 10);
    assert!(world.process(only).is_confirmed(round));
}

/// The leader has written that it loses its vote, and nobody else has heard of it; and one of the others never comes back.
#[test]
fn a_removal_that_nobody_heard_of_is_forgotten() {
    for seed in 0..20 {
        let mut world = World::new(seed, 1..=4);
        reach(&mut world, &members(1..=3));
        let leader = world.leader().expect("somebody leads");
        let wanted: BTreeSet<MemberId> = world.ids().into_iter().filter(|id| *id != leader).collect();
        let has_written = |world: &World| {
            let last = world.machines[&leader].disk.entries.last();
            matches!(last, Some(Entry::Config(config)) if config.voters == wanted)
        };
        // First the newcomer without a vote, then both sets of voters. That both agree makes the leader write the last step.
        let mut steps = 0;
        for _ in 0..10_000 {
            if has_written(&world) {
                break;
            }
            let none = members([]);
            steps += u32::from(world.call(leader, |process, now, cx| process.reconfigure(now, &wanted, &none, cx)));
            world.run(FAIR.writing / 10);
        }
        assert_eq!(steps, 2);
        // What the leader has sent is lost with it.
        world.cut.extend(world.ids().into_iter().map(|to| (leader, to)));
        world.run(ELECTION / 5);
        world.crash(leader);
        let gone = *wanted.iter().find(|id| **id != MemberId(4)).expect("a voter of both");
        world.crash(gone);
        world.cut.clear();
        world.restart(leader);
        world.run(20 * ELECTION);
        assert!(world.leader().is_some(), "seed {seed}: two of three are there, of the old and of the new");
        world.restart(gone);
        reach(&mut world, &wanted);
        agree(&mut world);
    }
}
