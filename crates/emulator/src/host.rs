//! One node of an algorithm, and what it needs of the world: links to the others, timers, chance, a logical clock.
//!
//! A [`Host`] never waits and reads no clock. Whoever drives it says what time it is, hands it what arrives, and lends it a
//! [`Wire`] to send on.

use std::collections::BTreeMap;

use vez_algorithms::{
    Clock, CommandOf, Effect, EffectOf, Family, Input, Message, NodeId, OutputOf, Protocol,
    link::{Labour, Link, Nanos, Service},
    step,
};
use vez_lab::{
    quiet,
    random::{Purpose, Stream},
    sim::{Event, Watch},
};

use crate::{
    clock::{nanos, seconds},
    frame::{self, Body, Malformed},
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
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Parcel<M> {
    clock: Clock,
    at: Option<Nanos>,
    message: M,
}

impl<M: Message> Parcel<M> {
    fn body(&self, number: u64) -> Body {
        let says = serde_json::to_value(&self.message).expect("a message has a text");
        Body::Message { number, clock: self.clock, at: self.at, says }
    }
}

/// A message whose turn it is.
pub(crate) struct Delivery<P: Protocol> {
    from: NodeId,
    parcel: Parcel<P::Message>,
}

impl<P: Protocol> Delivery<P> {
    /// Who sent it.
    pub(crate) fn from(&self) -> NodeId {
        self.from
    }

    /// What it says.
    pub(crate) fn message(&self) -> &P::Message {
        &self.parcel.message
    }
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

/// One node.
pub(crate) struct Host<P: Protocol, W> {
    me: NodeId,
    node: P,
    world: Circumstances,
    links: Vec<Link<Parcel<P::Message>>>,
    timers: BTreeMap<P::Timer, Nanos>,
    choices: Stream,
    faults: Stream,
    sample: Stream,
    clock: Clock,
    deeds: Deeds,
    watch: W,
}

impl<P: Protocol, W: Watch<P>> Host<P, W> {
    pub(crate) fn new(me: NodeId, node: P, world: Circumstances, watch: W) -> Self {
        let stream = |purpose| Stream::new(world.seed, 0, me, purpose);
        Self {
            me,
            node,
            world,
            links: vec![Link::new(world.service); world.nodes],
            timers: BTreeMap::new(),
            choices: stream(Purpose::Choices),
            faults: stream(Purpose::Faults),
            sample: stream(Purpose::Delays),
            clock: 0,
            deeds: Deeds::default(),
            watch,
        }
    }

    /// The logical clock: one more for what happens here by itself and for a request, and later than every message that
    /// arrives. Replying, entering and leaving are no events of it.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Whoever watches.
    pub(crate) fn watch(&mut self) -> &mut W {
        &mut self.watch
    }

    /// Lets something happen to the node, and does what it wants done. What its client is told comes back.
    pub(crate) fn happen(
        &mut self,
        now: Nanos,
        input: Input<P>,
        wire: &mut dyn Wire,
    ) -> Result<Vec<OutputOf<P>>, Breach> {
        if matches!(&input, Input::Internal) || matches!(&input, Input::Command(command) if asks::<P>(command)) {
            self.clock += 1;
        }
        let mut effects = Vec::new();
        let mut chosen = Vec::new();
        let choices = &mut self.choices;
        let mut choose = |n: usize| {
            chosen.push(choices.below(n));
            chosen[chosen.len() - 1]
        };
        let seen = self.watch.watches().then(|| input.clone());
        let (me, node) = (self.me, &mut self.node);
        quiet::catch(|| step(me, node, input, &mut effects, &mut choose))
            .map_err(|panic| Breach::Assertion(me, panic))?;
        let time = seconds(now.saturating_sub(self.world.epoch));
        if let Some(input) = seen {
            self.watch.see(time, me, Event::Input(&input, &self.node, &chosen));
        }
        let mut outputs = Vec::new();
        for effect in effects {
            self.watch.see(time, me, Event::Effect(&effect));
            self.carry_out(now, time, effect, &mut outputs, wire)?;
        }
        Ok(outputs)
    }

    fn carry_out(
        &mut self,
        now: Nanos,
        time: f64,
        effect: EffectOf<P>,
        outputs: &mut Vec<OutputOf<P>>,
        wire: &mut dyn Wire,
    ) -> Result<(), Breach> {
        match effect {
            Effect::Send(to, message) => {
                let link = self.links.get_mut(to.index()).ok_or(Breach::Nobody(self.me, to))?;
                self.deeds.count(message.kind());
                let parcel = Parcel { clock: self.clock, at: self.world.stamps.then_some(now), message };
                let number = link.send(now, &parcel);
                if !self.transmit(to, parcel.body(number), wire) && self.world.service == Service::Once {
                    self.watch.see(time, self.me, Event::Lost(to, &parcel.message));
                }
            }
            Effect::SetTimer(timer, after) => {
                let share = self.choices.uniform();
                let (low, high) = (after.start.as_secs_f64(), after.end.as_secs_f64());
                self.timers.insert(timer, now + nanos(low + share * (high - low)));
            }
            Effect::CancelTimer(timer) => {
                self.timers.remove(&timer);
            }
            Effect::Output(output) => outputs.push(output),
            Effect::Violation(what) => return Err(Breach::Objection(self.me, what)),
        }
        Ok(())
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

    /// A message arrives from another node. What the algorithm is to have now comes back, in order: each is to be
    /// [delivered](Self::deliver) at once.
    pub(crate) fn receive(
        &mut self,
        from: NodeId,
        (number, clock, at): (u64, Clock, Option<Nanos>),
        says: serde_json::Value,
        wire: &mut dyn Wire,
    ) -> Result<Vec<Delivery<P>>, Malformed> {
        let clock = frame::is_possible(clock)?;
        let message = frame::message(says)?;
        let link = self.links.get_mut(from.index()).ok_or(Malformed::UnknownSender(from))?;
        let arrival = link
            .receive(number, Parcel { clock, at, message })
            .map_err(|_| Malformed::NoFrame(format!("the number {number} is far ahead")))?;
        if arrival.acknowledge {
            self.transmit(from, Body::Ack(number), wire);
        }
        Ok(arrival.messages.into_iter().map(|parcel| Delivery { from, parcel }).collect())
    }

    /// The algorithm gets a message.
    pub(crate) fn deliver(
        &mut self,
        now: Nanos,
        Delivery { from, parcel }: Delivery<P>,
        wire: &mut dyn Wire,
    ) -> Result<Vec<OutputOf<P>>, Breach> {
        self.deeds.received += 1;
        self.clock = self.clock.max(parcel.clock) + 1;
        if let Some(at) = parcel.at {
            self.note_delay(seconds(now.saturating_sub(at)));
        }
        self.happen(now, Input::Message { from, message: parcel.message }, wire)
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

    /// Another node has a message of ours.
    pub(crate) fn acknowledged(&mut self, now: Nanos, from: NodeId, number: u64) {
        if let Some(link) = self.links.get_mut(from.index()) {
            link.acknowledged(now, number);
        }
    }

    /// When something is due.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        let timers = self.timers.values().copied();
        timers.chain(self.links.iter().filter_map(Link::deadline)).min()
    }

    /// The timer that is due, if any. It is set no more.
    pub(crate) fn due(&mut self, now: Nanos) -> Option<Input<P>> {
        let first = self.timers.iter().min_by_key(|(_, due)| **due);
        let (timer, due) = first.map(|(timer, due)| (*timer, *due)).filter(|(_, due)| *due <= now)?;
        self.timers.remove(&timer);
        self.deeds.fired += 1;
        self.deeds.late += now - due;
        Some(Input::Timer(timer))
    }

    /// Sends again what has not been acknowledged in time.
    pub(crate) fn resend(&mut self, now: Nanos, wire: &mut dyn Wire) {
        for to in NodeId::all(self.links.len()) {
            for (number, parcel) in self.links[to.index()].resend(now) {
                self.transmit(to, parcel.body(number), wire);
            }
        }
    }

    /// Who has not acknowledged something since then or longer.
    pub(crate) fn silent_since(&self, then: Nanos) -> impl Iterator<Item = NodeId> + '_ {
        let is_silent = move |link: &Link<_>| link.unanswered_since().is_some_and(|since| since <= then);
        NodeId::all(self.links.len()).filter(move |node| is_silent(&self.links[node.index()]))
    }

    /// What it has done so far.
    pub(crate) fn deeds(&self) -> Deeds {
        let mut labour = Labour::default();
        self.links.iter().for_each(|link| labour.add(link.labour()));
        Deeds { labour, ..self.deeds.clone() }
    }
}

/// Whether a command asks for something, instead of leaving.
fn asks<P: Protocol>(command: &CommandOf<P>) -> bool {
    Some(*command) != P::Family::LEAVE
}
