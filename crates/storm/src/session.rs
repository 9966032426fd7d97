//! Sessions of clients: how they begin, and are kept.

use vez_peer::{ask::SessionId, peer::Call, shard::Nanos};

use crate::{
    client::{Client, Deed},
    world::World,
};

impl World<'_> {
    /// The session of a client: the one that it has, or a new one.
    pub(crate) fn session_of(&mut self, client: usize) -> Result<SessionId, String> {
        if let Some(session) = self.clients[client].session {
            return Ok(session);
        }
        let lease = self.plan.charter.lease;
        let ttl = if self.whims.one_in(2) { Some(lease / 4 + self.whims.below(2 * lease)) } else { None };
        let session = self.open(client, ttl)?;
        self.set_renewal(client, session);
        Ok(session)
    }

    pub(crate) fn open(&mut self, client: usize, ttl: Option<Nanos>) -> Result<SessionId, String> {
        let session = SessionId(self.next_request().0);
        self.sessions.insert(session, client);
        let machine = self.clients[client].machine;
        (self.clients[client].session, self.clients[client].ttl) = (Some(session), ttl);
        self.call(machine, Call::Open { session, ttl })?;
        Ok(session)
    }

    fn set_renewal(&mut self, client: usize, session: SessionId) {
        let lease = self.plan.charter.lease;
        let pause = self.clients[client].ttl.unwrap_or(lease).min(lease) / 4;
        self.later(client, pause, Deed::Renew(session));
    }

    pub(crate) fn renew(&mut self, client: usize, session: SessionId) -> Result<(), String> {
        // Now and then a client forgets.
        if self.clients[client].session != Some(session) || self.whims.one_in(100) {
            return Ok(());
        }
        self.set_renewal(client, session);
        let Client { machine, ttl, .. } = self.clients[client];
        // Some want to be sure for longer than they usually are.
        let longer = ttl.filter(|_| session.0.is_multiple_of(5)).map(|ttl| 2 * ttl);
        self.call(machine, longer.map_or(Call::Renew(session), |by| Call::Extend { session, by }))
    }
}
