//! A client of a node, from outside, in Redis' own protocol.

mod keeper;
mod pool;
mod wire;

use std::{io, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::time::timeout;
use vez_peer::{
    fence::Fence,
    name::{Name, NoName},
};

pub use self::keeper::{Loss, RemoteGuard};
use self::{keeper::Keeper, pool::Pool, wire::Told};

/// A node that does not answer for so long is not there.
const PATIENCE: Duration = Duration::from_secs(5);

/// A client of a node. It can be cloned, and used by many at once: whoever holds or waits for a lock has a connection of its
/// own, and what was released leaves it to the next.
#[derive(Clone, Debug)]
pub struct Client {
    pool: Arc<Pool>,
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
    /// It is meant for one node.
    #[error("which of these nodes? say one address")]
    Several,
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
        matches!(self, Self::Refused { code, .. } if ["TRYAGAIN", "NOMEMBER", "LEAVING"].contains(&code.as_str()))
    }

    /// Whether nobody answers, or not any more.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Connect(..) | Self::Broken(_))
    }
}

impl Client {
    /// A client of the node at that address, such as `127.0.0.1:7400`. It may be several, with commas between them: then it is
    /// one of the first that answers, and of another when that does not answer any more, or leaves.
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
        let pool = Pool::new(&address.into(), password, name);
        let wire = pool.connect().await.map_err(|error| match error {
            ClientError::Broken(error) => ClientError::Strange(format!("it hung up: {error}")),
            error => error,
        })?;
        pool.put_back(wire);
        Ok(Self { pool: Arc::new(pool) })
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
        let mut request = vec![b"LOCK".to_vec(), name.as_bytes().to_vec()];
        for (word, time) in [(&b"TTL"[..], wanted.ttl), (b"WAIT", wanted.wait)] {
            request.extend(time.into_iter().flat_map(|time| [word.to_vec(), milliseconds(time)]));
        }
        if self.pool.knows_several() {
            request.push(b"ELSEWHERE".to_vec());
        }
        let mut wire = self.pool.wire().await?;
        let called = wire.call(&request);
        let answer = match wanted.wait {
            None => called.await?,
            // A node that does not answer is not waited for much longer than for the lock.
            Some(wait) => timeout(wait.saturating_add(PATIENCE), called).await.map_err(|_| silent())??,
        };
        let fence: Fence = match answer {
            Told::Text(text) => text.parse().map_err(|error| ClientError::Strange(format!("{error}")))?,
            Told::Nil => {
                self.pool.put_back(wire);
                return Ok(None);
            }
            Told::Error(text) => {
                let refused = ClientError::refused(&text);
                if refused.is_temporary() {
                    self.pool.turn_away(&wire);
                }
                self.pool.put_back(wire);
                return Err(refused);
            }
            other => return Err(ClientError::Strange(format!("{other:?}"))),
        };
        // How long it is ours is known by a renewal, counted from its sending.
        let keeper = Keeper { pool: Arc::clone(&self.pool), name, fence, ttl: wanted.ttl, wire };
        match timeout(PATIENCE, keeper.start()).await.map_err(|_| silent())? {
            Ok(guard) => Ok(Some(guard)),
            Err(ClientError::Refused { code, why }) if code == "LOST" => {
                Err(ClientError::Refused { code: "TRYAGAIN".into(), why }) // Nobody has counted on it yet.
            }
            Err(error) => Err(error),
        }
    }

    /// Lets the node leave its cluster, and waits until it has ended. Who holds something there has so long to come to an end.
    ///
    /// # Errors
    /// If it says no, or cannot be reached.
    pub async fn leave(&self, grace: Duration) -> Result<(), ClientError> {
        if self.pool.knows_several() {
            return Err(ClientError::Several);
        }
        let mut wire = self.pool.connect().await?;
        let request = [b"LEAVE".to_vec(), b"GRACE".to_vec(), milliseconds(grace)];
        match timeout(PATIENCE, wire.call(&request)).await.map_err(|_| silent())?? {
            Told::Error(text) => Err(ClientError::refused(&text)),
            _ => {
                while wire.hear().await.is_ok() {} // Its end is that of the connection.
                Ok(())
            }
        }
    }

    /// Says anything to the node, and tells what it answers. It is said on a connection of its own, which ends with it: a lock
    /// that is taken so is released at once.
    ///
    /// # Errors
    /// If it says no, or cannot be reached.
    pub async fn call(&self, words: &[&[u8]]) -> Result<Value, ClientError> {
        let request: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
        let mut wire = self.pool.connect().await?;
        match timeout(PATIENCE, wire.call(&request)).await.map_err(|_| silent())?? {
            Told::Error(text) => Err(ClientError::refused(&text)),
            answer => Ok(answer.into_json()),
        }
    }
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it does not answer")
}

fn silent() -> ClientError {
    ClientError::Broken(late())
}

/// As it is said: no shorter than it is.
fn milliseconds(time: Duration) -> Vec<u8> {
    time.as_nanos().div_ceil(1_000_000).min(u64::MAX.into()).to_string().into_bytes()
}
