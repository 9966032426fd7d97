//! Connections from other nodes: letters that come in.

use std::{io, net::SocketAddr, sync::Arc};

use bytes::BytesMut;
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    time::{error::Elapsed, timeout},
};
use tracing::{debug, warn};

use crate::{
    door::Door,
    links::{IDLE, PATIENCE},
    node::Inner,
    sockets,
    wire::{self, Letter, Malformed},
};

const NODES: Door = Door { whom: "other nodes", most: 1024, share: 8, full: b"" };

/// So much is read at once, and so much room is kept at most.
const ROOM: usize = 8 * 1024;
const MOST_ROOM: usize = 2 * ROOM;

/// Takes connections, for ever.
pub(crate) async fn accept(listener: TcpListener, inner: Arc<Inner>) {
    let serve = |stream: TcpStream, from: SocketAddr| {
        let inner = Arc::clone(&inner);
        async move {
            match read(stream, &inner).await {
                Ok(()) => debug!(%from, "a connection has ended"),
                Err(ReadError::Io(error)) => debug!(%from, %error, "a connection broke"),
                Err(ReadError::Silent(_)) => debug!(%from, "a connection was closed, since it said nothing"),
                Err(ReadError::Malformed(error)) => warn!(%from, %error, "a connection was closed"),
            }
        }
    };
    NODES.open(listener, Arc::clone(&inner), serve).await;
}

#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("it said nothing for long")]
    Silent(#[from] Elapsed),
}

async fn read(mut stream: TcpStream, inner: &Arc<Inner>) -> Result<(), ReadError> {
    let mut bytes = BytesMut::with_capacity(ROOM);
    let mut greeted = false;
    let mut frames = Vec::new();
    sockets::prepare(&stream, PATIENCE)?;
    // Whoever has nothing to say at first is nobody; later it would have closed.
    while timeout(if greeted { 2 * IDLE } else { PATIENCE }, stream.read_buf(&mut bytes)).await?? > 0 {
        if !greeted {
            greeted = wire::greeted(&mut bytes)?;
            if !greeted {
                continue;
            }
        }
        while let Some(letter) = wire::decode(&mut bytes)? {
            match letter {
                Letter::Frame(frame) => frames.push(frame),
                Letter::Question { number, answer_to, question } => inner.answer(number, &answer_to, question),
                Letter::Answer { number, answer } => inner.answered(number, answer),
                Letter::Stranger { cluster, address } => inner.engine.stranger(cluster, &address),
            }
        }
        // All that came together is handled together.
        inner.engine.frames(std::mem::take(&mut frames));
        if bytes.is_empty() && bytes.capacity() > MOST_ROOM {
            bytes = BytesMut::with_capacity(ROOM); // It was a great deal, and need not be again.
        }
    }
    Ok(())
}
