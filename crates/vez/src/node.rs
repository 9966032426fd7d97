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
use tokio::{runtime::Handle, sync::watch, task::JoinSet, time::sleep};
use vez_peer::{
    ask::{Failure, Patience, Size},
    identity::MemberId,
    name::{Name, NoName},
    peer::{Input, Status},
};

use crate::{
    asking::Several,
    builder::Builder,
    clock,
    disk::{DiskThread, Told},
    engine::{Engine, Presence},
    gather::Inquiries,
    guard::Guard,
    links::Links,
    metrics::Metrics,
    observer::Observer,
    resp::Scripts,
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
    /// Scripts that clients of Redis have sent.
    pub scripts: Mutex<Scripts>,
    leaving: AtomicBool,
    ended: watch::Sender<Option<Ended>>,
    runtime: Handle,
    tasks: Mutex<JoinSet<()>>,
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
            scripts: Mutex::default(),
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
        // Whom something is kept for cannot be told: that ends when it was to.
        self.holders_gone(clock::Nanos::MAX).await;
    }

    /// Waits until nothing is held here any more, or until then.
    async fn holders_gone(&self, end: clock::Nanos) {
        while clock::now() < end && self.engine.look(vez_peer::Peer::holds_anything) == Some(true) {
            sleep(GLANCE).await;
        }
    }
}
