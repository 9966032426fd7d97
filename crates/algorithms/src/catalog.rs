//! The one list of all algorithms.

use crate::{Algorithm, Family, Model, Setting, broadcast, detector, election, group, mutex, semaphore, superpeers};

/// What there is to know of an algorithm without running it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Entry {
    /// As one types it.
    pub name: &'static str,
    /// The problem that it solves.
    pub family: &'static str,
    /// The law of that, in a few words.
    #[serde(skip)]
    pub law: &'static str,
    /// What its proof takes for granted.
    pub assumptions: Model,
    /// What of the setup concerns it, of that which does not concern all.
    pub settings: &'static [Setting],
    /// Messages an entry, as a formula.
    pub cost: &'static str,
    /// Where it comes from; a key of `docs/references.md`.
    pub paper: &'static str,
}

impl Entry {
    /// That of an algorithm.
    #[must_use]
    pub const fn of<A: Algorithm>() -> Self {
        Self {
            name: A::NAME,
            family: A::Family::NAME,
            law: A::Family::LAW,
            assumptions: A::MODEL,
            settings: A::SETTINGS,
            cost: A::COST,
            paper: A::PAPER,
        }
    }
}

/// The algorithm of that name, if there is one.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name)
}

/// Something to be done with whichever algorithm was named: whatever its family.
pub trait Job {
    /// What comes of it.
    type Done;

    /// Does it.
    fn with<A: Algorithm>(self) -> Self::Done;

    /// Does it with an algorithm that needs a failure detector: [`crate::Monitored`] has one. A job that makes no
    /// difference leaves it to the driver to tell of crashes.
    fn with_detector<A: Algorithm>(self) -> Self::Done
    where
        Self: Sized,
    {
        self.with::<A>()
    }
}

macro_rules! catalog {
    (@visit $job:ident, $algorithm:ty) => {
        $job.with::<$algorithm>()
    };
    (@visit $job:ident, $algorithm:ty, $how:ident) => {
        $job.$how::<$algorithm>()
    };
    ($($algorithm:ty $(: $how:ident)?),+ $(,)?) => {
        /// Every algorithm, in the order in which people meet them.
        pub const ALL: &[Entry] = &[$(Entry::of::<$algorithm>()),+];

        /// Does the job with the algorithm of that name, if there is one.
        pub fn visit<J: Job>(name: &str, job: J) -> Option<J::Done> {
            $(if name == <$algorithm>::NAME {
                return Some(catalog!(@visit job, $algorithm $(, $how)?));
            })+
            None
        }
    };
}

catalog! {
    mutex::Central,
    mutex::CentralDenying,
    mutex::CentralFailover,
    mutex::TokenRing,
    mutex::TokenRingRegenerating,
    mutex::Lamport,
    mutex::RicartAgrawala,
    mutex::RicartAgrawalaClock,
    mutex::RicartAgrawalaRobust,
    mutex::SuzukiKasami,
    mutex::Maekawa,
    mutex::Raymond,
    mutex::RaymondPiggyback,
    mutex::NaimiTrehel,
    mutex::Nxr,
    mutex::Fila,
    mutex::FilaForest,
    mutex::Voting,
    semaphore::RaymondK,
    semaphore::RobustKDirect: with_detector,
    semaphore::RobustKTree: with_detector,
    semaphore::LedgerSemaphore,
    group::GroupQuorum,
    group::LedgerGroup,
    detector::HiAdsd,
    broadcast::SpanningTree: with_detector,
    election::Bully,
    election::Ring,
    election::AdHoc,
    superpeers::ByPrefix,
    superpeers::ByRepulsion,
}
