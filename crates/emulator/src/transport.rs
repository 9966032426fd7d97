//! Sockets: how frames get from one node to another, and into the mailbox of whoever waits for them.
//!
//! A thread reads each socket and puts what arrives into a mailbox, so that a node waits in one place for whatever comes
//! first. Writing is done by the node itself: the readers never stop reading, so nobody blocks for ever.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::SyncSender,
    },
    thread,
    time::Duration,
};

use serde::Serialize;
use vez_algorithms::NodeId;

use crate::{
    frame::{Body, Frame, Hello, MAX_FRAME, Malformed},
    host::Wire,
};

/// How often a reader looks whether it is still wanted.
const LOOK_UP: Duration = Duration::from_millis(50);

/// How much a mailbox holds. Datagrams beyond that are lost, as datagrams may be; whoever sends over a connection waits. More
/// than this is never on its way to a node: few messages of each other node are.
pub(crate) const MAILBOX: usize = 1024;

/// Which sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Datagrams: they may be lost, doubled, and overtake each other.
    Udp,
    /// Connections, one between each two nodes: reliable, and in order.
    Tcp,
}

impl std::str::FromStr for Transport {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "udp" => Ok(Self::Udp),
            "tcp" => Ok(Self::Tcp),
            other => Err(format!("unknown transport \"{other}\"; there are udp and tcp")),
        }
    }
}

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        })
    }
}

/// Something that a socket has for a node.
pub(crate) enum Arrived {
    /// Bytes: a frame, or something else.
    Bytes(Source, Vec<u8>),
    /// Another node has connected, or we to it.
    Connected(NodeId, TcpStream),
}

/// Where bytes came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// An address; whoever sends from there says who it is.
    Address(SocketAddr),
    /// A connection of a node that has introduced itself.
    Node(NodeId),
}

/// Who we are on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub(crate) algorithm: &'static str,
    pub(crate) life: u64,
    pub(crate) me: NodeId,
}

impl Identity {
    pub(crate) fn frame(&self, body: Body) -> Frame {
        Frame { algorithm: self.algorithm.to_owned(), life: self.life, from: self.me, body }
    }

    /// Whether a frame is of the algorithm that we run.
    pub(crate) fn same_algorithm(&self, frame: &Frame) -> Result<(), Malformed> {
        if frame.algorithm == self.algorithm {
            return Ok(());
        }
        // A name of any length would be repeated by whoever reports it.
        let theirs = frame.algorithm.chars().take(40).collect();
        Err(Malformed::OtherAlgorithm { theirs, ours: self.algorithm })
    }
}

/// A socket for datagrams.
pub(crate) struct Udp {
    pub(crate) identity: Identity,
    pub(crate) socket: UdpSocket,
    pub(crate) addresses: Vec<SocketAddr>,
}

impl Udp {
    /// Sends a frame to an address. UDP promises nothing, so a failure is one more loss.
    pub(crate) fn send_to(&self, to: SocketAddr, body: Body) {
        let _ = self.socket.send_to(&self.identity.frame(body).encode(), to);
    }
}

impl Wire for Udp {
    fn send(&mut self, to: NodeId, body: Body) {
        self.send_to(self.addresses[to.index()], body);
    }
}

/// A thread that listens. It ends with this value.
pub(crate) struct Listening {
    stop: Arc<AtomicBool>,
    /// How many datagrams came faster than they were read.
    overflow: Arc<AtomicU64>,
    /// Where to knock, so that it sees that it is no longer wanted.
    knock: Option<SocketAddr>,
}

impl Listening {
    fn new(knock: Option<SocketAddr>) -> Self {
        Self { stop: Arc::default(), overflow: Arc::default(), knock }
    }

    /// How many datagrams came faster than they were read.
    pub(crate) fn overflow(&self) -> u64 {
        self.overflow.load(Ordering::Relaxed)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(address) = self.knock {
            let _ = TcpStream::connect(address);
        }
    }
}

/// Puts all datagrams into a mailbox, as long as there is room.
pub(crate) fn read_datagrams<E: From<Arrived> + Send + 'static>(
    socket: &UdpSocket,
    mailbox: SyncSender<E>,
) -> io::Result<Listening> {
    let socket = socket.try_clone()?;
    socket.set_read_timeout(Some(LOOK_UP))?;
    let listening = Listening::new(None);
    let (stop, overflow) = (Arc::clone(&listening.stop), Arc::clone(&listening.overflow));
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while !stop.load(Ordering::Relaxed) {
            // An error is a timeout, or the echo of a datagram that nobody wanted.
            if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                let bytes = buffer[..length].to_vec();
                if mailbox.try_send(Arrived::Bytes(Source::Address(from), bytes).into()).is_err() {
                    overflow.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
    Ok(listening)
}

/// Connections to all other nodes.
pub(crate) struct Tcp {
    pub(crate) identity: Identity,
    pub(crate) streams: Vec<Option<TcpStream>>,
}

/// The readers have a share in each connection, and would keep it open.
impl Drop for Tcp {
    fn drop(&mut self) {
        for stream in self.streams.iter().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Wire for Tcp {
    /// A connection that breaks belongs to a node that has died; what is sent to it is lost.
    fn send(&mut self, to: NodeId, body: Body) {
        let Some(stream) = &mut self.streams[to.index()] else { return };
        let mut line = self.identity.frame(body).encode();
        line.push(b'\n');
        if stream.write_all(&line).is_err() {
            self.streams[to.index()] = None;
        }
    }
}

/// Connects to a node, says who we are, and reads what it sends.
pub(crate) fn connect<E: From<Arrived> + Send + 'static>(
    identity: Identity,
    to: NodeId,
    address: SocketAddr,
    mailbox: SyncSender<E>,
) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut line = identity.frame(Body::Hello(Hello::default())).encode();
    line.push(b'\n');
    stream.write_all(&line)?;
    let reader = BufReader::new(stream.try_clone()?);
    thread::spawn(move || read_frames(reader, to, &mailbox));
    Ok(stream)
}

/// Accepts connections. Whoever connects introduces itself first.
pub(crate) fn accept<E: From<Arrived> + Send + 'static>(
    listener: TcpListener,
    identity: Identity,
    nodes: usize,
    mailbox: SyncSender<E>,
) -> io::Result<Listening> {
    each_connection(listener, move |stream| greet(stream, identity, nodes, &mailbox))
}

/// Serves each connection on a thread of its own.
pub(crate) fn each_connection(
    listener: TcpListener,
    serve: impl Fn(TcpStream) + Clone + Send + 'static,
) -> io::Result<Listening> {
    let listening = Listening::new(Some(listener.local_addr()?));
    let stop = Arc::clone(&listening.stop);
    thread::spawn(move || {
        for stream in listener.incoming() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let serve = serve.clone();
            if let Ok(stream) = stream {
                thread::spawn(move || serve(stream));
            }
        }
    });
    Ok(listening)
}

fn greet<E: From<Arrived>>(stream: TcpStream, identity: Identity, nodes: usize, mailbox: &SyncSender<E>) {
    let Ok(address) = stream.peer_addr() else { return };
    let Ok(clone) = stream.try_clone() else { return };
    let mut reader = BufReader::new(clone);
    let Some(line) = read_line(&mut reader) else { return };
    let is_ours = |frame: &Frame| {
        frame.algorithm == identity.algorithm && frame.life == identity.life && frame.from.index() < nodes
    };
    match Frame::decode(&line) {
        Ok(frame) if is_ours(&frame) && matches!(frame.body, Body::Hello(_)) => {
            let _ = stream.set_nodelay(true);
            if mailbox.send(Arrived::Connected(frame.from, stream).into()).is_ok() {
                read_frames(reader, frame.from, mailbox);
            }
        }
        // Whoever reads the mailbox will find what is wrong with it.
        Ok(_) | Err(_) => drop(mailbox.send(Arrived::Bytes(Source::Address(address), line).into())),
    }
}

fn read_frames<E: From<Arrived>>(mut reader: BufReader<TcpStream>, from: NodeId, mailbox: &SyncSender<E>) {
    while let Some(line) = read_line(&mut reader) {
        if mailbox.send(Arrived::Bytes(Source::Node(from), line).into()).is_err() {
            return;
        }
    }
}

/// The next line, without its end. Of one that is too long only so much is kept that this can be seen.
fn read_line(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let most = MAX_FRAME as u64 + 2;
    reader.by_ref().take(most).read_until(b'\n', &mut line).ok().filter(|read| *read > 0)?;
    if line.pop_if(|last| *last == b'\n').is_none() && line.len() as u64 == most {
        skip_line(reader)?;
    }
    Some(line)
}

fn skip_line(reader: &mut impl BufRead) -> Option<()> {
    loop {
        let mut rest = Vec::new();
        let read = reader.by_ref().take(1 << 16).read_until(b'\n', &mut rest).ok()?;
        if read == 0 || rest.ends_with(b"\n") {
            return Some(());
        }
    }
}

/// What may help whoever cannot listen: the words given if the address is in use.
pub(crate) fn advice(error: &io::Error, in_use: &'static str) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => in_use,
        io::ErrorKind::AddrNotAvailable => "; give an address of this machine, such as 127.0.0.1:10001",
        io::ErrorKind::PermissionDenied => "; take a port from 1024 to 65535",
        _ => "",
    }
}

/// A port of this machine that the system chooses.
pub(crate) const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
