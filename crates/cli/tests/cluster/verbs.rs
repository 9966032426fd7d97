//! `vez lock`, `vez sem`, `vez group`, `vez elect`: what their words mean, and what their commands are told.

use std::time::Duration;

use crate::machines::Machines;

/// Nothing in these tests waits for a lease to run out.
const LONG_LEASE: Duration = Duration::from_secs(50);

#[tokio::test]
async fn commands_are_told_what_they_hold() {
    let machines = Machines::new(2, LONG_LEASE).await;
    let script = "echo \"$VEZ_LOCK_NAME ${#VEZ_LOCK_CLUSTER} ${VEZ_LOCK_FLOOR:+floor}\"; echo \"$VEZ_LOCK_FENCES\"; echo \"$VEZ_LOCK_FENCE\"";
    let verbs: [(&[&str], &str, bool); 7] = [
        (&["lock", "a b"], "a b", false),
        (&["lock", "-s", "r"], "r", false),
        (&["lock", "-x", "r"], "r", false),
        (&["lock", "--exclusive", "r"], "r", false),
        (&["sem", "db", "--limit", "5", "--take", "2"], "db", true),
        (&["group", "room", "chess"], "room", false),
        (&["elect", "s"], "s", false),
    ];
    for (words, name, has_floor) in verbs {
        // One within another hears nothing of the other.
        let outer = ["sem", "outer", "--limit", "1", env!("CARGO_BIN_EXE_vez")];
        let (code, out, err) = machines.told(2, &[&outer, words, &["--", "sh", "-c", script]].concat()).await;
        assert_eq!((code, err.as_str()), (Some(0), ""), "{words:?}");
        let lines: Vec<&str> = out.lines().collect();
        let [told, fences, fence] = lines[..] else { panic!("{out}") };
        assert_eq!(told, format!("{name} 16 {}", if has_floor { "floor" } else { "" }), "{words:?}");
        assert_eq!((fence.len(), fences), (20, format!("{fence} {name}").as_str()), "{words:?}");
    }
}

#[tokio::test]
async fn of_several_names_the_first_comes_first() {
    let machines = Machines::new(1, LONG_LEASE).await;
    // So that no two of them have the same fence.
    for (name, times) in [("a", 1), ("b", 2)] {
        for _ in 0..times {
            machines.lock(1, name).await.release().await.unwrap();
        }
    }
    let script = "echo \"$VEZ_LOCK_NAME $VEZ_LOCK_FENCE\"; echo \"$VEZ_LOCK_FENCES\"";
    let (code, out, _) = machines.told(1, &["lock", "c", "b", "a", "b", "--", "sh", "-c", script]).await;
    assert_eq!(code, Some(0));
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split(' ').collect()).collect();
    let fences: Vec<&str> = lines[1..].iter().map(|line| line[0]).collect();
    let names: Vec<&str> = lines[1..].iter().map(|line| line[1]).collect();
    assert_eq!((&lines[0][..], &names[..]), (&["c", fences[0]][..], &["c", "b", "a"][..]));
    assert!(fences[0] < fences[2] && fences[2] < fences[1], "each has its own: {fences:?}");
}

#[tokio::test]
async fn names_end_where_the_command_begins() {
    let machines = Machines::new(1, LONG_LEASE).await;
    let told = async |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        machines.told(1, &words).await
    };
    for (words, out) in [
        ("lock a echo x", "x\n"),
        ("lock a -- echo x", "x\n"),
        ("lock a b -- echo x", "x\n"),
        ("lock -n a b -- echo -n x", "x"),
        ("lock a echo -n -E x", "x"),
        ("lock a -- echo -- x", "-- x\n"),
        ("lock a b -- echo -- x", "-- x\n"),
        ("lock -- -a -- echo x", "x\n"),
        ("lock -e a echo x", "x\n"),
        ("sem db --limit 2 echo -n x", "x"),
        ("sem --limit 2 db -- echo x", "x\n"),
        ("group room chess echo -n x", "x"),
        ("elect s echo -n x", "x"),
        ("elect -n s --value v -- echo x", "x\n"),
    ] {
        assert_eq!(told(words).await, (Some(0), out.into(), String::new()), "{words}");
    }
    for (words, why) in [
        ("lock a", "there is no command; write vez lock a -- COMMAND"),
        ("lock -- a", "there is no command; write vez lock a -- COMMAND"),
        ("lock a b --", "there is no command; write vez lock a b -- COMMAND"),
        ("lock -- -- true", "there is no name before --; write vez lock NAME -- true"),
        ("lock a -n true", "-n comes after a name; say options before the names, and -- before the command"),
        ("lock a git log -p -- x", "-p comes after a name; say options before the names, and -- before the command"),
        ("lock a -c true", "there is no shell in between; say -- sh -c '…' instead of -c '…'"),
        ("lock -s a b -- true", "-s and -x are for one name, and these are 2; leave them out, or say one name"),
        ("lock -s -x a true", "the argument '--shared' cannot be used with '--exclusive'; see --help"),
        ("sem db --limit 5 --take 6 true", "db has 5 units and can never give 6; say --take 5 at most"),
        ("sem db true", "the following required arguments were not provided: --limit <UNITS>; see --help"),
        ("sem db --limit 5", "the following required arguments were not provided: <COMMAND>...; see --help"),
        ("elect s --observe true", "--observe only looks, and runs no command; leave out one of the two"),
        ("elect s --value v", "--value is what the others see of one who leads; say what to run meanwhile: -- COMMAND"),
    ] {
        assert_eq!(told(words).await, (Some(2), String::new(), format!("vez: {why}\n")), "{words}");
    }
}

#[tokio::test]
async fn a_name_is_one_thing_at_a_time() {
    let machines = Machines::new(2, LONG_LEASE).await;
    let plain = machines.inside(1, &["lock", "orders"]).await;
    let read = machines.inside(1, &["lock", "-s", "catalogue"]).await;
    let units = machines.inside(1, &["sem", "db", "--limit", "5"]).await;
    let place = machines.inside(1, &["group", "room", "chess"]).await;
    let leads = machines.inside(1, &["elect", "s"]).await;
    for (words, why) in [
        ("lock -s orders true", "orders is a plain lock here: leave out -s and -x"),
        ("lock -x orders true", "orders is a plain lock here: leave out -s and -x"),
        ("sem orders --limit 2 true", "orders is a plain lock here: say `vez lock orders`"),
        ("lock catalogue true", "catalogue is used with -s and -x here: say one of them"),
        (
            "lock a catalogue -- true",
            "catalogue is used with -s and -x here, which are for one name: take it by itself",
        ),
        ("group catalogue x true", "catalogue is used with -s and -x here: say `vez lock -s catalogue`"),
        (
            "sem db --limit 3 true",
            "db is a semaphore of 5, not of 3: say --limit 5, change it with `vez sem db --resize 3`",
        ),
        ("lock db true", "db is a semaphore of 5 here: say `vez sem db --limit 5`"),
        ("lock room true", "room is a group here: say `vez group room SESSION`"),
        ("sem room --resize 2", "room is a group here: say `vez group room SESSION`"),
        ("lock s true", "s is an election here: say `vez elect s`"),
        ("elect orders", "orders is a plain lock here: say `vez lock orders`"),
        ("elect orders --observe", "orders is a plain lock here: say `vez lock orders`"),
        ("elect orders true", "orders is a plain lock here: say `vez lock orders`"),
    ] {
        // At the node of those who hold it, and at another.
        for node in [1, 2] {
            let told = machines.told(node, &words.split(' ').collect::<Vec<_>>()).await;
            let why = format!("vez: {why}, or take another name\n");
            assert_eq!(told, (Some(2), String::new(), why), "{words}, node {node}");
        }
    }
    for inside in [plain, read, units, place, leads] {
        assert_eq!(inside.end().await, Some(0));
    }
    // Nobody uses it any more.
    assert_eq!(machines.told(2, &["lock", "-x", "orders", "true"]).await.0, Some(0));
}
