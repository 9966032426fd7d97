//! What lock libraries that were written for Redis say, and what is answered: by the node that keeps a lock, and by others.

use std::{sync::Arc, time::Duration};

use tempfile::TempDir;
use tokio::time::timeout;
use vez::{Node, Standings};

use crate::raw::{LONG, Raw};

const COMPARE_AND_DELETE: &str =
    "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"del\",KEYS[1]) else return 0 end";
const COMPARE_AND_EXPIRE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end";

/// Some nodes of one cluster, with a client of each.
async fn cluster<const NODES: usize>() -> (TempDir, [Node; NODES], [Raw; NODES]) {
    let folder = tempfile::tempdir().unwrap();
    let (mut nodes, mut clients): (Vec<Node>, Vec<Raw>) = (Vec::new(), Vec::new());
    for number in 1..=NODES {
        let number = u16::try_from(number).unwrap();
        let builder = Node::builder(number, folder.path().join(number.to_string())).client_addr("127.0.0.1:0");
        let builder = builder.compat_ttl(Duration::from_secs(10));
        let node = match nodes.first() {
            None => builder.bootstrap().lease(Duration::from_millis(600)).start().await.unwrap(),
            Some(first) => builder.join([first.peer_addr().to_string()]).start().await.unwrap(),
        };
        let settled = async {
            while !matches!(node.status().map(|status| status.standing), Some(Standings::Settled { .. })) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LONG, settled).await.expect("it becomes a member");
        clients.push(Raw::new(&node).await);
        nodes.push(node);
    }
    (folder, nodes.try_into().unwrap(), clients.try_into().ok().unwrap())
}

fn number(answer: &str) -> i64 {
    answer.strip_prefix(':').unwrap_or_else(|| panic!("{answer}")).parse().unwrap()
}

/// A request whose words may be anything.
async fn eval(client: &mut Raw, words: &[&str]) -> String {
    client.words(words).await;
    client.hear(1).await
}

#[tokio::test]
async fn a_lock_belongs_to_its_name_and_value_at_every_node() {
    let (_folder, _nodes, [mut one, mut other]) = cluster().await;
    assert_eq!(one.ask("GET a", 1).await, "$-1");
    assert_eq!(one.ask("SET a me NX PX 5000", 1).await, "+OK");
    for client in [&mut one, &mut other] {
        assert_eq!(client.ask("SET a you PX 5000 NX", 1).await, "$-1", "somebody has it");
        assert_eq!(client.ask("LOCK a WAIT 0", 1).await, "$-1");
        assert_eq!(client.ask("GET a", 2).await, "$2 me");
        assert_eq!(client.ask("EXISTS a b a", 1).await, ":2");
        assert!((1..=5000).contains(&number(&client.ask("PTTL a", 1).await)));
        assert!((1..=5).contains(&number(&client.ask("TTL a", 1).await)));
        assert_eq!(eval(client, &["EVAL", COMPARE_AND_DELETE, "1", "a", "you"]).await, ":0", "it is not theirs");
        assert_eq!(eval(client, &["EVAL", COMPARE_AND_EXPIRE, "1", "a", "me", "7000"]).await, ":1");
        assert!(number(&client.ask("PTTL a", 1).await) > 5000);
        assert_eq!(client.ask("PEXPIRE a 4000", 1).await, ":1", "it may be shortened");
        assert!(number(&client.ask("PTTL a", 1).await) <= 4000);
    }
    assert_eq!(eval(&mut other, &["EVAL", COMPARE_AND_DELETE, "1", "a", "me"]).await, ":1");
    assert_eq!(eval(&mut one, &["EVAL", COMPARE_AND_DELETE, "1", "a", "me"]).await, ":0", "it is gone");
    assert_eq!((one.ask("PTTL a", 1).await, other.ask("TTL a", 1).await), (":-2".into(), ":-2".into()));
    assert_eq!(other.ask("SET a you NX", 1).await, "+OK");
    let left = number(&one.ask("PTTL a", 1).await);
    assert!((9000..=10_000).contains(&left), "without a time, as long as may be: {left}");
    assert_eq!(one.ask("DEL b a", 1).await, ":1");
    let fence = one.lock("a").await;
    assert_eq!(other.ask("SET a you NX PX 100", 1).await, "$-1", "a lock is a lock");
    assert_eq!(other.ask("GET a", 1).await, "$-1", "and has no value");
    assert_eq!(one.ask(&format!("UNLOCK a {fence}"), 1).await, "+OK");
}

#[tokio::test]
async fn it_does_not_end_with_a_connection_but_with_its_time() {
    let (_folder, nodes, [mut one]) = cluster().await;
    assert_eq!(one.ask("SET a me NX PX 300", 1).await, "+OK");
    assert_eq!(one.ask("SET b me NX PX 10000", 1).await, "+OK");
    // The removal delay that `b` needed covers this shorter TTL, so the node grants it without waiting for a quorum.
    assert_eq!(one.ask("SET c me NX PX 9000", 1).await, "+OK");
    drop(one);
    let mut next = Raw::new(&nodes[0]).await;
    for name in ["b", "c"] {
        assert_eq!(next.ask(&format!("GET {name}"), 2).await, "$2 me");
    }
    let since = std::time::Instant::now();
    next.lock("a").await;
    assert!(since.elapsed() < LONG);
    assert_eq!(next.ask("GET b", 2).await, "$2 me", "and not before its time");
    assert_eq!(next.ask("EXPIRE b 0", 1).await, ":1");
    next.lock("b").await;
}

#[tokio::test]
async fn scripts_are_known_by_what_they_mean() {
    let (_folder, _nodes, [mut one, mut other]) = cluster().await;
    one.words(&["SCRIPT", "LOAD", COMPARE_AND_DELETE]).await;
    let sum = one.hear(2).await.strip_prefix("$40 ").expect("its SHA-1").to_owned();
    assert_eq!(one.ask(&format!("SCRIPT EXISTS {sum} {}", "0".repeat(40)), 3).await, "*2 :1 :0");
    assert_eq!(one.ask("SET a me NX PX 5000", 1).await, "+OK");
    assert_eq!(one.ask(&format!("EVALSHA {sum} 1 a you"), 1).await, ":0");
    let unknown = "-NOSCRIPT No matching script. Please use EVAL.";
    assert_eq!(other.ask(&format!("EVALSHA {sum} 1 a me"), 1).await, unknown, "another node has not heard of it");
    assert_eq!(eval(&mut other, &["EVAL", COMPARE_AND_DELETE, "1", "a", "you"]).await, ":0");
    assert_eq!(other.ask(&format!("EVALSHA {sum} 1 a me"), 1).await, ":1", "now it has");
    assert_eq!(other.ask("SCRIPT FLUSH", 1).await, "+OK");
    assert_eq!(other.ask(&format!("EVALSHA {sum} 1 a me"), 1).await, unknown);
    let not_known = "-ERR this script is not known here: ";
    assert!(
        eval(&mut one, &["EVAL", "return redis.call('set', KEYS[1], ARGV[1])", "1", "a", "b"])
            .await
            .starts_with(not_known)
    );
    one.words(&["SCRIPT", "LOAD", "return 1"]).await;
    assert!(one.hear(1).await.starts_with(not_known));
    assert!(one.ask("EVALSHA x 2 a", 1).await.starts_with("-ERR wrong number of arguments for 'EVALSHA'"));
    assert!(eval(&mut one, &["EVAL", COMPARE_AND_EXPIRE, "1", "a", "me"]).await.starts_with("-ERR this script wants "));
    assert!(
        eval(&mut one, &["EVAL", COMPARE_AND_EXPIRE, "1", "a", "me", "soon"])
            .await
            .starts_with("-ERR value is not an integer")
    );
}

#[tokio::test]
async fn what_is_wrong_is_said_in_words() {
    let (_folder, _nodes, [mut one]) = cluster().await;
    let set = "-ERR SET is for locks here, and takes those that nobody has; write SET name value NX [PX milliseconds], or EX seconds";
    for said in ["SET a", "SET a b", "SET a b PX 5", "SET a b XX", "SET a b NX GET", "SET a b NX KEEPTTL"] {
        assert_eq!(one.ask(said, 1).await, set, "{said}");
    }
    assert_eq!(one.ask("SET a b NX PX 0", 1).await, "-ERR invalid expire time in 'set' command");
    assert!(one.ask("SET a b NX PX", 1).await.starts_with("-ERR wrong number of arguments for 'SET'"));
    let long = "-ERR a lock by SET is kept for at most 10000 ms here, not 10001; take less, or start the nodes with a longer --compat-ttl";
    assert_eq!(one.ask("SET a b NX PX 10001", 1).await, long);
    assert_eq!(one.ask("SET a b NX EX 10", 1).await, "+OK");
    assert!(
        one.ask("PEXPIRE a 20000", 1)
            .await
            .starts_with("-ERR a lock by SET is kept for at most 10000 ms here, not 20000")
    );
    assert!(
        one.ask("PEXPIRE a soon", 1).await.starts_with("-ERR 'soon' is no number; write PEXPIRE name milliseconds")
    );
    assert_eq!(one.ask("PEXPIRE b 20000", 1).await, ":0");
    let value = "x".repeat(1025);
    assert!(one.ask(&format!("SET b {value} NX"), 1).await.starts_with("-ERR a label, a value, or what a leader"));
    assert_eq!(one.ask("LOCK b WAIT 0", 2).await.len(), 24, "and nothing of it is left");
    one.words(&["SEM", "s", "3"]).await;
    one.hear(5).await;
    assert!(one.ask("SET s b NX", 1).await.starts_with("-MISMATCH s is a semaphore of 3, not a lock"));
}

#[tokio::test]
async fn who_leaves_waits_for_what_it_keeps() {
    let (_folder, [one, _two], [mut first, mut other]) = cluster().await;
    assert_eq!(first.ask("SET a me NX PX 1500", 1).await, "+OK");
    let one = Arc::new(one);
    let leaves = Arc::clone(&one);
    let left = tokio::spawn(async move { leaves.leave(Duration::ZERO).await });
    while !matches!(one.status().map(|status| status.standing), Some(Standings::Leaving { .. })) {
        tokio::task::yield_now().await;
    }
    // It is asked for all the time, and not had before its time is over.
    while other.ask("SET a you NX PX 1000", 1).await == "$-1" {
        assert!(!left.is_finished(), "a lock that was kept was left behind");
        // And nobody can make it stay.
        let longer = eval(&mut other, &["EVAL", COMPARE_AND_EXPIRE, "1", "a", "me", "9000"]).await;
        assert!(longer == ":0" || longer.starts_with("-LEAVING"), "{longer}");
    }
    timeout(LONG, left).await.expect("it leaves").unwrap();
}
