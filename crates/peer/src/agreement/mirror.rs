//! Between our words and those of `noraft`, which appear nowhere else but here and where the node is called.

use alloc::{collections::BTreeMap, vec::Vec};

use noraft::{ClusterConfig, LogEntries, LogEntry, LogIndex, LogPosition, NodeId, Term};

use super::log::{Append, Config, Entry, Position};
use crate::{identity::MemberId, views::Command};

pub(super) fn node_id(id: MemberId) -> NodeId {
    NodeId::new(id.0)
}

pub(super) fn member_id(id: NodeId) -> MemberId {
    MemberId(id.get())
}

pub(super) fn log_position(position: Position) -> LogPosition {
    LogPosition::new(Term::new(position.term), LogIndex::new(position.index))
}

pub(super) fn position(position: LogPosition) -> Position {
    Position { term: position.term.get(), index: position.index.get() }
}

pub(super) fn cluster_config(config: &Config) -> ClusterConfig {
    let mut cluster = ClusterConfig::new();
    cluster.voters = config.voters.iter().copied().map(node_id).collect();
    cluster.new_voters = config.new_voters.iter().copied().map(node_id).collect();
    cluster.non_voters = config.non_voters.iter().copied().map(node_id).collect();
    cluster
}

pub(super) fn config(cluster: &ClusterConfig) -> Config {
    Config {
        voters: cluster.voters.iter().copied().map(member_id).collect(),
        new_voters: cluster.new_voters.iter().copied().map(member_id).collect(),
        non_voters: cluster.non_voters.iter().copied().map(member_id).collect(),
    }
}

/// Without what the commands say: `noraft` keeps only where they stand.
pub(super) fn log_entries(after: Position, entries: &[Entry]) -> LogEntries {
    let entry = |entry: &Entry| match entry {
        Entry::Term(term) => LogEntry::Term(Term::new(*term)),
        Entry::Config(config) => LogEntry::ClusterConfig(cluster_config(config)),
        Entry::Command(_) => LogEntry::Command,
    };
    LogEntries::from_iter(log_position(after), entries.iter().map(entry))
}

/// With what the commands say. At most so many.
///
/// # Panics
/// If a command is missing: whatever stands in the log was put beside it before.
pub(super) fn append(entries: &LogEntries, commands: &BTreeMap<u64, Command>, most: usize) -> Append {
    let entry = |(position, entry): (LogPosition, LogEntry)| match entry {
        LogEntry::Term(term) => Entry::Term(term.get()),
        LogEntry::ClusterConfig(cluster) => Entry::Config(config(&cluster)),
        LogEntry::Command => Entry::Command(commands[&position.index.get()].clone()),
    };
    let entries_of_ours: Vec<Entry> = entries.iter_with_positions().take(most).map(entry).collect();
    Append { after: position(entries.prev_position()), entries: entries_of_ours }
}
