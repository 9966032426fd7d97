//! Clients, in Redis' own protocol: RESP2 and RESP3.

mod command;
mod connection;
mod greeting;
mod holding;
mod reply;
mod request;
mod words;

use std::{sync::Arc, time::Duration};

use tokio::{io::AsyncWriteExt, net::TcpListener, sync::Semaphore, time::sleep};
use tracing::{debug, warn};

pub(crate) use self::command::MOST_COUNT;
use self::connection::Connection;
pub(crate) use self::words::{listing, picture, standing, status};
use crate::{node::Inner, sockets};

/// So many clients there may be.
pub(crate) const MOST_CONNECTIONS: usize = 16 * 1024;

const FULL: &[u8] = b"-ERR too many clients are connected; close some, or connect to another node\r\n";

/// Takes connections, for ever.
pub(crate) async fn accept(listener: TcpListener, inner: Arc<Inner>, password: Option<Arc<str>>) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut number = 0;
    loop {
        let Ok((mut stream, from)) = listener.accept().await else {
            sleep(Duration::from_millis(20)).await; // Too many files are open, or the like: it may pass.
            continue;
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
            inner.engine.metrics.refused_connections.inc();
            warn!(%from, "refused: {MOST_CONNECTIONS} clients are connected");
            let _ = stream.write_all(FULL).await; // It is told if it listens.
            continue;
        };
        number += 1;
        // A client whose machine is gone is noticed within about a lease: what it held is not to be kept for long.
        if let Err(error) = sockets::prepare(&stream, Duration::from_nanos(inner.lease())) {
            debug!(%from, %error, "a connection could not be prepared");
        }
        let (node, password) = (Arc::clone(&inner), password.clone());
        inner.spawn(async move {
            node.engine.metrics.connections.inc();
            if let Err(error) = Connection::new(Arc::clone(&node), from, number, password).run(stream).await {
                debug!(%from, %error, "a client is gone");
            }
            node.engine.metrics.connections.dec();
            drop(place);
        });
    }
}
