//! What can happen at a node.

use vez_algorithms::NodeId;

use super::book::LATE;

/// Something that can happen at a node. The numbers are those of wants, and of interned timers and packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Action {
    Ask(u32),
    Leave,
    Crash,
    Restart,
    Fire(u32),
    /// Time passes, and nothing happens.
    Pass,
    Receive(u32),
    Lose(u32),
    /// A message is lost with the node that sent it: it crashed in the midst of its sending.
    Perish(u32),
    /// The failure detector tells of a crash.
    Notice(NodeId),
    /// The failure detector tells of a crash that was none.
    Accuse(NodeId),
}

impl Action {
    /// The same for a node, which does not see how long a message has been on its way.
    pub(super) fn in_time(self) -> Self {
        match self {
            Self::Receive(packet) => Self::Receive(packet & !LATE),
            Self::Lose(packet) => Self::Lose(packet & !LATE),
            Self::Perish(packet) => Self::Perish(packet & !LATE),
            other => other,
        }
    }

    /// A client may go on thinking for ever, and nothing need go wrong; all else happens in the end.
    pub(super) fn must_happen(self) -> bool {
        match self {
            Self::Leave | Self::Fire(_) | Self::Pass | Self::Receive(_) | Self::Notice(_) => true,
            Self::Ask(_) | Self::Crash | Self::Restart | Self::Lose(_) | Self::Perish(_) | Self::Accuse(_) => false,
        }
    }
}
