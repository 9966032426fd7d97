//! What is refused, and to whom: too much of something, nobody's words, a node that cannot know.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::timeout,
};
use vez::{Client, ClientError, Name, Node};

const LONG: Duration = Duration::from_secs(30);

async fn node() -> (TempDir, Node) {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::builder(1, folder.path().join("1")).client_addr("127.0.0.1:0").bootstrap().start().await.unwrap();
    node.ready().await;
    (folder, node)
}

/// All that is answered to some bytes, until the other end closes.
async fn all_answers(to: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answers = String::new();
    timeout(LONG, stream.read_to_string(&mut answers)).await.expect("it closes").unwrap();
    answers
}

fn code(error: ClientError) -> String {
    match error {
        ClientError::Refused { code, .. } => code,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_browser_is_not_served() {
    let (_folder, node) = node().await;
    let port = node.client_addr().unwrap();
    for line in ["POST / HTTP/1.1", "GET / HTTP/1.1", "Host: here"] {
        let answers = all_answers(port, format!("{line}\r\n\r\nLOCK a\r\n").as_bytes()).await;
        assert_eq!(answers, "-ERR this is no HTTP port; metrics and status are on another\r\n");
    }
    assert!(node.lock("a").now().await.unwrap().is_some(), "what it said afterwards was not done");
    // A client of Redis says GET too, and so may a person.
    for get in ["*2\r\n$3\r\nGET\r\n$1\r\na\r\n", "GET a\r\n"] {
        let answers = all_answers(port, format!("{get}PING\r\nQUIT\r\n").as_bytes()).await;
        assert_eq!(answers, "$-1\r\n+PONG\r\n+OK\r\n");
    }
}

#[tokio::test]
async fn a_connection_has_one_of_each() {
    let (_folder, node) = node().await;
    let answers = all_answers(node.client_addr().unwrap(), b"LOCK a\r\nLOCK a WAIT 0\r\nLOCK b\r\nQUIT\r\n").await;
    let answers: Vec<&str> = answers.split("\r\n").collect();
    assert!(answers[2].starts_with("-ALREADYYOURS "), "{answers:?}");
    assert_eq!((answers[3], answers[5]), ("$20", "+OK"), "and goes on: {answers:?}");
}

#[tokio::test]
async fn a_connection_has_so_many_locks_with_a_time_of_their_own() {
    let (_folder, node) = node().await;
    let mut requests: String = (0..=128).map(|number| format!("LOCK a/{number} TTL 60000\r\n")).collect();
    requests += "LOCK b\r\nQUIT\r\n";
    let answers = all_answers(node.client_addr().unwrap(), requests.as_bytes()).await;
    let refused: Vec<&str> = answers.split("\r\n").filter(|line| line.starts_with('-')).collect();
    assert_eq!(refused, ["-TOOMANY a connection holds at most 128 locks with a TTL; take another"]);
    assert!(answers.ends_with("\r\n+OK\r\n") && answers.matches("$20\r\n").count() == 128 + 1, "{answers}");
}

#[tokio::test]
async fn nobody_calls_itself_by_a_long_name() {
    let (_folder, node) = node().await;
    let address = node.client_addr().unwrap().to_string();
    let connect = |length| Client::connect_as(address.clone(), None, Some("n".repeat(length)));
    assert!(connect(64).await.is_ok());
    assert!(matches!(connect(65).await, Err(ClientError::Refused { .. })));
}

#[tokio::test]
async fn who_says_nothing_to_a_node_is_not_kept() {
    let (_folder, node) = node().await;
    let mut known = TcpStream::connect(node.peer_addr()).await.unwrap();
    known.write_all(b"vez/1\r\n\0").await.unwrap();
    assert_eq!(all_answers(node.peer_addr(), b"").await, "");
    // One that has said what nodes say may be silent for longer.
    assert!(matches!(known.try_read(&mut [0; 1]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock));
}

#[tokio::test]
async fn a_listing_has_all_names_once_or_says_that_there_are_more() {
    let (folder, first) = node().await;
    let builder = Node::builder(2, folder.path().join("2")).client_addr("127.0.0.1:0");
    let second = builder.join([first.peer_addr().to_string()]).start().await.unwrap();
    second.ready().await;
    let (mut guards, mut names) = (Vec::new(), Vec::new());
    for number in 0..300 {
        names.push(format!("a/{number:03}"));
        let node = if number % 3 == 0 { &first } else { &second };
        guards.push(timeout(LONG, node.lock(&names[number])).await.expect("in time").unwrap());
    }
    let _other = first.lock("b").await.unwrap();
    let listed = async |prefix: &[u8], most| {
        let listing = first.list(prefix, most).await;
        assert!(listing.silent.is_empty());
        for picture in &listing.names {
            let holders: usize = picture.reports.iter().map(|report| report.holders.len()).sum();
            assert_eq!(holders, 1, "{:?}", picture.name);
        }
        let names: Vec<String> = listing.names.iter().map(|picture| picture.name.to_string()).collect();
        (names, listing.more)
    };
    assert_eq!(listed(b"a/", 1000).await, (names.clone(), false));
    assert_eq!(listed(b"a/", 100).await, (names[..100].to_vec(), true));
    assert_eq!(listed(b"c", 100).await, (Vec::new(), false));
    // However much there is to tell of each: clients whose names take four letters a byte, and who hold or wait.
    let address = second.client_addr().unwrap().to_string();
    let client = Client::connect_as(address, None, Some("\u{1}".repeat(64))).await.unwrap();
    let mut waiting = JoinSet::new();
    for number in 0..20 {
        let name = format!("c/{number:02}");
        guards.push(second.lock(&name).await.unwrap());
        for _ in 0..17 {
            let (client, name) = (client.clone(), name.clone());
            waiting.spawn(async move { client.lock(name).await.map(drop) });
        }
    }
    let all_wait = async {
        let waiters = |picture: &vez::Picture| picture.reports.iter().map(|report| report.waiters).sum::<usize>();
        while second.list(b"c/", 100).await.names.iter().map(waiters).sum::<usize>() < 20 * 17 {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, all_wait).await.expect("all wait");
    assert_eq!(listed(b"c/", 100).await.0.len(), 20);
}

#[tokio::test]
async fn one_that_is_no_member_does_not_say_that_nobody_holds_anything() {
    let folder = tempfile::tempdir().unwrap();
    let builder = Node::builder(2, folder.path()).client_addr("127.0.0.1:0").http_addr("127.0.0.1:0");
    let node = builder.join(["127.0.0.1:1"]).start().await.unwrap();
    let client = Client::connect(node.client_addr().unwrap().to_string()).await.unwrap();
    let fence = "00503808322474868753".as_bytes();
    let words: [&[&[u8]]; 5] =
        [&[b"SHOW", b"a"], &[b"LS"], &[b"REVOKE", b"a", fence], &[b"EVICT", b"1"], &[b"LOCK", b"a", b"WAIT", b"0"]];
    for words in words {
        assert_eq!(code(client.call(words).await.unwrap_err()), "NOMEMBER");
    }
    for path in ["/readyz", "/v1/locks", "/v1/locks/a"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
        let answer = all_answers(node.http_addr().unwrap(), request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{path}: {answer}");
    }
    // It is alive, and says what it waits for.
    let joins = async { while client.call(&[b"STATUS"]).await.unwrap()["state"] != "joining" {} };
    timeout(LONG, joins).await.expect("it wants to join");
}

#[tokio::test]
async fn a_client_goes_to_another_node_when_its_own_is_no_member() {
    let (folder, member) = node().await;
    let builder = Node::builder(2, folder.path().join("2")).client_addr("127.0.0.1:0").password("secret");
    let outsider = builder.join(["127.0.0.1:1"]).start().await.unwrap();
    let addresses = [&outsider, &member].map(|node| node.client_addr().unwrap().to_string());
    // One that says no is not what is meant by nobody, and does not keep it from the other.
    let refused = Client::connect(format!("127.0.0.1:1,{},127.0.0.1:2", addresses[0])).await.unwrap_err();
    assert_eq!(code(refused), "NOAUTH");
    drop(Client::connect(addresses.join(",")).await.unwrap().lock("a").await.unwrap());
    let builder = Node::builder(3, folder.path().join("3")).client_addr("127.0.0.1:0");
    let outsider = builder.join(["127.0.0.1:1"]).start().await.unwrap();
    let client = Client::connect(format!("{},{}", outsider.client_addr().unwrap(), addresses[1])).await.unwrap();
    // It does not wait there for ever.
    let told = timeout(LONG, client.lock("a")).await.expect("it is told").unwrap_err();
    assert!(told.is_temporary(), "{told}");
    drop(timeout(LONG, client.lock("a")).await.expect("in time").unwrap());
}

#[tokio::test]
async fn a_client_goes_to_another_node_when_its_own_leaves() {
    let (folder, first) = node().await;
    let join = [first.peer_addr().to_string()];
    let builder = Node::builder(2, folder.path().join("2")).client_addr("127.0.0.1:0").join(join);
    let second = builder.start().await.unwrap();
    second.ready().await;
    let addresses = [&first, &second].map(|node| node.client_addr().unwrap().to_string());
    let client = Client::connect(format!("127.0.0.1:1, {}", addresses.join(","))).await.unwrap();
    let guard = client.lock("a").await.unwrap();
    assert_eq!(Some(guard.cluster()), first.status().unwrap().cluster);
    assert_eq!(first.lock("b").await.unwrap().cluster(), guard.cluster());
    guard.release().await.unwrap();
    assert_eq!(first.status().unwrap().sessions, 1 + 1, "of the client, and of this process");
    // It is told to go on, and does not go before its holder does.
    let held = first.lock("b").await.unwrap();
    let lock = async {
        let begin = Instant::now();
        loop {
            match client.lock("a").await {
                Ok(guard) => break guard,
                Err(error) => assert!(error.is_temporary() && begin.elapsed() < LONG, "{error}"),
            }
        }
    };
    let (_, ()) = tokio::join!(first.leave(LONG), async {
        while first.status().is_none_or(|status| !matches!(status.standing, vez::Standings::Leaving { .. })) {
            tokio::task::yield_now().await;
        }
        let guard = lock.await;
        assert_eq!(second.show(&Name::new(b"a").unwrap()).await.reports.len(), 2, "the first is still there");
        drop((guard, held));
    });
    assert!(matches!(client.leave(LONG).await, Err(ClientError::Several)), "one of them must not leave by mistake");
    let nobody = Client::connect("127.0.0.1:1,127.0.0.1:2").await.unwrap_err();
    assert_eq!(nobody.to_string(), "cannot reach a node at 127.0.0.1:1, 127.0.0.1:2");
    let no_address = Client::connect(format!("here,{}", addresses[1])).await.unwrap_err();
    assert_eq!(no_address.to_string(), "cannot reach a node at here");
}
