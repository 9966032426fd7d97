//! One node of an emulation, on a thread or as a process of its own: the algorithm, its client, and the sockets.
//!
//! The client thinks, asks, stays, leaves, as the simulator's does, from the same random numbers. It is inside only once the
//! referee has seen it enter, and leaves only once the referee has seen it leave: whatever overlaps for the referee has
//! overlapped.

mod meeting;

use std::{
    collections::VecDeque,
    net::{Shutdown, SocketAddr},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    time::Duration,
};

use vez_algorithms::{Heard, NodeId, link::Nanos};
use vez_lab::random::Stream;

use crate::{
    CannotEmulate, Settings,
    clock::{nanos, now, wake_me_in_time},
    control::{Account, Connection, Invitation, Order, Word},
    frame::{Body, Frame, Malformed, Refused},
    host::{Breach, Host, Wire},
    node::{self, Input},
    transport::{Arrived, Identity, Listening, MAILBOX, Source, Tcp, Udp},
};

/// What a node waits for.
enum Event {
    Arrived(Arrived),
    Order(Order),
    /// The referee is gone, and with it the purpose of all this.
    Orphaned,
}

impl From<Arrived> for Event {
    fn from(arrived: Arrived) -> Self {
        Self::Arrived(arrived)
    }
}

/// The sockets of one node.
enum Sockets {
    Udp(Udp),
    Tcp(Tcp),
}

impl Wire for Sockets {
    fn send(&mut self, to: NodeId, body: Body) {
        match self {
            Self::Udp(udp) => udp.send(to, body),
            Self::Tcp(tcp) => tcp.send(to, body),
        }
    }
}

/// What is to be sent once it is written down: a node that is killed must not have said what its trace does not know of.
#[derive(Default)]
struct Outbox(Vec<(NodeId, Body)>);

impl Wire for Outbox {
    fn send(&mut self, to: NodeId, body: Body) {
        self.0.push((to, body));
    }
}

/// Where the client stands.
enum Client {
    /// It never asks.
    Absent,
    Thinking {
        until: Nanos,
    },
    Waiting,
    /// It is inside, and the referee has not seen it yet.
    Entering {
        since: Nanos,
    },
    Inside {
        since: Nanos,
        until: Nanos,
    },
    /// It has told the referee that it leaves.
    Leaving {
        since: Nanos,
    },
}

/// Takes part as one node, until the referee says that it is over.
///
/// # Errors
/// If the sockets cannot be had, or the referee is gone before the run begins.
pub(crate) fn play(
    algorithm: &'static str,
    me: NodeId,
    settings: &Settings,
    invitation: Invitation,
) -> Result<(), CannotEmulate> {
    wake_me_in_time();
    let (mailbox, events) = mpsc::sync_channel(MAILBOX);
    let referee = meeting::meet_referee(me, invitation, mailbox.clone())?;
    let identity = Identity { algorithm, life: invitation.key, me };
    let system = node::system(algorithm, &settings.system.setup(settings.seed, 0)?)?;
    let mut player = Player::prepare(settings, (identity, system.nodes.len()), referee, events, &mailbox)?;
    if player.begin(settings, system)? {
        player.run();
    }
    Ok(())
}

struct Player {
    identity: Identity,
    listening: Listening,
    /// Where all nodes listen.
    addresses: Vec<SocketAddr>,
    sockets: Sockets,
    outbox: Outbox,
    referee: Connection,
    events: Receiver<Event>,
    /// What arrived before the run began here.
    early: VecDeque<Arrived>,
    refused: Refused,
    host: Option<Host>,
    client: Client,
    /// How many things there are to ask for.
    wants: usize,
    arrivals: Stream,
    think: f64,
    hold: Nanos,
    stays: u64,
    inside: Nanos,
    requests: u64,
    late: Nanos,
}

impl Player {
    fn think(&mut self, now: Nanos) {
        let pause = if self.think > 0.0 { self.think * self.arrivals.exponential() } else { 0.0 };
        self.client = Client::Thinking { until: now + nanos(pause) };
    }

    /// Until it is over. What cannot go on is told to the referee, who ends it.
    fn run(&mut self) {
        let mut going = self.happen(Input::Start);
        while going == Ok(true) {
            going = self.go_on();
        }
        if let Err(breach) = going {
            self.tell(&Word::Broken { what: breach.to_string(), law: true });
        }
    }

    /// Does what is due, and waits for the next thing that comes. False if it is over.
    fn go_on(&mut self) -> Result<bool, Breach> {
        if let Some(arrived) = self.early.pop_front() {
            return self.arrived(arrived);
        }
        let now = now();
        let host = self.host.as_mut().expect("the run has begun");
        if let Some(input) = host.due(now) {
            return self.happen(input);
        }
        host.resend(now, &mut self.outbox);
        let deadline = [host.deadline(), self.next_move()].into_iter().flatten().min();
        self.post();
        if self.next_move().is_some_and(|due| due <= now) {
            return self.move_on(now);
        }
        let wait = deadline.map_or(Duration::from_secs(3600), |due| Duration::from_nanos(due.saturating_sub(now)));
        match self.events.recv_timeout(wait) {
            Ok(Event::Arrived(arrived)) => self.arrived(arrived),
            Ok(Event::Order(order)) => self.obey(order),
            Err(RecvTimeoutError::Timeout) => Ok(true),
            Ok(Event::Orphaned) | Err(RecvTimeoutError::Disconnected) => Ok(false),
        }
    }

    /// When the client does something next of its own accord.
    fn next_move(&self) -> Option<Nanos> {
        match self.client {
            Client::Thinking { until } | Client::Inside { until, .. } => Some(until),
            Client::Absent | Client::Waiting | Client::Entering { .. } | Client::Leaving { .. } => None,
        }
    }

    fn move_on(&mut self, now: Nanos) -> Result<bool, Breach> {
        match self.client {
            Client::Thinking { until } => {
                let want = if self.wants == 1 { 0 } else { self.arrivals.below(self.wants) };
                self.requests += 1;
                self.late += now - until;
                self.client = Client::Waiting;
                self.tell(&Word::Asks { want, at: now });
                self.happen(Input::Ask(want))
            }
            Client::Inside { since, .. } => {
                self.client = Client::Leaving { since };
                self.tell(&Word::Leaves { at: now });
                Ok(true)
            }
            Client::Absent | Client::Waiting | Client::Entering { .. } | Client::Leaving { .. } => Ok(true),
        }
    }

    fn obey(&mut self, order: Order) -> Result<bool, Breach> {
        match (order, &self.client) {
            (Order::Inside, Client::Entering { since }) => {
                self.client = Client::Inside { since: *since, until: since + self.hold };
                Ok(true)
            }
            (Order::Outside, Client::Leaving { since }) => {
                let now = now();
                self.stays += 1;
                self.inside += now - since;
                self.think(now);
                self.happen(Input::Leave)
            }
            (Order::Stop, _) => {
                let account = self.account();
                self.tell(&Word::Done(Box::new(account)));
                Ok(false)
            }
            (Order::Die, _) => Ok(false),
            (Order::Inside | Order::Outside | Order::Begin(_) | Order::Addresses(_), _) => {
                self.tell(&Word::Broken { what: "the referee is confused".to_owned(), law: false });
                Ok(false)
            }
        }
    }

    fn arrived(&mut self, arrived: Arrived) -> Result<bool, Breach> {
        let (source, bytes) = match arrived {
            Arrived::Bytes(source, bytes) => (source, bytes),
            Arrived::Connected(_, stream) => {
                let _ = stream.shutdown(Shutdown::Both); // too late to take part, and its reader would wait for ever
                return Ok(true);
            }
        };
        match self.read(source, &bytes) {
            Ok(going) => going,
            Err(malformed) => {
                let from = match source {
                    Source::Address(address) => Some(address),
                    Source::Node(node) => self.addresses.get(node.index()).copied(),
                };
                if let Some(report) = self.refused.note(from, &malformed) {
                    self.tell(&Word::Odd(format!("{} {report}", self.identity.me)));
                }
                Ok(true)
            }
        }
    }

    fn read(&mut self, source: Source, bytes: &[u8]) -> Result<Result<bool, Breach>, Malformed> {
        let frame = Frame::decode(bytes)?;
        self.identity.same_algorithm(&frame)?;
        let from = frame.from;
        let is_there = match source {
            Source::Node(node) => node == from,
            Source::Address(address) => self.is_datagram() && self.addresses.get(from.index()) == Some(&address),
        };
        if !is_there || from == self.identity.me {
            return Err(Malformed::UnknownSender(from));
        }
        if frame.life != self.identity.life {
            return Err(Malformed::OtherLife(from));
        }
        let host = self.host.as_mut().expect("the run has begun");
        match frame.body {
            Body::Message { number, clock, at, says } => {
                let deliveries = host.receive(from, (number, clock, at), says, &mut self.outbox)?;
                self.post();
                for delivery in deliveries {
                    let time = now();
                    let host = self.host.as_mut().expect("the run has begun");
                    let heard = host.deliver(time, delivery, &mut self.outbox);
                    if let Err(breach) = self.hear(time, heard) {
                        return Ok(Err(breach));
                    }
                }
            }
            Body::Ack(number) => host.acknowledged(now(), from, number),
            Body::Hello(_) | Body::Welcome(_) | Body::Refuse(_) => {
                return Err(Malformed::NoFrame("a word of the terminals".to_owned()));
            }
        }
        Ok(Ok(true))
    }

    fn is_datagram(&self) -> bool {
        matches!(self.sockets, Sockets::Udp(_))
    }

    fn happen(&mut self, input: Input) -> Result<bool, Breach> {
        let time = now();
        let host = self.host.as_mut().expect("the run has begun");
        let heard = host.happen(time, input, &mut self.outbox);
        self.hear(time, heard)?;
        Ok(true)
    }

    /// The client is told something, and the referee, if there is anything to see.
    fn hear(&mut self, at: Nanos, heard: Result<Vec<Heard>, Breach>) -> Result<(), Breach> {
        if let Some(lines) = self.host.as_mut().and_then(|host| host.event_log().lines()) {
            self.tell(&Word::Trace { at, lines });
        }
        self.post();
        for heard in heard? {
            match heard {
                Heard::Entered => {
                    self.client = Client::Entering { since: at };
                    self.tell(&Word::Enters { at });
                }
                Heard::Finished => {
                    self.think(at);
                    self.tell(&Word::Finishes { at });
                }
                Heard::Began | Heard::News => {}
            }
        }
        Ok(())
    }

    /// Sends what there is to send.
    fn post(&mut self) {
        for (to, body) in self.outbox.0.drain(..) {
            self.sockets.send(to, body);
        }
    }

    /// If the referee does not hear it, it is gone, and this node will notice.
    fn tell(&mut self, word: &Word) {
        let _ = self.referee.say(word);
    }

    fn account(&mut self) -> Account {
        self.refused.overflowed(self.listening.overflow());
        Account {
            deeds: self.host.as_ref().expect("the run has begun").deeds(),
            refused: self.refused.counts.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect(),
            stays: self.stays,
            inside: self.inside,
            requests: self.requests,
            late: self.late,
        }
    }
}
