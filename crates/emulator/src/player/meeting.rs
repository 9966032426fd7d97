//! Before the run: a node meets its referee, opens its sockets, and finds the other nodes.

use std::{
    collections::VecDeque,
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    sync::mpsc::{Receiver, SyncSender},
    thread,
};

use vez_algorithms::NodeId;
use vez_lab::random::{Purpose, Stream};

use super::{Client, Event, Outbox, Player, Sockets};
use crate::{
    CannotEmulate, Settings,
    clock::nanos,
    control::{self, Connection, Invitation, Order, PREPARATION, Word},
    event_log::EventLog,
    frame::Refused,
    host::{Circumstances, Host},
    node::System,
    transport::{self, ANY_PORT, Arrived, Identity, Tcp, Transport, Udp},
};

/// Connects to the referee, whose orders go into the mailbox from now on.
pub(super) fn meet_referee(
    me: NodeId,
    invitation: Invitation,
    mailbox: SyncSender<Event>,
) -> Result<Connection, CannotEmulate> {
    let io = |error| CannotEmulate::Io("meet the referee", error);
    let mut referee = Connection::new(TcpStream::connect(invitation.referee).map_err(io)?);
    referee.say(&Word::Hello { node: me, key: invitation.key }).map_err(io)?;
    let reader = referee.reader().map_err(io)?;
    thread::spawn(move || {
        control::listen(reader, |order| mailbox.send(Event::Order(order)).is_ok());
        let _ = mailbox.send(Event::Orphaned);
    });
    Ok(referee)
}

impl Player {
    /// Opens the sockets, and finds the other nodes.
    pub(super) fn prepare(
        settings: &Settings,
        (identity, nodes): (Identity, usize),
        mut referee: Connection,
        events: Receiver<Event>,
        mailbox: &SyncSender<Event>,
    ) -> Result<Self, CannotEmulate> {
        let open = |error| CannotEmulate::Io("open a socket on this machine", error);
        let me = identity.me;
        let (sockets, address, listening) = match settings.transport {
            Transport::Udp => {
                let socket = UdpSocket::bind(ANY_PORT).map_err(open)?;
                let address = socket.local_addr().map_err(open)?;
                let listening = transport::read_datagrams(&socket, mailbox.clone()).map_err(open)?;
                (Sockets::Udp(Udp { identity, socket, addresses: Vec::new() }), address, listening)
            }
            Transport::Tcp => {
                let listener = TcpListener::bind(ANY_PORT).map_err(open)?;
                let address = listener.local_addr().map_err(open)?;
                let listening = transport::accept(listener, identity, nodes, mailbox.clone()).map_err(open)?;
                let streams = (0..nodes).map(|_| None).collect();
                (Sockets::Tcp(Tcp { identity, streams }), address, listening)
            }
        };
        let io = |error| CannotEmulate::Io("speak to the referee", error);
        referee.say(&Word::Listening(address)).map_err(io)?;
        let mut player = Self {
            identity,
            listening,
            addresses: Vec::new(),
            sockets,
            outbox: Outbox::default(),
            referee,
            events,
            early: VecDeque::new(),
            refused: Refused::default(),
            host: None,
            client: Client::Absent,
            wants: 0,
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
        player.referee.say(&Word::Ready).map_err(io)?;
        Ok(player)
    }

    /// With datagrams it is enough to know where the others are. Of two nodes the one with the lower number connects.
    fn reach_all(&mut self, addresses: Vec<SocketAddr>, mailbox: &SyncSender<Event>) -> Result<(), CannotEmulate> {
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
                if tcp.streams[node.index()].is_none() {
                    tcp.streams[node.index()] = Some(stream);
                }
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
    pub(super) fn begin(&mut self, settings: &Settings, mut system: System) -> Result<bool, CannotEmulate> {
        let Order::Begin(epoch) = self.next_order()? else { return Ok(false) };
        let me = self.identity.me;
        let world = Circumstances {
            nodes: system.nodes.len(),
            service: settings.service(&system.entry.assumptions),
            loss: settings.loss,
            seed: settings.seed,
            epoch,
            stamps: true,
        };
        let node = system.nodes.swap_remove(me.index());
        self.host = Some(Host::new(me, node, world, EventLog::new(settings.trace, false)));
        self.wants = system.wants;
        if me.index() < settings.askers(system.clients) {
            self.think(epoch);
        }
        Ok(true)
    }
}
