//! What a client that is connected sees of elections.

use std::{collections::BTreeMap, sync::Arc};

use tokio::{sync::mpsc, task::AbortHandle};
use vez_peer::{
    ask::{Failure, Leader},
    name::Name,
};

use super::{
    connection::{Connection, Outcome, Step},
    reply::Reply,
    words,
};
use crate::{node::Inner, observer::Observer};

/// So many elections a connection observes at most.
const MOST_OBSERVED: usize = 1 << 10;
/// So many sights wait to be said.
const MOST_SIGHTS: usize = 64;

/// The elections that a connection observes.
#[derive(Default)]
pub(super) struct Observing {
    /// Who looks at each of them.
    lookouts: BTreeMap<Name, Lookout>,
    channel: Option<(mpsc::Sender<Sight>, mpsc::Receiver<Sight>)>,
}

type Sight = (Name, Result<Option<Leader>, Failure>);

/// A task that looks at one election, and ends with this.
struct Lookout(AbortHandle);

impl Drop for Lookout {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Observing {
    pub(super) fn is_empty(&self) -> bool {
        self.lookouts.is_empty()
    }

    /// What is seen next. If nothing is observed, that never happens.
    pub(super) async fn next(&mut self) -> Reply {
        loop {
            let Some((_, seen)) = &mut self.channel else { return std::future::pending().await };
            let Some((name, sight)) = seen.recv().await else { return std::future::pending().await };
            // What was on its way when nobody wanted to see it any more is not said.
            if !self.lookouts.contains_key(&name) {
                continue;
            }
            let first = [Reply::text("leader"), Reply::Bytes(name.as_bytes().to_vec())];
            return match sight {
                Ok(leader) => Reply::Push(first.into_iter().chain(words::leader(leader)).collect()),
                Err(failure) => {
                    self.lookouts.remove(&name);
                    let why = match words::failure(&failure) {
                        Reply::Error(why) => Reply::text(why),
                        other => other,
                    };
                    Reply::Push(vec![Reply::text("unobserved"), Reply::Bytes(name.as_bytes().to_vec()), why])
                }
            };
        }
    }

    fn look_at(&mut self, inner: &Arc<Inner>, name: Name) {
        let (tell, _) = self.channel.get_or_insert_with(|| mpsc::channel(MOST_SIGHTS));
        let (tell, mut observer) = (tell.clone(), Observer::new(Arc::clone(inner), name.clone()));
        let of = name.clone();
        let look = tokio::spawn(async move {
            loop {
                let sight = observer.see().await;
                let ended = sight.is_err();
                if tell.send((of.clone(), sight)).await.is_err() || ended {
                    return;
                }
            }
        });
        self.lookouts.insert(name, Lookout(look.abort_handle()));
    }

    pub(super) fn clear(&mut self) {
        self.lookouts.clear();
        self.channel = None;
    }
}

impl Connection {
    /// Who leads now.
    pub(super) fn leader(&self, name: Name) -> Step {
        let inner = Arc::clone(&self.seat.inner);
        Step::Wait(Box::pin(async move {
            Outcome::Said(match Observer::new(inner, name).see().await {
                Ok(None) => Reply::Nil,
                Ok(leader) => Reply::Array(words::leader(leader).into()),
                Err(failure) => words::failure(&failure),
            })
        }))
    }

    /// From now on it is told who leads.
    pub(super) fn observe(&mut self, name: Name) -> Reply {
        if self.observing.lookouts.contains_key(&name) {
            return Reply::OK;
        }
        if self.observing.lookouts.len() >= MOST_OBSERVED {
            let error = format!("TOOMANY a connection observes at most {MOST_OBSERVED} elections; take another");
            return Reply::Error(error);
        }
        self.observing.look_at(&self.seat.inner, name);
        Reply::OK
    }

    /// And not any more.
    pub(super) fn unobserve(&mut self, name: &Name) -> Reply {
        Reply::integer(u8::from(self.observing.lookouts.remove(name).is_some()))
    }

    /// A semaphore is to have so many units.
    pub(super) fn resize(&self, name: Name, units: u32) -> Step {
        let inner = Arc::clone(&self.seat.inner);
        Step::Wait(Box::pin(async move {
            Outcome::Said(match inner.resize_now(&name, units).await {
                Ok(size) => Reply::text(size.since.to_string()),
                Err(failure) => words::failure(&failure),
            })
        }))
    }
}
