//! A step, from what `noraft` asks for to the events: first what must be written, then everything that depends on it.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

use noraft::{Actions, LogEntries, LogEntry, LogIndex, Message as RaftMessage, NodeId};

use super::{
    Agreement, Ballot, Batch, Cx, Event, MOST_ENTRIES, Message, Nanos, Pen, Snapshot, mirror,
    office::{Leadership, Office},
};
use crate::identity::MemberId;

/// What a step wants done once its batch is written.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    pub(super) broadcast: Option<RaftMessage>,
    pub(super) sends: BTreeMap<NodeId, RaftMessage>,
    pub(super) snapshots: BTreeSet<NodeId>,
    /// Whether the time of waiting begins anew. It does when the batch is written: a disk may take longer than the wait.
    pub(super) timer: bool,
    /// The round of the message that the step answers.
    pub(super) echo: u64,
    /// A snapshot that takes the place of the views.
    pub(super) installed: Option<Snapshot>,
}

impl Agreement {
    /// The end of every step: what `noraft` has asked for is written, or done at once if there is nothing to write.
    pub(super) fn conclude(&mut self, now: Nanos, mut held: Held, cx: &mut Cx<'_>) {
        let actions = core::mem::take(self.node.actions_mut());
        self.leave_office(cx);
        let batch = self.batch(&actions, held.installed.clone());
        held.broadcast = actions.broadcast_message;
        held.sends = actions.send_messages;
        held.snapshots = actions.install_snapshots;
        held.timer = actions.set_election_timeout;
        if batch.is_empty() {
            self.settle(now, held, cx);
        } else {
            self.persist(batch, held, cx);
        }
    }

    pub(super) fn persist(&mut self, batch: Batch, held: Held, cx: &mut Cx<'_>) {
        assert!(self.is_idle(), "one batch at a time");
        self.pen = Pen::Writing(Box::new(held));
        cx.events.push(Event::Persist(batch));
    }

    fn batch(&self, actions: &Actions, snapshot: Option<Snapshot>) -> Batch {
        let term = self.term();
        let changed = actions.save_current_term || actions.save_voted_for;
        let ballot = changed.then(|| Ballot { term, vote: self.node.voted_for().map(mirror::member_id) });
        let whole = |entries: &LogEntries| mirror::append(entries, &self.commands, usize::MAX);
        Batch { ballot, snapshot, append: actions.append_log_entries.as_ref().map(whole) }
    }

    /// The next heartbeat of a leader, or how long anybody else waits for one.
    pub(super) fn arm(&mut self, now: Nanos, cx: &mut Cx<'_>) {
        let wait = if self.node.role().is_leader() {
            self.pace.heartbeat
        } else {
            self.pace.election + (cx.choose)(self.pace.election.max(1))
        };
        self.deadline = now + wait;
    }

    /// Who no longer leads knows it at once, whatever there is to be written.
    pub(super) fn leave_office(&mut self, cx: &mut Cx<'_>) {
        if matches!(self.office, Office::Leader(_)) && !self.node.role().is_leader() {
            self.office = Office::NONE;
            cx.events.push(Event::Follows);
        }
    }

    /// What a step comes to, now that everything it depends on is on disk.
    pub(super) fn settle(&mut self, now: Nanos, mut held: Held, cx: &mut Cx<'_>) {
        if let Some(snapshot) = held.installed.take() {
            self.install(snapshot, cx);
        }
        if self.node.role().is_leader() && self.office.leadership().is_none() {
            let leadership = Leadership::new(now, self.first_of_own_term(), self.round);
            self.round += 1;
            self.office = Office::Leader(leadership);
            cx.events.push(Event::Leads);
        }
        if held.timer {
            self.arm(now, cx);
        }
        let before = self.applied;
        if !self.apply(cx) {
            return;
        }
        self.lead_on(now, before < self.applied, &mut held);
        self.flush(now, held, cx);
        self.confirm_rounds();
        self.compact(cx);
    }

    /// Where the entry stands by which this leader began its term.
    fn first_of_own_term(&self) -> u64 {
        let entries = self.node.log().entries();
        let own = LogEntry::Term(self.node.current_term());
        let (first, _) = entries.iter_with_positions().find(|(_, entry)| *entry == own).expect("a leader begins by it");
        first.index.get()
    }

    fn install(&mut self, snapshot: Snapshot, cx: &mut Cx<'_>) {
        let known = self.views.take();
        self.applied = snapshot.position.index;
        self.commands = self.commands.split_off(&(self.applied + 1));
        self.views.clone_from(&snapshot.views);
        self.base = snapshot;
        let views = self.views.as_ref().expect("what is installed has views");
        match known {
            Some(known) if known == *views => {}
            Some(known) if known.number() == views.number() => cx.events.push(Event::Pledged),
            Some(_) | None => cx.events.push(Event::Viewed(views.view())),
        }
    }

    /// What is agreed on becomes views.
    fn apply(&mut self, cx: &mut Cx<'_>) -> bool {
        while self.applied < self.node.commit_index().get() {
            let index = self.applied + 1;
            let entries = self.node.log().entries();
            let at = LogIndex::new(index);
            if entries.get_entry(at) == Some(LogEntry::Command) {
                let term = entries.get_term(at).map_or(0, |term| term.get());
                let command = &self.commands[&index];
                let Some(views) = &mut self.views else {
                    self.break_down("a command is agreed on, but not what it changes", cx);
                    return false;
                };
                let before = views.number();
                cx.events.push(match views.apply(term, command) {
                    Ok(()) if views.number() == before => Event::Pledged,
                    Ok(()) => Event::Viewed(views.view()),
                    Err(why) => Event::Refused(command.clone(), why),
                });
            }
            self.applied = index;
        }
        true
    }

    /// What a leader adds: it tells at once that something was agreed on, and sends out a round that was begun meanwhile.
    fn lead_on(&mut self, now: Nanos, has_applied: bool, held: &mut Held) {
        let Some(leadership) = self.office.leadership_mut() else { return };
        if leadership.since.is_none() && self.applied >= leadership.first {
            leadership.since = Some(now);
        }
        leadership.proposed.take_if(|index| *index <= self.applied);
        let is_due = has_applied || leadership.sent < self.round;
        if let Some(RaftMessage::AppendEntriesCall { commit_index, .. }) = &mut held.broadcast {
            *commit_index = self.node.commit_index();
        } else if is_due {
            self.node.heartbeat();
            held.broadcast = self.node.actions_mut().broadcast_message.take();
            // Not the timer: with rounds more often than heartbeats it would never fire, and a leader never look who answers.
            *self.node.actions_mut() = Actions::default();
        }
        if let Some(leadership) = self.office.leadership_mut() {
            leadership.sent = self.round;
        }
    }

    fn flush(&mut self, now: Nanos, held: Held, cx: &mut Cx<'_>) {
        let mut messages = Vec::new();
        if let Some(message) = &held.broadcast {
            let only_voters = matches!(message, RaftMessage::RequestVoteCall { .. });
            for peer in self.node.peers().map(mirror::member_id) {
                if !only_voters || self.config().is_voter(peer) {
                    messages.push((peer, self.mirrored(message, held.echo)));
                }
            }
        }
        for (to, message) in &held.sends {
            messages.push((mirror::member_id(*to), self.mirrored(message, held.echo)));
        }
        for to in held.snapshots.into_iter().map(mirror::member_id) {
            messages.extend(self.snapshot_for(now, to).map(|message| (to, message)));
        }
        cx.events.extend(messages.into_iter().map(|(to, message)| Event::Send(to, message)));
    }

    fn mirrored(&self, message: &RaftMessage, echo: u64) -> Message {
        match message {
            RaftMessage::RequestVoteCall { term, last_position, .. } => {
                Message::Vote { term: term.get(), last: mirror::position(*last_position) }
            }
            RaftMessage::RequestVoteReply { term, vote_granted, .. } => {
                Message::VoteAnswer { term: term.get(), granted: *vote_granted }
            }
            RaftMessage::AppendEntriesCall { term, commit_index, entries, .. } => Message::Append {
                term: term.get(),
                commit: commit_index.get(),
                append: mirror::append(entries, &self.commands, MOST_ENTRIES),
                round: self.office.leadership().map_or(0, |leadership| leadership.sent),
            },
            RaftMessage::AppendEntriesReply { term, last_position, .. } => {
                Message::AppendAnswer { term: term.get(), last: mirror::position(*last_position), round: echo }
            }
        }
    }

    /// A snapshot for one that lacks what is no longer in the log; not again before it can have been answered.
    fn snapshot_for(&mut self, now: Nanos, to: MemberId) -> Option<Message> {
        let (term, snapshot) = (self.term(), self.base.clone());
        let leadership = self.office.leadership_mut()?;
        let sent = leadership.snapshots.get(&to);
        if sent.is_some_and(|sent| now < sent + self.pace.election) {
            return None;
        }
        leadership.snapshots.insert(to, now);
        Some(Message::Snapshot { term, snapshot, round: leadership.sent })
    }

    /// After enough entries the views stand for them, on disk and in memory.
    fn compact(&mut self, cx: &mut Cx<'_>) {
        let is_enough = self.applied - self.base.position.index >= self.pace.compaction;
        // Who was put back by check-quorum knows less to be agreed on than it has applied; it will again.
        if !is_enough || self.node.commit_index().get() < self.applied {
            return;
        }
        let there = self.node.log().get_position_and_config(LogIndex::new(self.applied));
        let (position, config) = there.map(|(at, config)| (at, config.clone())).expect("what is applied is in the log");
        let snapshot = Snapshot {
            position: mirror::position(position),
            config: mirror::config(&config),
            views: self.views.clone(),
        };
        assert!(self.node.handle_snapshot_installed(position, config), "what is agreed on can be taken out of the log");
        self.commands = self.commands.split_off(&(self.applied + 1));
        self.base = snapshot.clone();
        self.persist(Batch { snapshot: Some(snapshot), ..Batch::default() }, Held::default(), cx);
    }

    pub(super) fn break_down(&mut self, why: &'static str, cx: &mut Cx<'_>) {
        self.pen = Pen::Broken;
        self.waiting.clear();
        if matches!(self.office, Office::Leader(_)) {
            cx.events.push(Event::Follows);
        }
        self.office = Office::NONE;
        cx.events.push(Event::Broken(why));
    }
}
