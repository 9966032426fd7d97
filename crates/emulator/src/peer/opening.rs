//! Before anything happens: whether what was asked for makes sense, and the sockets.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    sync::mpsc,
};

use vez_algorithms::{NodeId, Setting, SetupError, catalog::Entry};
use vez_lab::system::{System, Topology};

use super::{
    Outlets, PeerError, PeerSettings,
    gathering::Gathering,
    process::{Happening, Peer, Visit},
};
use crate::{
    frame::Refused,
    node,
    resource::Desk,
    script::Typed,
    transport::{self, Identity, MAILBOX, Udp},
};

impl<'a> Peer<'a> {
    pub(super) fn open(entry: &'static Entry, settings: &'a PeerSettings, out: Outlets<'a>) -> Result<Self, PeerError> {
        let (id, addresses) = (settings.id, &settings.addresses);
        if !(1..=addresses.len()).contains(&id) {
            return Err(PeerError::NoSuchId { id, addresses: addresses.len() });
        }
        if entry.family != "mutex" {
            return Err(PeerError::Family { name: entry.name, family: entry.family });
        }
        let mut all: Vec<SocketAddr> = addresses.iter().copied().chain([settings.resource]).collect();
        all.sort_unstable();
        if let Some(nowhere) = all.iter().find(|address| address.ip().is_unspecified()) {
            return Err(PeerError::Nowhere(*nowhere));
        }
        if let Some(twice) = all.windows(2).find(|two| two[0] == two[1]) {
            return Err(PeerError::SameAddress(twice[0]));
        }
        let me = NodeId::from_index(id - 1);
        let (system, mut all) = system_of(entry, settings)?;
        let asks = all.wants > 0 && me.index() < all.clients;
        let nodes = all.nodes.len();
        let node = all.nodes.swap_remove(me.index());
        let address = addresses[me.index()];
        let socket = UdpSocket::bind(address).map_err(|error| PeerError::Listen { address, error })?;
        let (mailbox, happenings) = mpsc::sync_channel(MAILBOX);
        let listening = transport::read_datagrams(&socket, mailbox.clone());
        let listening = listening.map_err(|error| PeerError::Listen { address, error })?;
        if settings.script.is_none() {
            read_keyboard(mailbox);
        }
        let identity = Identity { algorithm: entry.name, life: crate::random_number(), me };
        Ok(Self {
            entry,
            settings,
            out,
            udp: Udp { identity, socket, addresses: addresses.clone() },
            happenings,
            gathering: Gathering::new(
                identity,
                addresses.clone(),
                settings.resource,
                agreed(entry, &system, settings.seed),
            ),
            listening,
            system,
            host: None,
            node: Some(node),
            nodes,
            asks,
            epoch: 0,
            script: settings.script.iter().flat_map(|script| script.lines.clone()).collect(),
            desk: Desk::new(),
            visit: Visit::Outside,
            held_back: Vec::new(),
            silent: Vec::new(),
            said: Vec::new(),
            refused: Refused::default(),
        })
    }
}

/// What all processes have to tell the algorithm alike, in words.
fn agreed(entry: &Entry, system: &System, seed: u64) -> String {
    let mut words = String::new();
    if entry.settings.contains(&Setting::Topology) {
        words += &format!(", topology = {}", system.topology);
        if system.topology == Topology::Random {
            words += &format!(", seed = {seed}");
        }
    }
    for (name, value) in system.settings(entry.settings) {
        words += &format!(", {name} = {value}");
    }
    words
}

/// The system with as many nodes as there are addresses. Some algorithms have more nodes than clients.
fn system_of(entry: &Entry, settings: &PeerSettings) -> Result<(System, node::System), PeerError> {
    let processes = settings.addresses.len();
    let of = |nodes| {
        let system = System { nodes, ..settings.system.clone() };
        let all = node::system(entry.name, &system.setup(settings.seed, 0)?)?;
        Ok::<_, SetupError>((system, all))
    };
    let fits = |nodes| of(nodes).ok().filter(|(_, all)| all.nodes.len() == processes);
    if let Some(found) = (1..=processes).rev().find_map(fits) {
        return Ok(found);
    }
    let least = of(1).map_or(2, |(_, all)| all.nodes.len());
    let fix = format!("give at least {least} addresses");
    Err(PeerError::Processes { name: entry.name, processes, fix })
}

/// Lines of the keyboard. When there is no more of them the process goes on: others count on it.
fn read_keyboard(mailbox: mpsc::SyncSender<Happening>) {
    std::thread::spawn(move || {
        for line in io::stdin().lines() {
            let Ok(line) = line else { break };
            if mailbox.send(Happening::Typed(Typed::Line(line))).is_err() {
                return;
            }
        }
        let _ = mailbox.send(Happening::Typed(Typed::Closed));
    });
}
