//! What a keeper says to all nodes about what it has, and what one of them answers.

use vez_peer::{
    ask::{Failure, RequestId},
    keep::{Kept, Wish},
    name::Name,
    peer::Call,
    shard::Nanos,
};

use super::{Deed, Set};
use crate::world::{Event, World};

/// A word that comes to a node.
pub(crate) struct Word {
    keeper: usize,
    epoch: u64,
    machine: usize,
    name: Name,
    value: Vec<u8>,
    wish: Wish,
    /// Until when the keeper has it then, on its own clock, if it is done.
    until: Nanos,
}

impl World<'_> {
    /// The word goes to all: whoever gets it passes it on.
    pub(super) fn send_word(&mut self, keeper: usize, set: &Set, wish: Wish, until: Nanos) {
        let epoch = self.keepers.all[keeper].epoch;
        for machine in 0..self.plan.nodes {
            let (name, value) = (set.name.clone(), set.value.clone());
            let delay = self.word_delay();
            let word = Word { keeper, epoch, machine, name, value, wish, until };
            self.at(self.now + delay, Event::Word(Box::new(word)));
        }
    }

    pub(crate) fn word_arrives(&mut self, word: Word) -> Result<(), String> {
        let Word { keeper, epoch, machine, name, value, wish, until } = word;
        let request = self.next_request();
        self.keepers.asked.insert(request, (keeper, epoch, until));
        self.call(machine, Call::ByValue { request, name, value: Some(value), wish })
    }

    pub(crate) fn word_answered(
        &mut self,
        machine: usize,
        request: RequestId,
        result: Result<Option<Kept>, Failure>,
    ) -> Result<(), String> {
        let Some((keeper, epoch, until)) = self.keepers.asked.remove(&request) else { return Ok(()) };
        if let Ok(Some(kept)) = result {
            self.tell(|| format!("m{machine} tells k{keeper} that it is done: {kept:?}"));
            let delay = self.word_delay();
            self.at(self.now + delay, Event::Keeper(keeper, epoch, Deed::HearLonger(until)));
        }
        Ok(())
    }
}
