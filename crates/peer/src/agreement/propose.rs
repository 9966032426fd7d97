//! What a leader does for those above: it proposes, changes who has a vote, and confirms that it leads.

use alloc::{collections::BTreeSet, vec::Vec};

use super::{Agreement, Config, Cx, Nanos, mirror, office::Leadership, step::Held};
use crate::{
    identity::MemberId,
    views::{Change, Command},
};

impl Agreement {
    /// Proposes the step to the next view. `false` if it cannot be now: this member does not lead, or does not yet know all
    /// that was agreed on before it did; another step is under way; something is being written. Ask again after the next
    /// message or `on_written`.
    pub fn propose(&mut self, now: Nanos, changes: Vec<Change>, cx: &mut Cx<'_>) -> bool {
        self.clock = now;
        let term = self.term();
        let is_free = self.established().is_some_and(|leadership| leadership.proposed.is_none());
        let Some(views) = self.views.as_ref().filter(|_| is_free) else { return false };
        let command = Command { view: views.number(), term, changes };
        let position = self.node.propose_command();
        assert!(!position.is_invalid(), "a leader can propose");
        let index = position.index.get();
        self.commands.insert(index, command);
        if let Some(leadership) = self.office.leadership_mut() {
            leadership.proposed = Some(index);
        }
        self.conclude(now, Held::default(), cx);
        true
    }

    /// Whether a proposal of this leader is under way.
    #[must_use]
    pub fn is_proposing(&self) -> bool {
        self.office.leadership().is_some_and(|leadership| leadership.proposed.is_some())
    }

    /// One step towards these voters and non-voters: who is missing comes first without a vote; when all who are to have
    /// one have caught up, the voters are changed; then who is not wanted is dropped. `false` if there is nothing to do, or
    /// nothing to be done now.
    pub fn reconfigure(
        &mut self,
        now: Nanos,
        voters: &BTreeSet<MemberId>,
        non_voters: &BTreeSet<MemberId>,
        cx: &mut Cx<'_>,
    ) -> bool {
        self.clock = now;
        if self.established().is_none() || voters.is_empty() || !self.is_config_agreed_on() {
            return false;
        }
        let newcomers = voters.difference(&self.config().voters).copied().collect();
        let are_ready = self.are_there(now, newcomers, cx);
        let Some(next) = self.next_config(voters, non_voters, are_ready).filter(|_| self.is_idle()) else {
            return false;
        };
        let position = self.node.propose_config(mirror::cluster_config(&next));
        assert!(!position.is_invalid(), "a leader can change a configuration that is not being changed");
        self.conclude(now, Held::default(), cx);
        true
    }

    /// Whether all who are to be given a vote have caught up, and have answered since that was wished for. What comes late from
    /// one that is gone is no answer to that: with its vote the cluster would be gone too.
    fn are_there(&mut self, now: Nanos, newcomers: BTreeSet<MemberId>, cx: &mut Cx<'_>) -> bool {
        let caught_up = newcomers.iter().all(|id| self.caught_up(*id));
        let Some(leadership) = self.office.leadership_mut() else { return false };
        if !caught_up {
            leadership.wished = None;
            return false;
        }
        if let Some((wished, round)) = &leadership.wished
            && *wished == newcomers
        {
            return newcomers.iter().all(|id| *id == self.me || leadership.round_of(*id) >= *round);
        }
        if !newcomers.is_empty()
            && let Some(round) = self.confirm(now, cx)
            && let Some(leadership) = self.office.leadership_mut()
        {
            leadership.wished = Some((newcomers, round));
            return false;
        }
        true
    }

    fn next_config(
        &self,
        voters: &BTreeSet<MemberId>,
        non_voters: &BTreeSet<MemberId>,
        are_ready: bool,
    ) -> Option<Config> {
        let config = self.config();
        let missing: BTreeSet<MemberId> =
            voters.union(non_voters).copied().filter(|id| !config.contains(*id)).collect();
        if !missing.is_empty() {
            let non_voters = config.non_voters.union(&missing).copied().collect();
            return Some(Config { non_voters, ..config });
        }
        if config.voters != *voters {
            let non_voters = config.non_voters.difference(voters).copied().collect();
            return are_ready.then(|| Config { voters: config.voters, new_voters: voters.clone(), non_voters });
        }
        let wanted: BTreeSet<MemberId> = config.non_voters.intersection(non_voters).copied().collect();
        (wanted != config.non_voters).then_some(Config { non_voters: wanted, ..config })
    }

    /// Whether no change of the voters is under way.
    fn is_config_agreed_on(&self) -> bool {
        let there = self.node.log().get_position_and_config(self.node.commit_index());
        let latest = self.node.config();
        !latest.is_joint_consensus() && there.is_some_and(|(_, agreed)| agreed == latest)
    }

    /// Whether a member has all that is agreed on, and has lately said so. Only a leader knows.
    #[must_use]
    pub fn caught_up(&self, id: MemberId) -> bool {
        let Some(leadership) = self.office.leadership() else { return false };
        let has_all = self.node.follower_match_index(mirror::node_id(id)) >= Some(self.node.commit_index());
        id == self.me || has_all && self.clock < leadership.heard(id) + 2 * self.pace.election
    }

    /// Begins a round of confirmation, or joins one that is not yet sent: its number. `None` if this member does not lead.
    /// A round of a leader that is not yet established proves as much, but see [`super::Leading::since`].
    pub fn confirm(&mut self, now: Nanos, cx: &mut Cx<'_>) -> Option<u64> {
        self.clock = now;
        let leadership = self.office.leadership()?;
        if leadership.sent == self.round {
            self.round += 1;
        }
        let round = self.round;
        if self.is_idle() {
            // The round is behind what was sent, so that the end of this step sends it.
            self.conclude(now, Held::default(), cx);
        }
        Some(round)
    }

    /// The latest round of this leadership that a majority has answered; 0 if this member does not lead. When the round
    /// began, nobody had been elected in a later term. Whoever waits for one forgets it at [`super::Event::Follows`].
    #[must_use]
    pub fn confirmed(&self) -> u64 {
        self.office.leadership().map_or(0, |leadership| leadership.confirmed)
    }

    /// Whether a round is one of this leadership, and a majority has answered it.
    #[must_use]
    pub fn is_confirmed(&self, round: u64) -> bool {
        let is_in = |leadership: &Leadership| leadership.rounds_before < round && round <= leadership.confirmed;
        self.office.leadership().is_some_and(is_in)
    }

    pub(super) fn confirm_rounds(&mut self) {
        let config = self.config();
        let me = self.me;
        let Some(leadership) = self.office.leadership_mut() else { return };
        let round = config.most(|id| if id == me { leadership.sent } else { leadership.round_of(id) });
        leadership.confirmed = leadership.confirmed.max(round);
    }

    /// A leader that knows all that was agreed on before, and has nothing to wait for.
    fn established(&self) -> Option<&Leadership> {
        self.office.leadership().filter(|leadership| leadership.since.is_some() && self.is_idle())
    }
}
