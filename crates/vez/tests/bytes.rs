//! Whatever bytes clients and strangers send: no panic, no growth. It is alone in its program, since all that is allocated and every
//! panic in it is counted.

use std::{
    alloc::System,
    net::SocketAddr,
    panic,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use proptest::{prelude::*, test_runner::TestRunner};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};
use vez::{Client, Node};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;
static PANICS: AtomicUsize = AtomicUsize::new(0);

const LONG: Duration = Duration::from_secs(30);
/// What is sent before anything is counted, and while it is.
const ROUNDS: [u32; 2] = [500, 3000];
/// What sockets and tables keep for the next time differs from run to run: less than a byte for each that was sent.
const ROOM: f64 = 64.0 * 1024.0;

/// Words that requests are made of, and some that they are not.
fn word() -> impl Strategy<Value = Vec<u8>> {
    let known =
        ["LOCK", "UNLOCK", "EXTEND", "LS", "SHOW", "STATUS", "HELLO", "CLIENT", "COMMAND", "INFO", "SELECT", "RESET"];
    let more = ["TTL", "WAIT", "COUNT", "a", "b", "0", "1", "3", "00503808322474868753", "SETNAME", "REVOKE", "EVICT"];
    prop_oneof![
        4 => prop::sample::select([&known[..], &more[..]].concat()).prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..300),
    ]
}

fn request() -> impl Strategy<Value = Vec<u8>> {
    let well_formed = prop::collection::vec(word(), 0..6).prop_map(|words| {
        let mut out = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            out.extend_from_slice(&word);
            out.extend_from_slice(b"\r\n");
        }
        out
    });
    prop_oneof![3 => well_formed, 1 => prop::collection::vec(any::<u8>(), 0..200)]
}

/// What goes to the port for other nodes: the beginning of a connection, and then bytes of which a length is told, rightly or not.
fn letters() -> impl Strategy<Value = Vec<u8>> {
    let body = prop::collection::vec(prop_oneof![0..8_u8, any::<u8>()], 0..300);
    let letter = (body, any::<bool>(), any::<u32>()).prop_map(|(body, right, wrong)| {
        let length = if right { u32::try_from(body.len()).unwrap() } else { wrong };
        [&length.to_le_bytes(), &body[..]].concat()
    });
    let letters = prop::collection::vec(letter, 0..8).prop_map(|letters| letters.concat());
    (any::<bool>(), letters)
        .prop_map(|(greets, letters)| if greets { [b"vez/1\r\n\0", &letters[..]].concat() } else { letters })
}

/// Sends something, and hears all that is said to it.
async fn send(to: SocketAddr, bytes: &[u8]) {
    let mut stranger = TcpStream::connect(to).await.unwrap();
    let _ = stranger.write_all(bytes).await; // It may have been closed already.
    let _ = stranger.shutdown().await;
    let _ = timeout(LONG, stranger.read_to_end(&mut Vec::new())).await.expect("its connection ends");
}

/// What is allocated when nothing of any client is there any more.
async fn live_bytes(node: &Node) -> usize {
    let nothing_stays = async {
        while node.status().is_none_or(|status| (status.sessions, status.used_names, status.names) != (0, 0, 0)) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, nothing_stays).await.expect("nothing of them stays");
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

#[test]
fn whatever_is_sent_nothing_panics_and_nothing_grows() {
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        default(info);
    }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let builder = Node::builder(1, folder.path().join("1")).client_addr("127.0.0.1:0").idle(Duration::from_millis(200));
    let node = runtime.block_on(builder.bootstrap().start()).unwrap();
    runtime.block_on(node.ready());
    let (clients, peers) = (node.client_addr().unwrap(), node.peer_addr());
    let requests = prop::collection::vec(request(), 1..8).prop_map(|requests| requests.concat());
    let cases = prop_oneof![(Just(clients), requests.boxed()), (Just(peers), letters().boxed())];
    let live = ROUNDS.map(|rounds| {
        let config = ProptestConfig { cases: rounds, failure_persistence: None, ..ProptestConfig::default() };
        let ran = TestRunner::new(config).run(&cases, |(to, bytes)| {
            runtime.block_on(send(to, &bytes));
            prop_assert_eq!(PANICS.swap(0, Ordering::Relaxed), 0, "something panicked");
            Ok(())
        });
        ran.unwrap();
        runtime.block_on(live_bytes(&node))
    });
    assert!(live[1] as f64 <= live[0] as f64 * 1.1 + ROOM, "bytes before and after: {live:?}");
    // All that they held is free.
    runtime.block_on(async {
        let client = Client::connect(clients.to_string()).await.unwrap();
        timeout(LONG, client.lock("a")).await.expect("in time").unwrap();
    });
}
