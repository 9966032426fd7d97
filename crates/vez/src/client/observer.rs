//! Who leads, seen from outside.

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::sleep;
use vez_peer::{ask::Leader, name::Name};

use super::{
    ClientError,
    pool::Pool,
    wire::{Push, Told, Wire},
};

/// So long it waits before it goes to a node again.
const PAUSE: Duration = Duration::from_millis(100);

/// Sees who leads, now and from now on. Of two leaders it sees the earlier first, and in the end the one who leads. When its
/// node goes, it goes to another of those that its client knows, or waits until it is back: who leads only meanwhile, it may
/// not see.
pub struct RemoteObserver {
    pool: Arc<Pool>,
    name: Name,
    wire: Option<Wire>,
    /// What was seen last.
    seen: Option<Option<Leader>>,
}

impl RemoteObserver {
    pub(super) async fn new(pool: Arc<Pool>, name: Name) -> Result<Self, ClientError> {
        let mut observer = Self { pool, name, wire: None, seen: None };
        observer.look().await?;
        Ok(observer)
    }

    /// Waits for the next change: who leads, or that nobody does. The first is how it is now.
    ///
    /// # Errors
    /// If it is no election, or what answers is no node.
    pub async fn next(&mut self) -> Result<Option<Leader>, ClientError> {
        loop {
            match self.hear().await {
                Ok(leader) if self.seen.as_ref() == Some(&leader) => {} // As it was before it went to another node.
                Ok(leader) => {
                    self.seen = Some(leader.clone());
                    return Ok(leader);
                }
                Err(error) if error.is_unreachable() || error.is_temporary() => {
                    // If there is another node to look at, that one.
                    if let Some(wire) = self.wire.take() {
                        self.pool.turn_away(&wire);
                    }
                    sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn hear(&mut self) -> Result<Option<Leader>, ClientError> {
        if self.wire.is_none() {
            self.look().await?;
        }
        loop {
            let Some(wire) = &mut self.wire else { return Err(super::silent()) };
            while let Some(push) = wire.push() {
                if let Some(sight) = sight(push, &self.name) {
                    return sight;
                }
            }
            wire.hear().await?;
        }
    }

    /// Begins to look.
    async fn look(&mut self) -> Result<(), ClientError> {
        let mut wire = self.pool.connect().await?;
        match wire.call(&[b"OBSERVE".to_vec(), self.name.as_bytes().to_vec()]).await? {
            Told::Text(_) => self.wire = Some(wire),
            Told::Error(text) => return Err(ClientError::refused(&text)),
            other => return Err(ClientError::Strange(format!("{other:?}"))),
        }
        Ok(())
    }
}

/// What is seen of that election, if it is that.
fn sight(push: Push, name: &Name) -> Option<Result<Option<Leader>, ClientError>> {
    let of_it = |of: &Option<Vec<u8>>| of.as_deref() == Some(name.as_bytes());
    match <[_; 4]>::try_from(push) {
        Ok([Some(what), of, None, None]) if what == b"leader" && of_it(&of) => Some(Ok(None)),
        Ok([Some(what), of, Some(fence), Some(value)]) if what == b"leader" && of_it(&of) => {
            let fence = super::fence(&String::from_utf8_lossy(&fence));
            Some(fence.map(|fence| Some(Leader { fence, value })))
        }
        Ok(_) => None,
        Err(push) => match &push[..] {
            [Some(what), of, Some(why)] if what == b"unobserved" && of_it(of) => {
                Some(Err(ClientError::refused(&String::from_utf8_lossy(why))))
            }
            _ => None,
        },
    }
}

impl fmt::Debug for RemoteObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteObserver({:?})", self.name)
    }
}
