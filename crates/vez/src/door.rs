//! Ports: who comes is served by a task of its own, as long as there is room.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use rustix::process::{Resource, getrlimit};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::sleep,
};
use tracing::warn;

use crate::node::Inner;

/// Who comes in by a port, and how many of them.
pub(crate) struct Door {
    /// Whom it is for, in the plural.
    pub whom: &'static str,
    /// So many at a time, if the process may open enough files.
    pub most: usize,
    /// Its part of the files that the process may open, as a divisor: those who come in by one door leave some for the others,
    /// for the connections of this node to other nodes, and for its disk.
    pub share: u64,
    /// What is said to those that there is no room for.
    pub full: &'static [u8],
}

impl Door {
    /// Takes connections, for ever.
    pub(crate) async fn open<F>(
        self,
        listener: TcpListener,
        inner: Arc<Inner>,
        mut serve: impl FnMut(TcpStream, SocketAddr) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let Self { whom, full, .. } = self;
        let most = self.places(getrlimit(Resource::Nofile).current);
        let room = Arc::new(Semaphore::new(most));
        let mut refuses = false;
        loop {
            let Ok((mut stream, from)) = listener.accept().await else {
                sleep(Duration::from_millis(20)).await; // Too many files are open, or the like: it may pass.
                continue;
            };
            let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
                inner.engine.metrics.refused_connections.inc();
                if !refuses {
                    warn!(%from, "refused, and so are all until there is room again: {most} {whom} are connected");
                }
                refuses = true;
                let _ = stream.write_all(full).await; // It is told if it listens.
                continue;
            };
            refuses = false;
            let served = serve(stream, from);
            inner.spawn(async move {
                served.await;
                drop(place);
            });
        }
    }

    /// How many there is room for, if so many files may be open; nothing says that any number may.
    fn places(&self, files: Option<u64>) -> usize {
        let share = files.and_then(|files| usize::try_from(files / self.share).ok());
        share.unwrap_or(usize::MAX).clamp(1, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_leaves_files_for_the_others() {
        let door = Door { whom: "clients", most: 1000, share: 2, full: b"" };
        assert_eq!([Some(0), Some(256), Some(1 << 20), None].map(|files| door.places(files)), [1, 128, 1000, 1000]);
    }
}
