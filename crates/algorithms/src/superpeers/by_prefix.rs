//! Superpeers by the first bits of their identifiers, on a ring of keys [TS07], routed as in Chord [SMKKB01]. Steps:
//! docs/algorithms/superpeers-by-prefix.md.
//!
//! Identifiers and keys have m bits, and a key belongs to the first node at or after it on the ring. The first k bits
//! are reserved: the superpeer for key p is the node to which p AND 1…10…0 belongs. Nobody is elected, and nobody need
//! be told.
//!
//!   n1 → n4 → n2  Lookup(key, n1)      (each hop halves the way that is left)      n2 → n1  Found(key)
//!
//! Cost: about ½ log₂ n + 2 messages a lookup, the answer included. Assumes: no loss, no crash; FIFO not needed.
//! Departures: identifiers are not drawn but mixed from the number of the node by a bijection, the output of SplitMix64
//! [SLF14] cut down to m bits, so that no two are equal. The ring stands before the system starts: nobody joins or
//! leaves.

use alloc::{format, vec::Vec};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Key, Office, Output, Spread, Superpeers};
use crate::{Algorithm, Context, Invariant, Model, Never, NodeId, Protocol, Setting, Setup, SetupError, World};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// Pass this on to the superpeer for the key.
    Lookup {
        /// p
        key: Key,
        /// Who wants to know.
        asker: NodeId,
    },
    /// I am the superpeer for this key.
    Found {
        /// p
        key: Key,
    },
}

/// The ring of all keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
struct Ring {
    /// m
    bits: u32,
    /// k
    prefix: u32,
}

/// One node of a ring with reserved prefixes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct ByPrefix {
    me: NodeId,
    ring: Ring,
    id: Key,
    /// The identifier before ours: we are responsible for the keys after it, up to our own.
    before: Key,
    /// The nodes responsible for the keys 1, 2, 4, … after our identifier, each once: the nearest first.
    fingers: Vec<(Key, NodeId)>,
    /// What our client waits for.
    lookup: Option<Key>,
}

impl Algorithm for ByPrefix {
    const NAME: &'static str = "superpeers-by-prefix";
    const COST: &'static str = "≈ ½ log₂ n + 2 a lookup";
    const PAPER: &'static str = "TS07";
    const SETTINGS: &'static [Setting] = &[Setting::Bits, Setting::Prefix];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let ring = Ring::of(setup)?;
        let mut members: Vec<(Key, NodeId)> = setup.ids().map(|node| (ring.identifier(node), node)).collect();
        members.sort_unstable();
        let node = |me| {
            let id = ring.identifier(me);
            let at = members.partition_point(|(other, _)| *other < id);
            let (before, _) = members[(at + members.len() - 1) % members.len()];
            Self { me, ring, id, before, fingers: ring.fingers(&members, id), lookup: None }
        };
        Ok(setup.ids().map(node).collect())
    }

    /// The last key of each office (of 256 at most), and the first key of all: two of one office, if it has two.
    fn wants(setup: &Setup) -> Vec<Command> {
        const MOST: u32 = 8;
        let Ok(ring) = Ring::of(setup) else { return Vec::new() };
        let coarse = Ring { prefix: ring.prefix.min(MOST), ..ring };
        let rest = coarse.all().checked_shr(coarse.prefix).unwrap_or(0);
        let last = |office: Key| office.checked_shl(coarse.bits - coarse.prefix).unwrap_or(0) | rest;
        let mut keys: Vec<Key> = [0].into_iter().chain((0..1 << coarse.prefix).map(last)).collect();
        keys.dedup();
        keys.into_iter().map(Command::Lookup).collect()
    }

    fn measures(nodes: &[&Self]) -> Vec<(&'static str, f64)> {
        Self::spread(nodes).named("hops to the superpeer")
    }
}

impl Protocol for ByPrefix {
    const MODEL: Model = Model::RELIABLE;
    const INVARIANT: Option<Invariant<Self>> = Some(invariant);
    type Message = Message;
    type Timer = Never;
    type Family = Superpeers;

    fn on_start(&mut self, cx: &mut Context<'_, Self>) {
        cx.output(Output::Role(self.is_superpeer().then(|| self.ring.office(self.id))));
    }

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        let Command::Lookup(key) = command;
        assert_eq!(self.lookup, None, "one request at a time");
        let key = key & self.ring.all();
        self.lookup = Some(key);
        self.route(key, self.me, cx);
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Lookup { key, .. } if key > self.ring.all() => cx.violation("a key of too many bits"),
            Message::Lookup { asker, .. } if asker == self.me => cx.violation("our own Lookup came back"),
            Message::Lookup { key, asker } => self.route(key, asker, cx),
            Message::Found { key } if self.lookup == Some(key) => {
                self.lookup = None;
                cx.output(Output::Found { key, office: self.ring.office(key), superpeer: from });
            }
            Message::Found { .. } => cx.violation("Found what nobody looked for"),
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}

impl ByPrefix {
    /// How well the superpeers are chosen, if each normal node turns to the one for its own identifier. Access is in
    /// hops. The nodes stand in the order of their numbers; those that cannot reach their superpeer for a missing node
    /// do not count.
    #[must_use]
    pub fn spread(nodes: &[&Self]) -> Spread {
        let place = |node: NodeId| nodes.binary_search_by_key(&node, |other| other.me).ok();
        let mut served: Vec<Option<u64>> = nodes.iter().map(|node| node.is_superpeer().then_some(0)).collect();
        let mut hops = 0;
        for node in nodes.iter().filter(|node| !node.is_superpeer()) {
            let target = node.ring.reserved(node.id);
            let next = |at: &usize| place(nodes[*at].next_hop(target));
            let mut way = core::iter::successors(place(node.me), next).zip(0_u32..);
            let end = way.find(|(at, _)| nodes[*at].answers_for(target));
            if let Some((at, length)) = end {
                served[at] = served[at].map(|count| count + 1);
                hops += length;
            }
        }
        Spread::of(&served.into_iter().flatten().collect::<Vec<u64>>(), f64::from(hops))
    }

    /// TS07:3 Whether what is looked for under our own first bits belongs to us.
    fn is_superpeer(&self) -> bool {
        self.answers_for(self.ring.reserved(self.id))
    }

    /// SMKKB01:1 Whether a key belongs to us.
    fn answers_for(&self, key: Key) -> bool {
        self.ring.ahead(key, self.id) < self.ring.ahead(self.before, self.id) || self.before == self.id
    }

    /// TS07:2 What is looked for is the key with only its reserved bits. It is answered here, or goes on.
    fn route(&self, key: Key, asker: NodeId, cx: &mut Context<'_, Self>) {
        let target = self.ring.reserved(key);
        if self.answers_for(target) {
            cx.send(asker, Message::Found { key });
        } else {
            cx.send(self.next_hop(target), Message::Lookup { key, asker });
        }
    }

    /// SMKKB01:2 The farthest finger that is not beyond the target. If there is none, the target belongs to our
    /// successor.
    fn next_hop(&self, target: Key) -> NodeId {
        let way = self.ring.ahead(self.id, target);
        let short_of = self.fingers.partition_point(|(finger, _)| self.ring.ahead(self.id, *finger) <= way);
        self.fingers[short_of.saturating_sub(1)].1
    }
}

impl Ring {
    fn of(setup: &Setup) -> Result<Self, SetupError> {
        let (bits, prefix, n) = (setup.bits, setup.prefix, setup.nodes());
        if !(1..=Key::BITS).contains(&bits) {
            let text = format!("identifiers of {bits} bits cannot be; take from 1 to {}, such as --bits 16", Key::BITS);
            return Err(SetupError(text));
        }
        if prefix > bits {
            let text = format!("the first {prefix} bits of {bits} cannot be reserved; take --prefix {bits} or less");
            return Err(SetupError(text));
        }
        let needed = n.saturating_sub(1).checked_ilog2().map_or(1, |last| last + 1);
        if needed > bits {
            let text = format!("{bits} bits are too few to tell {n} nodes apart; take at least --bits {needed}");
            return Err(SetupError(text));
        }
        Ok(Self { bits, prefix })
    }

    /// The largest key: m ones.
    fn all(self) -> Key {
        Key::MAX >> (Key::BITS - self.bits)
    }

    /// TS07:1 p AND 1…10…0: k ones, then zeros.
    fn reserved(self, key: Key) -> Key {
        key & !self.all().checked_shr(self.prefix).unwrap_or(0)
    }

    /// The first k bits as a number.
    fn office(self, key: Key) -> Office {
        key.checked_shr(self.bits - self.prefix).unwrap_or(0)
    }

    /// How far it is from one key up to another.
    fn ahead(self, from: Key, to: Key) -> Key {
        to.wrapping_sub(from) & self.all()
    }

    /// SLF14:1 The output of SplitMix64 with seed 0 at this position, if m is 64; with fewer bits the same steps, the
    /// shifts shorter in proportion. Each step can be undone, so different nodes have different identifiers.
    fn identifier(self, node: NodeId) -> Key {
        let mixed = |x: Key, of_64: u32| x ^ (x >> (of_64 * self.bits).div_ceil(Key::BITS));
        let times = |x: Key, odd: Key| x.wrapping_mul(odd) & self.all();
        let x = times(Key::from(node.0) + 1, 0x9e37_79b9_7f4a_7c15);
        let x = times(mixed(x, 30), 0xbf58_476d_1ce4_e5b9);
        let x = times(mixed(x, 27), 0x94d0_49bb_1331_11eb);
        mixed(x, 31)
    }

    /// SMKKB01:3 Of the nodes, in the order of the ring, those that are responsible for the keys 2⁰, 2¹, … after an
    /// identifier.
    fn fingers(self, members: &[(Key, NodeId)], id: Key) -> Vec<(Key, NodeId)> {
        let mut fingers: Vec<(Key, NodeId)> = Vec::new();
        for distance in (0..self.bits).map(|bit| 1 << bit) {
            if fingers.last().is_some_and(|(last, _)| self.ahead(id, *last) >= distance) {
                continue; // the same one as before
            }
            let key = id.wrapping_add(distance) & self.all();
            let finger = members[members.partition_point(|(other, _)| *other < key) % members.len()];
            if finger.0 == id {
                break; // once round
            }
            fingers.push(finger);
        }
        fingers
    }
}

/// Whoever says that it is the superpeer for a key is the first node at or after its reserved bits, and knows itself to
/// be a superpeer.
fn invariant(world: &World<'_, ByPrefix>) -> Result<(), &'static str> {
    for (from, _, message) in world.in_flight {
        let Message::Found { key } = message else { continue };
        let superpeer = world.nodes[from.index()];
        let way = |node: &ByPrefix| node.ring.ahead(node.ring.reserved(*key), node.id);
        if world.nodes.iter().any(|node| way(node) < way(superpeer)) {
            return Err("a node answers for a key that belongs to another");
        }
        if !superpeer.is_superpeer() {
            return Err("a node answers as a superpeer and does not know that it is one");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identifiers(bits: u32, n: usize) -> Vec<Key> {
        NodeId::all(n).map(|node| Ring { bits, prefix: 0 }.identifier(node)).collect()
    }

    #[test]
    fn identifiers_are_those_of_splitmix64_cut_down() {
        assert_eq!(identifiers(64, 3), [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
        assert_eq!(identifiers(8, 8), [152, 32, 184, 109, 183, 87, 147, 118]);
        assert_eq!(identifiers(4, 4), [6, 13, 4, 8]);
    }

    #[test]
    fn no_two_nodes_have_the_same_identifier() {
        for bits in 1..=12 {
            let mut all = identifiers(bits, 1 << bits);
            all.sort_unstable();
            assert_eq!(all, (0..1 << bits).collect::<Vec<Key>>());
        }
    }

    #[test]
    fn the_lecture_reserves_three_bits_of_eight() {
        let ring = Ring { bits: 8, prefix: 3 };
        assert_eq!(ring.reserved(0b1011_0110), 0b1010_0000);
        assert_eq!(ring.office(0b1011_0110), 0b101);
        assert_eq!((Ring { bits: 64, prefix: 64 }).reserved(Key::MAX), Key::MAX);
        assert_eq!((Ring { bits: 64, prefix: 0 }).reserved(Key::MAX), 0);
    }
}
