//! Who leads, seen from inside this process.

use std::{fmt, sync::Arc};

use vez_peer::{
    ask::{Failure, Leader, Patience},
    name::Name,
};

use crate::{
    asking::is_passing,
    engine::Sights,
    node::{Inner, LockError},
};

/// Sees who leads, now and from now on. Of two leaders it sees the earlier first, and in the end the one who leads; one who led
/// only while the members were settling in a new view, or this node was none, it may not see.
pub struct Observer {
    inner: Arc<Inner>,
    name: Name,
    sights: Option<Sights>,
    /// What was seen last.
    seen: Option<Option<Leader>>,
}

impl Observer {
    pub(crate) fn new(inner: Arc<Inner>, name: Name) -> Self {
        Self { inner, name, sights: None, seen: None }
    }

    /// Waits for the next change: who leads, or that nobody does. The first is how it is now.
    ///
    /// # Errors
    /// If it is no election, or the node has ended.
    pub async fn next(&mut self) -> Result<Option<Leader>, LockError> {
        loop {
            match self.see().await {
                // This node is no member now: it goes on when it is one again.
                Err(Failure::NoMember) => self.inner.is_back(Patience::Endless).await?,
                sight => return Ok(sight?),
            }
        }
    }

    /// The same; but a node that is no member says so.
    pub(crate) async fn see(&mut self) -> Result<Option<Leader>, Failure> {
        loop {
            let sight = match &mut self.sights {
                Some(sights) => sights.next().await,
                None => match self.look() {
                    Ok(sights) => self.sights.insert(sights).next().await,
                    Err(failure) => Err(failure),
                },
            };
            match sight {
                Ok(leader) if self.seen.as_ref() == Some(&leader) => {} // As it was before this node began anew.
                Ok(leader) => {
                    self.seen = Some(leader.clone());
                    return Ok(leader);
                }
                Err(failure) => {
                    self.sights = None;
                    return Err(if is_passing(&failure) { Failure::NoMember } else { failure });
                }
            }
        }
    }

    fn look(&self) -> Result<Sights, Failure> {
        let engine = &self.inner.engine;
        engine.observe(&engine.own()?, &self.name)
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observer({:?})", self.name)
    }
}
