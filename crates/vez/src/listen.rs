//! Connections from other nodes: letters that come in.

use std::{io, sync::Arc, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{error::Elapsed, sleep, timeout},
};
use tracing::{debug, warn};

use crate::{
    links::{IDLE, PATIENCE},
    node::Inner,
    sockets,
    wire::{self, Letter, Malformed},
};

/// So many connections from other nodes there may be.
const MOST_CONNECTIONS: usize = 1024;

/// So much is read at once, and so much room is kept at most.
const ROOM: usize = 8 * 1024;
const MOST_ROOM: usize = 2 * ROOM;

/// Takes connections, for ever.
pub(crate) async fn accept(listener: TcpListener, inner: Arc<Inner>) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            sleep(Duration::from_millis(20)).await; // Too many files are open, or the like: it may pass.
            continue;
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
            warn!(%from, "refused: {MOST_CONNECTIONS} connections from other nodes are open");
            continue;
        };
        let reader = Arc::clone(&inner);
        inner.spawn(async move {
            match read(stream, &reader).await {
                Ok(()) => debug!(%from, "a connection has ended"),
                Err(ReadError::Io(error)) => debug!(%from, %error, "a connection broke"),
                Err(ReadError::Silent(_)) => debug!(%from, "a connection was closed, since it said nothing"),
                Err(ReadError::Malformed(error)) => warn!(%from, %error, "a connection was closed"),
            }
            drop(place);
        });
    }
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
