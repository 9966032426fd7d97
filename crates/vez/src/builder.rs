//! How a node is begun.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use tokio::{
    net::{TcpListener, lookup_host},
    time::sleep,
};
use vez_peer::{
    agreement::Disk,
    charter::{BadCharter, Charter},
    identity::{Address, ClusterId, Incarnation},
    view::ViewNumber,
    views::LONGEST_PLEDGE,
};

use crate::{
    clock, http, identity, listen,
    node::{Inner, Node},
    resp,
    store::{Contents, Store, StoreError},
    supervise::{self, Settings},
};

/// How long a membership lasts without being renewed, unless something else is wanted.
pub(crate) const DEFAULT_LEASE: Duration = Duration::from_secs(3);
/// So long it is waited until another has closed the folder.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);
/// Nothing is kept for less, or for longer: what a dead machine kept is waited for.
const SHORTEST_KEPT: Duration = Duration::from_millis(1);
const LONGEST_KEPT: Duration = Duration::from_nanos(LONGEST_PLEDGE);
/// How many parts the lock table of a cluster has.
const SHARDS: u16 = 8;
/// 2026-01-01, in seconds since 1970.
const EPOCH: u64 = 1_767_225_600;

/// How a node is begun.
#[derive(Clone, Debug)]
#[must_use = "it does nothing until it is started"]
pub struct Builder {
    number: u16,
    data: PathBuf,
    peer: String,
    advertise: Option<String>,
    client: Option<String>,
    http: Option<String>,
    bootstrap: bool,
    join: Vec<String>,
    lease: Option<Duration>,
    idle: Option<Duration>,
    compat_ttl: Option<Duration>,
    insecure: bool,
    password: Option<String>,
}

/// Why a node does not begin. Nothing is left of it, but for its folder.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It has nothing to begin with.
    #[error(
        "the folder {0} holds no node; begin a new cluster with --bootstrap, or join one with --join ADDR (a folder that \
         was emptied must join: a second cluster would not know the locks of the first)"
    )]
    NoData(String),
    /// It is told two things.
    #[error("a node either begins a new cluster or joins one; take --bootstrap or --join, not both")]
    BootstrapAndJoin,
    /// People number nodes from 1.
    #[error("nodes are numbered from 1; 0 is none")]
    Zero,
    /// The folder is another's.
    #[error("the folder {0} is that of node {1}, not of node {2}; say --id {1}, or take another folder")]
    OtherNumber(String, u16, u16),
    /// A cluster has one lease for all its life.
    #[error("the node in {0} belongs to a cluster with a lease of {1:?}, not of {2:?}; leave --lease out")]
    OtherLease(String, Duration, Duration),
    /// Nobody could reach it.
    #[error("other nodes cannot be told to reach this one at {0}; say where it is with --advertise HOST:PORT")]
    Unspecified(String),
    /// Everybody could reach it.
    #[error(
        "{0} can be reached from other machines, and anybody there could take and release locks: nothing is encrypted; \
         take an address such as 127.0.0.1, or allow it with --insecure"
    )]
    NotLoopback(String),
    /// It cannot be reached there.
    #[error("cannot listen on {0}")]
    Bind(String, #[source] io::Error),
    /// No address.
    #[error("{0} is no address; write HOST:PORT, such as 127.0.0.1:7402")]
    NoAddress(String),
    /// No cluster can go by that.
    #[error(transparent)]
    Charter(#[from] BadCharter),
    /// Locks by SET would be kept for nothing, or for too long.
    #[error("locks by SET cannot be kept for {0:?}; take 1 ms to 1 h, such as --compat-ttl 1m")]
    CompatTtl(Duration),
    /// Its folder cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Builder {
    pub(crate) fn new(number: u16, data: PathBuf) -> Self {
        Self {
            number,
            data,
            peer: "127.0.0.1:0".into(),
            advertise: None,
            client: None,
            http: None,
            bootstrap: false,
            join: Vec::new(),
            lease: None,
            idle: None,
            compat_ttl: None,
            insecure: false,
            password: None,
        }
    }

    /// Begins a new cluster, if the folder holds no node yet.
    pub fn bootstrap(self) -> Self {
        Self { bootstrap: true, ..self }
    }

    /// Joins the cluster of whoever is at these addresses, if the folder holds no node yet.
    pub fn join(self, addresses: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { join: addresses.into_iter().map(Into::into).collect(), ..self }
    }

    /// Where other nodes reach this one; a free port of the loopback interface, unless something is said.
    pub fn peer_addr(self, address: impl Into<String>) -> Self {
        Self { peer: address.into(), ..self }
    }

    /// Where other nodes are told to reach this one, if it is not where it listens.
    pub fn advertise(self, address: impl Into<String>) -> Self {
        Self { advertise: Some(address.into()), ..self }
    }

    /// Where clients reach this node, in Redis' protocol. Without it there are none but this process.
    pub fn client_addr(self, address: impl Into<String>) -> Self {
        Self { client: Some(address.into()), ..self }
    }

    /// Where metrics and status can be had. Without it they cannot.
    pub fn http_addr(self, address: impl Into<String>) -> Self {
        Self { http: Some(address.into()), ..self }
    }

    /// How long a membership lasts without being renewed: so long it takes at most until somebody else gets what a node held
    /// that is dead. Fixed when a cluster begins; whoever joins takes over what the cluster has, unless it insists by this.
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// A name that is not used for so long is forgotten; half a minute, unless something is said.
    pub fn idle(self, idle: Duration) -> Self {
        Self { idle: Some(idle), ..self }
    }

    /// Locks that clients of Redis take by `SET … NX` are kept for so long at most, and for so long if they do not say; a minute,
    /// unless something is said. Whoever has such a lock cannot be told that it is lost. So when a node dies that may have kept
    /// one, it takes so much longer until somebody else gets what it held.
    pub fn compat_ttl(self, ttl: Duration) -> Self {
        Self { compat_ttl: Some(ttl), ..self }
    }

    /// Lets it listen on addresses that other machines can reach, although nothing is encrypted.
    pub fn insecure(self) -> Self {
        Self { insecure: true, ..self }
    }

    /// What clients have to say first.
    pub fn password(self, password: impl Into<String>) -> Self {
        Self { password: Some(password.into()), ..self }
    }

    /// Begins. It returns as soon as the node can be reached, which is before it is a member: whoever wants a lock waits.
    ///
    /// # Errors
    /// If its folder or its addresses cannot be used.
    pub async fn start(self) -> Result<Node, StartError> {
        if self.number == 0 {
            return Err(StartError::Zero);
        }
        if self.bootstrap && !self.join.is_empty() {
            return Err(StartError::BootstrapAndJoin);
        }
        for address in self.join.iter().chain(&self.advertise) {
            is_address(address)?;
        }
        if let Some(ttl) = self.compat_ttl.filter(|ttl| !(SHORTEST_KEPT..=LONGEST_KEPT).contains(ttl)) {
            return Err(StartError::CompatTtl(ttl));
        }
        let charter = self.charter();
        charter.check()?;
        let peers = self.listen(&self.peer).await?;
        let clients = self.listen_if(self.client.as_deref()).await?;
        let web = self.listen_if(self.http.as_deref()).await?;
        let bound = peers.local_addr().map_err(|error| StartError::Bind(self.peer.clone(), error))?;
        if bound.ip().is_unspecified() && self.advertise.is_none() {
            return Err(StartError::Unspecified(bound.to_string()));
        }
        let address = self.advertise.clone().unwrap_or_else(|| bound.to_string());
        let store = self.store_when_free(charter).await?;
        let settings = Settings {
            number: self.number,
            address: Address::new(&address),
            seeds: self.join.iter().map(|address| Address::new(address)).collect(),
            lease: self.lease.map(clock::nanos),
            idle: self.idle.map(clock::nanos),
            keep: self.compat_ttl.map(clock::nanos),
        };
        let inner = Inner::new(settings, store);
        inner.spawn_vital(supervise::run(Arc::clone(&inner)));
        inner.spawn_vital(Arc::clone(&inner.engine).run_timer());
        inner.spawn_vital(listen::accept(peers, Arc::clone(&inner)));
        let local = |listener: &TcpListener| listener.local_addr().ok();
        let (client_addr, http_addr) = (clients.as_ref().and_then(local), web.as_ref().and_then(local));
        if let Some(clients) = clients {
            inner.spawn_vital(resp::accept(clients, Arc::clone(&inner), self.password.as_deref().map(Into::into)));
        }
        if let Some(web) = web {
            inner.spawn_vital(http::serve(web, Arc::clone(&inner)));
        }
        Ok(Node::new(inner, bound, client_addr, http_addr))
    }

    fn charter(&self) -> Charter {
        let lease = clock::nanos(self.lease.unwrap_or(DEFAULT_LEASE));
        Charter { lease, margin: lease / 10, ..Charter::new(SHARDS) }
    }

    /// One that has just been told to leave may be about to close the folder.
    async fn store_when_free(&self, charter: Charter) -> Result<Store, StartError> {
        let begin = Instant::now();
        loop {
            match self.store(charter.clone()) {
                Err(StartError::Store(StoreError::InUse(_))) if begin.elapsed() < PATIENCE => sleep(PAUSE).await,
                store => return store,
            }
        }
    }

    fn store(&self, charter: Charter) -> Result<Store, StartError> {
        if let Some(mut store) = Store::open(&self.data)? {
            let number = identity::number(store.contents().id);
            if number != self.number {
                return Err(StartError::OtherNumber(self.data.display().to_string(), number, self.number));
            }
            let lease = Duration::from_nanos(store.contents().charter.lease);
            if let Some(wanted) = self.lease.filter(|wanted| *wanted != lease) {
                // One that has not joined anybody yet may want something else than before.
                if store.contents().founds.is_some() || store.contents().disk != Disk::empty() {
                    return Err(StartError::OtherLease(self.data.display().to_string(), lease, wanted));
                }
                let contents = store.contents().clone();
                store.put(Contents { charter, ..contents })?;
            }
            return Ok(store);
        }
        if !self.bootstrap && self.join.is_empty() {
            return Err(StartError::NoData(self.data.display().to_string()));
        }
        let founds = self.bootstrap.then(|| (ClusterId(rand::random()), first_view()));
        let contents = Contents {
            id: identity::draw(self.number),
            incarnation: Incarnation(0),
            charter,
            seeds: self.join.iter().map(|address| Address::new(address)).collect(),
            founds,
            disk: Disk::empty(),
        };
        Ok(Store::create(&self.data, contents)?)
    }

    async fn listen_if(&self, address: Option<&str>) -> Result<Option<TcpListener>, StartError> {
        match address {
            Some(address) => self.listen(address).await.map(Some),
            None => Ok(None),
        }
    }

    async fn listen(&self, address: &str) -> Result<TcpListener, StartError> {
        is_address(address)?;
        let no_address = |_| StartError::NoAddress(address.into());
        let found: Vec<SocketAddr> = lookup_host(address).await.map_err(no_address)?.collect();
        if !self.insecure && !found.iter().map(SocketAddr::ip).all(is_loopback) {
            return Err(StartError::NotLoopback(address.into()));
        }
        TcpListener::bind(&found[..]).await.map_err(|error| StartError::Bind(address.into(), error))
    }
}

/// A host and a port.
fn is_address(text: &str) -> Result<(), StartError> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
    if matches!(port, Some(Ok(_))) { Ok(()) } else { Err(StartError::NoAddress(text.into())) }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Minutes since the beginning of 2026, so that the fences of a cluster that is begun anew do not fall.
fn first_view() -> ViewNumber {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(EPOCH, |now| now.as_secs());
    now.saturating_sub(EPOCH) / 60
}
