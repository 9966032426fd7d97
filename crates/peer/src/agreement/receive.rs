//! What others say.

use noraft::{LogEntries, LogIndex, Message as RaftMessage, Term};

use super::{Agreement, Append, Cx, Entry, Message, Nanos, Position, Snapshot, mirror, office::Office, step::Held};
use crate::identity::MemberId;

const CONTRADICTION: &str = "the leader's log contradicts what is agreed on here";

impl Agreement {
    /// One message, nothing being written.
    pub(super) fn receive(&mut self, now: Nanos, from: MemberId, message: Message, cx: &mut Cx<'_>) {
        let sender = mirror::node_id(from);
        match message {
            Message::PreVote { term, last } => self.on_pre_vote(now, from, term, last, cx),
            Message::PreVoteAnswer { term, granted } => self.on_pre_vote_answer(now, from, term, granted, cx),
            Message::Vote { term, last } => {
                let (term, last_position) = (Term::new(term), mirror::log_position(last));
                self.feed(now, &RaftMessage::RequestVoteCall { from: sender, term, last_position }, cx);
            }
            Message::VoteAnswer { term, granted } => {
                let (term, vote_granted) = (Term::new(term), granted);
                self.feed(now, &RaftMessage::RequestVoteReply { from: sender, term, vote_granted }, cx);
            }
            Message::Append { term, commit, append, round } => {
                self.on_append(now, from, (term, commit, round), append, cx);
            }
            Message::AppendAnswer { term, last, round } => self.on_append_answer(now, from, (term, round), last, cx),
            Message::Snapshot { term, snapshot, round } => self.on_snapshot(now, from, (term, round), snapshot, cx),
        }
    }

    /// A message that needs nothing but the library.
    pub(super) fn feed(&mut self, now: Nanos, message: &RaftMessage, cx: &mut Cx<'_>) {
        if self.hand_over(message, cx) {
            self.conclude(now, Held::default(), cx);
        }
    }

    /// Whether the library could do with it. A new term has no leader yet.
    fn hand_over(&mut self, message: &RaftMessage, cx: &mut Cx<'_>) -> bool {
        let term = self.term();
        if self.node.handle_message(message).is_err() {
            self.break_down(CONTRADICTION, cx);
            return false;
        }
        self.leave_office(cx);
        if self.term() != term {
            self.office = Office::NONE;
        }
        true
    }

    fn on_append(
        &mut self,
        now: Nanos,
        from: MemberId,
        (term, commit, round): (u64, u64, u64),
        mut append: Append,
        cx: &mut Cx<'_>,
    ) {
        if self.views.is_none() {
            // Who knows no views cannot apply entries. It says how far it is, and is sent a snapshot.
            append.entries.clear();
        }
        // An old leader may well have written something else, and is told that it is old.
        if term >= self.term() && self.contradicts(&append) {
            return self.break_down(CONTRADICTION, cx);
        }
        let entries = mirror::log_entries(append.after, &append.entries);
        let (sender, commit_index) = (mirror::node_id(from), LogIndex::new(commit));
        let call = RaftMessage::AppendEntriesCall { from: sender, term: Term::new(term), commit_index, entries };
        if !self.hand_over(&call, cx) {
            return;
        }
        self.follow(now, from, term);
        self.keep_commands(append);
        self.conclude(now, Held { echo: self.echo(term, round), ..Held::default() }, cx);
    }

    /// Whether a leader has something else where this member knows what is agreed on.
    fn contradicts(&self, append: &Append) -> bool {
        let agreed = self.applied.max(self.node.commit_index().get());
        let entries = self.node.log().entries();
        let differs = |at: Position| {
            let known = entries.get_term(LogIndex::new(at.index));
            at.index <= agreed && known.is_some_and(|term| term.get() != at.term)
        };
        differs(append.after) || append.positions().any(differs)
    }

    /// The sender of something that only the leader of a term sends is its leader, unless the term is over.
    fn follow(&mut self, now: Nanos, from: MemberId, term: u64) -> bool {
        let is_followed = self.term() == term && self.node.role().is_follower();
        if is_followed {
            self.office = Office::Follower { leader: Some((from, now)) };
        }
        is_followed
    }

    /// What an answer says of the round. The answer is in this member's term; what came late from an earlier one was perhaps said
    /// by an earlier process of the same leader, which counted its rounds from the beginning too.
    fn echo(&self, term: u64, round: u64) -> u64 {
        if term == self.term() { round } else { 0 }
    }

    /// What the commands say of those entries that the library has taken up.
    fn keep_commands(&mut self, append: Append) {
        let Some(taken) = &self.node.actions().append_log_entries else { return };
        let from = taken.prev_position().index.get() + 1;
        self.commands.split_off(&from);
        let places = append.after.index + 1..;
        for (index, entry) in places.zip(append.entries).filter(|(index, _)| *index >= from) {
            if let Entry::Command(command) = entry {
                self.commands.insert(index, command);
            }
        }
    }

    fn on_append_answer(
        &mut self,
        now: Nanos,
        from: MemberId,
        (term, round): (u64, u64),
        last: Position,
        cx: &mut Cx<'_>,
    ) {
        if term == self.term()
            && let Some(leadership) = self.office.leadership_mut()
        {
            leadership.answered(now, from, round);
        }
        let (sender, last_position) = (mirror::node_id(from), mirror::log_position(last));
        self.feed(now, &RaftMessage::AppendEntriesReply { from: sender, term: Term::new(term), last_position }, cx);
    }

    fn on_snapshot(
        &mut self,
        now: Nanos,
        from: MemberId,
        (term, round): (u64, u64),
        snapshot: Snapshot,
        cx: &mut Cx<'_>,
    ) {
        let cluster = |of: &Snapshot| of.views.as_ref().map(|views| views.cluster);
        if self.base.views.is_some() && cluster(&self.base) != cluster(&snapshot) {
            return;
        }
        // To the library it is a heartbeat of that term, about nothing that this member does not have.
        let entries = LogEntries::new(self.node.log().last_position());
        let (sender, commit_index) = (mirror::node_id(from), LogIndex::ZERO);
        let call = RaftMessage::AppendEntriesCall { from: sender, term: Term::new(term), commit_index, entries };
        if !self.hand_over(&call, cx) {
            return;
        }
        let mut held = Held { echo: self.echo(term, round), ..Held::default() };
        if self.follow(now, from, term) && snapshot.position.index > self.applied {
            if !self.replace_log(&snapshot) {
                return self.break_down(CONTRADICTION, cx);
            }
            held.installed = Some(snapshot);
            let last_position = self.node.log().last_position();
            let answer = RaftMessage::AppendEntriesReply { from: self.node.id(), term: Term::new(term), last_position };
            self.node.actions_mut().send_messages.insert(sender, answer);
        }
        self.conclude(now, held, cx);
    }

    /// Whether the snapshot can stand for the beginning of the log: it is further than what is agreed on here, and has views
    /// that come after ours.
    fn replace_log(&mut self, snapshot: &Snapshot) -> bool {
        let number = |of: &Snapshot| of.views.as_ref().map(|views| views.number());
        let is_later = self.views.as_ref().map(|views| views.number()) <= number(snapshot);
        let (position, config) = (mirror::log_position(snapshot.position), mirror::cluster_config(&snapshot.config));
        is_later && self.node.handle_snapshot_installed(position, config)
    }
}
