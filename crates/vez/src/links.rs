//! Connections to other nodes: letters that go out.
//!
//! For each address there is an [`Outbox`]. Whoever has something to send appends it, and writes it itself if nobody else is
//! at it: nothing has to be woken for a letter that the socket takes at once. A task beside it connects, and writes what
//! the socket did not take.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::{
    net::TcpStream,
    runtime::Handle,
    sync::Notify,
    time::{sleep, timeout},
};
use tracing::{debug, info, warn};
use vez_peer::identity::Address;

use crate::{
    sockets,
    wire::{self, HELLO, Letter},
};

/// So many bytes wait for a connection; more are dropped, as a network might. What matters is sent again.
const MOST_WAITING: usize = 1 << 20;
/// So much room is kept for the next letters.
const MOST_ROOM: usize = 4 * 1024;
/// So many addresses are written to at a time.
const MOST_OUTBOXES: usize = 1024;
/// After so long with nothing to send, a connection is closed.
pub(crate) const IDLE: Duration = Duration::from_secs(120);
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Who takes nothing and says nothing for so long is not there.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// The connections of a node to others.
pub(crate) struct Links {
    runtime: Handle,
    outboxes: FxHashMap<Address, Arc<Outbox>>,
    /// Those with something new in them.
    dirty: Vec<Arc<Outbox>>,
}

/// What goes to one address.
pub(crate) struct Outbox {
    address: Address,
    state: Mutex<State>,
    /// There is something to write that the socket did not take, or no socket.
    wake: Notify,
}

struct State {
    waiting: Vec<u8>,
    stream: Option<Arc<TcpStream>>,
    /// Somebody is writing what it has taken out of `waiting`.
    writing: bool,
    /// How often something was dropped since that was last said.
    dropped: u64,
    /// The task has ended.
    ended: bool,
    /// When something was written last.
    written: Instant,
}

impl Links {
    pub(crate) fn new(runtime: Handle) -> Self {
        Self { runtime, outboxes: FxHashMap::default(), dirty: Vec::new() }
    }

    /// Appends a letter. It goes out when those who have something new are written: see [`Self::take_dirty`].
    pub(crate) fn send(&mut self, to: &Address, letter: &Letter) {
        let Some(outbox) = self.outbox(to) else { return };
        let mut state = outbox.state.lock();
        if state.waiting.len() > MOST_WAITING {
            state.dropped += 1;
            return;
        }
        if let Err(error) = wire::encode(letter, &mut state.waiting) {
            return tracing::error!(to = %to, %error, "a letter cannot be sent");
        }
        drop(state);
        if !self.dirty.iter().any(|known| Arc::ptr_eq(known, &outbox)) {
            self.dirty.push(outbox);
        }
    }

    /// Those with something new in them, to be [written](Outbox::flush) by who has no lock in its hands.
    pub(crate) fn take_dirty(&mut self) -> Vec<Arc<Outbox>> {
        std::mem::take(&mut self.dirty)
    }

    /// Ends all connections.
    pub(crate) fn close(&mut self) {
        for (_, outbox) in self.outboxes.drain() {
            outbox.state.lock().ended = true;
            outbox.wake.notify_one();
        }
    }

    fn outbox(&mut self, to: &Address) -> Option<Arc<Outbox>> {
        if let Some(outbox) = self.outboxes.get(to)
            && !outbox.state.lock().ended
        {
            return Some(Arc::clone(outbox));
        }
        if self.outboxes.len() >= MOST_OUTBOXES {
            self.outboxes.retain(|_, outbox| !outbox.state.lock().ended);
            if self.outboxes.len() >= MOST_OUTBOXES {
                return None; // As if the network had lost it.
            }
        }
        let outbox = Arc::new(Outbox { address: to.clone(), state: Mutex::new(State::new()), wake: Notify::new() });
        self.outboxes.insert(to.clone(), Arc::clone(&outbox));
        self.runtime.spawn(Arc::clone(&outbox).run());
        Some(outbox)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.close();
    }
}

impl State {
    fn new() -> Self {
        Self { waiting: Vec::new(), stream: None, writing: false, dropped: 0, ended: false, written: Instant::now() }
    }
}

impl Outbox {
    /// Writes what the socket takes at once. The rest is left to the task.
    pub(crate) fn flush(&self) {
        let mut state = self.state.lock();
        loop {
            if state.writing || state.waiting.is_empty() {
                return; // Whoever writes looks again when it is done.
            }
            let Some(stream) = state.stream.clone() else { return self.wake.notify_one() };
            let bytes = std::mem::take(&mut state.waiting);
            state.writing = true;
            drop(state);
            let written = stream.try_write(&bytes);
            state = self.state.lock();
            state.writing = false;
            state.written = Instant::now();
            if state.stream.as_ref().is_none_or(|now| !Arc::ptr_eq(now, &stream)) {
                continue; // There is another connection by now, which begins with a whole letter.
            }
            let written = match written {
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(error) => {
                    debug!(to = %self.address, %error, "a connection broke");
                    state.stream = None; // A half of a letter is of no use on another.
                    return self.wake.notify_one();
                }
            };
            if written < bytes.len() {
                let rest = [&bytes[written..], &state.waiting].concat();
                state.waiting = rest;
                return self.wake.notify_one();
            }
            if state.waiting.is_empty() {
                // Its room is used again, unless it was a great deal that had to be said.
                state.waiting = bytes;
                state.waiting.clear();
                state.waiting.shrink_to(MOST_ROOM);
                return;
            }
        }
    }

    /// Keeps a connection as long as there is something to send.
    async fn run(self: Arc<Self>) {
        let (mut pause, mut known) = (SHORTEST_PAUSE, None);
        while self.has_something().await {
            let connected = timeout(PATIENCE, TcpStream::connect(self.address.as_str())).await;
            match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(stream) => {
                    info!(to = %self.address, "connected");
                    let since = Instant::now();
                    let error = self.serve(stream).await;
                    if error.kind() == io::ErrorKind::InvalidData && known != Some(error.kind()) {
                        warn!(to = %self.address, %error, "no node is there");
                    }
                    info!(to = %self.address, %error, "disconnected");
                    known = Some(error.kind());
                    // One that is closed at once is not to be opened again and again.
                    pause =
                        if since.elapsed() > LONGEST_PAUSE { SHORTEST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
                }
                Err(error) => {
                    if known != Some(error.kind()) {
                        warn!(to = %self.address, %error, "cannot connect, and goes on trying");
                        known = Some(error.kind());
                    }
                    self.state.lock().waiting.clear(); // Who is not there need not read it later.
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            sleep(pause).await;
        }
    }

    /// Waits until there is something to send. False, if there was nothing for long.
    async fn has_something(&self) -> bool {
        loop {
            {
                let state = self.state.lock();
                if state.ended || !state.waiting.is_empty() {
                    return !state.ended;
                }
            }
            if timeout(IDLE, self.wake.notified()).await.is_err() {
                let mut state = self.state.lock();
                state.ended = state.waiting.is_empty();
                if state.ended {
                    return false;
                }
            }
        }
    }

    /// Writes to a connection until it breaks.
    async fn serve(&self, stream: TcpStream) -> io::Error {
        let stream = Arc::new(stream);
        let result = self.write_to(&stream).await;
        let mut state = self.state.lock();
        state.stream = None;
        if state.dropped > 0 {
            warn!(to = %self.address, letters = state.dropped, "dropped, since they were not taken fast enough");
            state.dropped = 0;
        }
        state.waiting.clear(); // It may begin with the rest of a letter.
        result.err().unwrap_or_else(|| io::Error::other("nothing to send"))
    }

    async fn write_to(&self, stream: &Arc<TcpStream>) -> io::Result<()> {
        sockets::prepare(stream, PATIENCE)?;
        stream.writable().await?;
        if stream.try_write(&HELLO)? < HELLO.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.state.lock().stream = Some(Arc::clone(stream));
        self.flush();
        loop {
            tokio::select! {
                () = self.wake.notified() => {}
                ended = gone(stream) => return Err(ended),
                () = sleep(IDLE) => if self.state.lock().written.elapsed() >= IDLE {
                    return Ok(());
                },
            }
            // What the socket did not take.
            while self.has_more(stream)? {
                timeout(PATIENCE, stream.writable()).await.map_err(|_| io::ErrorKind::TimedOut)??;
                self.flush();
            }
        }
    }

    fn has_more(&self, stream: &Arc<TcpStream>) -> io::Result<bool> {
        let state = self.state.lock();
        if state.ended {
            return Err(io::Error::other("the node has ended"));
        }
        match &state.stream {
            Some(ours) if Arc::ptr_eq(ours, stream) => Ok(!state.waiting.is_empty()),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// Nobody answers on such a connection: whatever can be read is its end.
async fn gone(stream: &TcpStream) -> io::Error {
    loop {
        if let Err(error) = stream.readable().await {
            return error;
        }
        match stream.try_read(&mut [0; 64]) {
            Ok(0) => return io::ErrorKind::UnexpectedEof.into(),
            Ok(_) => {
                let error = "what is there answers, as the port for other nodes does not; is it that for clients?";
                return io::Error::new(io::ErrorKind::InvalidData, error);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return error,
        }
    }
}
