//! Election on a ring [TS07]. Steps: docs/algorithms/ring.md.
//!
//! Whoever finds the leader silent sends a message round the ring, to which each living node adds its number. When it is
//! back, the highest number on it leads, and a second message tells so to everybody on the first, once round the ring.
//!
//!   n1 → n2 → n0 → n1  Election {n1}, {n1 n2}, {n0 n1 n2}        n1 → n2 → n0 → n1  Coordinator
//!   n2 → n1  Ack   (an Election is in my hands)        n2 → n1  Told   (a Coordinator has gone all the way round)
//!
//! Term t names node t mod n as the leader; the number is one round later than the latest that any node on the list knows.
//! So two elections at once come to the same, and where they do not, all hear of both and keep to the later.
//!
//! Cost: 2n−d messages if d nodes are dead, of which 2(n−d) arrive, and as many acknowledgements. Assumes: no loss, bounded
//! delays, no returns; FIFO not needed. Survives crashes.
//! Departures: acknowledgements; terms; a message ends where it has been before, not only with the one who sent it first.

use alloc::{collections::VecDeque, vec::Vec};
use core::time::Duration;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Election, Output, Term};
use crate::{Algorithm, Context, Model, NodeId, NodeSet, Protocol, Setting, Setup, SetupError, Timing};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// ELECTION: add yourself, and pass it on.
    Election(Ballot),
    /// An Election has come, and its sender need not care for it any more.
    Ack,
    /// COORDINATOR: the term names the leader.
    Coordinator {
        /// In which term.
        term: Term,
        /// Who found out.
        by: NodeId,
        /// Who was alive, and passes this on.
        members: NodeSet,
        /// Who has passed it on.
        told: NodeSet,
    },
    /// Everybody has heard of this term, or of a later one.
    Told(Term),
}

/// What an election has found out so far.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Ballot {
    /// Who called for it.
    caller: NodeId,
    /// Who is alive.
    members: NodeSet,
    /// The latest term that any of them knows of.
    term: Term,
}

/// What a node wants to be woken for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The next node has not taken the Election.
    NoAck,
    /// Our own Election has not come back.
    NoReturn,
    /// The next node has not said that all behind it know.
    NotTold,
}

/// A Coordinator that this node has passed on.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Telling {
    term: Term,
    by: NodeId,
    members: NodeSet,
    told: NodeSet,
    /// Who has it now.
    to: NodeId,
    /// To whom we owe a Told.
    owed: NodeSet,
}

/// One node of an election on a ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Ring {
    me: NodeId,
    nodes: usize,
    patience: Duration,
    /// The latest term that this node knows of; 0 if of none.
    term: Term,
    /// The latest that, as far as it knows, everybody has heard of.
    known_to_all: Term,
    /// Whether our own Election is still under way.
    calling: bool,
    /// Elections to pass on. The first one is on its way.
    ballots: VecDeque<Ballot>,
    /// To whom it is; to ourselves if there is none.
    to: NodeId,
    telling: Option<Telling>,
}

impl Algorithm for Ring {
    const NAME: &'static str = "ring";
    const COST: &'static str = "2n−d an election, d dead";
    const PAPER: &'static str = "TS07";
    const SETTINGS: &'static [Setting] = &[Setting::Patience];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let (nodes, patience) = (setup.each_knows_all()?, setup.patience);
        let node = |me| Self {
            me,
            nodes,
            patience,
            term: 0,
            known_to_all: 0,
            calling: false,
            ballots: VecDeque::new(),
            to: me,
            telling: None,
        };
        Ok(setup.ids().map(node).collect())
    }
}

impl Protocol for Ring {
    const MODEL: Model = Model { timing: Timing::Bounded, survives_crashes: true, ..Model::RELIABLE };
    type Message = Message;
    type Timer = Timer;
    type Family = Election;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        let Command::Start = command;
        if !self.calling {
            self.call(cx); // Otherwise the election that is under way will do.
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Election(ballot) => {
                cx.send(from, Message::Ack); // TS07:2
                self.take_up(ballot, cx);
            }
            Message::Ack if !self.ballots.is_empty() && self.to == from => {
                self.ballots.pop_front();
                self.hand_on(cx);
            }
            Message::Ack => cx.violation("an Ack that nobody waits for"),
            Message::Coordinator { term, by, members, told } if members.contains(self.me) => {
                let news = Telling { term, by, members, told, to: self.me, owed: NodeSet::new() };
                self.on_coordinator(from, news, cx);
            }
            Message::Coordinator { .. } => cx.violation("a Coordinator for others"),
            Message::Told(term) => {
                self.learn(term, cx);
                self.all_know(term, cx);
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::NoAck => {
                self.to = self.after(self.to); // TS07:3
                self.hand_on(cx);
            }
            Timer::NoReturn => self.call(cx), // TS07:8
            Timer::NotTold => self.tell_next(cx),
        }
    }
}

impl Ring {
    /// TS07:1 An Election goes round, with our number on it.
    fn call(&mut self, cx: &mut Context<'_, Self>) {
        self.calling = true;
        let all_the_way = self.patience * 2 * self.nodes as u32;
        cx.set_timer(Timer::NoReturn, all_the_way..all_the_way);
        self.take_up(Ballot { caller: self.me, members: NodeSet::new(), term: 0 }, cx);
    }

    fn take_up(&mut self, mut ballot: Ballot, cx: &mut Context<'_, Self>) {
        if !ballot.members.insert(self.me) {
            return self.conclude(&ballot, cx); // TS07:4
        }
        ballot.term = ballot.term.max(self.term); // TS07:2
        self.ballots.push_back(ballot);
        if self.ballots.len() == 1 {
            self.to = self.after(self.me);
            self.hand_on(cx);
        }
    }

    /// Sends the first Election that waits to whom we believe to be the next living node.
    fn hand_on(&mut self, cx: &mut Context<'_, Self>) {
        match self.ballots.front() {
            None => {
                self.to = self.me;
                cx.cancel_timer(Timer::NoAck);
            }
            Some(_) if self.to == self.me => {
                while let Some(ballot) = self.ballots.pop_front() {
                    self.conclude(&ballot, cx); // TS07:3 Everybody else is dead.
                }
            }
            Some(ballot) => {
                cx.send(self.to, Message::Election(ballot.clone()));
                cx.set_timer(Timer::NoAck, self.patience..self.patience);
            }
        }
    }

    /// TS07:4 The Election has been everywhere: the highest number on it leads.
    fn conclude(&mut self, ballot: &Ballot, cx: &mut Context<'_, Self>) {
        if ballot.caller == self.me && self.calling {
            self.calling = false; // TS07:8
            cx.cancel_timer(Timer::NoReturn);
        }
        if self.term > ballot.term {
            return self.tell_client(cx); // TS07:7 Another election has settled it since.
        }
        let (nodes, leader) = (self.nodes as Term, ballot.members.iter().last().expect("we are on it"));
        let term = (ballot.term / nodes + 1) * nodes + Term::from(leader.0);
        let (members, told, owed) = (ballot.members.clone(), NodeSet::new(), NodeSet::new());
        self.learn(term, cx);
        self.pass_on(Telling { term, by: self.me, members, told, to: self.me, owed }, cx);
    }

    fn on_coordinator(&mut self, from: NodeId, mut news: Telling, cx: &mut Context<'_, Self>) {
        self.learn(news.term, cx);
        if news.told.contains(self.me) {
            self.all_know(news.term, cx); // TS07:6
        }
        match &mut self.telling {
            _ if news.term <= self.known_to_all => cx.send(from, Message::Told(self.known_to_all)),
            // TS07:7 What we are telling already counts for more.
            Some(telling) if (telling.term, telling.by) >= (news.term, news.by) => {
                telling.owed.insert(from);
            }
            Some(_) | None => {
                news.owed.insert(from);
                self.pass_on(news, cx);
            }
        }
    }

    /// TS07:5 Tells the next member, and will not be easy before all have heard.
    fn pass_on(&mut self, mut news: Telling, cx: &mut Context<'_, Self>) {
        news.told.insert(self.me);
        news.to = self.me;
        if let Some(before) = self.telling.take() {
            news.owed = before.owed.iter().chain(news.owed.iter()).collect();
        }
        self.telling = Some(news);
        self.tell_next(cx);
    }

    /// TS07:5 Tells the next member after the last one that we told.
    fn tell_next(&mut self, cx: &mut Context<'_, Self>) {
        let Some(telling) = &mut self.telling else { unreachable!("there is something to tell") };
        let Telling { term, by, members, told, to, .. } = telling.clone();
        let behind = members.iter().filter(|member| *member > to);
        telling.to = behind.chain(members.iter()).next().expect("we are a member");
        if telling.to == self.me {
            return self.all_know(term, cx);
        }
        let time = self.patience * (members.len() + 1 - told.len()) as u32;
        cx.set_timer(Timer::NotTold, time..time);
        cx.send(telling.to, Message::Coordinator { term, by, members, told });
    }

    /// TS07:6 Everybody has heard of this term, or of a later one: we can say so to whom we owe it.
    fn all_know(&mut self, term: Term, cx: &mut Context<'_, Self>) {
        self.known_to_all = self.known_to_all.max(term);
        if let Some(telling) = self.telling.take_if(|telling| telling.term <= term) {
            cx.cancel_timer(Timer::NotTold);
            cx.multicast(telling.owed.iter(), &Message::Told(term));
        }
    }

    /// TS07:7 Of two terms the later one counts.
    fn learn(&mut self, term: Term, cx: &mut Context<'_, Self>) {
        if term > self.term {
            self.term = term;
            self.tell_client(cx);
        }
    }

    fn tell_client(&self, cx: &mut Context<'_, Self>) {
        let leader = NodeId::from_index((self.term % self.nodes as Term) as usize);
        cx.output(Output::Elected { leader, term: self.term });
    }

    fn after(&self, node: NodeId) -> NodeId {
        NodeId::from_index((node.index() + 1) % self.nodes)
    }
}
