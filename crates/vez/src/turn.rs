//! What one can want: the same words for a node in this process and for one elsewhere.
//!
//! ```no_run
//! # use std::time::Duration;
//! # async fn example(node: vez::Node) -> Result<(), Box<dyn std::error::Error>> {
//! let guard = node.lock("orders/42").await?;                                  // as long as it takes
//! let units = node.semaphore("db", 5).acquire(2).now().await?;                // now or never
//! let place = node.group("room").enter("chess").within(Duration::from_secs(1)).await?;
//! let reads = node.rw("catalogue").read().await?;
//! let leads = node.elect("scheduler").campaign("10.0.0.1:80").await?;
//! let both = node.lock_all(["accounts/1", "accounts/2"]).await?;              // all or nothing
//! # Ok(())
//! # }
//! ```

use std::{future::IntoFuture, pin::Pin, time::Duration};

use vez_peer::{
    ask::{Ask, Size},
    name::{Name, NoName},
};

use crate::asking;

/// Who gives turns: a [`Node`](crate::Node) in this process, or one elsewhere by a [`Client`](crate::Client).
pub trait Service: sealed::Service {}

impl<S: sealed::Service> Service for S {}

pub(crate) mod sealed {
    use super::{Name, NoName, Size, Wish};

    /// What a service does. Nobody else can be one.
    pub trait Service: Sync {
        /// What one has while one has something.
        type Guard: Send;
        /// Why one does not get it.
        type Error: From<NoName> + Send;
        /// Who sees who leads.
        type Observer: Send;

        fn take(&self, wish: Wish) -> impl Future<Output = Result<Option<Self::Guard>, Self::Error>> + Send;
        fn resize(&self, name: Name, units: u32) -> impl Future<Output = Result<Size, Self::Error>> + Send;
        fn observe(&self, name: Name) -> impl Future<Output = Result<Self::Observer, Self::Error>> + Send;
        /// What is said where one was to wait as long as it takes, and did not.
        fn no_turn() -> Self::Error;
    }
}

/// What is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wish {
    pub(crate) what: What,
    /// So long it waits; as long as it takes, if nothing is said; not at all, if that is zero.
    pub(crate) wait: Option<Duration>,
    /// It is lost if this client cannot be heard for so long.
    pub(crate) ttl: Option<Duration>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum What {
    One(Name, Ask),
    /// These locks, in the order of their names, and each of them once.
    All(Vec<Name>),
}

/// A turn that is wanted. Awaiting it waits as long as it takes; [`Self::now`] and [`Self::within`] do not.
#[must_use = "nothing is asked for until it is awaited"]
#[derive(Debug)]
pub struct Turn<'a, S: Service> {
    service: &'a S,
    what: Result<What, NoName>,
    ttl: Option<Duration>,
}

impl<'a, S: Service> Turn<'a, S> {
    pub(crate) fn new(service: &'a S, name: &[u8], ask: Ask) -> Self {
        Self { service, what: Name::new(name).map(|name| What::One(name, ask)), ttl: None }
    }

    /// All of these locks, or none. They are taken in the order of their names, so that two who ask for the same in another
    /// order do not wait for each other for ever.
    pub(crate) fn all(service: &'a S, names: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        let names: Result<Vec<Name>, NoName> = names.into_iter().map(|name| Name::new(name.as_ref())).collect();
        Self { service, what: names.and_then(What::all), ttl: None }
    }

    /// If it can be had at once.
    ///
    /// # Errors
    /// If that cannot be told, or it can never be had.
    pub async fn now(self) -> Result<Option<S::Guard>, S::Error> {
        self.within(Duration::ZERO).await
    }

    /// If it is our turn within that time.
    ///
    /// # Errors
    /// If that cannot be told, or it can never be had.
    pub async fn within(self, wait: Duration) -> Result<Option<S::Guard>, S::Error> {
        self.service.take(Wish { what: self.what?, wait: Some(wait), ttl: self.ttl }).await
    }

    pub(crate) fn with_ttl(self, ttl: Option<Duration>) -> Self {
        Self { ttl, ..self }
    }
}

impl What {
    fn all(names: Vec<Name>) -> Result<Self, NoName> {
        let names = asking::in_order(names);
        match &names[..] {
            [] => Err(NoName::Empty),
            [one] => Ok(Self::One(one.clone(), Ask::Lock)),
            _ => Ok(Self::All(names)),
        }
    }
}

impl<'a, S: Service> IntoFuture for Turn<'a, S> {
    type Output = Result<S::Guard, S::Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let taken = self.service.take(Wish { what: self.what?, wait: None, ttl: self.ttl }).await?;
            taken.ok_or_else(S::no_turn)
        })
    }
}

/// So many units, of which each takes some.
#[derive(Debug)]
pub struct Semaphore<'a, S: Service> {
    pub(crate) service: &'a S,
    pub(crate) name: Vec<u8>,
    pub(crate) units: u32,
}

impl<'a, S: Service> Semaphore<'a, S> {
    /// Some of its units. Who asks first is served first: a large request is not kept waiting by small ones that came later.
    pub fn acquire(&self, weight: u32) -> Turn<'a, S> {
        Turn::new(self.service, &self.name, Ask::Semaphore { units: self.units, weight })
    }

    /// From now on it has so many units, also for those who took it for larger or smaller. It has to be in use: as long as nobody
    /// holds any of it or waits, whoever takes it first says how many there are. If it shrinks, nobody loses anything, but nobody
    /// is let in until it fits.
    ///
    /// # Errors
    /// If it is not in use, or no semaphore.
    pub async fn resize(&self, units: u32) -> Result<Size, S::Error> {
        let name = Name::new(&self.name)?;
        self.service.resize(name, units).await
    }
}

/// Sessions that exclude each other: those of one are inside together.
#[derive(Debug)]
pub struct Group<'a, S: Service> {
    pub(crate) service: &'a S,
    pub(crate) name: Vec<u8>,
}

impl<'a, S: Service> Group<'a, S> {
    /// To be inside with whoever is in the same session, and with nobody else.
    pub fn enter(&self, session: impl AsRef<[u8]>) -> Turn<'a, S> {
        Turn::new(self.service, &self.name, Ask::Group { label: session.as_ref().to_vec() })
    }
}

/// Readers together, or one writer.
#[derive(Debug)]
pub struct ReadWrite<'a, S: Service> {
    pub(crate) service: &'a S,
    pub(crate) name: Vec<u8>,
}

impl<'a, S: Service> ReadWrite<'a, S> {
    /// To read, beside others who do.
    pub fn read(&self) -> Turn<'a, S> {
        Turn::new(self.service, &self.name, Ask::Read)
    }

    /// To write, alone.
    pub fn write(&self) -> Turn<'a, S> {
        Turn::new(self.service, &self.name, Ask::Write)
    }
}

/// One leader, with a value that all can see.
#[derive(Debug)]
pub struct Election<'a, S: Service> {
    pub(crate) service: &'a S,
    pub(crate) name: Vec<u8>,
}

impl<'a, S: Service> Election<'a, S> {
    /// To lead; the others see the value, such as an address. Giving back what one gets is to resign.
    pub fn campaign(&self, value: impl AsRef<[u8]>) -> Turn<'a, S> {
        Turn::new(self.service, &self.name, Ask::Elect { value: value.as_ref().to_vec() })
    }

    /// To see who leads, now and from now on.
    ///
    /// # Errors
    /// If it is no election.
    pub async fn observe(&self) -> Result<S::Observer, S::Error> {
        let name = Name::new(&self.name)?;
        self.service.observe(name).await
    }
}

/// The same words for every service.
macro_rules! words {
    ($service:ty) => {
        impl $service {
            /// A lock: one at a time.
            pub fn lock(&self, name: impl AsRef<[u8]>) -> $crate::turn::Turn<'_, Self> {
                $crate::turn::Turn::new(self, name.as_ref(), vez_peer::ask::Ask::Lock)
            }

            /// All of these locks, or none. Two who ask for the same in another order never wait for each other for ever. If one
            /// of them is lost, all are.
            pub fn lock_all(&self, names: impl IntoIterator<Item = impl AsRef<[u8]>>) -> $crate::turn::Turn<'_, Self> {
                $crate::turn::Turn::all(self, names)
            }

            /// A semaphore of so many units.
            pub fn semaphore(&self, name: impl AsRef<[u8]>, units: u32) -> $crate::turn::Semaphore<'_, Self> {
                $crate::turn::Semaphore { service: self, name: name.as_ref().to_vec(), units }
            }

            /// Sessions that exclude each other.
            pub fn group(&self, name: impl AsRef<[u8]>) -> $crate::turn::Group<'_, Self> {
                $crate::turn::Group { service: self, name: name.as_ref().to_vec() }
            }

            /// Readers and writers.
            pub fn rw(&self, name: impl AsRef<[u8]>) -> $crate::turn::ReadWrite<'_, Self> {
                $crate::turn::ReadWrite { service: self, name: name.as_ref().to_vec() }
            }

            /// An election.
            pub fn elect(&self, name: impl AsRef<[u8]>) -> $crate::turn::Election<'_, Self> {
                $crate::turn::Election { service: self, name: name.as_ref().to_vec() }
            }
        }
    };
}

pub(crate) use words;
