//! Commands that are inside together, and those that are not.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::machines::{Machines, eventually, finish, is_there};

/// Nothing in these tests waits for a lease to run out.
const LONG_LEASE: Duration = Duration::from_secs(50);

#[tokio::test]
async fn readers_run_side_by_side_and_a_writer_alone() {
    let machines = Machines::new(2, LONG_LEASE).await;
    let readers = [machines.inside(1, &["lock", "-s", "r"]).await, machines.inside(2, &["lock", "-s", "r"]).await];
    assert_eq!(machines.told(1, &["lock", "-n", "-x", "r", "true"]).await.0, Some(1));
    let writer = machines.waiting(2, &["lock", "-x", "r"]);
    machines.waiters(1, "r", 1).await;
    for reader in readers {
        assert!(!writer.was_in());
        assert_eq!(reader.end().await, Some(0));
    }
    writer.is_in().await;
    for way in ["-s", "-x"] {
        assert_eq!(machines.told(1, &["lock", "-n", "-E", "9", way, "r", "true"]).await.0, Some(9));
    }
    assert_eq!(writer.end().await, Some(0));
}

#[tokio::test]
async fn those_of_a_session_run_together() {
    let machines = Machines::new(2, LONG_LEASE).await;
    let chess =
        [machines.inside(1, &["group", "room", "chess"]).await, machines.inside(2, &["group", "room", "chess"]).await];
    let other = machines.waiting(1, &["group", "room", "go"]);
    machines.waiters(1, "room", 1).await;
    for chess in chess {
        assert!(!other.was_in());
        assert_eq!(chess.end().await, Some(0));
    }
    other.is_in().await;
    assert_eq!(machines.told(2, &["group", "-n", "room", "chess", "true"]).await.0, Some(1));
    assert_eq!(other.end().await, Some(0));
}

/// Runs a command again and again, in several processes at once: each with words of its own.
async fn crowd(machines: &Machines, words: &[&[&str]], rounds: usize) {
    let mut crowd = JoinSet::new();
    for (at, words) in words.iter().enumerate() {
        let node = u16::try_from(at % machines.nodes.len() + 1).unwrap();
        let mut command = machines.vez(node, words);
        crowd.spawn(async move {
            for _ in 0..rounds {
                let output = finish(command.spawn().unwrap()).await;
                assert_eq!(output.status.code(), Some(0));
            }
        });
    }
    while let Some(done) = crowd.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn who_takes_several_in_another_order_waits_and_not_for_ever() {
    let machines = Machines::new(2, LONG_LEASE).await;
    let counter = machines.file("counter");
    std::fs::write(&counter, "0\n").unwrap();
    let count = format!("read n < {0}; echo $((n + 1)) > {0}", counter.display());
    let command = ["--", "sh", "-c", &count];
    let names: [&[&str]; 4] = [&["a", "b"], &["b", "a"], &["c", "b", "a"], &["a", "c", "b"]];
    let words: Vec<Vec<&str>> = names.iter().map(|names| [&["lock"], *names, &command].concat()).collect();
    crowd(&machines, &words.iter().map(Vec::as_slice).collect::<Vec<_>>(), 25).await;
    assert_eq!(std::fs::read_to_string(&counter).unwrap(), "100\n");
}

#[tokio::test]
async fn a_semaphore_lets_in_as_many_as_there_are_units() {
    let machines = Machines::new(2, LONG_LEASE).await;
    let inside = machines.file("inside");
    std::fs::create_dir(&inside).unwrap();
    // Each is a file as long as it runs, and writes down how many there are.
    let script = format!("cd {}; : > $$; ls | wc -l >> ../counts; rm $$", inside.display());
    let one = ["sem", "db", "--limit", "3", "--", "sh", "-c", &script];
    let two = ["sem", "db", "--limit", "3", "--take", "2", "--", "sh", "-c", &script];
    crowd(&machines, &[&one, &one, &one, &two, &one, &one], 10).await;
    let counts = std::fs::read_to_string(machines.file("counts")).unwrap();
    let counts: Vec<u32> = counts.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert_eq!(counts.len(), 60);
    assert!(counts.iter().all(|count| (1..=3).contains(count)), "{counts:?}");
}

#[tokio::test]
async fn a_killed_holder_gives_back_its_units() {
    let machines = Machines::new(2, LONG_LEASE).await;
    let sem = |take| ["sem", "db", "--limit", "5", "--take", take];
    let mut large = machines.inside(1, &sem("3")).await;
    let small = machines.inside(2, &sem("2")).await;
    assert_eq!(machines.told(1, &["sem", "-n", "db", "--limit", "5", "true"]).await.0, Some(1));
    let waiter = machines.waiting(2, &sem("3"));
    machines.waiters(1, "db", 1).await;
    let child = large.is_in().await;
    large.wrapper.kill().await.unwrap();
    waiter.is_in().await;
    eventually(async || !is_there(&child)).await;
    assert_eq!((waiter.end().await, small.end().await), (Some(0), Some(0)));
}

#[tokio::test]
async fn who_takes_all_units_is_not_passed_by_those_who_take_one() {
    let machines = Machines::new(2, LONG_LEASE).await;
    let first = machines.inside(1, &["sem", "db", "--limit", "5"]).await;
    let large = machines.waiting(2, &["sem", "db", "--limit", "5", "--take", "5"]);
    machines.waiters(1, "db", 1).await;
    let mut small = Vec::new();
    for number in 2..6 {
        small.push(machines.waiting(1, &["sem", "db", "--limit", "5"]));
        machines.waiters(1, "db", number).await;
    }
    assert_eq!(first.end().await, Some(0));
    large.is_in().await;
    assert!(small.iter().all(|small| !small.was_in()));
    assert_eq!(large.end().await, Some(0));
    for small in small {
        assert_eq!(small.end().await, Some(0));
    }
}

#[tokio::test]
async fn a_semaphore_can_grow_and_shrink() {
    let machines = Machines::new(2, LONG_LEASE).await;
    let resize = async |units| machines.told(2, &["sem", "db", "--resize", units]).await;
    let unused = "vez: db is not in use; whoever takes it first says how many units it has\n";
    assert_eq!(resize("2").await, (Some(1), String::new(), unused.into()));
    let first = machines.inside(1, &["sem", "db", "--limit", "1"]).await;
    let second = machines.waiting(2, &["sem", "db", "--limit", "1"]);
    machines.waiters(1, "db", 1).await;
    assert_eq!(resize("2").await, (Some(0), String::new(), String::new()));
    second.is_in().await;
    assert_eq!(resize("1").await.0, Some(0));
    assert_eq!(second.end().await, Some(0));
    assert_eq!(machines.told(1, &["sem", "-n", "db", "--limit", "1", "true"]).await.0, Some(1));
    assert_eq!(first.end().await, Some(0));
}
