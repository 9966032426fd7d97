//! Clients: they ask, wait, try, give up, hold, forget and go.
//!
//! A client lives on a machine and goes by its clock, but it is a program of its own: when the process of the lock service
//! there crashes or sleeps, the client does not, and it need not notice at once.

use vez_peer::{
    ask::{Ask, Failure, Kind, Patience, RequestId, SessionId},
    fence::Fence,
    name::Name,
    peer::{Call, Effect, Input},
    shard::Nanos,
};

use crate::{
    law::Belief,
    observer::Observer,
    plan::MILLISECOND,
    wish::is_resized,
    world::{Event, World},
};

/// So many on each machine.
const CLIENTS: usize = 3;

pub(crate) struct Client {
    pub machine: usize,
    pub session: Option<SessionId>,
    pub ttl: Option<Nanos>,
    pub stage: Stage,
    /// Whatever it was to do in an earlier epoch it does not do any more.
    epoch: u64,
}

/// What a client is about.
#[derive(Clone)]
pub(crate) enum Stage {
    Thinking,
    Waiting { request: RequestId, name: Name, ask: Ask },
    Holding { request: RequestId, name: Name, fence: Fence },
    Resizing { request: RequestId, name: Name },
}

/// What a client does at some moment.
pub(crate) enum Deed {
    /// It asks for something.
    Ask,
    /// It does not want to wait any more.
    GiveUp,
    /// It leaves.
    Leave,
    /// It goes, without a word to whom it holds something from.
    Go,
    /// It notices that its node is gone.
    Notice,
    /// It shows itself.
    Renew(SessionId),
    /// It gives back what it no longer wants.
    GiveBack { session: SessionId, name: Name, fence: Fence },
    /// It ends what it is about, since its node wants to leave.
    MakeWay(SessionId),
    /// A word of one who was inside comes to the resource.
    Write { name: Name, ask: Ask, fence: Fence, floor: Fence },
}

impl World<'_> {
    pub(crate) fn populate(&mut self) {
        for machine in 0..self.plan.nodes {
            for _ in 0..CLIENTS {
                self.clients.push(Client { machine, session: None, ttl: None, stage: Stage::Thinking, epoch: 0 });
                self.think(self.clients.len() - 1);
            }
            self.at(0, Event::Look(machine));
        }
    }

    /// A client thinks for a while, and then asks.
    fn think(&mut self, client: usize) {
        self.clients[client].stage = Stage::Thinking;
        self.clients[client].epoch += 1;
        let pause = if self.whims.one_in(10) { 3000 } else { 250 };
        let pause = self.whims.below(pause * MILLISECOND);
        self.later(client, pause, Deed::Ask);
    }

    pub(crate) fn later(&mut self, client: usize, pause: Nanos, deed: Deed) {
        let epoch = self.clients[client].epoch;
        self.at(self.now + pause, Event::Client(client, epoch, deed));
    }

    pub(crate) fn client_acts(&mut self, client: usize, epoch: u64, deed: Deed) -> Result<(), String> {
        if let Deed::Write { name, ask, fence, floor } = deed {
            return self.law.write(self.now, &name, ask.kind(), fence, floor).map(drop);
        }
        if let Deed::Renew(session) = deed {
            return self.renew(client, session);
        }
        if let Deed::GiveBack { session, name, fence } = deed {
            return self.call(self.clients[client].machine, Call::Release { session, name, fence });
        }
        if let Deed::MakeWay(session) = deed {
            return match self.clients[client].session {
                Some(open) if open == session => self.go(client),
                Some(_) | None => Ok(()),
            };
        }
        if self.clients[client].epoch != epoch {
            return Ok(());
        }
        let machine = self.clients[client].machine;
        match (deed, self.clients[client].stage.clone()) {
            (Deed::Ask, Stage::Thinking) => self.ask(client),
            (Deed::GiveUp, Stage::Waiting { request, name, .. }) => self.call(machine, Call::Cancel { request, name }),
            (Deed::Leave, Stage::Holding { request, name, fence, .. }) => {
                self.law.leave(self.now, &name, request);
                let session = self.clients[client].session;
                self.think(client);
                if let Some(session) = session {
                    self.call(machine, Call::Release { session, name, fence })?;
                }
                self.probe_on(machine, client)
            }
            (Deed::Go, Stage::Holding { .. } | Stage::Waiting { .. } | Stage::Resizing { .. }) => self.go(client),
            (Deed::Notice, _) => {
                self.forget_node(client);
                Ok(())
            }
            (_, _) => Ok(()),
        }
    }

    /// A client goes, without a word to whom it holds something from.
    fn go(&mut self, client: usize) -> Result<(), String> {
        match self.forget_node(client) {
            Some(session) => self.call(self.clients[client].machine, Call::End(session)),
            None => Ok(()),
        }
    }

    /// A client gives up its session, and all that it believed to have. It thinks anew.
    fn forget_node(&mut self, client: usize) -> Option<SessionId> {
        if let Stage::Holding { request, name, .. } = &self.clients[client].stage {
            self.law.leave(self.now, name, *request);
        }
        let session = self.clients[client].session.take();
        if let Some(session) = session {
            self.sessions.remove(&session);
        }
        self.think(client);
        session
    }

    fn ask(&mut self, client: usize) -> Result<(), String> {
        let machine = self.clients[client].machine;
        let member = self.machines[machine].process.as_ref().is_some_and(|process| process.peer.view().is_some());
        if self.now >= self.plan.quiet {
            return Ok(());
        }
        if !member {
            self.think(client);
            return Ok(());
        }
        let session = self.session_of(client)?;
        if self.clients[client].session.is_none() {
            return Ok(()); // It was turned away, and thinks again.
        }
        let (name, ask) = self.wish(client);
        let request = self.next_request();
        if is_resized(&name) && self.whims.one_in(4) {
            return self.resize(client, session, request, name);
        }
        let reads = self.machines[machine].clock.reads(self.now);
        let patience = match self.whims.below(10) {
            0 | 1 => Patience::Try,
            2..5 => Patience::Until(reads + self.whims.below(3000 * MILLISECOND)),
            _ => Patience::Endless,
        };
        self.clients[client].stage = Stage::Waiting { request, name: name.clone(), ask: ask.clone() };
        match self.whims.below(20) {
            0 | 1 => {
                let pause = self.whims.below(500 * MILLISECOND);
                self.later(client, pause, Deed::GiveUp);
            }
            2 => {
                let pause = self.whims.below(500 * MILLISECOND);
                self.later(client, pause, Deed::Go);
            }
            _ => {}
        }
        self.law.asked(self.now, machine, request, ask.clone(), patience);
        let (beside, again) = (self.whims.one_in(6), self.whims.one_in(2).then(|| (name.clone(), ask.clone())));
        self.call(machine, Call::Acquire { session, request, name, ask, patience })?;
        if beside { self.ask_beside(client, session, reads, again) } else { Ok(()) }
    }

    /// A client has a second request under way, perhaps for the same once more, and when that is granted, it gives it back.
    fn ask_beside(
        &mut self,
        client: usize,
        session: SessionId,
        reads: Nanos,
        again: Option<(Name, Ask)>,
    ) -> Result<(), String> {
        let (name, ask) = match again {
            Some((name, most)) => (name.clone(), self.wish_of(client, &name, most)),
            None => self.wish(client),
        };
        let request = self.next_request();
        let patience = Patience::Until(reads + self.whims.below(1500 * MILLISECOND));
        let machine = self.clients[client].machine;
        self.law.asked(self.now, machine, request, ask.clone(), patience);
        self.call(machine, Call::Acquire { session, request, name, ask, patience })
    }

    pub(crate) fn next_request(&mut self) -> RequestId {
        self.last_request += 1;
        RequestId(self.last_request)
    }

    pub(crate) fn call(&mut self, machine: usize, call: Call) -> Result<(), String> {
        self.input(machine, Input::Call(call))
    }

    /// A node says something to one of its clients.
    pub(crate) fn client_hears(&mut self, machine: usize, effect: Effect) -> Result<(), String> {
        let session = session_in(&effect);
        if self.is_of_observer(machine, session) {
            return self.observer_hears(machine, effect);
        }
        if self.is_of_collector(session) {
            return self.collector_hears(session, effect);
        }
        match effect {
            Effect::Granted { session, request, name, fence, floor, deadline } => {
                self.hear_granted(machine, session, (request, name, fence, floor), deadline)
            }
            Effect::Failed { session, request, failure } => {
                self.tell(|| format!("m{machine} denies {request:?}: {failure}"));
                self.law.deny(self.now, request, &failure)?;
                if let Failure::Mismatch { name, is: Kind::Semaphore { units }, .. } = failure {
                    self.units.insert(name, units);
                }
                self.answered(session, request);
                Ok(())
            }
            Effect::Resized { session, request, name, size } => {
                self.units.insert(name, size.units);
                self.answered(session, request);
                Ok(())
            }
            Effect::Renewed { session, deadline } => {
                let Some(client) = self.sessions.get(&session).copied() else { return Ok(()) };
                if let Stage::Holding { request, name, .. } = &self.clients[client].stage {
                    self.law.extend(self.now, name, *request, deadline);
                }
                Ok(())
            }
            Effect::Ended(session) | Effect::NotOpened { session, .. } => {
                self.tell(|| format!("m{machine} ends {session:?}"));
                if let Some(client) = self.sessions.get(&session).copied() {
                    self.forget_node(client);
                }
                Ok(())
            }
            Effect::Released { .. } | Effect::Observed { .. } => Ok(()),
            _ => unreachable!("nothing for a client"),
        }
    }

    /// What a client waited for is over.
    fn answered(&mut self, session: SessionId, answered: RequestId) {
        let Some(client) = self.sessions.get(&session).copied() else { return };
        if let Stage::Waiting { request, .. } | Stage::Resizing { request, .. } = self.clients[client].stage
            && request == answered
        {
            self.think(client);
        }
    }

    fn hear_granted(
        &mut self,
        machine: usize,
        session: SessionId,
        (request, name, fence, floor): (RequestId, Name, Fence, Fence),
        deadline: Nanos,
    ) -> Result<(), String> {
        let Some(client) = self.sessions.get(&session).copied() else { return Ok(()) };
        let ask = match &self.clients[client].stage {
            Stage::Waiting { request: waiting, ask, .. } if *waiting == request => ask.clone(),
            // It gave up, and the word of that is on its way.
            Stage::Waiting { .. } | Stage::Holding { .. } | Stage::Resizing { .. } | Stage::Thinking => {
                self.later(client, 0, Deed::GiveBack { session, name, fence });
                return Ok(());
            }
        };
        let belief = Belief { machine, request, ask: ask.clone(), fence, floor, deadline };
        if !self.law.enter(self.now, &name, belief)? {
            // The answer took so long that what it says is over.
            self.think(client);
            self.later(client, 0, Deed::GiveBack { session, name, fence });
            return Ok(());
        }
        self.clients[client].epoch += 1;
        for _ in 0..self.whims.below(3) {
            let pause = if self.whims.one_in(5) { 8000 } else { 100 };
            let pause = self.whims.below(pause * MILLISECOND);
            self.later(client, pause, Deed::Write { name: name.clone(), ask: ask.clone(), fence, floor });
        }
        self.clients[client].stage = Stage::Holding { request, name, fence };
        let calm = self.now >= self.plan.quiet;
        let stay = if self.whims.one_in(15) && !calm { 7000 } else { 60 };
        let stay = self.whims.below(stay * MILLISECOND);
        let goes = self.whims.one_in(10) && !self.is_probing();
        self.later(client, stay, if goes { Deed::Go } else { Deed::Leave });
        Ok(())
    }

    /// The node of some clients is gone. If nobody tells them, they notice some time.
    pub(crate) fn lose_clients(&mut self, machine: usize, told: bool) {
        self.observers[machine] = Observer::default();
        for client in 0..self.clients.len() {
            if self.clients[client].machine != machine || self.clients[client].session.is_none() {
                continue;
            }
            if told || self.whims.one_in(2) {
                self.forget_node(client);
            } else {
                let pause = self.whims.below(2 * self.plan.charter.lease);
                // It may go on with what it is about until it notices; but it hears nothing any more.
                self.clients[client].epoch += 1;
                if let Some(session) = self.clients[client].session {
                    self.sessions.remove(&session);
                }
                self.later(client, pause, Deed::Notice);
            }
        }
    }

    /// A machine wants to leave, and its clients have a moment to end what they are about.
    pub(crate) fn ask_clients_to_go(&mut self, machine: usize) -> Result<(), String> {
        for client in 0..self.clients.len() {
            if self.clients[client].machine == machine
                && let Some(session) = self.clients[client].session
            {
                let pause = self.whims.below(400 * MILLISECOND);
                self.later(client, pause, Deed::MakeWay(session));
            }
        }
        self.look_away(machine)
    }

    /// All clients of a machine go.
    pub(crate) fn close_clients(&mut self, machine: usize) -> Result<(), String> {
        for client in 0..self.clients.len() {
            if self.clients[client].machine == machine
                && let Some(session) = self.forget_node(client)
            {
                self.call(machine, Call::End(session))?;
            }
        }
        Ok(())
    }
}

/// Which session something is said to.
fn session_in(effect: &Effect) -> SessionId {
    match effect {
        Effect::Granted { session, .. }
        | Effect::Failed { session, .. }
        | Effect::Observed { session, .. }
        | Effect::Resized { session, .. }
        | Effect::Renewed { session, .. }
        | Effect::Released { session, .. }
        | Effect::NotOpened { session, .. }
        | Effect::Ended(session) => *session,
        _ => unreachable!("nothing for a client"),
    }
}
