//! What a client makes of what its node says: by nodes that say what they are told to say.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::timeout,
};
use vez::{Client, ClientError, Loss, RemoteGuard};

const LONG: Duration = Duration::from_secs(30);
const HELLO: &str = "%2\r\n+server\r\n+vez\r\n+cluster\r\n+00000000000000ff\r\n";
const GRANTED: &str = "$20\r\n00503808322474868753\r\n";
const LOST: &str = ">3\r\n+lost\r\n+a\r\n+00503808322474868753\r\n";

/// Answers one request after the other so; the connection with the client afterwards.
async fn node(answers: &[&'static str]) -> (String, JoinHandle<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answers = answers.to_vec();
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        for answer in answers {
            assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0, "a request");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        stream
    });
    (address, served)
}

async fn lock(address: String) -> Result<RemoteGuard, ClientError> {
    timeout(LONG, Client::connect(address).await.unwrap().lock("a")).await.expect("in time")
}

/// A node that leaves takes the end of a connection for its client's word that it has taken note.
async fn check_connection_lasts_as_long_as_the_guard(last: &'static str) {
    // Three seconds are left, so that it renews after one.
    let (address, served) = node(&[HELLO, GRANTED, ":3000\r\n", last]).await;
    let guard = lock(address).await.unwrap();
    let mut stream = timeout(LONG, served).await.expect("in time").unwrap();
    stream.shutdown().await.unwrap();
    let dropped = Arc::new(AtomicBool::new(false));
    let is_dropped = Arc::clone(&dropped);
    let ended = tokio::spawn(async move {
        while stream.read(&mut [0; 1024]).await.is_ok_and(|count| count > 0) {}
        is_dropped.load(Ordering::SeqCst)
    });
    timeout(LONG, guard.lost()).await.expect("it is told");
    assert_eq!(guard.loss(), Some(Loss::Told));
    // It comes to an end, and others have their turn meanwhile.
    tokio::time::sleep(Duration::from_millis(100)).await;
    dropped.store(true, Ordering::SeqCst);
    drop(guard);
    assert!(timeout(LONG, ended).await.expect("in time").unwrap(), "its connection has ended before");
}

#[tokio::test]
async fn a_loss_that_meets_a_renewal_is_not_acknowledged_before_the_guard_is_dropped() {
    tokio::join!(
        check_connection_lasts_as_long_as_the_guard("-LOST it is lost\r\n"),
        check_connection_lasts_as_long_as_the_guard(LOST),
    );
}

#[tokio::test]
async fn what_is_lost_before_it_could_be_used_can_be_asked_for_again() {
    let (address, _served) = node(&[HELLO, GRANTED, "-LOST it is lost\r\n"]).await;
    let error = lock(address).await.unwrap_err();
    assert!(error.is_temporary(), "{error}");
}

#[tokio::test]
async fn a_node_that_is_silent_has_not_said_that_a_lock_is_lost() {
    let (address, served) = node(&[HELLO, GRANTED, ":3000\r\n"]).await;
    let guard = lock(address).await.unwrap();
    let mut silent = timeout(LONG, served).await.expect("in time").unwrap();
    // It is released while it is renewed in vain: what was done until now was done in time.
    assert!(timeout(LONG, silent.read(&mut [0; 1024])).await.expect("a renewal").unwrap() > 0);
    assert!(matches!(guard.release().await, Err(ClientError::Broken(_))));
}
