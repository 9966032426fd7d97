//! A lock server without anything that makes one safe, for comparison: a table in memory behind TCP.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use anyhow::{Context, Result};
use rustc_hash::FxHashMap;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedWriteHalf},
    sync::mpsc,
};

/// Who holds a name: the number of the grant; and who waits for it.
struct Entry {
    held: bool,
    waiting: VecDeque<mpsc::UnboundedSender<u64>>,
}

#[derive(Default)]
struct Table {
    entries: FxHashMap<Vec<u8>, Entry>,
    grants: u64,
}

/// Starts one, which lasts as long as this process.
pub(super) async fn start() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen")?;
    let address = listener.local_addr().context("cannot listen")?;
    let table = Arc::new(Mutex::new(Table::default()));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            tokio::spawn(serve(stream, Arc::clone(&table)));
        }
    });
    Ok(address)
}

async fn serve(stream: TcpStream, table: Arc<Mutex<Table>>) -> Option<()> {
    let (mut read, mut write) = stream.into_split();
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut bytes = Vec::with_capacity(4096);
    loop {
        while let Some((words, length)) = request(&bytes) {
            let granted = match words[..] {
                [b"LOCK", name] => Some(table.lock().ok()?.take(name, &tell)),
                [_, name, _] => {
                    table.lock().ok()?.give_back(name);
                    None
                }
                _ => return None,
            };
            bytes.drain(..length);
            match granted {
                None => write.write_all(b"+OK\r\n").await.ok()?,
                Some(Some(grant)) => say(&mut write, grant).await?,
                Some(None) => {
                    let grant = told.recv().await?;
                    say(&mut write, grant).await?;
                }
            }
        }
        if read.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

async fn say(write: &mut OwnedWriteHalf, grant: u64) -> Option<()> {
    write.write_all(format!("$20\r\n{grant:020}\r\n").as_bytes()).await.ok()
}

impl Table {
    fn take(&mut self, name: &[u8], tell: &mpsc::UnboundedSender<u64>) -> Option<u64> {
        match self.entries.get_mut(name) {
            Some(entry) if entry.held => {
                entry.waiting.push_back(tell.clone());
                return None;
            }
            Some(entry) => entry.held = true,
            None => {
                self.entries.insert(name.to_vec(), Entry { held: true, waiting: VecDeque::new() });
            }
        }
        self.grants += 1;
        Some(self.grants)
    }

    fn give_back(&mut self, name: &[u8]) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        self.grants += 1;
        entry.held = entry.waiting.pop_front().is_some_and(|next| next.send(self.grants).is_ok());
    }
}

/// The words of a request in Redis' protocol, and its length, if it is all there.
fn request(bytes: &[u8]) -> Option<(Vec<&[u8]>, usize)> {
    let mut at = 0;
    let mut line = || {
        let long = bytes[at..].windows(2).position(|end| end == b"\r\n")?;
        let line = &bytes[at..at + long];
        at += long + 2;
        Some(line)
    };
    let count: usize = str::from_utf8(line()?.strip_prefix(b"*")?).ok()?.parse().ok()?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        line()?;
        words.push(line()?);
    }
    Some((words, at))
}
