//! Connections of a client: which node they go to, and those that are kept for later.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::timeout;

use super::{ClientError, PATIENCE, late, wire::Wire};

/// So many connections are kept for later.
const MOST_IDLE: usize = 64;

/// What all who use a client share.
#[derive(Debug)]
pub(super) struct Pool {
    addresses: Vec<String>,
    /// The one of them that answered last.
    favourite: AtomicUsize,
    password: Option<String>,
    name: Option<String>,
    idle: Mutex<Vec<Wire>>,
}

impl Pool {
    /// Connections to the first that answers of some addresses, which have commas between them.
    pub(super) fn new(addresses: &str, password: Option<String>, name: Option<String>) -> Self {
        Self {
            addresses: addresses.split(',').map(|address| address.trim().to_owned()).collect(),
            favourite: AtomicUsize::new(0),
            password,
            name,
            idle: Mutex::default(),
        }
    }

    /// A connection that nobody uses.
    pub(super) async fn wire(&self) -> Result<Wire, ClientError> {
        loop {
            let idle = self.idle.lock().pop();
            let Some(mut wire) = idle else { return self.connect().await };
            if wire.is_open() {
                return Ok(wire);
            }
        }
    }

    /// Whether there is another node to go to.
    pub(super) fn knows_several(&self) -> bool {
        self.addresses.len() > 1
    }

    pub(super) async fn connect(&self) -> Result<Wire, ClientError> {
        let first = self.favourite.load(Ordering::Relaxed);
        let count = self.addresses.len();
        let patience = PATIENCE / u32::try_from(count).unwrap_or(u32::MAX);
        let (mut silent, mut refused) = (None, None);
        for at in (0..count).map(|step| (first + step) % count) {
            match timeout(patience.max(Duration::from_secs(1)), self.greet(at)).await {
                Ok(Ok(wire)) => {
                    self.favourite.store(at, Ordering::Relaxed);
                    return Ok(wire);
                }
                Ok(Err(ClientError::Connect(at, error))) if error.kind() == io::ErrorKind::InvalidInput => {
                    return Err(ClientError::Connect(at, error)); // That is no address, and never will be one.
                }
                Ok(Err(ClientError::Connect(_, error))) => silent = Some(error),
                Ok(Err(error)) => refused = Some(error),
                Err(_) => silent = Some(late()),
            }
        }
        // One that is there and says no says more than one that is not.
        Err(refused.unwrap_or_else(|| {
            let error = silent.unwrap_or_else(|| io::ErrorKind::InvalidInput.into());
            ClientError::Connect(self.addresses.join(", "), error)
        }))
    }

    async fn greet(&self, at: usize) -> Result<Wire, ClientError> {
        let mut wire = Wire::connect(&self.addresses[at], at).await?;
        let mut hello = vec![b"HELLO".to_vec(), b"3".to_vec()];
        if let Some(password) = &self.password {
            hello.extend([b"AUTH".to_vec(), b"default".to_vec(), password.clone().into_bytes()]);
        }
        if let Some(name) = &self.name {
            hello.extend([b"SETNAME".to_vec(), name.clone().into_bytes()]);
        }
        wire.greet(&hello).await?;
        Ok(wire)
    }

    /// Keeps a connection for the next who wants one, unless that goes elsewhere.
    pub(super) fn put_back(&self, wire: Wire) {
        let mut idle = self.idle.lock();
        if idle.len() < MOST_IDLE && wire.at == self.favourite.load(Ordering::Relaxed) {
            idle.push(wire);
        }
    }

    /// The node at the other end serves nobody now: the next one is asked first from here on.
    pub(super) fn turn_away(&self, from: &Wire) {
        let next = (from.at + 1) % self.addresses.len();
        if next != from.at {
            self.idle.lock().retain(|wire| wire.at != from.at);
            // Unless another was found meanwhile.
            let _ = self.favourite.compare_exchange(from.at, next, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}
