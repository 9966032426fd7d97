//! What one has while one has a lock, from outside.
//!
//! A task keeps the connection: it renews in time, hears of losses, and releases in the end. A renewal counts from its sending:
//! how long it took on the way nobody knows.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};
use vez_peer::{fence::Fence, identity::ClusterId, name::Name};

use super::{
    ClientError, milliseconds,
    pool::Pool,
    silent,
    wire::{Told, Wire},
};
use crate::clock::{self, Deadline, Nanos};

const MILLISECOND: Nanos = 1_000_000;

/// A lock that is held, by a node elsewhere. Dropping it releases it, as soon as that is heard of.
pub struct RemoteGuard {
    name: Name,
    fence: Fence,
    cluster: ClusterId,
    kept: Arc<Kept>,
    /// Says that it is to be released, and hears what became of that.
    release: Option<oneshot::Sender<Tell>>,
}

/// Who wants to know what became of a release.
type Tell = oneshot::Sender<Result<(), ClientError>>;
/// Done when the guard is released, or dropped.
type Released = oneshot::Receiver<Tell>;

/// What the guard sees of the task.
#[derive(Default)]
struct Kept {
    deadline: AtomicU64,
    /// When to renew.
    renewal: AtomicU64,
    /// When to be warned.
    danger: AtomicU64,
    /// The node leaves.
    leaving: AtomicBool,
    lost: watch::Sender<Option<Loss>>,
}

/// How one hears that a lock is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The node says so: its time was over, somebody has taken it away, or the node leaves.
    Told,
    /// The node cannot be heard any more, or was not in time.
    Unheard,
}

/// The task.
pub(super) struct Keeper {
    pub pool: Arc<Pool>,
    pub name: Name,
    pub fence: Fence,
    pub ttl: Option<Duration>,
    pub wire: Wire,
}

impl RemoteGuard {
    /// What is held.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The number of this grant: of two grants of a name, the later has the larger one.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Whose fence it is: those of two clusters cannot be compared.
    #[must_use]
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// Until when it is held for certain, as things are. It moves on as long as all goes well.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        let deadline = self.kept.deadline.load(Ordering::Acquire);
        Deadline(if self.kept.lost.borrow().is_some() { 0 } else { deadline })
    }

    /// Whether it is lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.deadline().is_over()
    }

    /// Waits until it is lost. If all goes well that never happens.
    pub async fn lost(&self) {
        let _ = self.kept.lost.subscribe().wait_for(Option::is_some).await;
    }

    /// How one knows that it is lost, once it is.
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        *self.kept.lost.borrow()
    }

    /// Waits until it will soon be lost, unless things get better: time to come to an end.
    pub async fn danger(&self) {
        let mut lost = self.kept.lost.subscribe();
        loop {
            let left = clock::until(self.kept.danger.load(Ordering::Acquire));
            let leaving = self.kept.leaving.load(Ordering::Acquire);
            if left.is_zero() || leaving || lost.borrow_and_update().is_some() {
                return;
            }
            let _ = timeout(left.min(clock::GLANCE), lost.changed()).await;
        }
    }

    /// Releases it, and tells whether it was still held: if not, somebody else may have had it already.
    ///
    /// # Errors
    /// If it was lost, or the node cannot be reached.
    pub async fn release(mut self) -> Result<(), ClientError> {
        let (tell, told) = oneshot::channel();
        let asked = self.release.take().is_some_and(|release| release.send(tell).is_ok());
        if asked { told.await.unwrap_or_else(|_| Err(lost())) } else { Err(lost()) }
    }
}

fn lost() -> ClientError {
    ClientError::refused("LOST it is lost: its node cannot be reached any more, or has taken it away")
}

impl fmt::Debug for RemoteGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteGuard({:?}, {:?})", self.name, self.fence)
    }
}

impl Keeper {
    pub(super) async fn start(mut self) -> Result<RemoteGuard, ClientError> {
        let kept = Arc::new(Kept::default());
        let cluster = self.wire.cluster().await?;
        self.renew(&kept).await?;
        // What may be counted on for so long is not given up by the kernel before.
        self.wire.be_patient(clock::until(kept.deadline.load(Ordering::Acquire)))?;
        let (release, released) = oneshot::channel();
        let (name, fence, kept_by) = (self.name.clone(), self.fence, Arc::clone(&kept));
        tokio::spawn(self.run(kept, released));
        Ok(RemoteGuard { name, fence, cluster, kept: kept_by, release: Some(release) })
    }

    async fn run(mut self, kept: Arc<Kept>, mut released: Released) {
        let loss = loop {
            let deadline = kept.deadline.load(Ordering::Acquire);
            let renewal = kept.renewal.load(Ordering::Acquire);
            tokio::select! {
                asked = &mut released => {
                    let unlocked = timeout(clock::until(deadline), self.unlock()).await;
                    if let Ok(tell) = asked {
                        let _ = tell.send(unlocked.unwrap_or_else(|_| Err(silent()))); // If nobody waits for it, it is released all the same.
                    }
                    return;
                }
                loss = self.is_lost(&kept) => break loss,
                () = tokio::time::sleep(clock::until(renewal).min(clock::GLANCE)) => {
                    if clock::now() < renewal {
                        continue;
                    }
                    match timeout(clock::until(deadline), self.renew(&kept)).await {
                        Ok(Ok(())) => {}
                        Ok(Err(ClientError::Refused { .. })) => break Loss::Told,
                        Ok(Err(_)) | Err(_) if self.was_told(&kept) => break Loss::Told,
                        Ok(Err(_)) | Err(_) => break Loss::Unheard,
                    }
                }
            }
        };
        kept.lost.send_replace(Some(loss));
        // The end of the connection tells the node that we have taken note: not before the guard is dropped, or its time is over.
        let dropped = timeout(clock::until(kept.deadline.load(Ordering::Acquire)), released).await;
        if let Ok(Ok(tell)) = dropped {
            let _ = tell.send(Err(if loss == Loss::Told { lost() } else { silent() })); // It may not want to know.
        }
    }

    /// Renews, and counts from before that was sent.
    async fn renew(&mut self, kept: &Kept) -> Result<(), ClientError> {
        let sent = clock::now();
        let request = [
            b"EXTEND".to_vec(),
            self.name.as_bytes().to_vec(),
            self.fence.to_string().into_bytes(),
            milliseconds(self.ttl.unwrap_or_default()),
        ];
        match self.wire.call(&request).await? {
            Told::Number(left) => {
                let left = u64::try_from(left).unwrap_or(0).saturating_mul(MILLISECOND);
                kept.renewal.store(sent.saturating_add(left / 3), Ordering::Release);
                kept.danger.store(sent.saturating_add(left / 3 * 2), Ordering::Release);
                kept.deadline.store(sent.saturating_add(left), Ordering::Release);
                Ok(())
            }
            Told::Error(text) => Err(ClientError::refused(&text)),
            other => Err(ClientError::Strange(format!("{other:?}"))),
        }
    }

    /// Hears of a loss, or that the connection has ended.
    async fn is_lost(&mut self, kept: &Kept) -> Loss {
        loop {
            // Some may have come while something else was waited for.
            if self.was_told(kept) {
                return Loss::Told;
            }
            if self.wire.hear().await.is_err() {
                return Loss::Unheard;
            }
        }
    }

    /// Looks through what the node has said without being asked: whether it is lost.
    fn was_told(&mut self, kept: &Kept) -> bool {
        let fence = self.fence.to_string();
        while let Some(words) = self.wire.push() {
            match &words[..] {
                [what, _, number] if what == "lost" && *number == fence => return true,
                [what] if what == "leaving" => {
                    kept.leaving.store(true, Ordering::Release);
                    kept.lost.send_modify(|_| {}); // So that it is looked at.
                }
                _ => {}
            }
        }
        false
    }

    async fn unlock(mut self) -> Result<(), ClientError> {
        let fence = self.fence.to_string().into_bytes();
        let request = [b"UNLOCK".to_vec(), self.name.as_bytes().to_vec(), fence];
        match self.wire.call(&request).await? {
            Told::Text(_) => {
                self.pool.put_back(self.wire);
                Ok(())
            }
            Told::Error(text) => Err(ClientError::refused(&text)),
            other => Err(ClientError::Strange(format!("{other:?}"))),
        }
    }
}
