//! The process [CA]: it names a group, waits to be let in, and tells the group when it leaves. Steps:
//! docs/algorithms/group-quorum.md.

use serde::Serialize;

use super::{GroupQuorum, Message};
use crate::{
    Context, NodeId,
    group::{Output, Session},
};

/// P_i
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Process {
    /// The node of the first group; the others follow.
    first: NodeId,
    groups: u32,
    phase: Phase,
}

/// Where a process stands. SALIDA lasts no time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
enum Phase {
    /// RESTO
    Idle,
    /// ENTRADA: it has named this group.
    Waiting(NodeId),
    /// SC: it works in this group.
    Inside(NodeId),
}

impl Process {
    pub(super) fn new(first: NodeId, groups: usize) -> Self {
        let groups = u32::try_from(groups).expect("a system has fewer than 2³² nodes");
        Self { first, groups, phase: Phase::Idle }
    }

    /// CA:1 The session is the group.
    pub(super) fn on_enter(&mut self, Session(session): Session, cx: &mut Context<'_, GroupQuorum>) {
        assert_eq!(self.phase, Phase::Idle, "one request at a time");
        assert!(session < self.groups, "there is no session {session}: there are {} groups", self.groups);
        let group = NodeId(self.first.0 + session);
        self.phase = Phase::Waiting(group);
        cx.send(group, Message::ProcessRequest);
    }

    /// CA:2
    pub(super) fn on_leave(&mut self, cx: &mut Context<'_, GroupQuorum>) {
        let Phase::Inside(group) = self.phase else { panic!("only who is inside may leave") };
        self.phase = Phase::Idle;
        cx.send(group, Message::ProcessEnd);
    }

    pub(super) fn on_message(&mut self, from: NodeId, message: &Message, cx: &mut Context<'_, GroupQuorum>) {
        match message {
            Message::ProcessReply if self.phase == Phase::Waiting(from) => {
                self.phase = Phase::Inside(from);
                cx.output(Output::Entered); // CA:1
            }
            Message::ProcessReply => cx.violation("ProcessReply with no request pending"),
            Message::ProcessRequest
            | Message::ProcessEnd
            | Message::GroupRequest(_)
            | Message::GroupGrant { .. }
            | Message::GroupRecall(_)
            | Message::GroupReturn(_)
            | Message::GroupRelease(_) => cx.violation("a process is taken for a group"),
        }
    }
}
