//! A client of a node, from outside, in Redis' own protocol.

mod keeper;
mod wire;

use std::{io, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::timeout;
use vez_peer::{
    fence::Fence,
    name::{Name, NoName},
};

pub use self::keeper::RemoteGuard;
use self::{
    keeper::Keeper,
    wire::{Told, Wire},
};

/// A node that does not answer for so long is not there.
const PATIENCE: Duration = Duration::from_secs(5);
/// So many connections are kept for later.
const MOST_IDLE: usize = 64;

/// A client of a node. It can be cloned, and used by many at once: whoever holds or waits for a lock has a connection of its
/// own, and what was released leaves it to the next.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    address: String,
    password: Option<String>,
    name: Option<String>,
    idle: Mutex<Vec<Wire>>,
}

/// How a lock is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// It is lost if this client cannot be heard for so long; as soon as its node notices, if nothing is said.
    pub ttl: Option<Duration>,
    /// So long it waits; as long as it takes, if nothing is said; not at all, if that is zero.
    pub wait: Option<Duration>,
}

/// Why a client does not get what it wants.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody answers there.
    #[error("cannot reach a node at {0}")]
    Connect(String, #[source] io::Error),
    /// The connection broke, and with it all that was held by it.
    #[error("the connection to the node broke")]
    Broken(#[from] io::Error),
    /// The node says no.
    #[error("{why}")]
    Refused {
        /// Why, for programs: a word in capitals.
        code: String,
        /// Why, for people.
        why: String,
    },
    /// What answers is no node.
    #[error("what answers is not the port for clients of a node, which is 7400 unless it was chosen otherwise: {0}")]
    Strange(String),
    /// It is no name.
    #[error(transparent)]
    Name(#[from] NoName),
}

impl ClientError {
    fn refused(text: &str) -> Self {
        let (code, why) = text.split_once(' ').unwrap_or(("ERR", text));
        Self::Refused { code: code.into(), why: why.into() }
    }

    /// Whether the node cannot tell at this moment, and can be asked again.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "TRYAGAIN" || code == "NOMEMBER")
    }
}

impl Client {
    /// A client of the node at that address, such as `127.0.0.1:7400`.
    ///
    /// # Errors
    /// If nobody answers there, or wants a password.
    pub async fn connect(address: impl Into<String>) -> Result<Self, ClientError> {
        Self::connect_with(address, None).await
    }

    /// The same, with a password.
    ///
    /// # Errors
    /// If nobody answers there, or the password is another.
    pub async fn connect_with(address: impl Into<String>, password: Option<String>) -> Result<Self, ClientError> {
        Self::connect_as(address, password, None).await
    }

    /// The same, with a name that others see who look at what it holds.
    ///
    /// # Errors
    /// If nobody answers there, or the password is another, or the name is too long.
    pub async fn connect_as(
        address: impl Into<String>,
        password: Option<String>,
        name: Option<String>,
    ) -> Result<Self, ClientError> {
        let shared = Shared { address: address.into(), password, name, idle: Mutex::default() };
        let client = Self { shared: Arc::new(shared) };
        let wire = client.shared.connect().await?;
        client.shared.put_back(wire);
        Ok(client)
    }

    /// Takes a lock, when it is our turn.
    ///
    /// # Errors
    /// If it can never be had, or the node cannot be reached.
    pub async fn lock(&self, name: impl AsRef<[u8]>) -> Result<RemoteGuard, ClientError> {
        let locked = self.lock_with(name, Wanted::default()).await?;
        locked.ok_or_else(|| ClientError::Strange("it was not our turn, and it does not say so".into()))
    }

    /// Takes a lock if nobody has it.
    ///
    /// # Errors
    /// If it cannot be told, or the node cannot be reached.
    pub async fn try_lock(&self, name: impl AsRef<[u8]>) -> Result<Option<RemoteGuard>, ClientError> {
        self.lock_with(name, Wanted { wait: Some(Duration::ZERO), ttl: None }).await
    }

    /// Takes a lock, if it is our turn within that time.
    ///
    /// # Errors
    /// If it can never be had, or the node cannot be reached.
    pub async fn lock_timeout(
        &self,
        name: impl AsRef<[u8]>,
        wait: Duration,
    ) -> Result<Option<RemoteGuard>, ClientError> {
        self.lock_with(name, Wanted { wait: Some(wait), ttl: None }).await
    }

    /// Takes a lock, if it is our turn in time.
    ///
    /// # Errors
    /// If it can never be had, or the node cannot be reached.
    pub async fn lock_with(&self, name: impl AsRef<[u8]>, wanted: Wanted) -> Result<Option<RemoteGuard>, ClientError> {
        let name = Name::new(name.as_ref())?;
        let milliseconds = |time: Duration| time.as_millis().to_string().into_bytes();
        let mut request = vec![b"LOCK".to_vec(), name.as_bytes().to_vec()];
        for (word, time) in [(&b"TTL"[..], wanted.ttl), (b"WAIT", wanted.wait)] {
            request.extend(time.into_iter().flat_map(|time| [word.to_vec(), milliseconds(time)]));
        }
        let mut wire = self.shared.wire().await?;
        let called = wire.call(&request);
        let answer = match wanted.wait {
            None => called.await?,
            // A node that does not answer is not waited for much longer than for the lock.
            Some(wait) => timeout(wait + PATIENCE, called).await.map_err(|_| silent())??,
        };
        let fence: Fence = match answer {
            Told::Text(text) => text.parse().map_err(|error| ClientError::Strange(format!("{error}")))?,
            Told::Nil => {
                self.shared.put_back(wire);
                return Ok(None);
            }
            Told::Error(text) => {
                self.shared.put_back(wire);
                return Err(ClientError::refused(&text));
            }
            other => return Err(ClientError::Strange(format!("{other:?}"))),
        };
        // How long it is ours is known by a renewal, counted from its sending.
        let keeper = Keeper { shared: Arc::clone(&self.shared), name, fence, ttl: wanted.ttl, wire };
        keeper.start().await.map(Some)
    }

    /// Says anything to the node, and tells what it answers. It is said on a connection of its own, which ends with it: a lock
    /// that is taken so is released at once.
    ///
    /// # Errors
    /// If it says no, or cannot be reached.
    pub async fn call(&self, words: &[&[u8]]) -> Result<Value, ClientError> {
        let request: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
        let mut wire = self.shared.connect().await?;
        match timeout(PATIENCE, wire.call(&request)).await.map_err(|_| silent())?? {
            Told::Error(text) => Err(ClientError::refused(&text)),
            answer => Ok(answer.into_json()),
        }
    }
}

impl Shared {
    /// A connection that nobody uses.
    async fn wire(&self) -> Result<Wire, ClientError> {
        loop {
            let idle = self.idle.lock().pop();
            let Some(mut wire) = idle else { return self.connect().await };
            if wire.is_open() {
                return Ok(wire);
            }
        }
    }

    async fn connect(&self) -> Result<Wire, ClientError> {
        timeout(PATIENCE, self.greet())
            .await
            .unwrap_or_else(|_| Err(ClientError::Connect(self.address.clone(), late())))
    }

    async fn greet(&self) -> Result<Wire, ClientError> {
        let mut wire = Wire::connect(&self.address).await?;
        let mut hello = vec![b"HELLO".to_vec(), b"3".to_vec()];
        if let Some(password) = &self.password {
            hello.extend([b"AUTH".to_vec(), b"default".to_vec(), password.clone().into_bytes()]);
        }
        if let Some(name) = &self.name {
            hello.extend([b"SETNAME".to_vec(), name.clone().into_bytes()]);
        }
        let answer = wire.call(&hello).await.map_err(|error| match error {
            ClientError::Broken(error) => ClientError::Strange(format!("it hung up: {error}")),
            error => error,
        })?;
        match answer {
            Told::Error(text) => Err(ClientError::refused(&text)),
            Told::Map(map) if map.get("server").is_some_and(|server| *server == "vez") => Ok(wire),
            other => Err(ClientError::Strange(format!("{}", other.into_json()))),
        }
    }

    fn put_back(&self, wire: Wire) {
        let mut idle = self.idle.lock();
        if idle.len() < MOST_IDLE {
            idle.push(wire);
        }
    }
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it does not answer")
}

fn silent() -> ClientError {
    ClientError::Broken(late())
}
