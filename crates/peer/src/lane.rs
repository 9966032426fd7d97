//! A shard with its links: between two members nothing is lost and nothing comes twice, whatever the network does.
//!
//! TCP alone is not enough: a frame that is lost when a connection breaks is a lost token, one that is sent twice a second
//! grant. So every message has a number within (view, pair, shard), and is sent again until it is acknowledged.

use alloc::{collections::BTreeMap, vec::Vec};

use vez_algorithms::{
    NodeId,
    link::{Link, Service},
};

use crate::{
    frame::Item,
    shard::{Effect, Effects, Message, Nanos, Shard},
    view::View,
};

/// Room for so many effects is kept for the next time.
const MOST_ROOM: usize = 64;

/// One part of the lock table, and its links to the others.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub shard: Shard,
    links: BTreeMap<NodeId, Link<Message>>,
    /// What is to be sent with the next frames.
    outbox: BTreeMap<NodeId, Vec<Item>>,
    /// How many tokens of locks were passed on.
    pub handovers: u64,
    /// Room for effects, used again and again.
    room: Effects,
    /// When the next thing is due. Clients come often, and find nothing changed in all shards but one.
    due: Option<Nanos>,
}

impl Lane {
    pub(crate) fn new(shard: Shard) -> Self {
        Self { shard, links: BTreeMap::new(), outbox: BTreeMap::new(), handovers: 0, room: Vec::new(), due: None }
    }

    /// A new view: nothing of the old one is sent any more.
    pub(crate) fn install(&mut self, now: Nanos, view: View, me: NodeId) -> Effects {
        self.outbox.clear();
        let others = NodeId::all(view.members.len()).filter(|node| *node != me);
        self.links = others.map(|node| (node, Link::new(Service::Reliable))).collect();
        self.run(now, |shard, out| shard.install(now, view, me, out))
    }

    /// Something happens to the shard. What it sends goes through the links; the rest comes back.
    pub(crate) fn run(&mut self, now: Nanos, happen: impl FnOnce(&mut Shard, &mut Effects)) -> Effects {
        let mut effects = core::mem::take(&mut self.room);
        happen(&mut self.shard, &mut effects);
        let rest = if effects.iter().any(|effect| matches!(effect, Effect::Send(..))) {
            self.send(now, effects)
        } else {
            effects
        };
        self.look_ahead();
        rest
    }

    /// What came back was carried out: the next time there is room for as much.
    pub(crate) fn reuse(&mut self, room: Effects) {
        assert!(room.is_empty(), "nothing is lost");
        if room.capacity() <= MOST_ROOM {
            self.room = room;
        }
    }

    /// Hands what is to be sent to the links; the rest comes back.
    fn send(&mut self, now: Nanos, effects: Effects) -> Effects {
        let mut rest = Vec::new();
        for effect in effects {
            if let Effect::Send(to, message) = effect {
                let link = self.links.get_mut(&to).expect("a shard sends to others of its view only");
                let number = link.send(now, &message);
                self.handovers += u64::from(matches!(message, Message::Lock { counter: Some(_), .. }));
                self.outbox.entry(to).or_default().push(Item::Message(number, message));
            } else {
                rest.push(effect);
            }
        }
        rest
    }

    /// Something comes from another member of the view.
    pub(crate) fn receive(&mut self, now: Nanos, from: NodeId, items: Vec<Item>) -> Effects {
        let mut rest = Vec::new();
        for item in items {
            let Some(link) = self.links.get_mut(&from) else { break };
            match item {
                Item::Ack(number) => link.acknowledged(now, number),
                Item::Message(number, message) => {
                    let Ok(arrival) = link.receive(number, message) else { continue };
                    if arrival.acknowledge {
                        self.outbox.entry(from).or_default().push(Item::Ack(number));
                    }
                    for message in arrival.messages {
                        rest.extend(self.run(now, |shard, out| shard.message(now, from, message, out)));
                    }
                }
            }
        }
        self.look_ahead();
        rest
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now: Nanos) -> Effects {
        for (node, link) in &mut self.links {
            let again = link.resend(now);
            if !again.is_empty() {
                let items = again.into_iter().map(|(number, message)| Item::Message(number, message));
                self.outbox.entry(*node).or_default().extend(items);
            }
        }
        self.run(now, |shard, out| shard.tick(now, out))
    }

    /// What is to be sent, if there is anything.
    pub(crate) fn take_outbox(&mut self) -> Option<BTreeMap<NodeId, Vec<Item>>> {
        (!self.outbox.is_empty()).then(|| core::mem::take(&mut self.outbox))
    }

    /// When the next thing is due.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        self.due
    }

    fn look_ahead(&mut self) {
        self.due = self.links.values().filter_map(Link::deadline).chain(self.shard.deadline()).min();
    }

    /// How many messages have not been acknowledged.
    pub(crate) fn unacknowledged(&self) -> usize {
        self.links.values().map(Link::unacknowledged).sum()
    }

    /// Those who have not acknowledged something since that moment or longer. That one is not settled says nothing of its link:
    /// it may wait for somebody who is dead.
    pub(crate) fn unheard_since(&self, moment: Nanos) -> impl Iterator<Item = NodeId> + '_ {
        let silent = move |(node, link): (&NodeId, &Link<Message>)| {
            link.unanswered_since().is_some_and(|since| since <= moment).then_some(*node)
        };
        self.links.iter().filter_map(silent)
    }
}
