//! What clients say and hear, byte by byte.

use std::time::Duration;

use tokio::{io::AsyncWriteExt, time::timeout};
use vez::Node;

use crate::raw::{HELLO_LINES, LONG, Raw, node, waiters};

#[tokio::test]
async fn a_lock_is_taken_extended_and_given_back() {
    let (_folder, node) = node().await;
    let (mut one, mut other) = (Raw::new(&node).await, Raw::new(&node).await);
    let fence = one.lock("a").await;
    assert_eq!(other.ask("lock a wait 0", 1).await, "$-1");
    assert_eq!(other.ask("LOCK a WAIT 20", 1).await, "$-1");
    assert_eq!(
        other.ask(&format!("UNLOCK a {fence}"), 1).await,
        "-NOTYOURS a is not held by this session with this fence"
    );
    let left: u64 = one.ask(&format!("EXTEND a {fence} 60000"), 1).await.strip_prefix(':').unwrap().parse().unwrap();
    assert!(left <= 3000, "never past the lease of the node: {left}");
    assert_eq!(one.ask(&format!("UNLOCK a {fence}"), 1).await, "+OK");
    assert!(one.ask(&format!("UNLOCK a {fence}"), 1).await.starts_with("-NOTYOURS"));
    assert!(other.lock("a WAIT 0").await > fence);
}

#[tokio::test]
async fn who_goes_has_neither_locks_nor_a_place_in_the_line() {
    let (_folder, node) = node().await;
    let (mut one, mut two, mut three) = (Raw::new(&node).await, Raw::new(&node).await, Raw::new(&node).await);
    one.lock("a").await;
    two.say("LOCK a").await;
    waiters(&node, 1).await;
    three.say("LOCK a").await;
    waiters(&node, 2).await;
    drop(two);
    waiters(&node, 1).await;
    drop(one);
    three.granted().await;
    drop(three);
    timeout(LONG, nothing_stays(&node)).await.expect("nothing of them stays");
}

/// Waits until there are neither clients nor anything that they use.
async fn nothing_stays(node: &Node) {
    while node.status().is_none_or(|status| (status.sessions, status.used_names) != (0, 0)) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_lock_with_a_time_of_its_own_is_lost_by_silence_and_kept_by_any_byte() {
    let (_folder, node) = node().await;
    let (mut silent, mut loud, mut next) = (Raw::new(&node).await, Raw::new(&node).await, Raw::new(&node).await);
    assert!(silent.ask("HELLO 3", 1).await.starts_with('%'));
    silent.hear(HELLO_LINES - 1).await;
    let fence = silent.lock("a TTL 100").await;
    next.say("LOCK a").await;
    // It is told, and whoever waits has it.
    assert_eq!(silent.hear(6 + 1).await, format!(">3 $4 lost $1 a $20 {fence}"));
    assert!(next.hear(2).await.starts_with("$20 "));
    assert_eq!(
        silent.ask(&format!("UNLOCK a {fence}"), 1).await,
        "-LOST it is lost: its time was over, or that of its node, or it was taken away by force"
    );
    // For longer than it would have it in silence.
    let kept = loud.lock("b TTL 1500").await;
    for _ in 0..20 {
        assert_eq!(loud.ask("PING", 1).await, "+PONG");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(loud.ask(&format!("UNLOCK b {kept}"), 1).await, "+OK");
}

#[tokio::test]
async fn the_time_of_a_lock_counts_from_its_grant() {
    let (_folder, node) = node().await;
    let (mut one, mut other, mut last) = (Raw::new(&node).await, Raw::new(&node).await, Raw::new(&node).await);
    let fence = one.lock("a").await;
    other.say("LOCK a TTL 60").await;
    waiters(&node, 1).await;
    last.say("LOCK a").await;
    waiters(&node, 2).await;
    // Longer than it wants to have it, and it waits all the same, and has its place in the line.
    tokio::time::sleep(Duration::from_millis(180)).await;
    assert_eq!(one.ask(&format!("UNLOCK a {fence}"), 1).await, "+OK");
    let (second, third) = (other.granted().await, last.granted().await);
    assert!(fence < second && second < third, "{fence}, {second}, {third}");
}

#[tokio::test]
async fn who_asks_for_what_it_has_is_not_told_that_it_has_it_by_memory() {
    let (_folder, node) = node().await;
    let mut client = Raw::new(&node).await;
    client.lock("a TTL 1000").await;
    assert!(client.ask("LOCK a", 1).await.starts_with("-ALREADYYOURS "));
    client.say("LOCK a").await;
    // The node runs in this very thread: all of it sleeps, and the request is the first that it hears afterwards.
    std::thread::sleep(Duration::from_millis(1100));
    assert!(client.hear(1).await.starts_with("-LOST "));
}

#[tokio::test]
async fn mistakes_are_told_in_a_sentence() {
    let (_folder, node) = node().await;
    let mut client = Raw::new(&node).await;
    let long = "n".repeat(256);
    let mistakes = [
        (
            "NONSENSE",
            "-ERR unknown command 'NONSENSE'; there are LOCK, LOCKALL and UNLOCK, SEM, ENTER, READ, WRITE and LEAVE, CAMPAIGN, RESIGN, LEADER, OBSERVE and UNOBSERVE, EXTEND, LS, SHOW, STATUS, NODES, REVOKE, EVICT, SHUTDOWN, INFO and PING; and for lock libraries SET, GET, DEL, EXISTS, EXPIRE, PEXPIRE, TTL, PTTL, EVAL, EVALSHA and SCRIPT",
        ),
        (
            "LOCK",
            "-ERR wrong number of arguments for 'LOCK'; write LOCK name [TTL milliseconds] [WAIT milliseconds] [ELSEWHERE]",
        ),
        (
            "LOCK a SOON",
            "-ERR 'SOON' is not known here; write LOCK name [TTL milliseconds] [WAIT milliseconds] [ELSEWHERE]",
        ),
        ("LOCK a TTL -1", "-ERR '-1' is no number; write LOCK name [TTL milliseconds] [WAIT milliseconds] [ELSEWHERE]"),
        ("LOCK a TTL 0", "-ERR a TTL of 0 would be over at once; say at least 1"),
        ("UNLOCK a x", "-ERR \"x\" is no fence; a fence is a decimal number of at most 20 digits, as it was given out"),
        ("HELLO 4", "-NOPROTO there are RESP2 and RESP3; write HELLO 2 or HELLO 3"),
        ("AUTH x", "-NOPASSWORD this node wants no password; leave AUTH out"),
        ("SELECT 1", "-ERR there is one database, 0; leave SELECT out, or say SELECT 0"),
        ("EVICT 9", "-ERR there is no node 9; there are 1"),
        ("LS a COUNT x", "-ERR 'x' is no number; write LS [prefix] [COUNT number]"),
    ];
    for (said, told) in mistakes {
        assert_eq!(client.ask(said, 1).await, told, "{said}");
    }
    assert!(
        client.ask(&format!("LOCK {long}"), 1).await.starts_with("-ERR a name has at most 255 bytes, this one has 256")
    );
    client.say("*1").await;
    client.say(":1").await;
    assert_eq!(client.hear(1).await, "-ERR Protocol error: expected '$', got ':'");
    assert!(client.is_at_its_end().await);
}

#[tokio::test]
async fn nothing_is_told_without_the_password() {
    let folder = tempfile::tempdir().unwrap();
    let builder = Node::builder(1, folder.path().join("1")).client_addr("127.0.0.1:0").password("secret");
    let node = builder.bootstrap().start().await.unwrap();
    let mut client = Raw::new(&node).await;
    for command in ["PING", "LOCK a", "STATUS", "HELLO 3"] {
        assert!(client.ask(command, 1).await.starts_with("-NOAUTH"), "{command}");
    }
    assert!(client.ask("AUTH secre", 1).await.starts_with("-WRONGPASS"));
    assert!(client.ask("HELLO 2 AUTH default secrets", 1).await.starts_with("-WRONGPASS"));
    assert_eq!(client.ask("AUTH default secret", 1).await, "+OK");
    assert_eq!(client.ask("PING", 1).await, "+PONG");
    let address = node.client_addr().unwrap().to_string();
    assert!(vez::Client::connect(&address).await.is_err());
    vez::Client::connect_with(&address, Some("secret".into())).await.unwrap().lock("a").await.unwrap();
}

#[tokio::test]
async fn requests_are_answered_in_order_however_they_come() {
    let (_folder, node) = node().await;
    let mut client = Raw::new(&node).await;
    client.0.write_all(b"PING\r\nPING a\r\n*1\r\n$4\r\nPI").await.unwrap();
    assert_eq!(client.hear(3).await, "+PONG $1 a");
    client.0.write_all(b"NG\r\nECHO b\r\nQUIT\r\nPING\r\n").await.unwrap();
    assert_eq!(client.hear(4).await, "+PONG $1 b +OK");
    assert!(client.is_at_its_end().await);
}

/// What redis-cli and the libraries say before anything else.
#[tokio::test]
async fn what_clients_of_redis_say_at_first_is_answered() {
    let (_folder, node) = node().await;
    let mut client = Raw::new(&node).await;
    let said = [
        ("COMMAND DOCS", "*0"),
        ("COMMAND COUNT", ":0"),
        ("CLIENT SETINFO LIB-NAME redis-py", "+OK"),
        ("CLIENT SETINFO LIB-VER 6.4.0", "+OK"),
        ("CLIENT SETNAME worker", "+OK"),
        ("SELECT 0", "+OK"),
        ("RESET", "+RESET"),
    ];
    for (said, told) in said {
        assert_eq!(client.ask(said, 1).await, told, "{said}");
    }
    assert!(client.ask("CLIENT ID", 1).await.starts_with(':'));
    assert!(client.ask("HELLO 3", 1).await.starts_with("%8"));
    client.hear(HELLO_LINES - 1).await;
    assert_eq!(client.ask("LOCK a WAIT 0", 2).await.len(), "$20 ".len() + 20);
}
