//! Superpeers by tokens that repel each other in the plane [TS07]. Steps: docs/algorithms/superpeers-by-repulsion.md.
//!
//! There are N tokens, and whoever holds one is a superpeer. Nodes gossip about where the tokens are; a holder on which
//! their forces together are too large passes its token to a node in that direction, until the tokens are spread
//! evenly.
//!
//!   n1 → n2  Gossip(sightings)     n2 → n1  Echo(newer sightings)             (once a period, each with another)
//!   n1 → n4  Offer                 n4 → n1  Accept, or Refuse: it has one     n1 → n4  Token(number, moves)
//!   n5 → n1  Ask                   n1 → n5  Here(number), or Gone(sightings)
//!
//! Cost: 2 messages a lookup and 2 for each place that the token has left since it was last heard of; 3 a move; 2n a
//! period for gossip. Assumes: no loss, no crash; FIFO not needed; a timer may fire at any time.
//! Departures: the lecture says nothing of what a force is, who gossips with whom, when tokens come to rest, or how a
//! token is passed on so that no node has two. All that is ours.

use alloc::{collections::BTreeMap, format, vec::Vec};
use core::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{
    Command, Key, Office, Output, Spread, Superpeers,
    forces::{self, Body, Field, Place},
};
use crate::{
    Algorithm, Context, Invariant, Model, NodeId, NodeSet, Protocol, Setting, Setup, SetupError, World,
    graph::distance_squared,
};

/// Where a token is, or was.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Sighting {
    /// How often the token had moved then: what is newer is larger.
    moves: u32,
    holder: NodeId,
    /// Where the holder stands.
    place: Place,
}

impl fmt::Debug for Sighting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?} after {}", self.holder, self.place, self.moves)
    }
}

/// By the number of the token, the newest sighting of each that a node has heard of.
type Sightings = BTreeMap<Office, Sighting>;

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// This is what I know; and you?
    Gossip(Sightings),
    /// This is what you do not know.
    Echo(Sightings),
    /// Do you take my token?
    Offer,
    /// Yes.
    Accept,
    /// No: I have one, or expect one.
    Refuse,
    /// Here it is.
    Token {
        /// Its number.
        token: Office,
        /// How often it has moved, this time included.
        moves: u32,
    },
    /// Are you a superpeer?
    Ask,
    /// Yes, by this token.
    Here {
        /// Its number.
        token: Office,
    },
    /// No longer; but this is what I know.
    Gone(Sightings),
}

/// What a node wants to be woken for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The next round of gossip is due.
    Round,
}

/// What a node is.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
enum Role {
    Normal,
    /// It has accepted a token that has not come yet.
    Expecting {
        from: NodeId,
        /// Who already takes us for a superpeer, and waits for an answer.
        askers: NodeSet,
    },
    Superpeer {
        token: Office,
        /// Whom the token is offered to.
        offered: Option<NodeId>,
    },
}

/// What the client of this node waits for.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Lookup {
    key: Key,
    /// The token whose holder was asked, and what was known of it; nothing as long as no superpeer is known.
    asked: Option<(Office, Sighting)>,
}

/// One node of a system of tokens that repel each other.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct ByRepulsion {
    me: NodeId,
    place: Place,
    field: Field,
    contacts: Vec<(NodeId, Place)>,
    period: Duration,
    role: Role,
    seen: Sightings,
    /// The next to gossip with is the one 2 to this power further on.
    round: u32,
    lookup: Option<Lookup>,
}

impl Algorithm for ByRepulsion {
    const NAME: &'static str = "superpeers-by-repulsion";
    const COST: &'static str = "2 a lookup, 3 a move, 2n a period";
    const PAPER: &'static str = "TS07";
    const SETTINGS: &'static [Setting] = &[Setting::K, Setting::Period];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let field = Field { nodes: setup.each_knows_all()?, tokens: setup.k_of_n()? };
        if setup.places.len() != field.nodes {
            let text = format!("{} places for {} nodes; give each node a place", setup.places.len(), field.nodes);
            return Err(SetupError(text));
        }
        // TS07:1 The first N nodes have one token each.
        let node = |me: NodeId| {
            let (place, token) = (setup.places[me.index()], me.index() as Office);
            let holds = me.index() < field.tokens;
            let seen = holds.then_some((token, Sighting { moves: 0, holder: me, place })).into_iter().collect();
            let role = if holds { Role::Superpeer { token, offered: None } } else { Role::Normal };
            let contacts = forces::contacts(&setup.places, me);
            Self { me, place, field, contacts, period: setup.period, role, seen, round: 0, lookup: None }
        };
        Ok(setup.ids().map(node).collect())
    }

    fn measures(nodes: &[&Self]) -> Vec<(&'static str, f64)> {
        let spread = Self::spread(nodes);
        let superpeers = nodes.iter().filter(|node| node.token().is_some()).count();
        let mut measures = spread.named("distance to the superpeer");
        measures.push(("distance over that in a grid", spread.access / forces::access_in_grid(superpeers)));
        measures
    }
}

impl Protocol for ByRepulsion {
    const MODEL: Model = Model::RELIABLE;
    const INVARIANT: Option<Invariant<Self>> = Some(invariant);
    type Message = Message;
    type Timer = Timer;
    type Family = Superpeers;

    fn on_start(&mut self, cx: &mut Context<'_, Self>) {
        cx.output(Output::Role(self.token()));
        self.await_round(cx);
    }

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        let Command::Lookup(key) = command;
        assert_eq!(self.lookup, None, "one request at a time");
        self.lookup = Some(Lookup { key, asked: None });
        self.ask_nearest(cx);
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Gossip(seen) => {
                let is_news = |(token, ours): &(&Office, &Sighting)| seen.get(token).is_none_or(|theirs| theirs < ours);
                let news = self.seen.iter().filter(is_news).map(|(token, ours)| (*token, *ours));
                cx.send(from, Message::Echo(news.collect()));
                self.learn(seen, cx);
            }
            Message::Echo(seen) => {
                self.learn(seen, cx);
                self.offer_if_pushed(cx);
                self.await_round(cx);
            }
            Message::Offer if self.role == Role::Normal => {
                self.role = Role::Expecting { from, askers: NodeSet::new() };
                cx.send(from, Message::Accept);
            }
            Message::Offer => cx.send(from, Message::Refuse), // TS07:6 never two at one node
            Message::Accept => self.on_accept(from, cx),
            Message::Refuse => self.on_refuse(from, cx),
            Message::Token { token, moves } => self.on_token(from, token, moves, cx),
            Message::Ask => self.on_ask(from, cx),
            Message::Here { token } => self.on_here(from, token, cx),
            Message::Gone(seen) => self.on_gone(from, seen, cx),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            // TS07:2 With 1, 2, 4, … further on in turn, all have heard of all after log₂ n rounds.
            Timer::Round => {
                let peer = NodeId::from_index((self.me.index() + (1 << self.round)) % self.field.nodes);
                let last = (self.field.nodes - 1).ilog2();
                self.round = if self.round == last { 0 } else { self.round + 1 };
                cx.send(peer, Message::Gossip(self.seen.clone()));
            }
        }
    }
}

impl ByRepulsion {
    /// How well the superpeers are chosen, if each normal node turns to the nearest one. Access is in sides of the
    /// square.
    #[must_use]
    pub fn spread(nodes: &[&Self]) -> Spread {
        let places = |of: &[&Self]| of.iter().map(|node| node.place).collect::<Vec<Place>>();
        let (superpeers, normal): (Vec<&Self>, Vec<&Self>) = nodes.iter().partition(|node| node.token().is_some());
        forces::spread(&places(&superpeers), &places(&normal))
    }

    fn token(&self) -> Option<Office> {
        match self.role {
            Role::Superpeer { token, .. } => Some(token),
            Role::Normal | Role::Expecting { .. } => None,
        }
    }

    /// The next round comes a period after the end of this one. Alone, there is nobody to gossip with.
    fn await_round(&self, cx: &mut Context<'_, Self>) {
        if self.field.nodes > 1 {
            cx.set_timer(Timer::Round, self.period..self.period);
        }
    }

    /// TS07:2 Of two sightings of a token the one after more moves counts.
    fn learn(&mut self, seen: Sightings, cx: &mut Context<'_, Self>) {
        for (token, theirs) in seen {
            let ours = self.seen.entry(token).or_insert(theirs);
            *ours = (*ours).max(theirs);
        }
        self.ask_nearest(cx);
    }

    /// Once a round a superpeer sees whether its token should move on. Whoever is known to have a token is not asked.
    fn offer_if_pushed(&mut self, cx: &mut Context<'_, Self>) {
        let Role::Superpeer { token, offered: offered @ None } = &mut self.role else { return };
        let others = self.seen.iter().filter(|(other, _)| *other != token).map(|(other, seen)| (seen.place, *other));
        let others: Vec<Body> = others.collect();
        let is_free = |node: NodeId| self.seen.values().all(|seen| seen.holder != node);
        let free = self.contacts.iter().copied().filter(|(node, _)| is_free(*node));
        let moves = self.seen[token].moves;
        *offered = self.field.way_out((self.place, *token), moves, &others, free);
        if let Some(node) = *offered {
            cx.send(node, Message::Offer);
        }
    }

    /// TS07:6 The token goes, and with it the office.
    fn on_accept(&mut self, from: NodeId, cx: &mut Context<'_, Self>) {
        let (Some(token), Some(place)) = (self.offered_to(from), self.place_of(from)) else {
            return cx.violation("Accept without an Offer");
        };
        let moves = self.seen[&token].moves + 1;
        self.seen.insert(token, Sighting { moves, holder: from, place });
        self.role = Role::Normal;
        cx.send(from, Message::Token { token, moves });
        cx.output(Output::Role(None));
    }

    fn on_refuse(&mut self, from: NodeId, cx: &mut Context<'_, Self>) {
        match self.offered_to(from) {
            Some(token) => self.role = Role::Superpeer { token, offered: None },
            None => cx.violation("Refuse without an Offer"),
        }
    }

    fn offered_to(&self, node: NodeId) -> Option<Office> {
        match self.role {
            Role::Superpeer { token, offered: Some(other) } if other == node => Some(token),
            Role::Superpeer { .. } | Role::Normal | Role::Expecting { .. } => None,
        }
    }

    fn place_of(&self, contact: NodeId) -> Option<Place> {
        self.contacts.iter().find(|(node, _)| *node == contact).map(|(_, place)| *place)
    }

    fn on_token(&mut self, from: NodeId, token: Office, moves: u32, cx: &mut Context<'_, Self>) {
        match core::mem::replace(&mut self.role, Role::Superpeer { token, offered: None }) {
            Role::Expecting { from: giver, askers } if giver == from => {
                cx.output(Output::Role(Some(token)));
                cx.multicast(askers.iter(), &Message::Here { token });
                self.learn([(token, Sighting { moves, holder: self.me, place: self.place })].into(), cx);
            }
            role @ (Role::Normal | Role::Expecting { .. } | Role::Superpeer { .. }) => {
                self.role = role;
                cx.violation("a Token that was not accepted");
            }
        }
    }

    /// TS07:7 The nearest superpeer that we know of is asked whether it still is one; as soon as we know of any.
    fn ask_nearest(&mut self, cx: &mut Context<'_, Self>) {
        let Some(Lookup { asked: asked @ None, .. }) = &mut self.lookup else { return };
        let nearest = self.seen.iter().min_by_key(|(_, seen)| distance_squared(self.place, seen.place));
        if let Some((token, seen)) = nearest {
            *asked = Some((*token, *seen));
            cx.send(seen.holder, Message::Ask);
        }
    }

    fn on_ask(&mut self, from: NodeId, cx: &mut Context<'_, Self>) {
        match &mut self.role {
            Role::Superpeer { token, .. } => cx.send(from, Message::Here { token: *token }),
            // TS07:8 The token has overtaken nothing: the question has overtaken it.
            Role::Expecting { askers, .. } => _ = askers.insert(from),
            Role::Normal => cx.send(from, Message::Gone(self.seen.clone())),
        }
    }

    fn on_here(&mut self, from: NodeId, token: Office, cx: &mut Context<'_, Self>) {
        match self.lookup.take() {
            Some(Lookup { key, asked: Some((_, seen)) }) if seen.holder == from => {
                cx.output(Output::Found { key, office: token, superpeer: from });
            }
            lookup @ (Some(_) | None) => {
                self.lookup = lookup;
                cx.violation("an answer by one who was not asked");
            }
        }
    }

    /// TS07:9 Whoever passed the token on knows a later place of it, so that no question goes twice to the same place.
    fn on_gone(&mut self, from: NodeId, seen: Sightings, cx: &mut Context<'_, Self>) {
        let Some(lookup) = &mut self.lookup else { return cx.violation("an answer to nobody") };
        match lookup.asked.take_if(|(_, old)| old.holder == from) {
            Some((token, old)) if seen.get(&token).is_some_and(|new| new.moves > old.moves) => self.learn(seen, cx),
            Some(_) => cx.violation("a token is gone, but nowhere"),
            None => cx.violation("an answer by one who was not asked"),
        }
    }
}

/// Each token is held by one node or under way to one, and nobody knows of a later place than that. Whoever has offered
/// a token will have an answer, and whoever has accepted one will have it.
fn invariant(world: &World<'_, ByRepulsion>) -> Result<(), &'static str> {
    let mut places: BTreeMap<Office, (u32, NodeId)> = BTreeMap::new();
    let held = world.nodes.iter().filter_map(|node| Some((node.token()?, node.seen[&node.token()?].moves, node.me)));
    let moving = world.in_flight.iter().filter_map(|(_, to, message)| match message {
        Message::Token { token, moves } => Some((*token, *moves, *to)),
        Message::Gossip(_) | Message::Echo(_) | Message::Gone(_) => None,
        Message::Offer | Message::Accept | Message::Refuse | Message::Ask | Message::Here { .. } => None,
    });
    for (token, moves, at) in held.chain(moving) {
        if places.insert(token, (moves, at)).is_some() {
            return Err("one token in two places");
        }
    }
    if places.len() != world.nodes[0].field.tokens {
        return Err("a token is lost");
    }
    let is_wrong = |(token, seen): (&Office, &Sighting)| {
        let (moves, at) = places[token];
        seen.moves > moves || seen.moves == moves && seen.holder != at
    };
    if world.nodes.iter().flat_map(|node| &node.seen).any(is_wrong) {
        return Err("a token was seen where it has not been");
    }
    let flies =
        |from, to, is: fn(&Message) -> bool| world.in_flight.iter().any(|(a, b, m)| (*a, *b) == (from, to) && is(m));
    let is_settled = |node: &&ByRepulsion| match node.role {
        Role::Superpeer { offered: Some(to), .. } => {
            flies(node.me, to, |message| *message == Message::Offer)
                || flies(to, node.me, |message| matches!(message, Message::Accept | Message::Refuse))
        }
        Role::Expecting { from, .. } => {
            flies(node.me, from, |message| *message == Message::Accept)
                || flies(from, node.me, |message| matches!(message, Message::Token { .. }))
        }
        Role::Superpeer { offered: None, .. } | Role::Normal => true,
    };
    if world.nodes.iter().all(is_settled) {
        Ok(())
    } else {
        Err("a node waits for a token or an answer that will not come")
    }
}
