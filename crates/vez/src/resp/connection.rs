//! One client that is connected: its requests, one after the other, and what it holds.

use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
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
    task::coop::consume_budget,
    time::timeout,
};
use vez_peer::{
    ask::{Ask, Failure, Patience},
    fence::Fence,
    name::Name,
};

use super::{
    command::Command,
    reply::{Reply, Version},
    request::{self, LONGEST},
    words,
};
use crate::{
    clock::{self, Nanos},
    engine::Asked,
    guard::Guard,
    node::Inner,
    session::{Session, Who},
};

const MILLISECOND: Nanos = 1_000_000;
/// So much is said at a time.
const MOST_OUTPUT: usize = 64 * 1024;
/// So many locks a connection holds at most.
const MOST_HELD: usize = 1 << 16;
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
    held: BTreeMap<(Name, Fence), Held>,
    lost: VecDeque<(Name, Fence)>,
    /// What the node wants to have back before it leaves, until the client has taken note.
    departing: Vec<Held>,
    /// When it last renewed what has a time of its own, and the shortest of these times.
    renewed: Nanos,
    shortest: Nanos,
}

/// What requests that wait have to do with their connection.
pub(super) struct Seat {
    pub inner: Arc<Inner>,
    pub from: SocketAddr,
    /// What it calls itself.
    pub name: Mutex<Vec<u8>>,
    /// Rung when something is lost.
    bell: Arc<Notify>,
    /// What it holds as long as it is connected, it holds by this session.
    session: Mutex<Option<Arc<Session>>>,
}

/// A lock that is held.
struct Held {
    guard: Guard,
    /// Its session, if it has a time of its own.
    own: Option<Ending>,
}

/// Ends a session when it is dropped.
struct Ending(Arc<Inner>, Arc<Session>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.engine.end(&self.1);
    }
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
    Locked(Box<Locked>),
}

/// What came of a wish for a lock.
pub(super) struct Locked {
    result: Result<Guard, Failure>,
    own: Option<Ending>,
    ttl: Option<Nanos>,
}

impl Connection {
    pub(super) fn new(inner: Arc<Inner>, from: SocketAddr, number: u64, password: Option<Arc<str>>) -> Self {
        let seat = Seat { inner, from, name: Mutex::default(), bell: Arc::default(), session: Mutex::default() };
        Self {
            seat: Arc::new(seat),
            number,
            may_ask: password.is_none(),
            password,
            version: Version::default(),
            input: BytesMut::with_capacity(4096),
            output: Vec::new(),
            held: BTreeMap::new(),
            lost: VecDeque::new(),
            departing: Vec::new(),
            renewed: 0,
            shortest: Nanos::MAX,
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
        let patience = Duration::from_nanos(self.seat.inner.lease());
        let bell = Arc::clone(&self.seat.bell);
        let (mut read, mut write) = stream.split();
        loop {
            while let Some(step) = self.next()? {
                match step {
                    Step::Say(reply) => self.say(reply),
                    Step::Quit(reply) => {
                        self.say(reply);
                        return self.flush(&mut write, patience).await;
                    }
                    Step::Wait(mut future) => loop {
                        self.flush(&mut write, patience).await?;
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
                                    return self.flush(&mut write, patience).await;
                                }
                            }
                            () = bell.notified() => if self.tell_losses() {
                                return self.farewell(&mut read, &mut write, patience).await;
                            },
                        }
                    },
                }
                if self.output.len() > MOST_OUTPUT {
                    self.flush(&mut write, patience).await?;
                }
            }
            self.flush(&mut write, patience).await?;
            tokio::select! {
                count = read.read_buf(&mut self.input) => {
                    if count? == 0 {
                        return Ok(());
                    }
                    self.show_itself();
                }
                () = bell.notified() => if self.tell_losses() {
                    return self.farewell(&mut read, &mut write, patience).await;
                },
            }
        }
    }

    /// All is lost. Whoever has it still, as it believes, takes note by closing; or has had the time to.
    async fn farewell(
        &mut self,
        read: &mut ReadHalf<'_>,
        write: &mut WriteHalf<'_>,
        patience: Duration,
    ) -> io::Result<()> {
        self.flush(write, patience).await?;
        write.shutdown().await?;
        let _ = timeout(patience, drain(read)).await;
        Ok(())
    }

    /// Does what the next request wants, if there is one.
    fn next(&mut self) -> io::Result<Option<Step>> {
        loop {
            let (command, length) = match request::split(&self.input) {
                Ok(None) => return Ok(None),
                Ok(Some((words, length))) if words.is_empty() => (None, length),
                // A browser that was led to send us something.
                Ok(Some((words, _))) if [&b"POST"[..], b"GET", b"Host:"].contains(&words[0]) => {
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
                Ok(command) => self.execute(command),
                Err(error) => Step::Say(Reply::Error(error.to_string())),
            }));
        }
    }

    fn execute(&mut self, command: Command) -> Step {
        match command {
            Command::Lock { name, ttl_ms, wait_ms } => self.lock(name, ttl_ms, wait_ms),
            Command::Unlock { name, fence } => Step::Say(self.unlock(name, fence)),
            Command::Extend { name, fence, by_ms } => Step::Say(self.extend(&name, fence, by_ms)),
            command => self.attend(command),
        }
    }

    fn lock(&mut self, name: Name, ttl_ms: Option<u64>, wait_ms: Option<u64>) -> Step {
        if self.held.range((name.clone(), Fence::FIRST)..).next().is_some_and(|((held, _), _)| *held == name) {
            let error = "ALREADYYOURS this connection holds it already; release it first, or take another connection";
            return Step::Say(Reply::Error(error.into()));
        }
        if self.held.len() >= MOST_HELD {
            return Step::Say(Reply::Error(format!(
                "TOOMANY a connection holds at most {MOST_HELD} locks; take another"
            )));
        }
        if ttl_ms == Some(0) {
            return Step::Say(Reply::Error("ERR a TTL of 0 would be over at once; say at least 1".into()));
        }
        let patience = match wait_ms {
            None => Patience::Endless,
            Some(0) => Patience::Try,
            Some(ms) => Patience::Until(clock::now().saturating_add(ms.saturating_mul(MILLISECOND))),
        };
        let ttl = ttl_ms.map(|ms| ms.saturating_mul(MILLISECOND));
        let own = Arc::new(Mutex::new(None));
        let seat = Arc::clone(&self.seat);
        let session = Arc::clone(&own);
        let ask = move |name: &Name| seat.ask(name, patience, ttl.is_some().then_some(&session));
        let take = move |own: &Mutex<Option<Ending>>| own.lock().take();
        match ask(&name) {
            Asked::Now(Ok(guard)) => {
                let locked = Locked { result: Ok(guard), own: take(&own), ttl };
                Step::Say(self.locked(locked))
            }
            Asked::Now(Err(failure)) if patience == Patience::Try => {
                Step::Say(self.locked(Locked { result: Err(failure), own: None, ttl }))
            }
            first => {
                let inner = Arc::clone(&self.seat.inner);
                Step::Wait(Box::pin(async move {
                    let result = inner.patiently(patience, first, || ask(&name)).await;
                    Outcome::Locked(Box::new(Locked { result, own: take(&own), ttl }))
                }))
            }
        }
    }

    fn locked(&mut self, locked: Locked) -> Reply {
        let Locked { result, own, ttl } = locked;
        let guard = match result {
            Ok(guard) => guard,
            Err(Failure::Busy(_) | Failure::TimedOut(_)) => return Reply::Nil,
            Err(failure) => return words::failure(&failure),
        };
        if let Some(ttl) = ttl
            && let Err(failure) = self.seat.inner.engine.limit(guard.session(), ttl)
        {
            return words::failure(&failure);
        }
        self.shortest = self.shortest.min(ttl.unwrap_or(Nanos::MAX));
        let fence = guard.fence();
        self.held.insert((guard.name().clone(), fence), Held { guard, own });
        Reply::text(fence.to_string())
    }

    fn unlock(&mut self, name: Name, fence: Fence) -> Reply {
        let key = (name, fence);
        let Some(mut held) = self.held.remove(&key) else { return self.not_held(&key) };
        match held.guard.let_go() {
            Ok(()) => Reply::OK,
            Err(failure) => words::failure(&failure),
        }
    }

    fn extend(&mut self, name: &Name, fence: Fence, by_ms: u64) -> Reply {
        let key = (name.clone(), fence);
        let Some(held) = self.held.get(&key) else { return self.not_held(&key) };
        let by = by_ms.saturating_mul(MILLISECOND);
        let extended = self.seat.inner.engine.renew(held.guard.session(), Some(by));
        match extended {
            Ok(_) if held.guard.is_lost() => words::failure(&Failure::Lost),
            Ok(deadline) => Reply::integer(deadline.saturating_sub(clock::now()) / MILLISECOND),
            Err(failure) => words::failure(&failure),
        }
    }

    fn not_held(&self, key: &(Name, Fence)) -> Reply {
        let lost = self.lost.contains(key);
        words::failure(&if lost { Failure::Lost } else { Failure::NotYours(key.0.clone()) })
    }

    /// Tells what is lost. True if that is all that it held as long as it is connected.
    fn tell_losses(&mut self) -> bool {
        let lost: Vec<_> = self.held.extract_if(.., |_, held| held.guard.is_revoked()).collect();
        let mut all = false;
        for ((name, fence), held) in lost {
            all |= held.own.is_none() && held.guard.session().has_lost_all();
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
            Outcome::Locked(locked) => self.locked(*locked),
        };
        self.say(reply);
    }

    /// Any byte renews what has a time of its own.
    fn show_itself(&mut self) {
        let now = clock::now();
        if now.saturating_sub(self.renewed) < self.shortest / 10 {
            return; // A moment ago.
        }
        self.renewed = now;
        let timed = self.held.values().filter(|held| held.own.is_some());
        self.shortest = timed.clone().filter_map(|held| held.guard.session().ttl()).min().unwrap_or(Nanos::MAX);
        self.seat.inner.engine.renew_all(timed.map(|held| &**held.guard.session()));
    }

    pub(super) fn say(&mut self, reply: Reply) {
        reply.encode(self.version, &mut self.output);
    }

    /// A client that does not read for long is gone.
    async fn flush(&mut self, write: &mut WriteHalf<'_>, patience: Duration) -> io::Result<()> {
        if !self.output.is_empty() {
            timeout(patience, write.write_all(&self.output)).await.map_err(|_| io::ErrorKind::TimedOut)??;
            self.output.clear();
        }
        Ok(())
    }
}

async fn drain(read: &mut ReadHalf<'_>) -> io::Result<()> {
    let mut nothing = [0; 1024];
    while read.read(&mut nothing).await? > 0 {}
    Ok(())
}

impl Seat {
    /// Asks for a lock, by the session of the connection, or one of its own.
    fn ask(&self, name: &Name, patience: Patience, own: Option<&Arc<Mutex<Option<Ending>>>>) -> Asked {
        let session = match own {
            None => self.session(),
            Some(own) => self.open().inspect(|session| {
                *own.lock() = Some(Ending(Arc::clone(&self.inner), Arc::clone(session)));
            }),
        };
        match session {
            Ok(session) => self.inner.engine.acquire(&session, name, Ask::Lock, patience),
            Err(failure) => Asked::Now(Err(failure)),
        }
    }

    fn session(&self) -> Result<Arc<Session>, Failure> {
        let mut session = self.session.lock();
        match &*session {
            Some(session) if !session.has_lost_all() => Ok(Arc::clone(session)),
            _ => Ok(Arc::clone(session.insert(self.open()?))),
        }
    }

    fn open(&self) -> Result<Arc<Session>, Failure> {
        let name = self.name.lock();
        let label = match &name[..] {
            [] => self.from.to_string(),
            name => format!("{} ({})", self.from, name.escape_ascii()),
        };
        self.inner.engine.open(Who { label: label.into(), bell: Some(Arc::clone(&self.bell)) })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(session) = self.session.lock().take() {
            self.inner.engine.end(&session);
        }
    }
}
