//! The group [CA]: who wants to work in it, who does, and how it comes by the locks of its quorum. Steps:
//! docs/algorithms/group-quorum.md.

use serde::Serialize;

use super::{GroupQuorum, Message, voter::Voter};
use crate::{Clock, Context, NodeId, NodeSet};

/// G_k
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Competitor {
    /// S_k
    quorum: NodeSet,
    /// priori: the latest claim heard of, here or by a voter that has granted us its lock.
    clock: Clock,
    phase: Phase,
    /// The part of LP that is not inside: who is let in when the group enters next.
    waiting: NodeSet,
    /// Its part in the quorums of others, and in its own.
    voter: Voter,
}

/// Where a group stands: estado. SALIDA lasts no time.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
enum Phase {
    /// INACTIVO
    Idle,
    /// COMPITIENDO
    Competing {
        leader: NodeId,
        claim: Clock,
        /// conj: who has given us its lock.
        locks: NodeSet,
        /// Whose recall has come before the lock itself.
        recalled: NodeSet,
    },
    /// SC
    Inside {
        /// Lider: nobody once it has left.
        leader: Option<NodeId>,
        claim: Clock,
        /// The part of LP that is inside.
        active: NodeSet,
    },
}

impl Competitor {
    pub(super) fn new(quorum: NodeSet) -> Self {
        Self { quorum, clock: 0, phase: Phase::Idle, waiting: NodeSet::new(), voter: Voter::default() }
    }

    pub(super) fn on_message(&mut self, from: NodeId, message: &Message, cx: &mut Context<'_, GroupQuorum>) {
        match *message {
            Message::ProcessRequest => self.on_process_request(from, cx),
            Message::ProcessEnd => self.on_process_end(from, cx),
            Message::ProcessReply => cx.violation("a group is taken for a process"),
            Message::GroupRequest(claim) => {
                self.hear(claim);
                self.voter.on_request((claim, from), self.clock, cx);
            }
            Message::GroupGrant { claim, clock } => self.on_grant(from, claim, clock, cx),
            Message::GroupRecall(claim) => self.on_recall(from, claim, cx),
            Message::GroupReturn(claim) => self.voter.on_return((claim, from), self.clock, cx),
            Message::GroupRelease(claim) => self.voter.on_release((claim, from), self.clock, cx),
        }
    }

    /// CA:3 The first to name an idle group leads it. While the leader is inside, everybody is let in at once.
    fn on_process_request(&mut self, from: NodeId, cx: &mut Context<'_, GroupQuorum>) {
        match &mut self.phase {
            // A process that seems to be inside has left: its request has overtaken its ProcessEnd, and waits.
            Phase::Inside { leader: Some(_), active, .. } if !active.contains(from) => {
                active.insert(from);
                cx.send(from, Message::ProcessReply);
            }
            Phase::Idle | Phase::Competing { .. } | Phase::Inside { .. } => {
                if !self.waiting.insert(from) {
                    return cx.violation("ProcessRequest by a process that waits already");
                }
                if self.phase == Phase::Idle {
                    self.compete(from, cx);
                }
            }
        }
    }

    /// CA:4 Nobody is let in after the leader. The last one to leave gives all locks back.
    fn on_process_end(&mut self, from: NodeId, cx: &mut Context<'_, GroupQuorum>) {
        let Phase::Inside { leader, claim, active } = &mut self.phase else {
            return cx.violation("ProcessEnd to a group that is not inside");
        };
        if !active.remove(from) {
            return cx.violation("ProcessEnd by a process that is not inside");
        }
        if *leader == Some(from) {
            *leader = None;
        }
        if active.is_empty() {
            cx.multicast(self.quorum.iter(), &Message::GroupRelease(*claim));
            self.phase = Phase::Idle;
            let next = self.waiting.iter().next();
            if let Some(next) = next {
                self.compete(next, cx);
            }
        }
    }

    /// CA:5 A claim is later than all that the group has heard of.
    fn compete(&mut self, leader: NodeId, cx: &mut Context<'_, GroupQuorum>) {
        self.clock += 1;
        let claim = self.clock;
        self.phase = Phase::Competing { leader, claim, locks: NodeSet::new(), recalled: NodeSet::new() };
        cx.multicast(self.quorum.iter(), &Message::GroupRequest(claim));
    }

    /// CA:6 With the locks of its whole quorum the group is inside, and so are all who wait.
    fn on_grant(&mut self, from: NodeId, granted: Clock, clock: Clock, cx: &mut Context<'_, GroupQuorum>) {
        self.hear(clock);
        match &mut self.phase {
            Phase::Competing { leader, claim, locks, recalled }
                if *claim == granted && self.quorum.contains(from) && !locks.contains(from) =>
            {
                locks.insert(from);
                if *locks == self.quorum {
                    // Recalls that came early are answered by the GroupRelease.
                    let active = core::mem::take(&mut self.waiting);
                    cx.multicast(active.iter(), &Message::ProcessReply);
                    self.phase = Phase::Inside { leader: Some(*leader), claim: *claim, active };
                } else if recalled.remove(from) {
                    self.on_recall(from, granted, cx); // CA:7 now that the lock is there
                }
            }
            Phase::Idle | Phase::Competing { .. } | Phase::Inside { .. } => {
                cx.violation("GroupGrant of a lock that was not asked for");
            }
        }
    }

    /// CA:7 Whoever is not inside gives the lock back. If the lock has not come yet, the recall waits for it.
    fn on_recall(&mut self, from: NodeId, recall: Clock, cx: &mut Context<'_, GroupQuorum>) {
        match &mut self.phase {
            Phase::Competing { claim, locks, recalled, .. } if *claim == recall => {
                if locks.remove(from) {
                    cx.send(from, Message::GroupReturn(recall));
                } else {
                    recalled.insert(from);
                }
            }
            // The GroupRelease of that claim is the answer: it has crossed the recall, or is still to come.
            Phase::Idle | Phase::Competing { .. } | Phase::Inside { .. } => {}
        }
    }

    /// CA:5 Our next claim comes after all that we have heard of.
    fn hear(&mut self, clock: Clock) {
        self.clock = self.clock.max(clock);
    }

    /// Shows every clock in the state, in any order.
    pub(super) fn each_clock(&mut self, look: &mut impl FnMut(&mut Clock)) {
        look(&mut self.clock);
        match &mut self.phase {
            Phase::Idle => {}
            Phase::Competing { claim, .. } | Phase::Inside { claim, .. } => look(claim),
        }
        self.voter.each_clock(look);
    }
}
