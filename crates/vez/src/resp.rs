//! Clients, in Redis' own protocol: RESP2 and RESP3.

mod command;
mod connection;
mod greeting;
mod holding;
mod keeping;
mod observing;
mod reply;
mod request;
mod script;
mod words;

use std::{net::SocketAddr, sync::Arc};

use tokio::net::{TcpListener, TcpStream};
use tracing::debug;

pub(crate) use self::command::MOST_COUNT;
use self::connection::Connection;
pub(crate) use self::script::Scripts;
pub(crate) use self::words::{listing, picture, standing, status};
use crate::{door::Door, node::Inner};

const CLIENTS: Door = Door {
    whom: "clients",
    most: 16 * 1024,
    share: 2,
    full: b"-ERR too many clients are connected; close some, or connect to another node\r\n",
};

/// Takes connections, for ever.
pub(crate) async fn accept(listener: TcpListener, inner: Arc<Inner>, password: Option<Arc<str>>) {
    let mut number = 0;
    let serve = |stream: TcpStream, from: SocketAddr| {
        number += 1;
        let connection = Connection::new(Arc::clone(&inner), from, number, password.clone());
        let inner = Arc::clone(&inner);
        async move {
            inner.engine.metrics.connections.inc();
            if let Err(error) = connection.run(stream).await {
                debug!(%from, %error, "a client is gone");
            }
            inner.engine.metrics.connections.dec();
        }
    };
    CLIENTS.open(listener, Arc::clone(&inner), serve).await;
}
