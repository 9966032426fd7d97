//! A client of a node, from outside, in Redis' own protocol.

mod keeper;
mod observer;
mod pool;
mod wire;

use std::{io, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::time::timeout;
use vez_peer::{
    ask::{Ask, Size},
    fence::Fence,
    name::{Name, NoName},
};

use self::{
    keeper::{Held, Keeper},
    pool::Pool,
    wire::{Told, Wire},
};
pub use self::{
    keeper::{Loss, RemoteGuard},
    observer::RemoteObserver,
};
use crate::turn::{Turn, What, Wish, sealed::Service, words};

/// A node that does not answer for so long is not there.
const PATIENCE: Duration = Duration::from_secs(5);

/// A client of a node. It can be cloned, and used by many at once: whoever holds something or waits for it has a connection of
/// its own, and what was released leaves it to the next.
#[derive(Clone, Debug)]
pub struct Client {
    pool: Arc<Pool>,
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
            // A node that is killed resets its connections. One that closes them without a word is no node, or is asked at another port.
            ClientError::Broken(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                ClientError::Strange(format!("it hung up: {error}"))
            }
            error => error,
        })?;
        pool.put_back(wire);
        Ok(Self { pool: Arc::new(pool) })
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
        let request = [b"SHUTDOWN".to_vec(), b"GRACE".to_vec(), milliseconds(grace)];
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

words!(Client);

impl<'a> Turn<'a, Client> {
    /// It is lost if this client cannot be heard for so long; as soon as its node notices, if nothing is said.
    pub fn ttl(self, ttl: impl Into<Option<Duration>>) -> Self {
        self.with_ttl(ttl.into())
    }
}

impl Service for Client {
    type Guard = RemoteGuard;
    type Error = ClientError;
    type Observer = RemoteObserver;

    async fn take(&self, wish: Wish) -> Result<Option<RemoteGuard>, ClientError> {
        let mut request = words(&wish.what);
        for (word, time) in [(&b"TTL"[..], wish.ttl), (b"WAIT", wish.wait)] {
            request.extend(time.into_iter().flat_map(|time| [word.to_vec(), milliseconds(time)]));
        }
        if self.pool.knows_several() {
            request.push(b"ELSEWHERE".to_vec());
        }
        let mut wire = self.pool.wire().await?;
        let called = wire.call(&request);
        let answer = match wish.wait {
            None => called.await?,
            // A node that does not answer is not waited for much longer than for the turn.
            Some(wait) => timeout(wait.saturating_add(PATIENCE), called).await.map_err(|_| silent())??,
        };
        let held = match answer {
            Told::Nil => {
                self.pool.put_back(wire);
                return Ok(None);
            }
            Told::Error(text) => return Err(self.refused(wire, &text)),
            answer => Held::new(wish.what, answer)?,
        };
        // How long it is ours is known by a renewal, counted from its sending.
        let keeper = Keeper { pool: Arc::clone(&self.pool), held: Arc::new(held), ttl: wish.ttl, wire };
        match timeout(PATIENCE, keeper.start()).await.map_err(|_| silent())? {
            Ok(guard) => Ok(Some(guard)),
            Err(ClientError::Refused { code, why }) if code == "LOST" => {
                Err(ClientError::Refused { code: "TRYAGAIN".into(), why }) // Nobody has counted on it yet.
            }
            Err(error) => Err(error),
        }
    }

    async fn resize(&self, name: Name, units: u32) -> Result<Size, ClientError> {
        let units_said = units.to_string().into_bytes();
        let request = [b"SEM".to_vec(), name.as_bytes().to_vec(), b"RESIZE".to_vec(), units_said];
        let mut wire = self.pool.wire().await?;
        match wire.call(&request).await? {
            Told::Error(text) => Err(self.refused(wire, &text)),
            Told::Text(since) => {
                self.pool.put_back(wire);
                Ok(Size { since: fence(&since)?, units })
            }
            other => Err(ClientError::Strange(format!("{other:?}"))),
        }
    }

    async fn observe(&self, name: Name) -> Result<RemoteObserver, ClientError> {
        RemoteObserver::new(Arc::clone(&self.pool), name).await
    }

    fn no_turn() -> ClientError {
        ClientError::Strange("it was not our turn, and it does not say so".into())
    }
}

impl Client {
    /// The node says no. If it serves nobody now, another is asked from here on.
    fn refused(&self, wire: Wire, text: &str) -> ClientError {
        let refused = ClientError::refused(text);
        if refused.is_temporary() {
            self.pool.turn_away(&wire);
        }
        self.pool.put_back(wire);
        refused
    }
}

/// As it is said to a node.
fn words(what: &What) -> Vec<Vec<u8>> {
    let (name, ask) = match what {
        What::One(name, ask) => (name.as_bytes().to_vec(), ask),
        What::All(names) => {
            let count = names.len().to_string().into_bytes();
            let names = names.iter().map(|name| name.as_bytes().to_vec());
            return [b"LOCKALL".to_vec(), count].into_iter().chain(names).collect();
        }
    };
    match ask {
        Ask::Lock => vec![b"LOCK".to_vec(), name],
        Ask::Read => vec![b"READ".to_vec(), name],
        Ask::Write => vec![b"WRITE".to_vec(), name],
        Ask::Group { label } => vec![b"ENTER".to_vec(), name, label.clone()],
        Ask::Elect { value } => vec![b"CAMPAIGN".to_vec(), name, value.clone()],
        Ask::Semaphore { units, weight } => {
            let (units, weight) = (units.to_string().into_bytes(), weight.to_string().into_bytes());
            vec![b"SEM".to_vec(), name, units, b"TAKE".to_vec(), weight]
        }
    }
}

fn fence(text: &str) -> Result<Fence, ClientError> {
    text.parse().map_err(|error| ClientError::Strange(format!("{error}")))
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
