//! What one has while one has something, from outside.
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
use vez_peer::{ask::Ask, fence::Fence, identity::ClusterId, name::Name};

use super::{
    ClientError, milliseconds,
    pool::Pool,
    silent,
    wire::{Told, Wire},
};
use crate::{
    clock::{self, Deadline, Nanos},
    turn::What,
};

const MILLISECOND: Nanos = 1_000_000;

/// Something that is held, by a node elsewhere. Dropping it gives it back, as soon as that is heard of.
pub struct RemoteGuard {
    held: Arc<Held>,
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

/// What is held: one name at least.
pub(super) struct Held {
    all: Vec<(Name, Fence)>,
    floor: Fence,
}

impl Held {
    /// What a node has answered to a wish.
    pub(super) fn new(what: What, answer: Told) -> Result<Self, ClientError> {
        let texts = match answer {
            Told::Text(text) => vec![text],
            Told::Array(all) => all.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect(),
            other => return Err(ClientError::Strange(format!("{other:?}"))),
        };
        let fences = texts.iter().map(|text| super::fence(text)).collect::<Result<Vec<Fence>, _>>()?;
        match (what, &fences[..]) {
            (What::One(name, Ask::Semaphore { .. }), [fence, floor]) => {
                Ok(Self { all: vec![(name, *fence)], floor: *floor })
            }
            (What::One(name, _), [fence]) => Ok(Self { all: vec![(name, *fence)], floor: *fence }),
            (What::All(names), [first, ..]) if names.len() == fences.len() => {
                let floor = *first;
                Ok(Self { all: names.into_iter().zip(fences).collect(), floor })
            }
            (_, _) => Err(ClientError::Strange(format!("{texts:?}"))),
        }
    }

    fn first(&self) -> &(Name, Fence) {
        self.all.first().expect("one name at least")
    }
}

/// How one hears that something is lost.
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
    pub held: Arc<Held>,
    pub ttl: Option<Duration>,
    pub wire: Wire,
}

impl RemoteGuard {
    /// What is held; of several names, the first of them in their order.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.held.first().0
    }

    /// The number of this grant: of two grants of a name, the later has the larger one.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.held.first().1
    }

    /// Of units of a semaphore, the oldest grant that may still be alive: a resource [refuses](crate::fence::Register::admit_one_of)
    /// whatever is below the highest that it has seen. Of anything else, the fence itself.
    #[must_use]
    pub fn floor(&self) -> Fence {
        self.held.floor
    }

    /// All names that are held, each with its fence. But for [`Client::lock_all`](crate::Client::lock_all) it is one.
    pub fn fences(&self) -> impl Iterator<Item = (&Name, Fence)> {
        self.held.all.iter().map(|(name, fence)| (name, *fence))
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

    /// Gives it back, and tells whether it was still held: if not, somebody else may have had it already.
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
        write!(f, "RemoteGuard({:?})", self.held.all)
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
        let (held, kept_by) = (Arc::clone(&self.held), Arc::clone(&kept));
        tokio::spawn(self.run(kept, released));
        Ok(RemoteGuard { held, cluster, kept: kept_by, release: Some(release) })
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
        // What was taken together is held by one session: one renewal is for all.
        let (name, fence) = self.held.first();
        let request = [
            b"EXTEND".to_vec(),
            name.as_bytes().to_vec(),
            fence.to_string().into_bytes(),
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
        while let Some(words) = self.wire.push() {
            match &words[..] {
                [Some(what), Some(name), Some(fence)] if what == b"lost" && self.holds(name, fence) => return true,
                [Some(what)] if what == b"leaving" => {
                    kept.leaving.store(true, Ordering::Release);
                    kept.lost.send_modify(|_| {}); // So that it is looked at.
                }
                _ => {}
            }
        }
        false
    }

    fn holds(&self, name: &[u8], fence: &[u8]) -> bool {
        self.held.all.iter().any(|(held, number)| held.as_bytes() == name && number.to_string().as_bytes() == fence)
    }

    async fn unlock(mut self) -> Result<(), ClientError> {
        for (name, fence) in &self.held.all {
            let request = [b"UNLOCK".to_vec(), name.as_bytes().to_vec(), fence.to_string().into_bytes()];
            match self.wire.call(&request).await? {
                Told::Text(_) => {}
                Told::Error(text) => return Err(ClientError::refused(&text)), // And the connection ends, with the rest.
                other => return Err(ClientError::Strange(format!("{other:?}"))),
            }
        }
        self.pool.put_back(self.wire);
        Ok(())
    }
}
