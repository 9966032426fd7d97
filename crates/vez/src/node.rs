//! A node of a cluster, inside this process.

use std::{
    future::Future,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::watch,
    task::{JoinSet, coop::consume_budget},
    time::{sleep, timeout},
};
use vez_peer::{
    ask::{Ask, Failure, Patience, Size},
    identity::MemberId,
    name::{Name, NoName},
    peer::{Input, Status},
};

use crate::{
    builder::Builder,
    clock,
    disk::{DiskThread, Told},
    engine::{Asked, Ending, Engine, Presence},
    gather::Inquiries,
    guard::Guard,
    links::Links,
    metrics::Metrics,
    observer::Observer,
    session::Who,
    store::Store,
    supervise::{Ended, Settings},
    turn::{What, Wish, sealed::Service, words},
};

/// How often is looked whether what is held has been given back, by one who wants to leave.
const GLANCE: Duration = Duration::from_millis(10);

/// A node of a cluster, inside this process. When it is dropped, it ends as if the process had been killed: what it held is
/// free once its lease is over. [`Self::leave`] is the polite way.
#[derive(Debug)]
pub struct Node {
    inner: Arc<Inner>,
    peer_addr: SocketAddr,
    client_addr: Option<SocketAddr>,
    http_addr: Option<SocketAddr>,
}

/// What the parts of a node share.
pub(crate) struct Inner {
    pub engine: Arc<Engine>,
    pub settings: Settings,
    pub told: Arc<Told>,
    pub inquiries: Inquiries,
    leaving: AtomicBool,
    ended: watch::Sender<Option<Ended>>,
    runtime: Handle,
    tasks: Mutex<JoinSet<()>>,
}

/// Several locks that are held by a session of their own, in the order of their names.
pub(crate) struct Several {
    pub guards: Vec<Guard>,
    pub ending: Ending,
}

/// Why something is not had.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LockError {
    /// It is no name.
    #[error(transparent)]
    Name(#[from] NoName),
    /// The node says no.
    #[error(transparent)]
    Refused(Failure),
    /// There is no node any more.
    #[error("the node has ended")]
    Ended,
}

impl Node {
    /// A node of that number, with its data in that folder. People speak of nodes by these numbers; each node of a cluster
    /// has its own, from 1.
    pub fn builder(number: u16, data: impl Into<PathBuf>) -> Builder {
        Builder::new(number, data.into())
    }

    pub(crate) fn new(
        inner: Arc<Inner>,
        peer_addr: SocketAddr,
        client_addr: Option<SocketAddr>,
        http_addr: Option<SocketAddr>,
    ) -> Self {
        Self { inner, peer_addr, client_addr, http_addr }
    }

    /// Where other nodes reach this one.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.peer_addr
    }

    /// Where clients reach this node.
    #[must_use]
    pub fn client_addr(&self) -> Option<SocketAddr> {
        self.client_addr
    }

    /// Where metrics and status can be had.
    #[must_use]
    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.http_addr
    }

    /// How it is; nothing, while it begins anew.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        self.inner.engine.look(vez_peer::Peer::status)
    }

    /// Waits until it is a member of its cluster, or has ended.
    pub async fn ready(&self) {
        let is_ready = |presence: &Presence| matches!(presence, Presence::Member | Presence::Closed);
        let _ = self.inner.engine.presence().wait_for(is_ready).await;
    }

    /// Wants a member to go: its lease is not renewed any more, and once that is over, all that it held is free.
    pub fn evict(&self, id: MemberId) {
        self.inner.engine.happen(Input::Evict(id));
    }

    /// Leaves the cluster. From now on nothing new is granted here. Who holds something is in [danger](Guard::danger), and has so
    /// long to come to an end; then it is told that it is lost, and given until its deadline to take note.
    pub async fn leave(&self, grace: Duration) -> Ended {
        self.inner.leave(grace).await;
        self.ended().await
    }

    /// Waits until the node has come to its end, and its folder is closed.
    pub async fn ended(&self) -> Ended {
        let mut ended = self.inner.ended.subscribe();
        let ended = ended.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        self.inner.told.closed().await;
        ended.unwrap_or(Ended::Dropped)
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }
}

words!(Node);

impl Service for Node {
    type Guard = Guard;
    type Error = LockError;
    type Observer = Observer;

    async fn take(&self, wish: Wish) -> Result<Option<Guard>, LockError> {
        let patience = match wish.wait {
            None => Patience::Endless,
            Some(Duration::ZERO) => Patience::Try,
            Some(wait) => Patience::Until(clock::now().saturating_add(clock::nanos(wait))),
        };
        let taken = match wish.what {
            What::One(name, ask) => self.inner.acquire(&name, ask, patience).await,
            What::All(names) => {
                let several = self.inner.acquire_all(&Who::in_process(), &names, patience, false).await;
                several.map(|Several { guards, ending }| Guard::all(guards, ending))
            }
        };
        match taken {
            Ok(guard) => Ok(Some(guard)),
            Err(Failure::Busy(_) | Failure::TimedOut(_)) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    async fn resize(&self, name: Name, units: u32) -> Result<Size, LockError> {
        Ok(self.inner.resize(&name, units).await?)
    }

    async fn observe(&self, name: Name) -> Result<Observer, LockError> {
        Ok(Observer::new(Arc::clone(&self.inner), name))
    }

    fn no_turn() -> LockError {
        LockError::Ended
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.inner.end(Ended::Dropped);
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "node {}", self.settings.number)
    }
}

/// Whether it fails because the node was no member for a moment.
fn is_passing(failure: &Failure) -> bool {
    matches!(failure, Failure::NoMember | Failure::NoSession | Failure::Lost)
}

impl From<Failure> for LockError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Lost => Self::Ended,
            failure => Self::Refused(failure),
        }
    }
}

impl Inner {
    pub(crate) fn new(settings: Settings, store: Store) -> Arc<Self> {
        let (told, runtime) = (Arc::new(Told::default()), Handle::current());
        let disk = DiskThread::start(store, Arc::clone(&told));
        let engine = Engine::new(Links::new(runtime.clone()), disk, Metrics::new());
        told.tell(&engine);
        Arc::new(Self {
            engine,
            settings,
            told,
            inquiries: Inquiries::default(),
            leaving: AtomicBool::new(false),
            ended: watch::Sender::new(None),
            runtime,
            tasks: Mutex::default(),
        })
    }

    /// Runs something that the node cannot be without: if it ends, so does the node.
    pub(crate) fn spawn_vital(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        struct Vital(Arc<Inner>);
        impl Drop for Vital {
            fn drop(&mut self) {
                self.0.end(Ended::Broken("a part of it has failed"));
            }
        }
        let vital = Vital(Arc::clone(self));
        self.spawn(async move {
            let _vital = vital;
            task.await;
        });
    }

    /// Runs something as long as the node is there.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        {
            let mut tasks = self.tasks.lock();
            while tasks.try_join_next().is_some() {} // What has ended takes no room.
            // A runtime that is being shut down drops it at once, and may thereby end the node.
            tasks.spawn_on(task, &self.runtime);
        }
        if self.ended.borrow().is_some() {
            self.tasks.lock().abort_all();
        }
    }

    /// The node has come to its end.
    pub(crate) fn end(&self, ended: Ended) {
        self.engine.close();
        self.ended.send_if_modified(|known| {
            let is_first = known.is_none();
            if is_first {
                *known = Some(ended);
            }
            is_first
        });
        // If somebody has them in its hands, it is about to spawn one more, and looks afterwards whether the node has ended.
        if let Some(mut tasks) = self.tasks.try_lock() {
            tasks.abort_all();
        }
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::SeqCst)
    }

    /// Takes something for this process itself.
    async fn acquire(&self, name: &Name, ask: Ask, patience: Patience) -> Result<Guard, Failure> {
        // What is granted at once does not let others have their turn by itself: the timers of this very node among them.
        consume_budget().await;
        let again = || self.engine.acquire_own(name, ask.clone(), patience);
        match again() {
            Asked::Now(Ok(guard)) => Ok(guard),
            first => self.patiently(patience, false, first, again).await,
        }
    }

    /// Asks, and asks again where the node was no member in between: who waits has patience for that too, unless it would rather
    /// go elsewhere.
    pub(crate) async fn patiently(
        &self,
        patience: Patience,
        elsewhere: bool,
        first: Asked<Guard>,
        ask_again: impl Fn() -> Asked<Guard>,
    ) -> Result<Guard, Failure> {
        let mut asked = first;
        loop {
            let outcome = match asked {
                Asked::Now(outcome) => outcome,
                Asked::Later(pending) => pending.answer().await,
            };
            match outcome {
                // The process may have been asleep on the way here.
                Ok(guard) if guard.is_lost() => {}
                Err(failure) if is_passing(&failure) && patience != Patience::Try && !elsewhere => {}
                outcome => return outcome.map_err(|failure| self.for_now(failure)),
            }
            self.is_back(patience).await?;
            asked = ask_again();
        }
    }

    /// Takes several locks, which are in the order of their names, by a session of their own: all of them or none.
    pub(crate) async fn acquire_all(
        &self,
        who: &Who,
        names: &[Name],
        patience: Patience,
        elsewhere: bool,
    ) -> Result<Several, Failure> {
        loop {
            match self.acquire_each(who, names, patience).await {
                Ok(several) if several.guards.iter().any(Guard::is_lost) => {}
                Err(failure) if is_passing(&failure) && patience != Patience::Try && !elsewhere => {}
                outcome => return outcome.map_err(|failure| self.for_now(failure)),
            }
            self.is_back(patience).await?;
        }
    }

    async fn acquire_each(&self, who: &Who, names: &[Name], patience: Patience) -> Result<Several, Failure> {
        // If it does not come to all of them, those that were had are given back when this is dropped, and the session ends.
        let ending = self.engine.open_whole(who.clone())?;
        let mut guards = Vec::with_capacity(names.len());
        for name in names {
            consume_budget().await;
            guards.push(match self.engine.acquire(&ending.session, name, Ask::Lock, patience) {
                Asked::Now(taken) => taken?,
                Asked::Later(pending) => pending.answer().await?,
            });
        }
        Ok(Several { guards, ending })
    }

    /// Gives a semaphore another number of units.
    pub(crate) async fn resize(&self, name: &Name, units: u32) -> Result<Size, Failure> {
        loop {
            let asked = self.engine.own().map(|own| self.engine.resize(&own, name, units));
            let outcome = match asked {
                Ok(Asked::Now(outcome)) => outcome,
                Ok(Asked::Later(pending)) => pending.answer().await,
                Err(failure) => Err(failure),
            };
            match outcome {
                Err(failure) if is_passing(&failure) => self.is_back(Patience::Endless).await?,
                outcome => return outcome,
            }
        }
    }

    /// Why a try has failed: a node that has lost its lease comes back, unless it has ended.
    pub(crate) fn for_now(&self, failure: Failure) -> Failure {
        let ended = *self.engine.presence().borrow() == Presence::Closed;
        match failure {
            Failure::Lost | Failure::NoSession if !ended => Failure::NoMember,
            failure => failure,
        }
    }

    /// Waits until the node is a member.
    pub(crate) async fn is_back(&self, patience: Patience) -> Result<(), Failure> {
        let mut presence = self.engine.presence();
        let decided = |presence: &Presence| matches!(presence, Presence::Member | Presence::Closed);
        let back = async {
            let there = presence.wait_for(decided).await.is_ok_and(|presence| *presence == Presence::Member);
            if there { Ok(()) } else { Err(Failure::Lost) }
        };
        match patience {
            Patience::Endless => back.await,
            Patience::Until(end) => timeout(clock::until(end), back).await.unwrap_or(Err(Failure::NoMember)),
            Patience::Try => Err(Failure::NoMember),
        }
    }

    pub(crate) async fn leave(&self, grace: Duration) {
        self.leaving.store(true, Ordering::SeqCst);
        self.engine.happen(Input::Leave);
        for session in self.engine.sessions() {
            session.warn();
        }
        self.holders_gone(clock::now().saturating_add(clock::nanos(grace))).await;
        let sessions = self.engine.sessions();
        for session in &sessions {
            session.lose();
        }
        // From here on nobody is told a later one.
        let deadline = sessions.iter().map(|session| session.promised()).max().unwrap_or(0);
        self.holders_gone(deadline).await;
        for session in &sessions {
            self.engine.end(session);
        }
    }

    /// Waits until nothing is held here any more, or until then.
    async fn holders_gone(&self, end: clock::Nanos) {
        while clock::now() < end && self.engine.look(vez_peer::Peer::holds_anything) == Some(true) {
            sleep(GLANCE).await;
        }
    }
}
