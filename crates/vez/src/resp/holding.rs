//! What a client that is connected holds: taking it, keeping it, giving it back.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use vez_peer::{
    ask::{Ask, Failure, Kind, Patience},
    fence::Fence,
    name::Name,
};

use super::{
    command::{Take, Wanted},
    connection::{Connection, Outcome, Seat, Step},
    reply::Reply,
    words,
};
use crate::{
    asking::{self, Several},
    clock::{self, Nanos},
    engine::{Asked, Ending},
    guard::Guard,
    session::{Session, Who},
};

pub(super) const MILLISECOND: Nanos = 1_000_000;
/// So much a connection holds at most.
const MOST_HELD: usize = 1 << 16;
/// And so many of them with a time of their own: each byte renews all of these, and others wait for that.
const MOST_TIMED: usize = 1 << 7;

/// Something that is held.
pub(super) struct Held {
    pub guard: Guard,
    /// Its session, if that is not the connection's.
    pub _own: Option<Arc<Ending>>,
}

/// What came of a wish.
pub(super) struct Taken {
    result: Result<Holding, Failure>,
    ttl: Option<Nanos>,
}

enum Holding {
    /// By the session of the connection, or one of its own.
    One(Guard, Option<Ending>),
    /// By a session of their own. These names were asked for, in this order.
    Several(Several, Vec<Name>),
}

impl Connection {
    pub(super) fn take(&mut self, take: Take) -> Step {
        if let Err(reply) = self.may_take(&take) {
            return Step::Say(reply);
        }
        let patience = match take.wait_ms {
            None => Patience::Endless,
            Some(0) => Patience::Try,
            Some(ms) => Patience::Until(clock::now().saturating_add(ms.saturating_mul(MILLISECOND))),
        };
        let ttl = take.ttl_ms.map(|ms| ms.saturating_mul(MILLISECOND));
        match take.wanted {
            Wanted::One(name, ask) => self.take_one(name, ask, patience, ttl, take.elsewhere),
            Wanted::All(names) => self.take_all(names, patience, ttl, take.elsewhere),
        }
    }

    fn may_take(&mut self, take: &Take) -> Result<(), Reply> {
        let names = match &take.wanted {
            // Of a semaphore one may have some units, and then some more.
            Wanted::One(_, Ask::Semaphore { .. }) => &[],
            Wanted::One(name, _) => std::slice::from_ref(name),
            Wanted::All(names) => &names[..],
        };
        for name in names {
            let held = self.held.range((name.clone(), Fence::FIRST)..).next().filter(|((held, _), _)| held == name);
            if let Some((_, held)) = held {
                return Err(self.already(held));
            }
        }
        let many = |what| Err(Reply::Error(format!("TOOMANY a connection holds at most {what}; take another")));
        if self.held.len() + names.len().max(1) > MOST_HELD {
            return many(format!("{MOST_HELD} locks"));
        }
        if take.ttl_ms.is_some() && self.timed.len() >= MOST_TIMED {
            self.timed.retain(|session| !session.has_lost_all());
            if self.timed.len() >= MOST_TIMED {
                return many(format!("{MOST_TIMED} locks with a TTL"));
            }
        }
        if take.ttl_ms == Some(0) {
            return Err(Reply::Error("ERR a TTL of 0 would be over at once; say at least 1".into()));
        }
        Ok(())
    }

    fn take_one(&mut self, name: Name, ask: Ask, patience: Patience, ttl: Option<Nanos>, elsewhere: bool) -> Step {
        let own = Arc::new(Mutex::new(None));
        let seat = Arc::clone(&self.seat);
        let session = Arc::clone(&own);
        let again = move || seat.ask(&name, ask.clone(), patience, ttl.is_some().then_some(&session));
        let end = move |own: &Mutex<Option<Ending>>| own.lock().take();
        match again() {
            Asked::Now(Ok(guard)) => Step::Say(self.taken(Taken { result: Ok(Holding::One(guard, end(&own))), ttl })),
            Asked::Now(Err(failure)) if patience == Patience::Try => {
                Step::Say(self.taken(Taken { result: Err(self.seat.inner.for_now(failure)), ttl }))
            }
            first => {
                let inner = Arc::clone(&self.seat.inner);
                Step::Wait(Box::pin(async move {
                    let taken = inner.patiently(patience, elsewhere, first, again).await;
                    let result = taken.map(|guard| Holding::One(guard, end(&own)));
                    Outcome::Taken(Box::new(Taken { result, ttl }))
                }))
            }
        }
    }

    fn take_all(&mut self, names: Vec<Name>, patience: Patience, ttl: Option<Nanos>, elsewhere: bool) -> Step {
        let (inner, who) = (Arc::clone(&self.seat.inner), self.seat.who());
        Step::Wait(Box::pin(async move {
            let sorted = asking::in_order(names.clone());
            let taken = inner.acquire_all(&who, &sorted, patience, elsewhere).await;
            let result = taken.map(|several| Holding::Several(several, names));
            Outcome::Taken(Box::new(Taken { result, ttl }))
        }))
    }

    /// What is said to one who asks for what it has. Whether it still has it, only the clock knows.
    fn already(&self, held: &Held) -> Reply {
        match self.seat.inner.engine.renew(held.guard.session(), Some(0)) {
            Ok(_) if !held.guard.is_lost() => {
                let error =
                    "ALREADYYOURS this connection holds it already; release it first, or take another connection";
                Reply::Error(error.into())
            }
            Ok(_) | Err(_) => words::failure(&Failure::Lost),
        }
    }

    pub(super) fn taken(&mut self, taken: Taken) -> Reply {
        let Taken { result, ttl } = taken;
        let limited = result.and_then(|holding| match ttl {
            Some(ttl) => self.seat.inner.engine.limit(holding.session(), ttl).map(|_| holding),
            None => Ok(holding),
        });
        let holding = match limited {
            Ok(holding) => holding,
            Err(Failure::Busy(_) | Failure::TimedOut(_)) => return Reply::Nil,
            // Who asks has nothing to lose yet: it can be asked again, here or elsewhere.
            Err(Failure::Lost | Failure::NoSession) => return words::failure(&Failure::NoMember),
            Err(failure) => return words::failure(&failure),
        };
        self.lease = Duration::from_nanos(holding.session().term());
        if ttl.is_some() {
            self.timed.push(Arc::clone(holding.session()));
        }
        match holding {
            Holding::One(guard, own) => {
                let reply = match guard.kind() {
                    Kind::Semaphore { .. } => Reply::Array(vec![fence(guard.fence()), fence(guard.floor())]),
                    Kind::Lock | Kind::Group | Kind::ReadWrite | Kind::Election => fence(guard.fence()),
                };
                self.hold(guard, own.map(Arc::new));
                reply
            }
            Holding::Several(Several { guards, ending }, names) => {
                let of = |name: &Name| guards.iter().find(|guard| guard.name() == name).map(Guard::fence);
                let reply = Reply::Array(names.iter().filter_map(of).map(fence).collect());
                let own = Arc::new(ending);
                for guard in guards {
                    self.hold(guard, Some(Arc::clone(&own)));
                }
                reply
            }
        }
    }

    fn hold(&mut self, guard: Guard, own: Option<Arc<Ending>>) {
        self.held.insert((guard.name().clone(), guard.fence()), Held { guard, _own: own });
    }

    pub(super) fn release(&mut self, name: Name, fence: Fence) -> Reply {
        let key = (name, fence);
        let Some(mut held) = self.held.remove(&key) else { return self.not_held(&key) };
        match held.guard.let_go() {
            Ok(()) => Reply::OK,
            Err(failure) => words::failure(&failure),
        }
    }

    pub(super) fn extend(&mut self, name: &Name, fence: Fence, by_ms: u64) -> Reply {
        let key = (name.clone(), fence);
        let Some(held) = self.held.get(&key) else { return self.not_held(&key) };
        let by = by_ms.saturating_mul(MILLISECOND);
        let extended = self.seat.inner.engine.renew(held.guard.session(), Some(by));
        match extended {
            Ok(_) if held.guard.is_lost() => words::failure(&Failure::Lost),
            Ok(deadline) => Reply::integer(deadline.saturating_sub(clock::now()) / MILLISECOND),
            Err(failure) => words::failure(&failure),
        }
    }

    fn not_held(&self, key: &(Name, Fence)) -> Reply {
        let lost = self.lost.contains(key);
        words::failure(&if lost { Failure::Lost } else { Failure::NotYours(key.0.clone()) })
    }
}

impl Holding {
    fn session(&self) -> &Arc<Session> {
        match self {
            Self::One(guard, _) => guard.session(),
            Self::Several(several, _) => &several.ending.session,
        }
    }
}

fn fence(fence: Fence) -> Reply {
    Reply::text(fence.to_string())
}

impl Seat {
    /// Asks for something, by the session of the connection, or one of its own.
    fn ask(&self, name: &Name, ask: Ask, patience: Patience, own: Option<&Arc<Mutex<Option<Ending>>>>) -> Asked<Guard> {
        let session = match own {
            None => self.session(),
            Some(own) => self.open().inspect(|session| {
                *own.lock() = Some(Ending::new(&self.inner.engine, Arc::clone(session)));
            }),
        };
        match session {
            Ok(session) => self.inner.engine.acquire(&session, name, ask, patience),
            Err(failure) => Asked::Now(Err(failure)),
        }
    }

    fn session(&self) -> Result<Arc<Session>, Failure> {
        let mut session = self.session.lock();
        match &*session {
            Some(session) if !session.has_lost_all() => Ok(Arc::clone(session)),
            _ => Ok(Arc::clone(session.insert(self.open()?))),
        }
    }

    fn open(&self) -> Result<Arc<Session>, Failure> {
        self.inner.engine.open(self.who())
    }

    /// Who is connected and takes locks that do not end with the connection, for those who ask.
    pub(super) fn setter(&self) -> Arc<str> {
        let mut setter = self.setter.lock();
        Arc::clone(setter.get_or_insert_with(|| format!("SET by {}", self.who().label).into()))
    }

    /// Who is connected, for those who ask.
    pub(super) fn who(&self) -> Who {
        let name = self.name.lock();
        let label = match &name[..] {
            [] => self.from.to_string(),
            name => format!("{} ({})", self.from, name.escape_ascii()),
        };
        Who { label: label.into(), bell: Some(Arc::clone(&self.bell)) }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(session) = self.session.lock().take() {
            self.inner.engine.end(&session);
        }
    }
}
