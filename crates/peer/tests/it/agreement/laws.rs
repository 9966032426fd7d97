//! What must hold at every step.

use std::collections::BTreeMap;

use vez_peer::{
    agreement::{Agreement, Event, MOST_ENTRIES, Message, SNAPSHOT_AFTER},
    identity::MemberId,
    view::View,
};

#[derive(Default)]
pub(crate) struct Laws {
    step: u64,
    incarnations: u64,
    /// Who leads a term, and since which step.
    leaders: BTreeMap<u64, (MemberId, u64)>,
    /// Every view that anybody has ever seen.
    views: BTreeMap<u64, View>,
    /// The view that each process has last seen.
    latest: BTreeMap<MemberId, u64>,
    /// Rounds that a process waits for: in which term and at which step they began.
    rounds: BTreeMap<(MemberId, u64), (u64, u64)>,
    /// How many rounds were confirmed; that none ever is would satisfy every law.
    pub(crate) confirmed: u64,
}

impl Laws {
    /// Replacing a process needs a higher number each time, so no two steps are equal.
    pub(crate) fn next_incarnation(&mut self) -> u64 {
        self.incarnations += 1;
        self.incarnations
    }

    pub(crate) fn highest_view(&self) -> u64 {
        self.views.last_key_value().map_or(0, |(number, _)| *number)
    }

    pub(crate) fn terms_led(&self) -> usize {
        self.leaders.len()
    }

    pub(crate) fn crashed(&mut self, id: MemberId) {
        self.latest.remove(&id);
        self.forget_rounds(id);
    }

    fn forget_rounds(&mut self, id: MemberId) {
        self.rounds.retain(|(who, _), _| *who != id);
    }

    pub(crate) fn saw(&mut self, id: MemberId, event: &Event) {
        match event {
            Event::Viewed(view) => {
                let known = self.views.entry(view.number).or_insert_with(|| view.clone());
                assert_eq!(known, view, "{id} sees another view of that number");
                let before = self.latest.insert(id, view.number);
                assert!(before.is_none_or(|before| before < view.number), "{id} goes back from {before:?}");
            }
            Event::Refused(command, why) => panic!("{id}: {command:?} was made for the view that is: {why:?}"),
            Event::Follows => self.forget_rounds(id),
            Event::Send(_, Message::Append { append, .. }) => assert!(append.entries.len() <= MOST_ENTRIES),
            Event::Send(..) | Event::Persist(_) | Event::Pledged | Event::Leads | Event::Broken(_) => {}
        }
    }

    /// The member has asked for a round.
    pub(crate) fn asked(&mut self, id: MemberId, process: &Agreement, round: u64) {
        self.step += 1;
        // It may join one that was begun before; then what it is told must hold from now on.
        self.rounds.insert((id, round), (process.term(), self.step));
        self.stepped(id, process);
    }

    pub(crate) fn stepped(&mut self, id: MemberId, process: &Agreement) {
        self.step += 1;
        if let Some(leading) = process.leads() {
            let (leader, _) = *self.leaders.entry(leading.term).or_insert((id, self.step));
            assert_eq!(leader, id, "two lead term {}", leading.term);
        }
        let length = process.log_length() as u64;
        assert!(length < 4 * SNAPSHOT_AFTER, "{id} has {length} entries");
        let asked: Vec<u64> = self.rounds.range((id, 0)..=(id, u64::MAX)).map(|((_, round), _)| *round).collect();
        for round in asked.into_iter().filter(|round| process.is_confirmed(*round)) {
            let (term, began) = self.rounds.remove(&(id, round)).expect("it was asked for");
            assert!(process.confirmed() >= round && process.leads().is_some_and(|leading| leading.term == term));
            let later = self.leaders.range(term + 1..).find(|(_, (_, since))| *since < began);
            assert_eq!(later, None, "{id} led no longer when round {round} of term {term} began");
            self.confirmed += 1;
        }
    }
}
