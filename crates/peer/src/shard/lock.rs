//! Locks: our part in the algorithm of each, and how many local clients share it.
//!
//! To the algorithm a node is one; its clients stand in line here. A visit of the token serves up to B of them while
//! somebody elsewhere waits. When the last client gives up, the request goes on for nobody, and the token moves on as it
//! comes: a request that has its place in the order cannot be taken back.

use serde::Serialize;
use vez_algorithms::{Effect as Step, NodeId, Phase, mutex::Output};

use super::{
    Clients, Effect, Effects, Instance, Message, Nanos, Shard,
    forget::Rest,
    turns::{Turn, TurnMessage, Turns},
};
use crate::{
    ask::{Failure, Kind, Patience},
    fence::{Fence, LATE_COUNTER},
    name::Name,
};

/// Our part in the algorithm of one lock.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Lock {
    pub turns: Turns,
    /// How many were granted in this view, if the token is here.
    pub counter: Option<u64>,
    /// How many local clients were served while somebody elsewhere waited, since the token came.
    visit: u32,
    /// Whether the home was told that the token is idle here, and it has not been used since.
    pub told_idle: bool,
    pub rest: Rest,
}

impl Lock {
    fn new(turns: Turns, floor: u64) -> Self {
        let counter = turns.has_token().then_some(floor);
        Self { turns, counter, visit: 0, told_idle: false, rest: Rest::default() }
    }
}

impl Shard {
    /// Whether somebody here holds it or waits for it, as a lock.
    pub(crate) fn is_locked_here(&self, name: &Name) -> bool {
        self.clients.get(name).is_some_and(|clients| clients.kind == Kind::Lock && !clients.is_empty())
    }

    /// Whether a request for the lock is known to stand in line for nobody.
    pub(super) fn is_in_line_for_nobody(&self, name: &Name) -> bool {
        match self.instances.get(name) {
            Some(Instance::Lock(lock)) => lock.turns.is_for_nobody(),
            Some(Instance::Book(_)) | None => false,
        }
    }

    /// What is held is entered again: by a request like any other, before there are any others.
    pub(super) fn reenter_lock(&mut self, now: Nanos, name: &Name, out: &mut Effects) {
        self.make_lock(name);
        self.turn(now, name, Turn::Request, out);
    }

    /// Does for the clients who wait here what can be done now.
    pub(super) fn serve_lock(&mut self, now: Nanos, name: &Name, out: &mut Effects) {
        if !self.is_settled() {
            return;
        }
        let Some(clients) = self.clients.get(name) else { return };
        let Some(first) = clients.waiting.front() else { return };
        let (session, request, tries) = (first.session, first.request, first.patience == Patience::Try);
        if let Some(Instance::Book(book)) = self.instances.get(name) {
            let is = book.kind();
            self.make_way(name, Kind::Lock, out);
            if self.instances.contains_key(name) {
                let failure = Failure::Mismatch { name: name.clone(), is, asked: Kind::Lock };
                self.withdraw(now, name, request, out);
                return out.push(Effect::Failed { session, request, name: name.clone(), failure });
            }
        }
        let turns = &self.make_lock(name).turns;
        let (idle, pulling, for_nobody) = (turns.phase() == Phase::Idle, turns.is_pulling(), turns.is_for_nobody());
        if tries && (idle || pulling) {
            self.next_try += 1;
            let number = self.next_try;
            self.turn(now, name, Turn::Attempt(number), out);
        } else if idle {
            self.turn(now, name, Turn::Request, out);
        } else if pulling || for_nobody {
            self.turn(now, name, Turn::Adopt, out);
        } // Otherwise the request is on its way, or one of ours is inside.
    }

    /// A client has given up. If it was the last, the request goes on for nobody.
    pub(super) fn forsake_lock(&mut self, now: Nanos, name: &Name, out: &mut Effects) {
        if !self.is_wanted(name) {
            self.go_on_for_nobody(now, name, out);
        }
    }

    fn go_on_for_nobody(&mut self, now: Nanos, name: &Name, out: &mut Effects) {
        if let Some(Instance::Lock(lock)) = self.instances.get(name)
            && lock.turns.phase() == Phase::Waiting
            && !lock.turns.is_for_nobody()
        {
            self.turn(now, name, Turn::Forsake, out);
        }
    }

    /// A holder has left. If it was not inside yet in this view, its re-entry goes on for nobody.
    pub(super) fn leave_lock(&mut self, now: Nanos, name: &Name, was_inside: bool, out: &mut Effects) {
        if !was_inside {
            self.go_on_for_nobody(now, name, out);
            return self.entered(now, name, out);
        }
        let Some(Instance::Lock(lock)) = self.instances.get_mut(name) else { return };
        let waits = self.clients.get(name).is_some_and(|clients| !clients.waiting.is_empty());
        let others = lock.turns.others_wait();
        if waits && self.is_settled() && !(others && self.visits(name) >= self.habits.visit) {
            return self.grant_next(now, name, others, out);
        }
        self.turn(now, name, Turn::Release, out);
        self.serve_lock(now, name, out);
    }

    fn visits(&self, name: &Name) -> u32 {
        match self.instances.get(name) {
            Some(Instance::Lock(lock)) => lock.visit,
            Some(Instance::Book(_)) | None => 0,
        }
    }

    /// A message of the algorithm.
    pub(super) fn on_lock(
        &mut self,
        now: Nanos,
        from: NodeId,
        name: &Name,
        message: TurnMessage,
        counter: Option<u64>,
        out: &mut Effects,
    ) {
        if message.is_request() {
            self.make_way(name, Kind::Lock, out);
        }
        let may_begin = self.may_begin(name, &message);
        match self.instances.get_mut(name) {
            Some(Instance::Lock(lock)) if message.is_token() && lock.turns.has_token() => {
                return out.push(Effect::Violation(from, "a second token"));
            }
            Some(Instance::Lock(lock)) => lock.counter = counter.or(lock.counter),
            Some(Instance::Book(book)) if message.is_request() => {
                let is = book.kind();
                return self.send(now, from, Message::Mismatch { name: name.clone(), request: None, is }, out);
            }
            // An answer to a try that was overtaken by the token, which came and went.
            Some(Instance::Book(_)) | None if message.is_answer() => return,
            None if may_begin => {
                self.make_lock(name);
            }
            Some(Instance::Book(_)) | None => {
                return out.push(Effect::Violation(from, "a word about a lock that nothing is known of"));
            }
        }
        self.turn(now, name, Turn::Message(from, message), out);
    }

    /// Whether a lock can begin here by a message. With `fila` that happens at the home; with the others anywhere, but a
    /// token never comes to where nobody asked for it.
    fn may_begin(&self, name: &Name, message: &TurnMessage) -> bool {
        let Some(place) = &self.place else { return false };
        let is_fila = matches!(message, TurnMessage::Fila(_));
        !message.is_token() && (!is_fila || place.view.home(name) == place.me)
    }

    /// The name is something else at its home, and nothing of our request is left there.
    pub(super) fn on_lock_mismatch(&mut self, name: &Name, is: Kind, out: &mut Effects) {
        if let Some(Instance::Lock(lock)) = self.instances.get(name)
            && lock.turns.phase() == Phase::Waiting
        {
            self.drop_instance(name);
        }
        let waiting = self.clients.get_mut(name).map(|clients| core::mem::take(&mut clients.waiting));
        for waiter in waiting.into_iter().flatten() {
            self.forget_waiter(name, &waiter);
            let failure = Failure::Mismatch { name: name.clone(), is, asked: Kind::Lock };
            out.push(Effect::Failed { session: waiter.session, request: waiter.request, name: name.clone(), failure });
        }
        self.drop_clients(name);
    }

    fn make_lock(&mut self, name: &Name) -> &mut Lock {
        let place = self.place.as_ref().expect("in a view");
        let algorithm = self.algorithms.of(name);
        let turns = || Turns::new(algorithm, place.me, place.view.home(name), place.view.members.len());
        let instance = self.instances.entry(name.clone());
        match instance.or_insert_with(|| Instance::Lock(Lock::new(turns(), self.floor))) {
            Instance::Lock(lock) => lock,
            Instance::Book(_) => unreachable!("whoever calls has looked"),
        }
    }

    /// Lets something happen to the algorithm, and does what it wants done.
    pub(super) fn turn(&mut self, now: Nanos, name: &Name, turn: Turn, out: &mut Effects) {
        let me = self.place.as_ref().expect("in a view").me;
        let Some(Instance::Lock(lock)) = self.instances.get_mut(name) else { return };
        let pulled = lock.turns.is_pulling();
        for effect in lock.turns.happen(me, turn) {
            match effect {
                Step::Send(to, message) => self.send_turn(name, to, message, out),
                Step::Output(Output::Entered) => self.on_entered(now, name, out),
                Step::Output(Output::Busy) => self.on_busy(now, name, out),
                Step::Violation(what) => out.push(Effect::Violation(me, what)),
                Step::SetTimer(timer, _) | Step::CancelTimer(timer) => match timer {},
            }
        }
        if pulled && self.is_idle_at_home(name) {
            return self.forget(name, out);
        }
        self.rest(now, name);
    }

    fn send_turn(&mut self, name: &Name, to: NodeId, message: TurnMessage, out: &mut Effects) {
        let Some(Instance::Lock(lock)) = self.instances.get_mut(name) else { return };
        let counter = message.is_token().then(|| {
            (lock.visit, lock.told_idle) = (0, false);
            lock.counter.take().expect("the counter is where the token is")
        });
        out.push(Effect::Send(to, Message::Lock { name: name.clone(), message, counter }));
    }

    /// Whether the token is here, where the name's home is, and nobody wants it as a lock.
    pub(super) fn is_idle_at_home(&self, name: &Name) -> bool {
        let Some(Instance::Lock(lock)) = self.instances.get(name) else { return false };
        let place = self.place.as_ref().expect("in a view");
        let wanted = self.clients.get(name).is_some_and(|clients| clients.kind == Kind::Lock && !clients.is_empty());
        lock.turns.is_forgettable() && place.view.home(name) == place.me && !wanted
    }

    /// The token is here, for us.
    fn on_entered(&mut self, now: Nanos, name: &Name, out: &mut Effects) {
        let clients = self.clients.get_mut(name);
        if let Some(hold) = clients.and_then(|clients| clients.holds.first_mut()) {
            assert!(!hold.inside, "only one is inside");
            hold.inside = true; // It keeps its fence: a new one would be a grant that nobody asked for.
            return self.entered(now, name, out);
        }
        self.grant_next(now, name, false, out);
    }

    /// The first who waits here gets the lock; if there is no number left for it, or nobody waits, it moves on.
    fn grant_next(&mut self, now: Nanos, name: &Name, others_wait: bool, out: &mut Effects) {
        let settled = self.is_settled();
        let view = self.place.as_ref().expect("in a view").view.number;
        loop {
            let Some(Instance::Lock(lock)) = self.instances.get_mut(name) else { return };
            let clients = self.clients.get_mut(name).filter(|_| settled);
            let waiter = clients.and_then(|clients| clients.waiting.pop_front().map(|waiter| (waiter, clients)));
            let Some((waiter, clients)) = waiter else { return self.turn(now, name, Turn::Release, out) };
            let (session, request) = (waiter.session, waiter.request);
            let counter = lock.counter.as_mut().expect("the counter is where the token is");
            if *counter >= LATE_COUNTER {
                out.push(Effect::NewViewWanted);
            }
            let Some(fence) = Fence::new(view, *counter + 1) else {
                self.forget_waiter(name, &waiter);
                self.drop_clients(name);
                out.push(Effect::Failed { session, request, name: name.clone(), failure: Failure::NoMoreFences });
                continue;
            };
            *counter += 1;
            lock.told_idle = false;
            lock.visit += u32::from(others_wait);
            let patience = waiter.patience;
            clients.hold(waiter, fence, now);
            self.forget_timeout(name, request, patience);
            return out.push(Effect::Granted { session, request, name: name.clone(), fence, floor: fence });
        }
    }

    /// Somebody else has the lock: who only tried is told, and if anybody else waits here, the request is theirs.
    fn on_busy(&mut self, now: Nanos, name: &Name, out: &mut Effects) {
        let tries = |clients: &Clients| {
            clients.waiting.iter().find(|waiter| waiter.patience == Patience::Try).map(|waiter| waiter.request)
        };
        while let Some(request) = self.clients.get(name).and_then(tries) {
            self.give_up(now, name, request, Failure::Busy(name.clone()), out);
        }
        self.serve_lock(now, name, out);
    }
}
