//! One node of an emulation, on a thread or as a process of its own: the algorithm, its client, and the sockets.
//!
//! The client thinks, asks, stays, leaves, as the simulator's does, from the same random numbers. It is inside only once the
//! referee has seen it enter, and leaves only once the referee has seen it leave: whatever overlaps for the referee has
//! overlapped.

use std::{
    collections::VecDeque,
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use vez_algorithms::{Algorithm, CommandOf, Family, Heard, Input, NodeId, OutputOf, Setup};
use vez_lab::random::{Purpose, Stream};

use crate::{
    CannotEmulate, Settings,
    chronicle::Chronicle,
    clock::{nanos, now, wake_me_in_time},
    control::{self, Account, Invitation, Order, Word},
    frame::{Body, Frame, Malformed, Refused},
    host::{Breach, Circumstances, Host, Wire},
    link::Nanos,
    transport::{self, ANY_PORT, Arrived, Identity, Source, Tcp, Transport, Udp},
};

/// Nobody waits longer than this for the others to be ready.
const PREPARATION: Duration = Duration::from_secs(20);

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
pub(crate) fn play<A: Algorithm>(me: NodeId, settings: &Settings, invitation: Invitation) -> Result<(), CannotEmulate> {
    wake_me_in_time();
    let (mailbox, events) = mpsc::channel();
    let referee = meet_referee(me, invitation, mailbox.clone())?;
    let identity = Identity { algorithm: A::NAME, life: invitation.key, me };
    let stop = Arc::new(AtomicBool::new(false));
    let setup = settings.system.setup(settings.seed, 0)?;
    let all = A::system(&setup)?;
    let mut player = Player::<A>::prepare(settings, (identity, all.len()), referee, events, &mailbox, &stop)?;
    let address = player.address;
    if player.begin(settings, &setup, all)? {
        player.run();
    }
    stop.store(true, Ordering::Relaxed);
    if settings.transport == Transport::Tcp {
        transport::wake(address);
    }
    Ok(())
}

fn meet_referee(me: NodeId, invitation: Invitation, mailbox: Sender<Event>) -> Result<TcpStream, CannotEmulate> {
    let io = |error| CannotEmulate::Io("meet the referee", error);
    let mut referee = TcpStream::connect(invitation.referee).map_err(io)?;
    referee.set_nodelay(true).map_err(io)?;
    control::say(&mut referee, &Word::Hello { node: me, key: invitation.key }).map_err(io)?;
    let reader = referee.try_clone().map_err(io)?;
    thread::spawn(move || {
        control::listen(reader, |order| mailbox.send(Event::Order(order)).is_ok());
        let _ = mailbox.send(Event::Orphaned);
    });
    Ok(referee)
}

struct Player<A: Algorithm> {
    identity: Identity,
    address: SocketAddr,
    /// Where all nodes listen.
    addresses: Vec<SocketAddr>,
    sockets: Sockets,
    referee: TcpStream,
    events: Receiver<Event>,
    /// What arrived before the run began here.
    early: VecDeque<Arrived>,
    refused: Refused,
    host: Option<Host<A, Chronicle>>,
    client: Client,
    wants: Vec<CommandOf<A>>,
    arrivals: Stream,
    think: f64,
    hold: Nanos,
    stays: u64,
    inside: Nanos,
    requests: u64,
    late: Nanos,
}

impl<A: Algorithm> Player<A> {
    /// Opens the sockets, and finds the other nodes.
    fn prepare(
        settings: &Settings,
        (identity, nodes): (Identity, usize),
        mut referee: TcpStream,
        events: Receiver<Event>,
        mailbox: &Sender<Event>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, CannotEmulate> {
        let open = |error| CannotEmulate::Io("open a socket on this machine", error);
        let me = identity.me;
        let (sockets, address) = match settings.transport {
            Transport::Udp => {
                let socket = UdpSocket::bind(ANY_PORT).map_err(open)?;
                let address = socket.local_addr().map_err(open)?;
                transport::read_datagrams(&socket, mailbox.clone(), Arc::clone(stop)).map_err(open)?;
                (Sockets::Udp(Udp { identity, socket, addresses: Vec::new() }), address)
            }
            Transport::Tcp => {
                let listener = TcpListener::bind(ANY_PORT).map_err(open)?;
                let address = listener.local_addr().map_err(open)?;
                transport::accept(listener, identity, nodes, mailbox.clone(), Arc::clone(stop));
                (Sockets::Tcp(Tcp { identity, streams: (0..nodes).map(|_| None).collect() }), address)
            }
        };
        let io = |error| CannotEmulate::Io("speak to the referee", error);
        control::say(&mut referee, &Word::Listening(address)).map_err(io)?;
        let mut player = Self {
            identity,
            address,
            addresses: Vec::new(),
            sockets,
            referee,
            events,
            early: VecDeque::new(),
            refused: Refused::default(),
            host: None,
            client: Client::Absent,
            wants: Vec::new(),
            arrivals: Stream::new(settings.seed, 0, me, Purpose::Arrivals),
            think: settings.think,
            hold: nanos(settings.hold),
            stays: 0,
            inside: 0,
            requests: 0,
            late: 0,
        };
        let Order::Addresses(addresses) = player.next_order()? else { return Err(CannotEmulate::Orphaned(me)) };
        player.addresses.clone_from(&addresses);
        player.reach_all(addresses, mailbox)?;
        control::say(&mut player.referee, &Word::Ready).map_err(io)?;
        Ok(player)
    }

    /// With datagrams it is enough to know where the others are. Of two nodes the one with the lower number connects.
    fn reach_all(&mut self, addresses: Vec<SocketAddr>, mailbox: &Sender<Event>) -> Result<(), CannotEmulate> {
        let me = self.identity.me;
        let tcp = match &mut self.sockets {
            Sockets::Udp(udp) => {
                udp.addresses = addresses;
                return Ok(());
            }
            Sockets::Tcp(tcp) => tcp,
        };
        for (to, address) in NodeId::all(addresses.len()).zip(addresses).filter(|(to, _)| *to > me) {
            let stream = transport::connect(self.identity, to, address, mailbox.clone());
            tcp.streams[to.index()] =
                Some(stream.map_err(|error| CannotEmulate::Io("connect to another node", error))?);
        }
        while !self.is_connected() {
            match self.events.recv_timeout(PREPARATION) {
                Ok(Event::Arrived(arrived)) => self.before_the_run(arrived),
                Ok(Event::Order(_) | Event::Orphaned) | Err(_) => return Err(CannotEmulate::Orphaned(me)),
            }
        }
        Ok(())
    }

    fn is_connected(&self) -> bool {
        match &self.sockets {
            Sockets::Udp(_) => true,
            Sockets::Tcp(tcp) => tcp.streams.iter().filter(|stream| stream.is_some()).count() + 1 == tcp.streams.len(),
        }
    }

    fn before_the_run(&mut self, arrived: Arrived) {
        match (arrived, &mut self.sockets) {
            (Arrived::Connected(node, stream), Sockets::Tcp(tcp)) => {
                // Whoever claims to be somebody that is here already is not believed.
                tcp.streams[node.index()].get_or_insert(stream);
            }
            (Arrived::Connected(..), Sockets::Udp(_)) => {}
            (bytes @ Arrived::Bytes(..), _) => self.early.push_back(bytes),
        }
    }

    /// The next thing that the referee says.
    fn next_order(&mut self) -> Result<Order, CannotEmulate> {
        loop {
            match self.events.recv_timeout(PREPARATION) {
                Ok(Event::Order(order)) => return Ok(order),
                Ok(Event::Arrived(arrived)) => self.before_the_run(arrived),
                Ok(Event::Orphaned) | Err(_) => return Err(CannotEmulate::Orphaned(self.identity.me)),
            }
        }
    }

    /// Waits until all are ready. False if there is to be no run.
    fn begin(&mut self, settings: &Settings, setup: &Setup, mut all: Vec<A>) -> Result<bool, CannotEmulate> {
        let Order::Begin(epoch) = self.next_order()? else { return Ok(false) };
        let me = self.identity.me;
        let world = Circumstances {
            nodes: all.len(),
            service: settings.service(&A::MODEL),
            loss: settings.loss,
            seed: settings.seed,
            epoch,
        };
        let node = all.swap_remove(me.index());
        self.host = Some(Host::new(me, node, world, Chronicle::new(settings.trace)));
        self.wants = A::wants(setup);
        if me.index() < settings.askers(A::clients(setup)) {
            self.think(epoch);
        }
        Ok(true)
    }

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
        host.resend(now, &mut self.sockets);
        let deadline = [host.deadline(), self.next_move()].into_iter().flatten().min();
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
                let want = if self.wants.len() == 1 { 0 } else { self.arrivals.below(self.wants.len()) };
                self.requests += 1;
                self.late += now - until;
                self.client = Client::Waiting;
                self.tell(&Word::Asks { want, at: now });
                self.happen(Input::Command(self.wants[want]))
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
                self.happen(Input::Command(A::Family::LEAVE.expect("whoever can enter can leave")))
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
            Arrived::Connected(..) => return Ok(true), // too late to take part
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
                let deliveries = host.receive(from, (number, clock, at), says, &mut self.sockets)?;
                for delivery in deliveries {
                    let time = now();
                    let host = self.host.as_mut().expect("the run has begun");
                    let outputs = host.deliver(time, delivery, &mut self.sockets);
                    match outputs.map(|outputs| self.hear(time, &outputs)) {
                        Ok(()) => {}
                        Err(breach) => return Ok(Err(breach)),
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

    fn happen(&mut self, input: Input<A>) -> Result<bool, Breach> {
        let time = now();
        let host = self.host.as_mut().expect("the run has begun");
        let outputs = host.happen(time, input, &mut self.sockets)?;
        self.hear(time, &outputs);
        Ok(true)
    }

    /// The client is told something, and the referee, if there is anything to see.
    fn hear(&mut self, at: Nanos, outputs: &[OutputOf<A>]) {
        if let Some(lines) = self.host.as_mut().and_then(|host| host.watch().take()) {
            self.tell(&Word::Trace { at, lines });
        }
        for output in outputs {
            match A::Family::hear(&mut <A::Family as Family>::News::default(), output) {
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
    }

    /// If the referee does not hear it, it is gone, and this node will notice.
    fn tell(&mut self, word: &Word) {
        let _ = control::say(&mut self.referee, word);
    }

    fn account(&self) -> Account {
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
