//! Why a system with requests for ever has finitely many states, if messages arrive in order. Steps of the algorithm:
//! docs/algorithms/group-quorum.md, which also has the proof.

use alloc::collections::BTreeMap;

use super::{GroupQuorum, Message};
use crate::Clock;

/// Only the order of clocks matters, and how many claims fit in between. A group that lags behind a gap makes at most one
/// claim within it: then it hears of the later clocks. So a gap wider than there are groups might as well be one wider.
pub(super) fn close_gaps(nodes: &mut [GroupQuorum], messages: &mut [Message]) {
    let mut moved = BTreeMap::new();
    each_clock(nodes, messages, &mut |clock| {
        moved.insert(*clock, 0);
    });
    let groups = nodes.iter().filter(|node| matches!(node, GroupQuorum::Group(_))).count();
    let widest = groups as Clock + 1;
    let (mut before, mut to) = (moved.first_key_value().map_or(0, |(least, _)| *least), 0);
    for (clock, moved) in &mut moved {
        to += (clock - before).min(widest);
        before = *clock;
        *moved = to;
    }
    each_clock(nodes, messages, &mut |clock| *clock = moved[clock]);
}

/// Shows every clock in the system, in any order.
fn each_clock(nodes: &mut [GroupQuorum], messages: &mut [Message], look: &mut impl FnMut(&mut Clock)) {
    for node in nodes {
        match node {
            GroupQuorum::Process(_) => {}
            GroupQuorum::Group(group) => group.each_clock(look),
        }
    }
    for message in messages {
        match message {
            Message::ProcessRequest | Message::ProcessReply | Message::ProcessEnd => {}
            Message::GroupRequest(claim)
            | Message::GroupRecall(claim)
            | Message::GroupReturn(claim)
            | Message::GroupRelease(claim) => look(claim),
            Message::GroupGrant { claim, clock } => {
                look(claim);
                look(clock);
            }
        }
    }
}
