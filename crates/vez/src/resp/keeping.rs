//! What lock libraries that were written for Redis want: locks that are kept for whoever knows a value.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout};
use vez_peer::{ask::Failure, keep::Wish, name::Name, shard::Habits};

use super::{
    command::{Keeping, Script},
    connection::{Connection, Outcome, Step},
    holding::MILLISECOND,
    reply::Reply,
    script::{Answers, Given, Meaning, NoScript},
    words,
};
use crate::{
    asking,
    clock::Nanos,
    engine::{Asked, Untold},
    keeping::{Found, Unfound},
    node::Inner,
};

/// A node that cannot tell at this moment is asked again for so long: libraries take an error for the end.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);
/// Where nobody answers for so long, since the node that had the lock last is dead perhaps, it is not to be had now.
const UNANSWERED: Duration = Duration::from_secs(1);

/// What Redis says of a name that is not there.
const NOT_THERE: i64 = -2;

impl Connection {
    pub(super) fn keeping(&mut self, keeping: Keeping) -> Step {
        let inner = &self.seat.inner;
        match keeping {
            Keeping::Set { name, value, ttl_ms } => {
                let ttl = ttl_ms.map_or_else(|| inner.longest(), |ms| ms.saturating_mul(MILLISECOND));
                self.set(name, value, ttl)
            }
            Keeping::Get(name) => {
                self.by_value(name, Wish::Look, |found| found.map_or(Reply::Nil, |found| Reply::Bytes(found.value)))
            }
            Keeping::Delete(names) => self.count(names, Wish::Release),
            Keeping::Exists(names) => self.count(names, Wish::Look),
            Keeping::Expire { name, ttl_ms } => {
                self.by_value(name, expire(ttl_ms), |found| Reply::Integer(found.is_some().into()))
            }
            Keeping::Left { name, seconds } => self.by_value(name, Wish::Look, move |found| {
                let left = |found: Found| if seconds { (found.left_ms + 500) / 1000 } else { found.left_ms };
                found.map_or(Reply::Integer(NOT_THERE), |found| Reply::integer(left(found)))
            }),
            Keeping::Eval { script, keys, arguments } => self.eval(&script, keys, arguments),
            Keeping::Load(text) => Step::Say(match inner.scripts.lock().load(&text) {
                Ok((sum, _)) => Reply::text(sum),
                Err(no_script) => no_script.into(),
            }),
            Keeping::Known(sums) => {
                let scripts = inner.scripts.lock();
                let known = |sum| Reply::Integer(scripts.find(sum).is_ok().into());
                Step::Say(Reply::Array(sums.into_iter().map(known).collect()))
            }
            Keeping::Flush => {
                inner.scripts.lock().flush();
                Step::Say(Reply::OK)
            }
        }
    }

    fn set(&self, name: Name, value: Vec<u8>, ttl: Nanos) -> Step {
        let by = self.seat.setter();
        match self.seat.inner.engine.set(&by, &name, &value, ttl) {
            Asked::Now(Ok(untold)) => {
                untold.told();
                Step::Say(Reply::OK)
            }
            Asked::Now(Err(Failure::Busy(_))) => Step::Say(Reply::Nil),
            first => {
                let inner = Arc::clone(&self.seat.inner);
                wait(async move {
                    match inner.set(&by, &name, &value, ttl, first).await {
                        Ok(true) => Reply::OK,
                        Ok(false) => Reply::Nil,
                        Err(failure) => words::failure(&failure),
                    }
                })
            }
        }
    }

    /// Does something with what is kept under a name, whatever its value: at once, if it is kept here.
    fn by_value(&self, name: Name, wish: Wish, reply: impl FnOnce(Option<Found>) -> Reply + Send + 'static) -> Step {
        match self.seat.inner.engine.by_value(&name, None, wish) {
            Asked::Now(Ok(Some(kept))) => Step::Say(reply(Some(Found::new(kept)))),
            Asked::Now(Err(failure)) => Step::Say(words::failure(&failure)),
            asked => {
                let inner = Arc::clone(&self.seat.inner);
                wait(async move { inner.wherever(&name, None, wish, asked).await.map_or_else(Reply::from, reply) })
            }
        }
    }

    /// Of how many of these that can be done.
    fn count(&self, names: Vec<Name>, wish: Wish) -> Step {
        let inner = Arc::clone(&self.seat.inner);
        wait(async move {
            let mut count = 0;
            for name in names {
                match inner.by_value(&name, None, wish).await {
                    Ok(found) => count += i64::from(found.is_some()),
                    Err(unfound) => return unfound.into(),
                }
            }
            Reply::Integer(count)
        })
    }

    fn eval(&self, script: &Script, keys: Vec<Name>, arguments: Vec<Vec<u8>>) -> Step {
        let found = {
            let mut scripts = self.seat.inner.scripts.lock();
            match script {
                Script::Text(text) => scripts.load(text).map(|(_, meaning)| meaning),
                Script::Sum(sum) => scripts.find(*sum),
            }
        };
        let sound = found.and_then(|meaning| meaning.given(keys.len(), &arguments).map(|_| meaning));
        let meaning = match sound {
            Ok(meaning) => meaning,
            Err(no_script) => return Step::Say(no_script.into()),
        };
        // What is done most, and nearly always here.
        if let Meaning::Release(answers) = meaning
            && let Asked::Now(Ok(Some(_))) =
                self.seat.inner.engine.by_value(&keys[0], Some(&arguments[0]), Wish::Release)
        {
            return Step::Say(answers.done.into());
        }
        let (inner, by) = (Arc::clone(&self.seat.inner), self.seat.setter());
        wait(async move {
            match meaning.given(keys.len(), &arguments) {
                Ok(given) => inner.run(&by, meaning, &keys, given).await.unwrap_or_else(Reply::from),
                Err(no_script) => no_script.into(),
            }
        })
    }
}

impl Inner {
    /// A lock that nobody has, to be kept for whoever knows the value. False if somebody has it.
    async fn set(
        &self,
        by: &Arc<str>,
        name: &Name,
        value: &[u8],
        ttl: Nanos,
        first: Asked<Untold>,
    ) -> Result<bool, Failure> {
        let begin = Instant::now();
        let mut asked = first;
        loop {
            let kept = match asked {
                Asked::Now(kept) => kept,
                Asked::Later(pending) => match timeout(UNANSWERED, pending.answer()).await {
                    Ok(kept) => kept,
                    Err(_) => return Ok(false),
                },
            };
            match kept {
                Ok(untold) => {
                    untold.told();
                    return Ok(true);
                }
                Err(Failure::Busy(_)) => return Ok(false),
                Err(failure) if is_passing(&failure) && begin.elapsed() < PATIENCE => sleep(PAUSE).await,
                Err(failure) => return Err(self.for_now(failure)),
            }
            asked = self.engine.set(by, name, value, ttl);
        }
    }

    /// Does what a script means: what it would have answered.
    async fn run(&self, by: &Arc<str>, meaning: Meaning, keys: &[Name], given: Given<'_>) -> Result<Reply, Unfound> {
        let (name, value) = (&keys[0], Some(given.value));
        let ttl = u64::try_from(given.ttl_ms).unwrap_or(0).saturating_mul(MILLISECOND);
        match meaning {
            Meaning::Release(answers) => {
                let found = self.by_value(name, value, Wish::Release).await?;
                self.answer_of(name, found.is_some(), answers).await
            }
            Meaning::Expire { answers, .. } => {
                let found = self.by_value(name, value, expire(given.ttl_ms)).await?;
                self.answer_of(name, found.is_some(), answers).await
            }
            Meaning::Prolong => {
                let wish = match self.by_value(name, value, Wish::Look).await? {
                    None => return Ok(Reply::Integer(0)),
                    Some(_) if given.more && given.ttl_ms >= 0 => Wish::Prolong { by: ttl },
                    Some(found) if given.more => expire(found.left_ms.cast_signed().saturating_add(given.ttl_ms)),
                    Some(_) => expire(given.ttl_ms),
                };
                Ok(Reply::Integer(self.by_value(name, value, wish).await?.is_some().into()))
            }
            Meaning::Left { not_ours, .. } => {
                let found = self.by_value(name, value, Wish::Look).await?;
                Ok(found.map_or(Reply::Integer(not_ours), |found| Reply::integer(found.left_ms)))
            }
            Meaning::Take { answers, .. } => {
                // What can be taken is nobody's, and nobody has to be asked.
                let taken = given.more && self.set_now(by, name, given.value, ttl).await?;
                let ours = taken || self.by_value(name, value, expire(given.ttl_ms)).await?.is_some();
                Ok(if ours { answers.done.into() } else { answers.not_ours.into() })
            }
            Meaning::AcquireAll { .. } => self.set_all(by, keys, given.value, ttl).await,
            Meaning::ExtendAll { .. } => {
                for wish in [Wish::Look, Wish::Expire { ttl }] {
                    for name in keys {
                        if self.by_value(name, value, wish).await?.is_none() {
                            return Ok(Reply::Integer(0));
                        }
                    }
                }
                Ok(Reply::integer(keys.len()))
            }
            Meaning::ReleaseAll { .. } => {
                let mut count = 0;
                for name in keys {
                    count += i64::from(self.by_value(name, value, Wish::Release).await?.is_some());
                }
                Ok(Reply::Integer(count))
            }
        }
    }

    /// What a script says that tells one that is another's from one that is free, if it does.
    async fn answer_of(&self, name: &Name, done: bool, answers: Answers) -> Result<Reply, Unfound> {
        if done {
            return Ok(answers.done.into());
        }
        let free = answers.free != answers.not_ours && self.by_value(name, None, Wish::Look).await?.is_none();
        Ok(if free { answers.free.into() } else { answers.not_ours.into() })
    }

    async fn set_now(&self, by: &Arc<str>, name: &Name, value: &[u8], ttl: Nanos) -> Result<bool, Unfound> {
        let first = self.engine.set(by, name, value, ttl);
        Ok(self.set(by, name, value, ttl, first).await?)
    }

    /// All of them, or none.
    async fn set_all(&self, by: &Arc<str>, keys: &[Name], value: &[u8], ttl: Nanos) -> Result<Reply, Unfound> {
        let names = asking::in_order(keys.to_vec());
        let mut had = HadSoFar { inner: self, value, names: Vec::new() };
        for name in names {
            if !self.set_now(by, &name, value, ttl).await? {
                return Ok(Reply::Integer(0));
            }
            had.names.push(name);
        }
        had.names.clear();
        Ok(Reply::integer(keys.len()))
    }

    /// How long anything is kept at most.
    fn longest(&self) -> Nanos {
        self.settings.keep.unwrap_or_else(|| Habits::default().keep)
    }
}

/// Locks of which all are wanted, or none: those that were had are given back when this is dropped. They are kept here.
struct HadSoFar<'a> {
    inner: &'a Inner,
    value: &'a [u8],
    names: Vec<Name>,
}

impl Drop for HadSoFar<'_> {
    fn drop(&mut self) {
        for name in &self.names {
            drop(self.inner.engine.by_value(name, Some(self.value), Wish::Release));
        }
    }
}

/// Whether it can be told in a moment.
fn is_passing(failure: &Failure) -> bool {
    asking::is_passing(failure) || matches!(failure, Failure::Settling(_))
}

/// In Redis what is to end now or earlier is deleted.
fn expire(ttl_ms: i64) -> Wish {
    Wish::Expire { ttl: u64::try_from(ttl_ms).unwrap_or(0).saturating_mul(MILLISECOND) }
}

fn wait(reply: impl Future<Output = Reply> + Send + 'static) -> Step {
    Step::Wait(Box::pin(async move { Outcome::Said(reply.await) }))
}

impl From<Unfound> for Reply {
    fn from(unfound: Unfound) -> Self {
        match unfound {
            Unfound::Failure(failure) => words::failure(&failure),
            silent @ Unfound::Silent { .. } => Self::Error(format!("TRYAGAIN {silent}")),
        }
    }
}

impl From<NoScript> for Reply {
    fn from(no_script: NoScript) -> Self {
        Self::Error(no_script.to_string())
    }
}
