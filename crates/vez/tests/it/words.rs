//! The words of each primitive, and what is answered, byte by byte.

use tokio::time::timeout;
use vez::{Fence, Node};

use crate::raw::{HELLO_LINES, LONG, Raw, node, waiters};

/// Fences that are answered as an array.
fn fences(answer: &str) -> Vec<Fence> {
    answer.split(' ').filter(|word| word.len() == 20).map(|word| word.parse().unwrap()).collect()
}

#[tokio::test]
async fn a_semaphore() {
    let (_folder, node) = node().await;
    let (mut one, mut other) = (Raw::new(&node).await, Raw::new(&node).await);
    let first = fences(&one.ask("SEM a 3 TAKE 2", 5).await);
    assert_eq!(first.len(), 2, "its fence, and the oldest that is alive");
    let second = fences(&one.ask("sem a 3 ttl 60000 wait 0", 5).await);
    assert_eq!(second[1], first[0], "a connection may have some units, and then some more");
    assert_eq!(other.ask("SEM a 3 WAIT 0", 1).await, "$-1");
    assert!(other.ask("SEM a 3 TAKE 4", 1).await.starts_with("-ERR a has 3 units and can never give 4"));
    assert!(other.ask("SEM a 2", 1).await.starts_with("-MISMATCH a is a semaphore of 3, not a semaphore of 2"));
    assert!(other.ask("LOCK a", 1).await.starts_with("-MISMATCH a is a semaphore of 3, not a lock"));
    let resized: Fence = other.ask("SEM a RESIZE 4", 2).await.strip_prefix("$20 ").unwrap().parse().unwrap();
    assert!(resized > second[0]);
    let third = fences(&other.ask("SEM a 4", 5).await);
    assert!(third[0] > resized);
    assert_eq!(one.ask(&format!("LEAVE a {}", first[0]), 1).await, "+OK");
    assert!(one.ask(&format!("LEAVE a {}", first[0]), 1).await.starts_with("-NOTYOURS"));
    assert_eq!(fences(&other.ask("SEM a 4 TAKE 2 WAIT 0", 5).await)[1], second[0]);
    drop((one, other));
    let mut next = Raw::new(&node).await;
    let words = "-ERR a is not in use; whoever takes it first says how many units it has";
    timeout(LONG, async { while next.ask("SEM a RESIZE 9", 1).await != words {} }).await.expect("who goes has nothing");
}

#[tokio::test]
async fn a_group_readers_and_writers() {
    let (_folder, node) = node().await;
    let (mut one, mut other) = (Raw::new(&node).await, Raw::new(&node).await);
    for (first, beside, against) in
        [("ENTER a x", "ENTER a x", "ENTER a y WAIT 0"), ("READ b", "READ b TTL 60000", "WRITE b WAIT 0")]
    {
        one.say(first).await;
        other.say(beside).await;
        let (fence, same) = (one.granted().await, other.granted().await);
        assert_eq!(fence, same, "they share it");
        let mut third = Raw::new(&node).await;
        assert_eq!(third.ask(against, 1).await, "$-1");
        assert!(one.ask(first, 1).await.starts_with("-ALREADYYOURS"));
        let name = &first[first.len() - 1..].replace('x', "a");
        assert_eq!(one.ask(&format!("LEAVE {name} {fence}"), 1).await, "+OK");
        assert_eq!(other.ask(&format!("UNLOCK {name} {fence}"), 1).await, "+OK");
        third.say(against).await;
        assert!(third.granted().await > fence);
    }
}

#[tokio::test]
async fn an_election_and_who_observes_it() {
    let (_folder, node) = node().await;
    let mut sees = Raw::new(&node).await;
    sees.say("HELLO 3").await;
    assert!(sees.ask("OBSERVE a", HELLO_LINES + 1).await.ends_with("+OK"));
    assert_eq!(sees.hear(7).await, ">4 $6 leader $1 a _ _");
    let mut one = Raw::new(&node).await;
    assert_eq!(one.ask("LEADER a", 1).await, "$-1");
    one.say("CAMPAIGN a me").await;
    let fence = one.granted().await;
    assert_eq!(sees.hear(9).await, format!(">4 $6 leader $1 a $20 {fence} $2 me"));
    assert_eq!(one.ask("LEADER a", 5).await, format!("*2 $20 {fence} $2 me"));
    // Sights come between answers.
    assert_eq!(sees.ask("PING", 1).await, "+PONG");
    assert_eq!(one.ask(&format!("RESIGN a {fence}"), 1).await, "+OK");
    assert_eq!(sees.hear(7).await, ">4 $6 leader $1 a _ _");
    assert_eq!(sees.ask("UNOBSERVE a", 1).await, ":1");
    assert_eq!(sees.ask("UNOBSERVE a", 1).await, ":0");
    one.say("CAMPAIGN a again").await;
    one.granted().await;
    assert_eq!(sees.ask("PING", 1).await, "+PONG", "and it sees nothing any more");
    // In RESP2 a sight looks like an answer: a connection that observes does little else.
    assert_eq!(one.ask("OBSERVE b", 1).await, "+OK");
    assert_eq!(one.hear(7).await, "*4 $6 leader $1 b $-1 $-1");
    assert!(one.ask("STATUS", 1).await.starts_with("-ERR in RESP2 a connection that observes takes OBSERVE, "));
    assert_eq!(one.ask("PING", 1).await, "+PONG");
    assert_eq!(one.ask("RESET", 1).await, "+RESET");
    assert!(one.ask("OBSERVE a b", 1).await.starts_with("-ERR wrong number of arguments for 'OBSERVE'"));
    // What is no election is said when it is known.
    let fence = one.lock("lock").await;
    assert_eq!(sees.ask("OBSERVE lock", 1).await, "+OK");
    let why = sees.hear(7).await;
    assert!(
        why.starts_with(">3 $10 unobserved $4 lock $") && why.ends_with("release it everywhere, or take another name")
    );
    assert!(one.ask(&format!("UNLOCK lock {fence}"), 1).await == "+OK");
}

#[tokio::test]
async fn several_locks_at_once() {
    let (_folder, node) = node().await;
    let (mut one, mut other) = (Raw::new(&node).await, Raw::new(&node).await);
    let b = other.lock("b").await;
    assert_eq!(one.ask("LOCKALL 2 b a WAIT 0", 1).await, "$-1");
    assert_eq!(one.ask("LOCKALL 2 b a WAIT 20", 1).await, "$-1");
    other.lock("a WAIT 0").await;
    one.say("LOCKALL 3 c b a").await;
    waiters(&node, 1).await;
    drop(other);
    let got = fences(&one.hear(7).await);
    assert!(got.len() == 3 && got[1] > b, "in the order in which they were asked for: {got:?}");
    let mut other = Raw::new(&node).await;
    for name in ["a", "b", "c"] {
        assert_eq!(other.ask(&format!("LOCK {name} WAIT 0"), 1).await, "$-1");
    }
    assert!(one.ask("LOCKALL 2 d a", 1).await.starts_with("-ALREADYYOURS"));
    assert!(one.ask(&format!("EXTEND b {} 1000", got[1]), 1).await.starts_with(':'));
    assert_eq!(one.ask(&format!("UNLOCK b {}", got[1]), 1).await, "+OK");
    other.lock("b").await;
    drop(one);
    other.lock("a").await;
    other.lock("c").await;
    for wrong in ["LOCKALL", "LOCKALL 0", "LOCKALL 2 a", "LOCKALL 0 a"] {
        assert!(other.ask(wrong, 1).await.starts_with("-ERR wrong number of arguments for 'LOCKALL'"), "{wrong}");
    }
    assert!(other.ask("LOCKALL 1 a b", 1).await.starts_with("-ERR 'b' is not known here; write LOCKALL"));
    assert!(other.ask("LOCKALL x a", 1).await.starts_with("-ERR 'x' is no number; write LOCKALL"));
}

#[tokio::test]
async fn who_loses_several_by_force_keeps_what_else_it_has() {
    let (_folder, node) = node().await;
    for revoked in [0, 1] {
        let (mut one, mut other) = (Raw::new(&node).await, Raw::new(&node).await);
        let beside = one.lock("z").await;
        let got = fences(&one.ask("LOCKALL 2 a b", 5).await);
        let name = ["a", "b"][revoked];
        assert_eq!(other.ask(&format!("REVOKE {name} {}", got[revoked]), 1).await, "+OK");
        assert!(one.ask(&format!("UNLOCK a {}", got[0]), 1).await.starts_with("-LOST"), "one is all");
        assert!(one.ask(&format!("UNLOCK b {}", got[1]), 1).await.starts_with("-LOST"));
        assert_eq!(one.ask(&format!("UNLOCK z {beside}"), 1).await, "+OK", "and this is another thing");
    }
}

#[tokio::test]
async fn several_locks_with_a_time_of_their_own() {
    let (_folder, node) = node().await;
    let (mut one, mut other) = (Raw::new(&node).await, Raw::new(&node).await);
    one.say("LOCKALL 2 a b TTL 100").await;
    assert_eq!(fences(&one.hear(5).await).len(), 2);
    // It is silent, and so both are lost.
    other.lock("a").await;
    other.lock("b").await;
    assert!(one.ask("LOCK a WAIT 0", 1).await == "$-1", "and it knows");
}

#[tokio::test]
async fn what_is_wrong_is_said_in_words() {
    let (_folder, node) = node().await;
    let mut one = Raw::new(&node).await;
    for (said, answer) in [
        ("SEM a", "-ERR wrong number of arguments for 'SEM'; write SEM name units [TAKE units]"),
        ("SEM a 4294967296", "-ERR 4294967296 is too many; write SEM name"),
        ("SEM a 0", "-ERR a cannot have 0 units, and nobody can take 0 of them; say at least 1"),
        ("SEM a 2 TAKE 0", "-ERR a cannot have 0 units, and nobody can take 0 of them; say at least 1"),
        ("SEM a RESIZE", "-ERR wrong number of arguments for 'SEM'"),
        ("SEM a RESIZE 0", "-ERR a cannot have 0 units, and nobody can take 0 of them; say at least 1"),
        ("ENTER a", "-ERR wrong number of arguments for 'ENTER'; write ENTER name session"),
        ("CAMPAIGN a", "-ERR wrong number of arguments for 'CAMPAIGN'; write CAMPAIGN name value"),
        ("LEAVE a", "-ERR wrong number of arguments for 'LEAVE'; write LEAVE name fence"),
        ("RESIGN a b", "-ERR \"b\" is no fence"),
        ("READ a TTL 0", "-ERR a TTL of 0 would be over at once; say at least 1"),
        ("WRITE a SOON", "-ERR 'SOON' is not known here; write WRITE name"),
    ] {
        let heard = one.ask(said, 1).await;
        assert!(heard.starts_with(answer), "{said}: {heard}");
    }
    let long = format!("ENTER a {}", "x".repeat(1025));
    assert!(
        one.ask(&long, 1)
            .await
            .starts_with("-ERR a label, a value, or what a leader wants to be seen, has at most 1024 bytes")
    );
}

/// How much is held and waited for.
#[tokio::test]
async fn nothing_of_a_connection_stays() {
    let (_folder, node) = node().await;
    let mut one = Raw::new(&node).await;
    for said in ["SEM a 2", "ENTER b x", "READ c", "CAMPAIGN d me", "LOCKALL 2 e f", "OBSERVE g", "OBSERVE d"] {
        one.say(said).await;
    }
    let used = |node: &Node| node.status().map_or(0, |status| status.used_names);
    let all = async {
        while used(&node) != 7 {
            tokio::task::yield_now().await
        }
    };
    timeout(LONG, all).await.expect("all of it is there");
    drop(one);
    let gone = async {
        while used(&node) != 0 {
            tokio::task::yield_now().await
        }
    };
    timeout(LONG, gone).await.expect("and gone");
}
