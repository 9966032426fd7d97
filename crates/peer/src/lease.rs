//! The lease of one member, on its own clock.
//!
//! A membership is kept by renewals that a leader answers. What was answered counts from its *sending* (L1): the leader
//! counts from its answering, which was later. Three instants follow: *danger*, when holders are warned; *stop*, when the
//! member does nothing more, and tells its clients that what they held is lost; and the end, before which nobody else
//! takes its place.

use serde::Serialize;

use crate::{charter::Charter, shard::Nanos};

/// How long this process is a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Lease {
    /// When the renewal was sent that was answered last.
    from: Nanos,
}

impl Lease {
    /// A lease that counts from the sending of a Join.
    #[must_use]
    pub const fn new(join_sent: Nanos) -> Self {
        Self { from: join_sent }
    }

    /// A renewal was answered. One that was sent earlier than another that was answered says nothing new.
    pub fn renew(&mut self, sent: Nanos) {
        self.from = self.from.max(sent);
    }

    /// When holders are warned.
    #[must_use]
    pub fn danger(&self, charter: &Charter) -> Nanos {
        self.from.saturating_add(charter.danger())
    }

    /// When the member stops.
    #[must_use]
    pub fn stop(&self, charter: &Charter) -> Nanos {
        self.from.saturating_add(charter.stop())
    }
}
