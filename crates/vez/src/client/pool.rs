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

    pub(super) async fn connect(&self) -> Result<Wire, ClientError> {
        let first = self.favourite.load(Ordering::Relaxed);
        let count = self.addresses.len();
        let patience = PATIENCE / u32::try_from(count).unwrap_or(u32::MAX);
        let mut last = None;
        for at in (0..count).map(|step| (first + step) % count) {
            let address = &self.addresses[at];
            match timeout(patience.max(Duration::from_secs(1)), self.greet(address)).await {
                Ok(Ok(wire)) => {
                    self.favourite.store(at, Ordering::Relaxed);
                    return Ok(wire);
                }
                Ok(Err(ClientError::Connect(at, error))) if error.kind() == io::ErrorKind::InvalidInput => {
                    return Err(ClientError::Connect(at, error)); // That is no address, and never will be one.
                }
                Ok(Err(error)) => last = Some(error),
                Err(_) => last = Some(ClientError::Connect(address.clone(), late())),
            }
        }
        match last {
            Some(ClientError::Connect(_, error)) => Err(ClientError::Connect(self.addresses.join(", "), error)),
            Some(error) => Err(error),
            None => Err(ClientError::Connect(String::new(), io::ErrorKind::InvalidInput.into())),
        }
    }

    async fn greet(&self, address: &str) -> Result<Wire, ClientError> {
        let mut wire = Wire::connect(address).await?;
        let mut hello = vec![b"HELLO".to_vec(), b"3".to_vec()];
        if let Some(password) = &self.password {
            hello.extend([b"AUTH".to_vec(), b"default".to_vec(), password.clone().into_bytes()]);
        }
        if let Some(name) = &self.name {
            hello.extend([b"SETNAME".to_vec(), name.clone().into_bytes()]);
        }
        match wire.greet(&hello).await {
            Ok(()) => Ok(wire),
            Err(ClientError::Broken(error)) => Err(ClientError::Strange(format!("it hung up: {error}"))),
            Err(error) => Err(error),
        }
    }

    /// Keeps a connection for the next who wants one.
    pub(super) fn put_back(&self, wire: Wire) {
        let mut idle = self.idle.lock();
        if idle.len() < MOST_IDLE {
            idle.push(wire);
        }
    }

    /// The node that answers serves nobody now: the next one is asked first from here on.
    pub(super) fn turn_away(&self) {
        self.idle.lock().clear();
        let next = (self.favourite.load(Ordering::Relaxed) + 1) % self.addresses.len();
        self.favourite.store(next, Ordering::Relaxed);
    }
}
