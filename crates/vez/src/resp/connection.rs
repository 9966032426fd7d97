//! One client that is connected: its requests, one after the other, and what it holds.

use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use bytes::{Buf, BytesMut};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::Notify,
    task::{coop::consume_budget, yield_now},
    time::timeout,
};
use tracing::debug;
use vez_peer::{fence::Fence, name::Name};

use super::{
    command::Command,
    holding::{Held, MILLISECOND, Taken},
    observing::Observing,
    reply::{Reply, Version},
    request::{self, LONGEST},
};
use crate::{
    builder::DEFAULT_LEASE,
    clock::{self, Nanos},
    node::Inner,
    session::Session,
    sockets,
};

/// So much is read at a time.
const ROOM: usize = 4096;
/// So much is said at a time.
const MOST_OUTPUT: usize = 64 * 1024;
/// Where so many commands come between two of one client, many are being served.
const MANY: u64 = 4;
/// So many losses are remembered, to answer those who have not read of them.
const MOST_LOSSES: usize = 256;

/// One client that is connected.
pub(super) struct Connection {
    pub(super) seat: Arc<Seat>,
    pub(super) number: u64,
    pub(super) password: Option<Arc<str>>,
    pub(super) may_ask: bool,
    pub(super) version: Version,
    input: BytesMut,
    output: Vec<u8>,
    pub(super) held: BTreeMap<(Name, Fence), Held>,
    pub(super) lost: VecDeque<(Name, Fence)>,
    /// It was told that the node leaves.
    warned: bool,
    /// What the node wants to have back before it leaves, until the client has taken note.
    departing: Vec<Held>,
    /// Sessions of locks that have a time of their own; those that have ended are taken out some time.
    pub(super) timed: Vec<Arc<Session>>,
    /// When they were last renewed.
    renewed: Nanos,
    /// How many commands its node had heard when it last answered this one.
    heard: u64,
    /// Elections that it observes.
    pub(super) observing: Observing,
    /// Lease of the node when this client last acquired something. The client may rely on its locks for that long.
    pub(super) lease: Duration,
    /// Timeout that the socket has now. A client silent for this long is considered dead.
    socket_timeout: Duration,
}

/// What requests that wait have to do with their connection.
pub(super) struct Seat {
    pub inner: Arc<Inner>,
    pub from: SocketAddr,
    /// What it calls itself.
    pub name: Mutex<Vec<u8>>,
    /// How its locks by SET are shown, since it last called itself something.
    pub setter: Mutex<Option<Arc<str>>>,
    /// Rung when something is lost.
    pub bell: Arc<Notify>,
    /// What it holds as long as it is connected, it holds by this session.
    pub session: Mutex<Option<Arc<Session>>>,
}

/// What comes of a request.
pub(super) enum Step {
    /// This is said.
    Say(Reply),
    /// It takes a while.
    Wait(Pin<Box<dyn Future<Output = Outcome> + Send>>),
    /// This is said last.
    Quit(Reply),
}

/// What came of a request that took a while.
pub(super) enum Outcome {
    Said(Reply),
    Taken(Box<Taken>),
}

impl Connection {
    pub(super) fn new(inner: Arc<Inner>, from: SocketAddr, number: u64, password: Option<Arc<str>>) -> Self {
        let seat = Seat {
            inner,
            from,
            name: Mutex::default(),
            setter: Mutex::default(),
            bell: Arc::default(),
            session: Mutex::default(),
        };
        Self {
            seat: Arc::new(seat),
            number,
            may_ask: password.is_none(),
            password,
            version: Version::default(),
            input: BytesMut::with_capacity(ROOM),
            output: Vec::new(),
            held: BTreeMap::new(),
            lost: VecDeque::new(),
            warned: false,
            departing: Vec::new(),
            timed: Vec::new(),
            renewed: 0,
            heard: 0,
            observing: Observing::default(),
            lease: DEFAULT_LEASE,
            socket_timeout: Duration::ZERO,
        }
    }

    /// Serves the client until it goes. All that it holds is released then.
    pub(super) async fn run(mut self, stream: TcpStream) -> io::Result<()> {
        let served = self.serve(stream).await;
        // One after the other: it may be many, and others want to be served meanwhile.
        while let Some(held) = self.held.pop_first() {
            drop(held);
            consume_budget().await;
        }
        served
    }

    async fn serve(&mut self, mut stream: TcpStream) -> io::Result<()> {
        let bell = Arc::clone(&self.seat.bell);
        let mut rung = pin!(bell.notified());
        self.update_socket_timeout(&stream);
        let (mut read, mut write) = stream.split();
        loop {
            while let Some(step) = self.next()? {
                match step {
                    Step::Say(reply) => self.say(reply),
                    Step::Quit(reply) => {
                        self.say(reply);
                        return self.flush(&mut write).await;
                    }
                    Step::Wait(mut future) => loop {
                        self.flush(&mut write).await?;
                        tokio::select! {
                            outcome = &mut future => {
                                self.conclude(outcome);
                                break;
                            }
                            count = read.read_buf(&mut self.input) => {
                                if count? == 0 {
                                    return Ok(());
                                }
                                self.show_itself();
                                if self.input.len() > LONGEST {
                                    self.say(Reply::Error("ERR too much was sent during a wait".into()));
                                    return self.flush(&mut write).await;
                                }
                            }
                            () = &mut rung => {
                                rung.set(bell.notified());
                                if self.tell_losses() {
                                    return self.farewell(&mut read, &mut write).await;
                                }
                            }
                            sight = self.observing.next() => self.say(sight),
                        }
                    },
                }
                if self.output.len() > MOST_OUTPUT {
                    self.flush(&mut write).await?;
                }
            }
            if self.is_one_of_many() {
                // All who have said something are heard before any is answered: they are woken together then, and not one by one.
                yield_now().await;
            }
            self.flush(&mut write).await?;
            self.input.reserve(ROOM); // What was taken out of it leaves room, which is used again.
            tokio::select! {
                count = read.read_buf(&mut self.input) => {
                    if count? == 0 {
                        return Ok(());
                    }
                    self.show_itself();
                }
                () = &mut rung => {
                    rung.set(bell.notified());
                    if self.tell_losses() {
                        return self.farewell(&mut read, &mut write).await;
                    }
                }
                sight = self.observing.next() => self.say(sight),
            }
        }
    }

    /// All is lost. Whoever has it still, as it believes, takes note by closing; or has had the time to.
    async fn farewell(&mut self, read: &mut ReadHalf<'_>, write: &mut WriteHalf<'_>) -> io::Result<()> {
        self.flush(write).await?;
        write.shutdown().await?;
        let _ = timeout(self.socket_timeout, drain(read)).await;
        Ok(())
    }

    /// Sets the socket timeout to the lease. A dead client then keeps its locks for about one lease, and a live one is not cut off
    /// while it may rely on them. The lease can change when the node rejoins.
    fn update_socket_timeout(&mut self, stream: &TcpStream) {
        if self.socket_timeout == self.lease {
            return;
        }
        self.socket_timeout = self.lease;
        if let Err(error) = sockets::prepare(stream, self.socket_timeout) {
            debug!(from = %self.seat.from, %error, "a connection could not be prepared");
        }
    }

    /// Does what the next request wants, if there is one.
    fn next(&mut self) -> io::Result<Option<Step>> {
        loop {
            let (command, length) = match request::split(&self.input) {
                Ok(None) => return Ok(None),
                Ok(Some((words, length))) if words.is_empty() => (None, length),
                // A browser that was led to send us something.
                Ok(Some((words, _))) if self.input[0] != b'*' && is_http(&words) => {
                    let error = "ERR this is no HTTP port; metrics and status are on another";
                    return Ok(Some(Step::Quit(Reply::Error(error.into()))));
                }
                Ok(Some((words, length))) => (Some(Command::new(&words)), length),
                // Where the next one would begin is not known.
                Err(bad) => return Ok(Some(Step::Quit(Reply::Error(format!("ERR Protocol error: {bad}"))))),
            };
            self.input.advance(length);
            let Some(command) = command else { continue };
            self.seat.inner.engine.metrics.commands.inc();
            return Ok(Some(match command {
                Ok(command) if !self.may_ask && !command.is_open() => {
                    Step::Say(Reply::Error("NOAUTH authentication is required; say AUTH password first".into()))
                }
                Ok(command)
                    if self.version == Version::Two && !self.observing.is_empty() && !command.is_beside_sights() =>
                {
                    let error = "ERR in RESP2 a connection that observes takes OBSERVE, UNOBSERVE, PING, RESET and QUIT only; \
                                 say HELLO 3 before OBSERVE, or take another connection";
                    Step::Say(Reply::Error(error.into()))
                }
                Ok(command) => self.execute(command),
                Err(error) => Step::Say(Reply::Error(error.to_string())),
            }));
        }
    }

    fn execute(&mut self, command: Command) -> Step {
        match command {
            Command::Take(take) => self.take(take),
            Command::Release { name, fence } => Step::Say(self.release(name, fence)),
            Command::Keeping(keeping) => self.keeping(keeping),
            Command::Extend { name, fence, by_ms } => Step::Say(self.extend(&name, fence, by_ms)),
            command => self.attend(command),
        }
    }

    /// Tells what is lost, or will be soon. True if all is lost that it held as long as it is connected.
    fn tell_losses(&mut self) -> bool {
        if self.seat.inner.is_leaving() && !std::mem::replace(&mut self.warned, true) && self.version == Version::Three
        {
            self.say(Reply::Push(vec![Reply::text("leaving")]));
        }
        let lost: Vec<_> = self.held.extract_if(.., |_, held| held.guard.is_revoked()).collect();
        let mut all = false;
        for ((name, fence), held) in lost {
            let session = held.guard.session();
            all |= session.ttl().is_none() && session.has_lost_its_node();
            if self.seat.inner.is_leaving() {
                self.departing.push(held); // Given back when the client has taken note: it may be in the midst of something.
            }
            if self.version == Version::Three {
                let words =
                    [Reply::text("lost"), Reply::Bytes(name.as_bytes().to_vec()), Reply::text(fence.to_string())];
                self.say(Reply::Push(words.into()));
            }
            if self.lost.len() >= MOST_LOSSES {
                self.lost.pop_front();
            }
            self.lost.push_back((name, fence));
        }
        all
    }

    fn conclude(&mut self, outcome: Outcome) {
        let reply = match outcome {
            Outcome::Said(reply) => reply,
            Outcome::Taken(taken) => self.taken(*taken),
        };
        self.say(reply);
    }

    /// Any byte renews what has a time of its own.
    fn show_itself(&mut self) {
        if self.timed.is_empty() {
            return;
        }
        let now = clock::now();
        // Times are told in milliseconds: what was renewed within this one need not be again.
        if now.saturating_sub(self.renewed) < MILLISECOND {
            return;
        }
        self.renewed = now;
        self.timed.retain(|session| !session.has_lost_all());
        self.seat.inner.engine.renew_all(self.timed.iter().map(|session| &**session));
    }

    #[expect(clippy::needless_pass_by_value, reason = "what is said is said once")]
    pub(super) fn say(&mut self, reply: Reply) {
        reply.encode(self.version, &mut self.output);
    }

    /// Whether others have said much since this one last did.
    fn is_one_of_many(&mut self) -> bool {
        let heard = self.seat.inner.engine.metrics.commands.get();
        let before = std::mem::replace(&mut self.heard, heard);
        !self.output.is_empty() && heard.saturating_sub(before) > MANY
    }

    /// A client that does not read for long is gone.
    async fn flush(&mut self, write: &mut WriteHalf<'_>) -> io::Result<()> {
        if !self.output.is_empty() {
            self.update_socket_timeout(write.as_ref()); // Before the client is told of a grant.
            let written = match write.try_write(&self.output) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                written => written?,
            };
            let rest = &self.output[written..];
            if !rest.is_empty() {
                timeout(self.socket_timeout, write.write_all(rest)).await.map_err(|_| io::ErrorKind::TimedOut)??;
            }
            self.output.clear();
        }
        Ok(())
    }
}

fn is_http(words: &[&[u8]]) -> bool {
    matches!(words, [b"POST" | b"Host:", ..]) || matches!(words, [b"GET", .., last] if last.starts_with(b"HTTP/"))
}

async fn drain(read: &mut ReadHalf<'_>) -> io::Result<()> {
    let mut nothing = [0; 1024];
    while read.read(&mut nothing).await? > 0 {}
    Ok(())
}
