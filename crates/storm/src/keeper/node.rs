//! What a node does for a keeper: it locks, keeps it, and answers.

use vez_peer::{
    ask::{Ask, Failure, Patience, RequestId},
    fence::Fence,
    keep,
    peer::Call,
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
}

/// What happens at a node for a keeper.
pub(crate) enum Step {
    /// The SET arrives.
    Arrive(Box<Order>),
    /// The connection by which it came ends.
    Hang(RequestId),
}

impl World<'_> {
    pub(super) fn send_set(&mut self, keeper: usize, machine: usize, set: Set) {
        let epoch = self.keepers.all[keeper].epoch;
        let order = Order { keeper, epoch, machine, set };
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
            Step::Hang(request) => match self.keepers.orders.remove(&request) {
                Some(order) => self.call(order.machine, Call::Cancel { request, name: order.set.name }),
                None => Ok(()), // It was told that it has it, and does not lose it with the connection.
            },
        }
    }

    fn set_arrives(&mut self, order: Order) -> Result<(), String> {
        let machine = order.machine;
        if self.machines[machine].process.is_none() {
            return Ok(());
        }
        let Set { name, value, request, ttl, .. } = order.set.clone();
        let by = format!("k{}", order.keeper).into();
        self.keepers.orders.insert(request, order);
        if self.keepers.chance.one_in(15) {
            let pause = self.keepers.below(30 * MILLISECOND);
            self.at(self.now + pause, Event::Set(Step::Hang(request)));
        }
        self.law.asked(self.now, machine, request, Ask::Lock, Patience::Try);
        self.call(machine, Call::Set(keep::Set { request, name, value, ttl, by }))
    }

    pub(crate) fn set_kept(&mut self, request: RequestId, fence: Fence) {
        if self.keepers.chance.one_in(30) {
            self.at(self.now, Event::Set(Step::Hang(request))); // It cannot be told: the connection has ended just now.
        } else {
            self.answer(request, Some(fence));
        }
    }

    pub(crate) fn set_denied(&mut self, machine: usize, request: RequestId, failure: &Failure) -> Result<(), String> {
        if !self.keepers.orders.contains_key(&request) {
            return Ok(()); // Its connection has ended.
        }
        self.tell(|| format!("m{machine} denies {request:?}: {failure}"));
        self.law.deny(self.now, request, failure)?;
        self.answer(request, None);
        Ok(())
    }

    /// A node answers, and has nothing more to do with it.
    fn answer(&mut self, request: RequestId, fence: Option<Fence>) {
        let Some(Order { keeper, epoch, .. }) = self.keepers.orders.remove(&request) else { return };
        let delay = self.word_delay();
        self.at(self.now + delay, Event::Keeper(keeper, epoch, Deed::Hear(fence)));
    }

    /// A process is gone, and with it whatever it was about to do for keepers. What it kept is kept.
    pub(crate) fn lose_orders(&mut self, machine: usize) {
        self.keepers.orders.retain(|_, order| order.machine != machine);
    }
}
