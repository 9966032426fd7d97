//! One node, and what it needs of the world: links to the others, timers, chance, a logical clock.
//!
//! A [`Host`] never waits and reads no clock. Whoever drives it says what time it is, hands it what arrives, and lends it a
//! [`Wire`] to send on.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use serde_json::Value;
use vez_algorithms::{
    Clock, Heard, NodeId,
    link::{Labour, Link, Nanos, Service},
};
use vez_lab::random::{Purpose, Stream};

use crate::{
    clock::{nanos, seconds},
    event_log::EventLog,
    frame::{self, Body, Malformed},
    node::{Input, Node, Timer},
};

/// How many delays are kept: a sample of all.
const DELAYS: usize = 4096;

/// Somewhere to send frames.
pub(crate) trait Wire {
    /// Sends a frame to another node. It may get lost.
    fn send(&mut self, to: NodeId, body: Body);
}

/// What is the same for all nodes of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Circumstances {
    /// How many nodes there are.
    pub(crate) nodes: usize,
    /// What the links owe the algorithm.
    pub(crate) service: Service,
    /// How likely it is that a frame gets lost, on top of what the network loses.
    pub(crate) loss: f64,
    /// Where all randomness comes from.
    pub(crate) seed: u64,
    /// When the run began.
    pub(crate) epoch: Nanos,
    /// Whether messages say when they were sent: it is measured how long they take.
    pub(crate) stamps: bool,
}

/// A message with what the links know about it.
#[derive(Clone, PartialEq, Debug)]
struct Parcel {
    clock: Clock,
    at: Option<Nanos>,
    says: Value,
}

impl Parcel {
    fn body(self, number: u64) -> Body {
        Body::Message { number, clock: self.clock, at: self.at, says: self.says }
    }
}

/// A message whose turn it is.
pub(crate) struct Delivery {
    /// Who sent it.
    pub(crate) from: NodeId,
    parcel: Parcel,
}

/// Why a node cannot go on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Breach {
    /// A peer did what the algorithm does not allow.
    #[error("{0} objects: {1}")]
    Objection(NodeId, &'static str),
    /// The algorithm itself did.
    #[error("an assertion failed at {0}: {1}")]
    Assertion(NodeId, String),
    /// A message is meant for nobody.
    #[error("{0} sends to {1}, which does not take part")]
    Nobody(NodeId, NodeId),
}

/// What a node has done.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Deeds {
    /// Messages sent, by their kind.
    pub(crate) sent: BTreeMap<String, u64>,
    /// Messages that the algorithm received.
    pub(crate) received: u64,
    /// Frames that were lost on purpose.
    pub(crate) lost: u64,
    /// What the links had to do.
    pub(crate) labour: Labour,
    /// How long messages took until the algorithm had them, in seconds: a sample.
    pub(crate) delays: Vec<f64>,
    /// How long the slowest took.
    pub(crate) slowest: f64,
    /// How many timers fired, and how late in all.
    pub(crate) fired: u64,
    pub(crate) late: Nanos,
}

impl Deeds {
    fn count(&mut self, kind: &str) {
        match self.sent.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(self.sent.insert(kind.to_owned(), 1)),
        }
    }
}

/// One node, and all that it needs.
pub(crate) struct Host {
    node: Box<dyn Node>,
    environment: Environment,
}

/// What a node uses: links, timers, random numbers, a logical clock and an event log.
pub(crate) struct Environment {
    pub(crate) me: NodeId,
    pub(crate) choices: Stream,
    pub(crate) event_log: EventLog,
    world: Circumstances,
    links: Vec<Link<Parcel>>,
    timers: BTreeMap<Timer, Nanos>,
    faults: Stream,
    sample: Stream,
    clock: Clock,
    deeds: Deeds,
}

impl Environment {
    /// Since the run began, in seconds.
    pub(crate) fn time(&self, now: Nanos) -> f64 {
        seconds(now.saturating_sub(self.world.epoch))
    }

    /// Sends a message. False if it is lost for ever.
    pub(crate) fn send(
        &mut self,
        now: Nanos,
        to: NodeId,
        kind: &str,
        says: Value,
        wire: &mut dyn Wire,
    ) -> Result<bool, Breach> {
        let link = self.links.get_mut(to.index()).ok_or(Breach::Nobody(self.me, to))?;
        self.deeds.count(kind);
        let parcel = Parcel { clock: self.clock, at: self.world.stamps.then_some(now), says };
        let number = link.send(now, &parcel);
        Ok(self.transmit(to, parcel.body(number), wire) || self.world.service != Service::Once)
    }

    pub(crate) fn set_timer(&mut self, now: Nanos, timer: Timer, after: &Range<Duration>) {
        let share = self.choices.uniform();
        let (low, high) = (after.start.as_secs_f64(), after.end.as_secs_f64());
        self.timers.insert(timer, now + nanos(low + share * (high - low)));
    }

    pub(crate) fn cancel_timer(&mut self, timer: Timer) {
        self.timers.remove(&timer);
    }

    /// Sends a frame, unless it gets lost.
    fn transmit(&mut self, to: NodeId, body: Body, wire: &mut dyn Wire) -> bool {
        if self.world.loss > 0.0 && self.faults.uniform() < self.world.loss {
            self.deeds.lost += 1;
            return false;
        }
        wire.send(to, body);
        true
    }

    /// Each delay has the same chance to be in the sample.
    fn note_delay(&mut self, delay: f64) {
        let deeds = &mut self.deeds;
        deeds.slowest = deeds.slowest.max(delay);
        if deeds.delays.len() < DELAYS {
            deeds.delays.push(delay);
        } else {
            let place = self.sample.below(usize::try_from(deeds.received).unwrap_or(usize::MAX));
            if let Some(kept) = deeds.delays.get_mut(place) {
                *kept = delay;
            }
        }
    }
}

impl Host {
    pub(crate) fn new(me: NodeId, node: Box<dyn Node>, world: Circumstances, event_log: EventLog) -> Self {
        let stream = |purpose| Stream::new(world.seed, 0, me, purpose);
        let environment = Environment {
            me,
            choices: stream(Purpose::Choices),
            event_log,
            world,
            links: vec![Link::new(world.service); world.nodes],
            timers: BTreeMap::new(),
            faults: stream(Purpose::Faults),
            sample: stream(Purpose::Delays),
            clock: 0,
            deeds: Deeds::default(),
        };
        Self { node, environment }
    }

    /// The logical clock: one more for what happens here by itself and for a request, and later than every message that
    /// arrives. Replying, entering and leaving are no events of it.
    pub(crate) fn clock(&self) -> Clock {
        self.environment.clock
    }

    /// Whoever watches.
    pub(crate) fn event_log(&mut self) -> &mut EventLog {
        &mut self.environment.event_log
    }

    /// Lets something happen to the node, and does what it wants done. What its client hears comes back.
    pub(crate) fn happen(&mut self, now: Nanos, input: Input, wire: &mut dyn Wire) -> Result<Vec<Heard>, Breach> {
        if matches!(input, Input::Internal | Input::Ask(_)) {
            self.environment.clock += 1;
        }
        self.node.happen(now, input, &mut self.environment, wire)
    }

    /// A message arrives from another node. What the algorithm is to have now comes back, in order: each is to be
    /// [delivered](Self::deliver) at once.
    pub(crate) fn receive(
        &mut self,
        from: NodeId,
        (number, clock, at): (u64, Clock, Option<Nanos>),
        says: Value,
        wire: &mut dyn Wire,
    ) -> Result<Vec<Delivery>, Malformed> {
        let clock = frame::is_possible(clock)?;
        self.node.understands(&says)?;
        let link = self.environment.links.get_mut(from.index()).ok_or(Malformed::UnknownSender(from))?;
        let arrival = link
            .receive(number, Parcel { clock, at, says })
            .map_err(|_| Malformed::NoFrame(format!("the number {number} is far ahead")))?;
        if arrival.acknowledge {
            self.environment.transmit(from, Body::Ack(number), wire);
        }
        Ok(arrival.messages.into_iter().map(|parcel| Delivery { from, parcel }).collect())
    }

    /// The algorithm gets a message.
    pub(crate) fn deliver(
        &mut self,
        now: Nanos,
        Delivery { from, parcel }: Delivery,
        wire: &mut dyn Wire,
    ) -> Result<Vec<Heard>, Breach> {
        let environment = &mut self.environment;
        environment.deeds.received += 1;
        environment.clock = environment.clock.max(parcel.clock) + 1;
        if let Some(at) = parcel.at {
            environment.note_delay(seconds(now.saturating_sub(at)));
        }
        self.happen(now, Input::Message { from, says: parcel.says }, wire)
    }

    /// Another node has a message of ours.
    pub(crate) fn acknowledged(&mut self, now: Nanos, from: NodeId, number: u64) {
        if let Some(link) = self.environment.links.get_mut(from.index()) {
            link.acknowledged(now, number);
        }
    }

    /// When something is due.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        let timers = self.environment.timers.values().copied();
        timers.chain(self.environment.links.iter().filter_map(Link::deadline)).min()
    }

    /// The timer that is due, if any. It is set no more.
    pub(crate) fn due(&mut self, now: Nanos) -> Option<Input> {
        let environment = &mut self.environment;
        let first = environment.timers.iter().min_by_key(|(_, due)| **due);
        let (timer, due) = first.map(|(timer, due)| (*timer, *due)).filter(|(_, due)| *due <= now)?;
        environment.timers.remove(&timer);
        environment.deeds.fired += 1;
        environment.deeds.late += now - due;
        Some(Input::Timer(timer))
    }

    /// Sends again what has not been acknowledged in time.
    pub(crate) fn resend(&mut self, now: Nanos, wire: &mut dyn Wire) {
        let environment = &mut self.environment;
        for to in NodeId::all(environment.links.len()) {
            for (number, parcel) in environment.links[to.index()].resend(now) {
                environment.transmit(to, parcel.body(number), wire);
            }
        }
    }

    /// Who has not acknowledged something since then or longer.
    pub(crate) fn silent_since(&self, then: Nanos) -> impl Iterator<Item = NodeId> + '_ {
        let is_silent = move |link: &Link<_>| link.unanswered_since().is_some_and(|since| since <= then);
        let links = &self.environment.links;
        NodeId::all(links.len()).filter(move |node| is_silent(&links[node.index()]))
    }

    /// What it has done so far.
    pub(crate) fn deeds(&self) -> Deeds {
        let mut labour = Labour::default();
        self.environment.links.iter().for_each(|link| labour.add(link.labour()));
        Deeds { labour, ..self.environment.deeds.clone() }
    }
}
