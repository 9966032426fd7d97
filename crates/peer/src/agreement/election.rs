//! When there is no leader, and when one should no longer be: pre-vote and check-quorum.
//!
//! Who has not heard of a leader for its timeout asks all voters whether they would elect it in the next term. They would if
//! they have not heard of a leader either, and have no longer log. Only with a majority of such answers does it stand; so one
//! who was cut off, or never hears the leader, does not end a term that works for the others.
//!
//! A leader that no majority has answered for as long as the longest timeout goes back to being a follower. Otherwise one
//! that can be heard but hears nothing would lead for ever, and nothing would ever be agreed on.

use alloc::{collections::BTreeSet, vec::Vec};

use noraft::{Actions, ClusterConfig, Log, LogEntry, Message as RaftMessage, Node, Term};

use super::{Agreement, Append, Batch, Cx, Event, Message, Nanos, Position, mirror, office::Office, step::Held};
use crate::identity::MemberId;

impl Agreement {
    /// The deadline has passed.
    pub(super) fn time_out(&mut self, now: Nanos, cx: &mut Cx<'_>) {
        if self.office.leadership().is_some() {
            if self.is_deserted(now) {
                self.step_down(now, cx);
            } else {
                self.node.heartbeat();
                self.conclude(now, Held::default(), cx);
            }
        } else if self.config().is_voter(self.me) {
            self.ask(now, cx);
        } else {
            self.arm(now, cx);
            self.forget_removal(cx);
        }
    }

    fn is_deserted(&self, now: Nanos) -> bool {
        let Some(leadership) = self.office.leadership() else { return false };
        let heard = |id| if id == self.me { now } else { leadership.heard(id) };
        self.config().most(heard) + 2 * self.pace.election <= now
    }

    /// The library knows of no such thing: it is started again with the same term, vote and log, all of which are on disk.
    fn step_down(&mut self, now: Nanos, cx: &mut Cx<'_>) {
        self.start_library_again(self.node.log().clone());
        self.arm(now, cx);
        self.conclude(now, Held::default(), cx);
    }

    /// A leader that is to lose its vote writes the entry that says so in its own log first. If it fails before anybody else
    /// has it, its log is longer than anybody's, who might need its vote, and the library lets it stand no more. So it goes
    /// back to before that entry, and stands when it has next waited in vain. Nothing can have depended on its copy: from that
    /// entry on only the votes of others count, until an entry says otherwise, and it had that one before it was given a
    /// vote. Only in a term in which it follows another it must not: that one may know the end of its log, and takes a log
    /// that has become shorter for an old answer.
    fn forget_removal(&mut self, cx: &mut Cx<'_>) {
        if self.node.voted_for().is_some_and(|other| other != self.node.id()) {
            return;
        }
        let Some(index) = self.removal() else { return };
        let log = self.node.log();
        let mut entries = log.entries().clone();
        entries.truncate((index - 1 - log.snapshot_position().index.get()) as usize);
        let append = Append { after: mirror::position(entries.last_position()), entries: Vec::new() };
        self.start_library_again(Log::new(log.snapshot_config().clone(), entries));
        self.persist(Batch { append: Some(append), ..Batch::default() }, Held::default(), cx);
    }

    /// Where the entry stands, not known to be agreed on, by which this member has lost its vote.
    fn removal(&self) -> Option<u64> {
        let (log, me) = (self.node.log(), self.node.id());
        let is_voter = |config: &ClusterConfig| config.voters.contains(&me) || config.new_voters.contains(&me);
        let mut was_voter = is_voter(log.snapshot_config());
        let mut removal = None;
        for (position, entry) in log.entries().iter_with_positions() {
            match entry {
                LogEntry::ClusterConfig(config) if config.contains(me) => {
                    (was_voter, removal) = (is_voter(&config), None);
                }
                LogEntry::ClusterConfig(_) => removal = removal.or(Some(position.index.get())),
                LogEntry::Term(_) | LogEntry::Command => {}
            }
        }
        let agreed = self.applied.max(self.node.commit_index().get());
        removal.filter(|index| was_voter && *index > agreed)
    }

    fn start_library_again(&mut self, log: Log) {
        assert!(self.is_idle() && self.node.actions().is_empty(), "what is in memory is on disk");
        let (term, vote) = (self.node.current_term(), self.node.voted_for());
        self.node = Node::restart(self.node.id(), term, vote, log);
        // All that it asks for is that the time of waiting begins anew.
        *self.node.actions_mut() = Actions::default();
    }

    /// Would they vote for me?
    fn ask(&mut self, now: Nanos, cx: &mut Cx<'_>) {
        self.office = Office::Asking { granted: BTreeSet::from([self.me]) };
        self.arm(now, cx);
        let (term, last) = (self.term() + 1, self.last());
        for voter in self.config().all_voters().filter(|voter| *voter != self.me) {
            cx.events.push(Event::Send(voter, Message::PreVote { term, last }));
        }
        self.stand_if_wanted(now, cx);
    }

    fn stand_if_wanted(&mut self, now: Nanos, cx: &mut Cx<'_>) {
        let Office::Asking { granted } = &self.office else { return };
        if self.config().is_majority(|id| granted.contains(&id)) {
            self.office = Office::Candidate;
            self.node.handle_election_timeout();
            self.conclude(now, Held::default(), cx);
        }
    }

    pub(super) fn on_pre_vote(&mut self, now: Nanos, from: MemberId, term: u64, last: Position, cx: &mut Cx<'_>) {
        let is_led = match &self.office {
            Office::Follower { leader } => leader.is_some_and(|(_, heard)| now < heard + self.pace.election),
            Office::Asking { .. } | Office::Candidate => false,
            Office::Leader(_) => true,
        };
        let granted = !is_led && term > self.term() && last >= self.last();
        // A refusal tells the term of this member: perhaps only the one who asks has a log that can win, and a term too low.
        let term = if granted { term } else { self.term() };
        cx.events.push(Event::Send(from, Message::PreVoteAnswer { term, granted }));
    }

    pub(super) fn on_pre_vote_answer(
        &mut self,
        now: Nanos,
        from: MemberId,
        term: u64,
        was_granted: bool,
        cx: &mut Cx<'_>,
    ) {
        let own = self.term();
        if !was_granted && term > own {
            let (from, term) = (mirror::node_id(from), Term::new(term));
            self.feed(now, &RaftMessage::RequestVoteReply { from, term, vote_granted: false }, cx);
        } else if let Office::Asking { granted } = &mut self.office
            && was_granted
            && term == own + 1
        {
            granted.insert(from);
            self.stand_if_wanted(now, cx);
        }
    }
}
