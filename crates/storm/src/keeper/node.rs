//! What a node does for a keeper: it locks, has it kept, and answers.

use vez_peer::{
    ask::{Ask, Patience, SessionId},
    fence::Fence,
    peer::{Call, Effect},
};

use super::{Deed, Set};
use crate::{
    plan::MILLISECOND,
    world::{Event, World},
};

/// A SET that a node is about to carry out.
#[derive(Clone)]
pub(crate) struct Order {
    keeper: usize,
    /// Of the keeper, when it sent it.
    epoch: u64,
    machine: usize,
    set: Set,
    /// Once it is granted.
    fence: Option<Fence>,
}

/// What happens at a node for a keeper.
pub(crate) enum Step {
    /// The SET arrives.
    Arrive(Box<Order>),
    /// What was granted is to be kept.
    Keep(SessionId),
    /// The connection by which it came ends.
    Hang(SessionId),
}

impl World<'_> {
    pub(super) fn send_set(&mut self, keeper: usize, machine: usize, set: Set) {
        let epoch = self.keepers.all[keeper].epoch;
        let order = Order { keeper, epoch, machine, set, fence: None };
        let delay = self.word_delay();
        self.at(self.now + delay, Event::Set(Step::Arrive(Box::new(order))));
    }

    /// How long a word takes between a keeper and a node.
    pub(super) fn word_delay(&mut self) -> u64 {
        let most = if self.keepers.chance.one_in(10) { 300 } else { 3 };
        self.keepers.below(most * MILLISECOND)
    }

    pub(crate) fn set_step(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Arrive(order) => self.set_arrives(*order),
            Step::Keep(session) => {
                let request = self.next_request();
                let Some(Order { machine, set, fence: Some(fence), .. }) = self.keepers.orders.get(&session).cloned()
                else {
                    return Ok(());
                };
                let Set { name, value, ttl, .. } = set;
                self.call(machine, Call::Keep { session, request, name, fence, value, ttl })
            }
            Step::Hang(session) => match self.keepers.orders.remove(&session) {
                Some(order) => self.call(order.machine, Call::End(session)),
                None => Ok(()), // It is kept already, and does not end with the connection.
            },
        }
    }

    fn set_arrives(&mut self, order: Order) -> Result<(), String> {
        let machine = order.machine;
        if self.machines[machine].process.is_none() {
            return Ok(());
        }
        let session = SessionId(self.next_request().0);
        let Set { name, request, .. } = order.set.clone();
        self.keepers.orders.insert(session, order);
        if self.keepers.chance.one_in(15) {
            let pause = self.keepers.below(30 * MILLISECOND);
            self.at(self.now + pause, Event::Set(Step::Hang(session)));
        }
        let (ask, patience) = (Ask::Lock, Patience::Try);
        self.law.asked(self.now, machine, request, ask.clone(), patience);
        self.call(machine, Call::Open { session, ttl: None })?;
        self.call(machine, Call::Acquire { session, request, name, ask, patience })
    }

    /// Whether a node says this to what it does for a keeper.
    pub(crate) fn is_of_keeper(&self, session: SessionId) -> bool {
        self.keepers.orders.contains_key(&session)
    }

    pub(crate) fn set_hears(&mut self, session: SessionId, effect: Effect) -> Result<(), String> {
        let Some(order) = self.keepers.orders.get_mut(&session) else { return Ok(()) };
        let machine = order.machine;
        match effect {
            Effect::Granted { fence, .. } => {
                order.fence = Some(fence);
                self.at(self.now, Event::Set(Step::Keep(session)));
            }
            Effect::Kept { .. } => {
                let fence = order.fence;
                self.answer(session, fence);
            }
            Effect::Failed { request, failure, .. } => {
                self.tell(|| format!("m{machine} denies {request:?}: {failure}"));
                self.law.deny(self.now, request, &failure)?;
                self.answer(session, None);
                // Not at once: whatever has just been decided is carried out first.
                self.at(self.now, Event::Bye(machine, session));
            }
            Effect::Ended(_) | Effect::NotOpened { .. } => self.answer(session, None),
            _ => {}
        }
        Ok(())
    }

    /// A node answers, and has nothing more to do with it.
    fn answer(&mut self, session: SessionId, fence: Option<Fence>) {
        let Some(Order { keeper, epoch, .. }) = self.keepers.orders.remove(&session) else { return };
        let delay = self.word_delay();
        self.at(self.now + delay, Event::Keeper(keeper, epoch, Deed::Hear(fence)));
    }

    /// A process is gone, and with it whatever it was about to do for keepers. What it kept is kept.
    pub(crate) fn lose_orders(&mut self, machine: usize) {
        self.keepers.orders.retain(|_, order| order.machine != machine);
    }
}
