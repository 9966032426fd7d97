//! Group mutual exclusion on quorums [CA]. Steps: docs/algorithms/group-quorum.md.
//!
//! Processes work in groups, and one group at a time has the resource. A process names its group; the first one that does
//! is its leader, and sets the group competing for the locks of its quorum, any two of which meet. With all of them the
//! group is inside, and lets in everybody who names it until its leader leaves; when the last process has left, the
//! locks go back. A lock that an earlier claim wants is called back, and a group that is not yet inside gives it.
//!
//!   p1 → g1  ProcessRequest        g1 → p1  ProcessReply: the group is inside        p1 → g1  ProcessEnd
//!   g1 → g2  GroupRequest(claim)   g2 → g1  GroupGrant, at once or in its turn       g1 → g2  GroupRelease
//!   g2 → g3  GroupRecall           g3 → g2  GroupReturn   (unless g3 is inside: then its release is the answer)
//!
//! Processes and groups are nodes of their own: with M processes and G groups, nodes 0 to M−1 are the processes, which
//! have clients, and nodes M to M+G−1 the groups, of which session s is node M+s.
//!
//! Cost: 3l + 3(q−1) messages for l processes that are inside together, q the size of a quorum, if no lock is called
//! back; 3 more for each that is. Assumes: no loss, no crash; FIFO not needed.
//! Departures: many, since what is printed neither excludes nor ends; the page lists them. The main ones: a group is a
//! voter of its own quorum, by messages to itself; a lock is called back from who has it; claims are Lamport's clocks,
//! and every message about a lock names its claim, so that one that comes late or early is known for what it is.

mod clocks;
mod competitor;
mod process;
mod voter;

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use self::{competitor::Competitor, process::Process};
use super::{Command, Group};
use crate::{
    Algorithm, Canonical, Clock, Context, Model, Never, NodeId, NodeSet, Protocol, Setting, Setup, SetupError,
};

/// What processes and groups say to each other, in the order in which it is usually said.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// Process to group: I want to work in you. `Req_Proceso`
    ProcessRequest,
    /// Group to group: lend me your lock; my claim is of this time. `Req_Grupo`
    GroupRequest(Clock),
    /// You have my lock. `Rec_Grupo`
    GroupGrant {
        /// For the claim of this time.
        claim: Clock,
        /// No claim that I have seen is later than this.
        clock: Clock,
    },
    /// Group to process: we are inside. `Rep_Proceso`
    ProcessReply,
    /// An earlier claim wants the lock that you have for the claim of this time. `Rel_Grupo`
    GroupRecall(Clock),
    /// Take your lock back, and give it to me again when it is the turn of my claim. `Rep_Rel_Grupo`
    GroupReturn(Clock),
    /// Process to group: I have left. `Req_Proceso_Fin`
    ProcessEnd,
    /// I am done with your lock, which I had for the claim of this time. `Lib_Grupo`
    GroupRelease(Clock),
}

/// One node: a process or a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum GroupQuorum {
    /// P_i
    Process(Process),
    /// G_k
    Group(Competitor),
}

impl Algorithm for GroupQuorum {
    const NAME: &'static str = "group-quorum";
    const COST: &'static str = "3 + 3(q−1)/l, l together, q ≈ 2√g (grid) or √g (plane) of g groups";
    const PAPER: &'static str = "CA";
    const SETTINGS: &'static [Setting] = &[Setting::Groups, Setting::Quorum];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let (processes, groups) = (setup.nodes(), setup.some_groups()?);
        let as_node = |group: NodeId| NodeId::from_index(processes + group.index());
        let quorum = |set: &NodeSet| set.iter().map(as_node).collect();
        let sets = setup.quorum.sets(groups)?;
        let process = Self::Process(Process::new(as_node(NodeId(0)), groups));
        let groups = sets.iter().map(|set| Self::Group(Competitor::new(quorum(set))));
        Ok(setup.ids().map(|_| process.clone()).chain(groups).collect())
    }
}

impl Protocol for GroupQuorum {
    const MODEL: Model = Model::RELIABLE;
    const CANONICAL: Option<Canonical<Self>> = Some(clocks::close_gaps);
    type Message = Message;
    type Timer = Never;
    type Family = Group;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match (self, command) {
            (Self::Process(process), Command::Enter(session)) => process.on_enter(session, cx),
            (Self::Process(process), Command::Leave) => process.on_leave(cx),
            (Self::Group(_), Command::Enter(_) | Command::Leave) => unreachable!("a group has no client"),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match self {
            Self::Process(process) => process.on_message(from, &message, cx),
            Self::Group(group) => group.on_message(from, &message, cx),
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}
