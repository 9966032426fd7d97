//! Semaphores, groups, readers and writers, elections, several locks at once: in process and from outside, by the same words.

use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;
use vez::{Client, Leader, Name, Node};

const LONG: Duration = Duration::from_secs(30);

/// Two nodes of one cluster.
async fn cluster() -> (TempDir, [Node; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let builder =
        |number: u16| Node::builder(number, folder.path().join(number.to_string())).client_addr("127.0.0.1:0");
    let first = builder(1).bootstrap().start().await.unwrap();
    first.ready().await;
    let second = builder(2).join([first.peer_addr().to_string()]).start().await.unwrap();
    timeout(LONG, second.ready()).await.expect("it becomes a member");
    (folder, [first, second])
}

/// The same test with two nodes in this process, and with clients of them.
macro_rules! both {
    ($name:ident, |$one:ident, $other:ident| $test:block) => {
        mod $name {
            use super::*;

            #[tokio::test]
            async fn in_process() {
                let (_folder, [$one, $other]) = cluster().await;
                $test
            }

            #[tokio::test]
            async fn from_outside() {
                let (_folder, nodes) = cluster().await;
                let connect = |at: usize| Client::connect(nodes[at].client_addr().unwrap().to_string());
                let ($one, $other) = (connect(0).await.unwrap(), connect(1).await.unwrap());
                $test
            }
        }
    };
}

/// It is had some time.
macro_rules! had {
    ($turn:expr) => {
        timeout(LONG, $turn).await.expect("it is our turn some time").expect("it is granted")
    };
}

both!(a_semaphore_has_so_many_units, |one, other| {
    let (of_one, of_other) = (one.semaphore("db", 3), other.semaphore("db", 3));
    let two = had!(of_one.acquire(2));
    let last = had!(of_other.acquire(1));
    assert!(of_one.acquire(1).now().await.unwrap().is_none(), "three are taken");
    assert!(two.fence() < last.fence() && last.floor() == two.fence(), "the oldest that is alive");
    let words = of_one.acquire(4).now().await.unwrap_err().to_string();
    assert_eq!(words, "db has 3 units and can never give 4; ask for at most 3");
    two.release().await.unwrap();
    let next = had!(of_one.acquire(2));
    assert!(next.floor() == last.fence());
    let words = other.semaphore("db", 4).acquire(1).now().await.unwrap_err().to_string();
    assert_eq!(words, "db is a semaphore of 3, not a semaphore of 4; release it everywhere, or take another name");
});

both!(a_semaphore_is_resized_while_it_is_in_use, |one, other| {
    let words = one.semaphore("db", 1).resize(2).await.unwrap_err().to_string();
    assert_eq!(words, "db is not in use; whoever takes it first says how many units it has");
    let first = had!(one.semaphore("db", 1).acquire(1));
    let size = had!(other.semaphore("db", 1).resize(2));
    assert_eq!(size.units, 2);
    let second = had!(other.semaphore("db", 2).acquire(1));
    assert!(second.fence() > size.since && size.since > first.fence());
    had!(one.semaphore("db", 2).resize(1));
    drop(first);
    assert!(other.semaphore("db", 1).acquire(1).now().await.unwrap().is_none(), "one is inside, and that is all");
    drop(second);
    had!(other.semaphore("db", 1).acquire(1));
});

both!(those_of_a_session_are_inside_together, |one, other| {
    let chess = had!(one.group("room").enter("chess"));
    let more = had!(other.group("room").enter("chess"));
    assert_eq!(chess.fence(), more.fence(), "they share a fence");
    assert!(other.group("room").enter("cards").now().await.unwrap().is_none());
    drop((chess, more));
    let cards = had!(other.group("room").enter("cards"));
    assert!(one.group("room").enter("chess").within(Duration::from_millis(20)).await.unwrap().is_none());
    drop(cards);
    had!(one.group("room").enter("chess"));
});

both!(readers_are_inside_together_and_a_writer_alone, |one, other| {
    let (first, second) = (had!(one.rw("book").read()), had!(other.rw("book").read()));
    assert!(one.rw("book").write().now().await.unwrap().is_none());
    let fence = first.fence();
    drop((first, second));
    let writer = had!(one.rw("book").write());
    assert!(writer.fence() > fence);
    assert!(other.rw("book").read().now().await.unwrap().is_none());
    assert!(other.rw("book").write().now().await.unwrap().is_none());
    let words = other.lock("book").now().await.unwrap_err().to_string();
    assert_eq!(words, "book is a lock of readers and writers, not a lock; release it everywhere, or take another name");
});

both!(one_leads_and_all_see_who, |one, other| {
    let mut sees = had!(other.elect("boss").observe());
    assert_eq!(had!(sees.next()), None, "nobody");
    let first = had!(one.elect("boss").campaign("one"));
    let leader = |fence, value: &str| Some(Leader { fence, value: value.into() });
    assert_eq!(had!(sees.next()), leader(first.fence(), "one"));
    assert!(other.elect("boss").campaign("other").now().await.unwrap().is_none());
    first.release().await.unwrap();
    let second = had!(other.elect("boss").campaign("other"));
    let mut seen = had!(sees.next());
    if seen.is_none() {
        seen = had!(sees.next()); // For a moment nobody led.
    }
    assert_eq!(seen, leader(second.fence(), "other"));
    let mut late = had!(one.elect("boss").observe());
    assert_eq!(had!(late.next()), seen, "how it is now");
    let _lock = had!(one.lock("lock"));
    let looked = async { had!(one.elect("boss").observe()).next().await }.await;
    assert_eq!(looked.unwrap(), seen);
    let words = async { other.elect("lock").observe().await.unwrap().next().await }.await.unwrap_err().to_string();
    assert_eq!(words, "lock is a lock, not an election; release it everywhere, or take another name");
});

both!(all_or_nothing, |one, other| {
    let b = had!(other.lock("b"));
    assert!(one.lock_all(["a", "b", "c"]).now().await.unwrap().is_none());
    assert!(other.lock("a").now().await.unwrap().is_some(), "of which nothing is left");
    assert!(one.lock_all(["a", "b"]).within(Duration::from_millis(20)).await.unwrap().is_none());
    assert!(other.lock("a").now().await.unwrap().is_some(), "of which nothing is left either");
    drop(b);
    let all = had!(one.lock_all(["c", "a", "b", "a"]));
    let names: Vec<String> = all.fences().map(|(name, _)| name.to_string()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!((all.name().to_string(), Some(all.fence())), ("a".into(), all.fences().next().map(|(_, fence)| fence)));
    for name in ["a", "b", "c"] {
        assert!(other.lock(name).now().await.unwrap().is_none(), "{name} is held");
    }
    assert!(!all.is_lost());
    all.release().await.unwrap();
    for name in ["a", "b", "c"] {
        had!(other.lock(name));
    }
    let one_of_one = had!(one.lock_all(["a"]));
    assert_eq!(one_of_one.fences().count(), 1);
    assert!(one.lock_all([""; 0]).now().await.is_err(), "nothing is no name");
});

both!(two_who_ask_in_opposite_order_do_not_wait_for_each_other, |one, other| {
    let forth = async {
        for _ in 0..100 {
            drop(had!(one.lock_all(["a", "b", "c"])));
        }
    };
    let back = async {
        for _ in 0..100 {
            drop(had!(other.lock_all(["c", "b", "a"])));
        }
    };
    tokio::join!(forth, back);
});

#[tokio::test]
async fn who_loses_one_of_several_loses_all() {
    let (_folder, [one, other]) = cluster().await;
    let (beside, all) = (one.lock("beside").await.unwrap(), one.lock_all(["a", "b"]).await.unwrap());
    let client = Client::connect(other.client_addr().unwrap().to_string()).await.unwrap();
    let remote = client.lock_all(["c", "d"]).await.unwrap();
    let lone = client.lock("lone").await.unwrap();
    for (name, fence) in all.fences().skip(1).chain(remote.fences().skip(1)) {
        one.force_release(name, fence).await.unwrap();
    }
    timeout(LONG, all.lost()).await.expect("it is lost");
    timeout(LONG, remote.lost()).await.expect("it is lost");
    assert!(all.is_lost() && all.release().await.is_err() && remote.release().await.is_err());
    for name in ["a", "b", "c", "d"] {
        had!(other.lock(name));
    }
    assert!(!beside.is_lost() && lone.release().await.is_ok(), "and nobody else loses anything");
}

#[tokio::test]
async fn who_shares_a_fence_with_another_that_takes_note_knows_of_its_own_loss() {
    let (_folder, [one, other]) = cluster().await;
    let (first, second) = (one.rw("book").read().await.unwrap(), one.rw("book").read().await.unwrap());
    other.force_release(first.name(), first.fence()).await.unwrap();
    timeout(LONG, first.lost()).await.expect("it is lost");
    drop(first);
    assert!(second.is_lost(), "and so is the other");
    timeout(LONG, second.lost()).await.expect("which hears of it");
    had!(other.rw("book").write());
}

#[tokio::test]
async fn a_weight_is_not_kept_waiting_by_lighter_ones_that_come_later() {
    let (_folder, [one, other]) = cluster().await;
    let first = had!(one.semaphore("db", 5).acquire(1));
    let other = std::sync::Arc::new(other);
    let heavy = tokio::spawn({
        let other = std::sync::Arc::clone(&other);
        async move { other.semaphore("db", 5).acquire(5).await.unwrap().fence() }
    });
    let name = Name::new(b"db").unwrap();
    let waits = async {
        while one.show(&name).await.reports.iter().map(|report| report.waiters).sum::<usize>() != 1 {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, waits).await.expect("it waits");
    assert!(one.semaphore("db", 5).acquire(1).now().await.unwrap().is_none(), "four are free, and promised");
    let light = one.semaphore("db", 5);
    let light = light.acquire(1).into_future();
    drop(first);
    let (light, heavy) = (had!(light), timeout(LONG, heavy).await.expect("in time").unwrap());
    assert!(heavy < light.fence(), "who came first is served first");
}

#[tokio::test]
async fn show_says_who_has_what_part_and_why_one_waits() {
    let (_folder, [one, other]) = cluster().await;
    let _two = had!(one.semaphore("db", 3).acquire(2));
    let waits = other.semaphore("db", 3);
    let mut waits = waits.acquire(2).into_future();
    assert!(timeout(Duration::from_millis(50), &mut waits).await.is_err());
    let shown = one.show(&Name::new(b"db").unwrap()).await;
    let held: Vec<_> = shown.reports.iter().flat_map(|report| &report.holders).collect();
    assert_eq!(held.iter().map(|held| held.part.as_deref()).collect::<Vec<_>>(), [Some("2 of 3")]);
    let waiting: Vec<_> = shown.reports.iter().flat_map(|report| &report.waiting).collect();
    assert_eq!(waiting.iter().map(|waiting| waiting.part.as_deref()).collect::<Vec<_>>(), [Some("2 of 3")]);
    let because: Vec<&str> = shown.reports.iter().map(|report| &*report.because).collect();
    let at_home = "2 of 3 units are taken, 1 left; 1 in line, the first to come first";
    assert!(because.contains(&at_home), "{because:?}");
}
