//! The one list of all algorithms.

use crate::{Algorithm, Family, Model, election, mutex};

/// What there is to know of an algorithm without running it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Entry {
    /// As one types it.
    pub name: &'static str,
    /// The problem that it solves.
    pub family: &'static str,
    /// What its proof takes for granted.
    pub assumptions: Model,
    /// Messages an entry, as a formula.
    pub cost: &'static str,
    /// Where it comes from; a key of `docs/references.md`.
    pub paper: &'static str,
}

impl Entry {
    const fn of<A: Algorithm>() -> Self {
        Self { name: A::NAME, family: A::Family::NAME, assumptions: A::MODEL, cost: A::COST, paper: A::PAPER }
    }
}

/// Something to be done with whichever algorithm was named: whatever its family.
pub trait Job {
    /// What comes of it.
    type Done;

    /// Does it.
    fn with<A: Algorithm>(self) -> Self::Done;
}

macro_rules! catalog {
    ($($algorithm:ty),+ $(,)?) => {
        /// Every algorithm, in the order in which people meet them.
        pub const ALL: &[Entry] = &[$(Entry::of::<$algorithm>()),+];

        /// Does the job with the algorithm of that name, if there is one.
        pub fn visit<J: Job>(name: &str, job: J) -> Option<J::Done> {
            $(if name == <$algorithm>::NAME {
                return Some(job.with::<$algorithm>());
            })+
            None
        }
    };
}

catalog! {
    mutex::Central,
    mutex::CentralDenying,
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
    election::AdHoc,
}
