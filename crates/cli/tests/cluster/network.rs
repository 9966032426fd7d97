//! A network that can be cut: between any two nodes there is a proxy.
//!
//! Each node is reached by the others at its proxy, which knows who connects by the address that stands in what is sent.
//! What is cut does not break: it stops, as it does when a cable is pulled, and goes on later where it was.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::machines::Machines;

/// Pairs of nodes that cannot hear each other: the second does not hear the first.
type Cut = BTreeSet<(u16, u16)>;

pub(crate) struct Network {
    pub machines: Machines,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    cut: watch::Sender<Cut>,
    /// Where each node is reached by the others, and where it really is.
    proxies: Mutex<Vec<(String, String)>>,
}

impl Network {
    pub(crate) async fn new(nodes: u16, lease: Duration) -> Self {
        let mut network = Self { machines: Machines::empty(lease), state: Arc::default() };
        for number in 1..=nodes {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let at = listener.local_addr().unwrap().to_string();
            network.state.proxies.lock().unwrap().push((at.clone(), String::new()));
            let mut node = network.machines.start(number, &["--advertise", &at]);
            network.state.proxies.lock().unwrap()[usize::from(number) - 1].1 = node.peer.clone();
            // The others join by way of the proxy.
            node.peer = at;
            network.machines.nodes.push(node);
            tokio::spawn(accept(listener, number, Arc::clone(&network.state)));
            network.machines.ready(number).await;
        }
        network
    }

    /// From now on these two do not hear each other.
    pub(crate) fn cut(&self, one: u16, other: u16) {
        self.state.cut.send_modify(|cut| cut.extend([(one, other), (other, one)]));
    }

    /// From now on all hear each other.
    pub(crate) fn heal(&self) {
        self.state.cut.send_replace(Cut::new());
    }
}

async fn accept(listener: TcpListener, to: u16, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move { forward(stream, to, &state).await });
    }
}

async fn forward(mut from: TcpStream, to: u16, state: &State) -> Option<()> {
    let target = state.proxies.lock().unwrap()[usize::from(to) - 1].1.clone();
    let mut onward = TcpStream::connect(target).await.ok()?;
    let (mut bytes, mut source, mut cut) = (vec![0; 64 * 1024], None, state.cut.subscribe());
    loop {
        let count = tokio::select! {
            count = from.read(&mut bytes) => count.ok()?,
            // Nodes say nothing on connections that they have not opened: this is the end.
            _ = onward.readable() => return None,
        };
        if count == 0 {
            return None;
        }
        source = source.or_else(|| state.who(&bytes[..count]));
        if let Some(source) = source {
            cut.wait_for(|cut| !cut.contains(&(source, to))).await.ok()?;
        }
        onward.write_all(&bytes[..count]).await.ok()?;
    }
}

impl State {
    /// Whose address stands in it first: the sender's, and then those that it speaks of.
    fn who(&self, bytes: &[u8]) -> Option<u16> {
        let proxies = self.proxies.lock().unwrap();
        let place = |at: &str| bytes.windows(at.len()).position(|part| part == at.as_bytes());
        let found = (1..).zip(&*proxies).filter_map(|(number, (at, _))| Some((place(at)?, number)));
        found.min().map(|(_, number)| number)
    }
}
