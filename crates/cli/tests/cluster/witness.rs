//! Who believes to be inside: on one machine all deadlines are on one clock, so whoever enters can be compared with all others.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};
use vez::{Client, ClientError, Fence, RemoteGuard, turn::Turn};

use crate::machines::{LONG, eventually};

/// As what somebody is inside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Units(u32),
    Session(&'static str),
    Reads,
    Writes,
    Leads(String),
    Locks,
}

/// Who is inside of what, as they believe.
#[derive(Default)]
pub(crate) struct Witness {
    inside: Mutex<Vec<Inside>>,
    /// As whom each fence was given out.
    pub fences: Mutex<BTreeMap<Fence, Part>>,
    /// How many units there are, at this moment, if that is for certain: since that fence.
    pub size: Mutex<Option<(Fence, u32)>>,
    pub entries: AtomicU64,
    pub losses: AtomicU64,
    over: AtomicBool,
}

struct Inside {
    part: Part,
    guard: Arc<RemoteGuard>,
}

/// What somebody wants, again and again.
pub(crate) type Wanted = Arc<dyn for<'a> Fn(&'a Client) -> Turn<'a, Client> + Send + Sync>;

impl Witness {
    /// Somebody is inside. It is looked whether it may be.
    fn enter(&self, part: &Part, guard: &Arc<RemoteGuard>) {
        let mut inside = self.inside.lock().unwrap();
        let mut fences = self.fences.lock().unwrap();
        let shares = matches!(part, Part::Session(_) | Part::Reads);
        let before = fences.insert(guard.fence(), part.clone());
        assert!(before.is_none() || shares && before.as_ref() == Some(part), "{part:?} has the fence of {before:?}");
        inside.push(Inside { part: part.clone(), guard: Arc::clone(guard) });
        let alive: Vec<&Inside> = inside.iter().filter(|inside| !inside.guard.is_lost()).collect();
        let told: Vec<_> = alive.iter().map(|inside| (&inside.part, inside.guard.fence())).collect();
        match part {
            Part::Units(_) => {
                let units = |inside: &&Inside| if let Part::Units(units) = inside.part { units } else { 0 };
                let taken: u32 = alive.iter().map(units).sum();
                if let Some((since, size)) = *self.size.lock().unwrap()
                    && guard.fence() > since
                {
                    assert!(taken <= size, "{taken} units of {size} are taken: {told:?}");
                }
            }
            Part::Session(_) | Part::Reads => {
                let with = |other: &&Inside| other.part == *part && other.guard.fence() == guard.fence();
                assert!(alive.iter().all(with), "{part:?} is not among its own: {told:?}");
            }
            Part::Writes | Part::Leads(_) | Part::Locks => {
                assert!(alive.len() <= 1, "{part:?} is not alone: {told:?}");
            }
        }
    }

    /// Somebody goes. What it had is its own again.
    fn leave(&self, guard: Arc<RemoteGuard>) -> Option<RemoteGuard> {
        self.inside.lock().unwrap().retain(|inside| !Arc::ptr_eq(&inside.guard, &guard));
        Arc::into_inner(guard)
    }

    /// Somebody enters and leaves, again and again, at the nodes of these addresses in turn. A node that goes is no error.
    pub(crate) fn work(self: &Arc<Self>, addresses: String, part: Part, wanted: Wanted) -> JoinHandle<()> {
        let witness = Arc::clone(self);
        tokio::spawn(async move {
            while !witness.over.load(Ordering::Relaxed) {
                if let Err(error) = witness.once(&addresses, &part, &wanted).await {
                    let passes = error.is_unreachable() || error.is_temporary() || is_other_size(&error);
                    assert!(passes, "{part:?}: {error}");
                    sleep(Duration::from_millis(10)).await;
                }
            }
        })
    }

    async fn once(&self, addresses: &str, part: &Part, wanted: &Wanted) -> Result<(), ClientError> {
        let client = Client::connect(addresses).await?;
        for _ in 0..20 {
            let Some(guard) = wanted(&client).within(Duration::from_secs(1)).await? else { continue };
            let guard = Arc::new(guard);
            self.enter(part, &guard);
            sleep(Duration::from_millis(2)).await;
            self.entries.fetch_add(1, Ordering::Relaxed);
            let guard = self.leave(guard).expect("nobody else has it");
            if guard.release().await.is_err() {
                self.losses.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Waits until there is progress.
    pub(crate) async fn progress(&self) {
        let before = self.entries.load(Ordering::Relaxed);
        eventually(async || self.entries.load(Ordering::Relaxed) > before + 30).await;
    }

    /// Nobody does anything any more, and nobody has failed.
    pub(crate) async fn end(&self, workers: Vec<JoinHandle<()>>) {
        self.over.store(true, Ordering::Relaxed);
        for worker in workers {
            timeout(LONG, worker).await.expect("it comes to an end").expect("all laws were kept");
        }
    }
}

/// The semaphore was resized a moment ago.
fn is_other_size(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { code, why } if code == "MISMATCH" && why.contains("not a semaphore of"))
}
