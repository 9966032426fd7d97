//! Before anything happens: whether what was asked for makes sense, and the sockets.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    sync::mpsc,
};

use vez_algorithms::{Algorithm, Family, NodeId, Setting, SetupError};
use vez_lab::system::{System, Topology};

use super::{
    Outlets, PeerError, PeerSettings,
    gathering::Gathering,
    process::{Happening, Peer, Visit},
};
use crate::{
    frame::Refused,
    resource::Desk,
    script::Typed,
    transport::{self, Identity, MAILBOX, Udp},
};

impl<'a, A: Algorithm> Peer<'a, A> {
    pub(super) fn open(settings: &'a PeerSettings, out: Outlets<'a>) -> Result<Self, PeerError> {
        let (id, addresses) = (settings.id, &settings.addresses);
        if !(1..=addresses.len()).contains(&id) {
            return Err(PeerError::NoSuchId { id, addresses: addresses.len() });
        }
        if A::Family::NAME != "mutex" {
            return Err(PeerError::Family { name: A::NAME, family: A::Family::NAME });
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
        let (system, nodes) = system_of::<A>(settings)?;
        let setup = system.setup(settings.seed, 0)?;
        let want = A::wants(&setup).first().copied().filter(|_| me.index() < A::clients(&setup));
        let node = nodes[me.index()].clone();
        let address = addresses[me.index()];
        let socket = UdpSocket::bind(address).map_err(|error| PeerError::Listen { address, error })?;
        let (mailbox, happenings) = mpsc::sync_channel(MAILBOX);
        let listening = transport::read_datagrams(&socket, mailbox.clone());
        let listening = listening.map_err(|error| PeerError::Listen { address, error })?;
        if settings.script.is_none() {
            read_keyboard(mailbox);
        }
        let identity = Identity { algorithm: A::NAME, life: crate::random_number(), me };
        Ok(Self {
            settings,
            out,
            udp: Udp { identity, socket, addresses: addresses.clone() },
            happenings,
            gathering: Gathering::new(
                identity,
                addresses.clone(),
                settings.resource,
                agreed::<A>(&system, settings.seed),
            ),
            listening,
            system,
            host: None,
            node: Some(node),
            nodes: nodes.len(),
            want,
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
fn agreed<A: Algorithm>(system: &System, seed: u64) -> String {
    let mut words = String::new();
    if A::SETTINGS.contains(&Setting::Topology) {
        words += &format!(", topology = {}", system.topology);
        if system.topology == Topology::Random {
            words += &format!(", seed = {seed}");
        }
    }
    for (name, value) in system.settings(A::SETTINGS) {
        words += &format!(", {name} = {value}");
    }
    words
}

/// The system with as many nodes as there are addresses. Some algorithms have more nodes than clients.
fn system_of<A: Algorithm>(settings: &PeerSettings) -> Result<(System, Vec<A>), PeerError> {
    let processes = settings.addresses.len();
    let of = |nodes| {
        let system = System { nodes, ..settings.system.clone() };
        let all = A::system(&system.setup(settings.seed, 0)?)?;
        Ok::<_, SetupError>((system, all))
    };
    let fits = |nodes| of(nodes).ok().filter(|(_, all)| all.len() == processes);
    if let Some(found) = (1..=processes).rev().find_map(fits) {
        return Ok(found);
    }
    let least = of(1).map_or(2, |(_, all)| all.len());
    let fix = format!("give at least {least} addresses");
    Err(PeerError::Processes { name: A::NAME, processes, fix })
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
