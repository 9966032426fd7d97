//! The group as a voter [CA]: its one lock, who has it, and who waits for it. Steps: docs/algorithms/group-quorum.md.

use alloc::collections::BTreeSet;

use serde::Serialize;

use super::{GroupQuorum, Message};
use crate::{Clock, Context, NodeId};

/// A claim of a group: earlier ones are smaller.
pub(super) type Claim = (Clock, NodeId);

/// LG: all claims to the lock of this group, that of the group itself among them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub(super) struct Voter {
    /// Which claim has the lock.
    lock: Option<Claim>,
    /// Whether it has been called back.
    recalling: bool,
    /// The others.
    line: BTreeSet<Claim>,
}

impl Voter {
    /// CA:8 A free lock is granted. An earlier claim than the one that has it calls it back, once a grant.
    pub(super) fn on_request(&mut self, claim: Claim, clock: Clock, cx: &mut Context<'_, GroupQuorum>) {
        if self.lock == Some(claim) || !self.line.insert(claim) {
            return cx.violation("GroupRequest made twice");
        }
        match self.lock {
            None => self.grant_first(clock, cx),
            Some(lock) if claim < lock && !self.recalling => {
                self.recalling = true;
                cx.send(lock.1, Message::GroupRecall(lock.0));
            }
            Some(_) => {}
        }
    }

    /// CA:9 The lock came back before its time: its claim stands in line again.
    pub(super) fn on_return(&mut self, claim: Claim, clock: Clock, cx: &mut Context<'_, GroupQuorum>) {
        if self.lock == Some(claim) && self.recalling {
            self.line.insert(claim);
            self.grant_first(clock, cx);
        } else {
            cx.violation("GroupReturn of a lock that was not called back");
        }
    }

    /// CA:10 The lock is free.
    pub(super) fn on_release(&mut self, claim: Claim, clock: Clock, cx: &mut Context<'_, GroupQuorum>) {
        if self.lock == Some(claim) {
            self.grant_first(clock, cx);
        } else {
            cx.violation("GroupRelease of a lock that the group does not have");
        }
    }

    fn grant_first(&mut self, clock: Clock, cx: &mut Context<'_, GroupQuorum>) {
        self.recalling = false;
        self.lock = self.line.pop_first();
        if let Some((claim, group)) = self.lock {
            cx.send(group, Message::GroupGrant { claim, clock });
        }
    }

    /// Shows every clock in the state, in any order.
    pub(super) fn each_clock(&mut self, look: &mut impl FnMut(&mut Clock)) {
        let mut look_at = |mut claim: Claim| {
            look(&mut claim.0);
            claim
        };
        self.lock = self.lock.map(&mut look_at);
        self.line = self.line.iter().copied().map(look_at).collect();
    }
}
