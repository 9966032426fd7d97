//! What a channel owes an algorithm, on top of one that loses, doubles and reorders: numbers, acknowledgements,
//! retransmission, and order.
//!
//! A [`Link`] is one end of the channel between two nodes, both ways. It is pure: whoever drives it says what time it is,
//! and sends what it is given to send. Every message has a number; every arrival of a message is acknowledged by its number,
//! since an earlier acknowledgement may be lost; what is not acknowledged in time is sent again, until it is.
//!
//!   here → there  message 7        there → here  ack 7
//!
//! How long "in time" is follows the round trips seen so far, as TCP has it (RFC 6298); a round trip of a message that was
//! sent twice says nothing, since nobody knows which of the two was acknowledged. The first few repetitions come at that
//! pace, for here losses are bad luck, not congestion; later ones ever more slowly.

use alloc::{
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};

use serde::{Deserialize, Serialize};

use crate::{Model, Order};

/// Nanoseconds since some fixed moment.
pub type Nanos = u64;

const MILLISECOND: Nanos = 1_000_000;

/// Before anything is known about round trips.
const FIRST_TIMEOUT: Nanos = 20 * MILLISECOND;
/// Sooner than this nothing is sent again: whoever is to answer may be waiting for the processor.
const LEAST_TIMEOUT: Nanos = 2 * MILLISECOND;
/// Later than this is never.
const MOST_TIMEOUT: Nanos = 1000 * MILLISECOND;
/// So many transmissions come at the same pace; after each later one the pause is twice as long.
const EVEN_TRIES: u32 = 5;
/// More than so many messages are never between the oldest that is missing and the newest: what claims to be further ahead
/// is no message of ours, and memory has a bound.
const WINDOW: u64 = 1 << 16;

/// What a link owes to the algorithm above it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// No message arrives twice.
    Once,
    /// Every message arrives, once.
    Reliable,
    /// Every message arrives, once, in the order of sending.
    InOrder,
}

impl Service {
    /// What the proof of an algorithm takes for granted.
    #[must_use]
    pub fn for_model(model: &Model) -> Self {
        match (model.order, model.survives_loss) {
            (Order::Fifo, _) => Self::InOrder,
            (Order::Any, false) => Self::Reliable,
            (Order::Any, true) => Self::Once,
        }
    }
}

/// What a link had to do besides handing messages over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Labour {
    /// Messages sent again.
    pub resent: u64,
    /// Acknowledgements sent.
    pub acknowledgements: u64,
    /// Messages that had arrived before.
    pub duplicates: u64,
    /// Messages that had to wait for an earlier one.
    pub held_back: u64,
}

impl Labour {
    /// Adds that of another link.
    pub fn add(&mut self, other: Self) {
        self.resent += other.resent;
        self.acknowledgements += other.acknowledgements;
        self.duplicates += other.duplicates;
        self.held_back += other.held_back;
    }
}

/// A message that has not been acknowledged.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Unacknowledged<M> {
    message: M,
    sent: Nanos,
    due: Nanos,
    tries: u32,
}

/// One end of the channel to another node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Link<M> {
    service: Service,
    /// The number of the next message to be sent.
    next: u64,
    unacknowledged: BTreeMap<u64, Unacknowledged<M>>,
    /// All messages with smaller numbers have arrived, or are too old to come.
    expected: u64,
    /// What arrived beyond that. The message is here if it has to wait for its turn.
    ahead: BTreeMap<u64, Option<M>>,
    round_trip: RoundTrip,
    labour: Labour,
}

/// What becomes of a message that arrives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival<M> {
    /// What the algorithm is to have now, in order.
    pub messages: VecDeque<M>,
    /// Whether the other end waits for an acknowledgement.
    pub acknowledge: bool,
}

/// A number that no message can have now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfWindow;

impl<M: Clone> Link<M> {
    /// Nothing was sent yet.
    #[must_use]
    pub fn new(service: Service) -> Self {
        Self {
            service,
            next: 0,
            unacknowledged: BTreeMap::new(),
            expected: 0,
            ahead: BTreeMap::new(),
            round_trip: RoundTrip::default(),
            labour: Labour::default(),
        }
    }

    /// The number under which a message is to be sent.
    pub fn send(&mut self, now: Nanos, message: &M) -> u64 {
        let number = self.next;
        self.next += 1;
        if self.service != Service::Once {
            let due = now + self.round_trip.timeout();
            self.unacknowledged.insert(number, Unacknowledged { message: message.clone(), sent: now, due, tries: 1 });
        }
        number
    }

    /// A message arrives.
    ///
    /// # Errors
    /// If it cannot be one of the other end's. Nothing has changed.
    pub fn receive(&mut self, number: u64, message: M) -> Result<Arrival<M>, OutOfWindow> {
        let newest = self.ahead.last_key_value().map_or(self.expected, |(newest, _)| *newest);
        // Where messages may be lost for ever, the oldest that is missing says nothing.
        let from = if self.service == Service::Once { newest } else { self.expected };
        if number >= from.saturating_add(WINDOW) {
            return Err(OutOfWindow);
        }
        let acknowledge = self.service != Service::Once;
        self.labour.acknowledgements += u64::from(acknowledge);
        let mut messages = VecDeque::new();
        if number < self.expected || self.ahead.contains_key(&number) {
            self.labour.duplicates += 1;
            return Ok(Arrival { messages, acknowledge });
        }
        if self.service == Service::InOrder {
            self.labour.held_back += u64::from(number > self.expected);
            self.ahead.insert(number, Some(message));
        } else {
            messages.push_back(message);
            self.ahead.insert(number, None);
        }
        if self.service == Service::Once {
            // A number that is missing may never come: what is very old counts as having come.
            let oldest = number.saturating_sub(WINDOW);
            self.expected = self.expected.max(oldest);
            while self.ahead.first_key_value().is_some_and(|(first, _)| *first < self.expected) {
                self.ahead.pop_first();
            }
        }
        while let Some(waiting) = self.ahead.remove(&self.expected) {
            messages.extend(waiting);
            self.expected += 1;
        }
        Ok(Arrival { messages, acknowledge })
    }

    /// The other end says that a message has arrived. One that was never sent, or acknowledged before, changes nothing.
    pub fn acknowledged(&mut self, now: Nanos, number: u64) {
        if let Some(message) = self.unacknowledged.remove(&number)
            && message.tries == 1
        {
            self.round_trip.measure(now.saturating_sub(message.sent));
        }
    }

    /// What is to be sent again now: number, and what it says.
    pub fn resend(&mut self, now: Nanos) -> Vec<(u64, M)> {
        let timeout = self.round_trip.timeout();
        let mut again = Vec::new();
        for (number, message) in self.unacknowledged.iter_mut().filter(|(_, message)| message.due <= now) {
            let doublings = (message.tries + 1).saturating_sub(EVEN_TRIES).min(10);
            message.tries = message.tries.saturating_add(1);
            message.due = now + (timeout << doublings).min(MOST_TIMEOUT);
            again.push((*number, message.message.clone()));
        }
        self.labour.resent += again.len() as u64;
        again
    }

    /// When there will be something to send again.
    #[must_use]
    pub fn deadline(&self) -> Option<Nanos> {
        self.unacknowledged.values().map(|message| message.due).min()
    }

    /// How many messages have not been acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> usize {
        self.unacknowledged.len()
    }

    /// When the oldest message was sent that has not been acknowledged.
    #[must_use]
    pub fn unanswered_since(&self) -> Option<Nanos> {
        self.unacknowledged.values().map(|message| message.sent).min()
    }

    /// What it had to do so far.
    #[must_use]
    pub fn labour(&self) -> Labour {
        self.labour
    }
}

/// How long an acknowledgement takes: a smoothed mean and deviation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize)]
struct RoundTrip {
    mean: Option<Nanos>,
    deviation: Nanos,
}

impl RoundTrip {
    fn measure(&mut self, took: Nanos) {
        match self.mean {
            None => (self.mean, self.deviation) = (Some(took), took / 2),
            Some(mean) => {
                self.deviation = (3 * self.deviation + mean.abs_diff(took)) / 4;
                self.mean = Some((7 * mean + took) / 8);
            }
        }
    }

    fn timeout(&self) -> Nanos {
        match self.mean {
            None => FIRST_TIMEOUT,
            Some(mean) => (mean + 4 * self.deviation).clamp(LEAST_TIMEOUT, MOST_TIMEOUT),
        }
    }
}
