//! The nodes of an emulation, as the referee has them: whatever runs them, and a connection to each.

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    process::Child,
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread::JoinHandle,
    time::Duration,
};

use vez_algorithms::NodeId;

use crate::{
    CannotEmulate,
    control::{self, Connection, Invitation, Order, PREPARATION, Word},
    transport::{self, ANY_PORT, Listening},
};

/// How often the referee looks whether the nodes that it waits for are still there.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Whatever runs a node.
pub(crate) enum Performer {
    /// A thread of this process.
    Thread(JoinHandle<Result<(), CannotEmulate>>),
    /// A process.
    Process(Child),
}

/// All that run nodes. When it goes, the processes go.
struct Troupe(Vec<Performer>);

impl Troupe {
    /// Ends a node's process, without a word. A thread has to be told.
    fn kill(&mut self, node: NodeId) -> bool {
        match &mut self.0[node.index()] {
            Performer::Process(child) => {
                let _ = child.kill();
                let _ = child.wait();
                true
            }
            Performer::Thread(_) => false,
        }
    }

    /// Whose thread or process is no longer there.
    fn ended(&mut self) -> Option<NodeId> {
        let ended = |performer: &mut Performer| match performer {
            Performer::Thread(thread) => thread.is_finished(),
            Performer::Process(child) => child.try_wait().is_ok_and(|status| status.is_some()),
        };
        self.0.iter_mut().position(ended).map(NodeId::from_index)
    }

    /// Why a thread has ended, if it has.
    fn reason(&mut self, node: NodeId) -> CannotEmulate {
        if let Performer::Thread(thread) = self.0.remove(node.index())
            && let Ok(Err(error)) = thread.join()
        {
            return error;
        }
        CannotEmulate::Lost(node)
    }
}

impl Drop for Troupe {
    fn drop(&mut self) {
        for performer in &mut self.0 {
            if let Performer::Process(child) = performer {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

/// What the referee hears.
pub(crate) enum Heard {
    /// A node has introduced itself.
    Met(NodeId, Connection),
    /// It says something.
    Word(NodeId, Word),
    /// It will say no more.
    Gone(NodeId),
}

/// All nodes, ready to begin.
pub(crate) struct Company {
    troupe: Troupe,
    words: Receiver<Heard>,
    nodes: Vec<Option<Connection>>,
    /// Where the nodes listen.
    pub(crate) addresses: Vec<SocketAddr>,
}

impl Company {
    /// Starts so many nodes, meets them, and lets them find each other.
    pub(crate) fn gather(
        n: usize,
        start: impl Fn(NodeId, Invitation) -> Result<Performer, CannotEmulate>,
    ) -> Result<Self, CannotEmulate> {
        let (words, _listening, invitation) = open()?;
        let mut troupe = Troupe(Vec::new());
        for node in NodeId::all(n) {
            troupe.0.push(start(node, invitation)?);
        }
        let mut company = Self { troupe, words, nodes: (0..n).map(|_| None).collect(), addresses: Vec::new() };
        company.prepare(n)?;
        Ok(company)
    }

    fn prepare(&mut self, n: usize) -> Result<(), CannotEmulate> {
        let mut addresses: Vec<Option<SocketAddr>> = vec![None; n];
        let mut ready = vec![false; n];
        while let Some(missing) = ready.iter().position(|ready| !ready) {
            let missing = NodeId::from_index(missing);
            match self.hear_while_all_live(missing)? {
                Heard::Met(node, connection) if node.index() < n => {
                    self.nodes[node.index()].get_or_insert(connection);
                }
                Heard::Word(node, Word::Listening(address)) => {
                    addresses[node.index()] = Some(address);
                    if let Some(all) = addresses.iter().copied().collect::<Option<Vec<_>>>() {
                        self.addresses.clone_from(&all);
                        NodeId::all(n).for_each(|node| self.tell(node, &Order::Addresses(all.clone())));
                    }
                }
                Heard::Word(node, Word::Ready) => ready[node.index()] = true,
                Heard::Gone(node) => return Err(self.troupe.reason(node)),
                Heard::Met(..) | Heard::Word(..) => {}
            }
        }
        Ok(())
    }

    /// What a node says, unless one has ended before it could say anything, or says nothing for long.
    fn hear_while_all_live(&mut self, missing: NodeId) -> Result<Heard, CannotEmulate> {
        let mut waited = Duration::ZERO;
        while waited < PREPARATION {
            match self.words.recv_timeout(LOOK_UP) {
                Ok(heard) => return Ok(heard),
                Err(_) => waited += LOOK_UP,
            }
            if let Some(ended) = self.troupe.ended() {
                return Err(self.troupe.reason(ended));
            }
        }
        Err(CannotEmulate::Lost(missing))
    }

    /// Waits for the next thing that a node says.
    pub(crate) fn hear(&self, timeout: Duration) -> Result<Heard, RecvTimeoutError> {
        self.words.recv_timeout(timeout)
    }

    /// Tells a node something. One that does not hear it has died, and its silence will be noticed.
    pub(crate) fn tell(&mut self, node: NodeId, order: &Order) {
        if let Some(connection) = &mut self.nodes[node.index()] {
            let _ = connection.say(order);
        }
    }

    /// Lets a node crash: a process is killed, a thread told to end without a word.
    pub(crate) fn crash(&mut self, node: NodeId) {
        if !self.troupe.kill(node) {
            self.tell(node, &Order::Die);
        }
    }
}

/// Listens for nodes, each of which knows the number of this run.
fn open() -> Result<(Receiver<Heard>, Listening, Invitation), CannotEmulate> {
    let io = |error| CannotEmulate::Io("listen on this machine", error);
    let listener = TcpListener::bind(ANY_PORT).map_err(io)?;
    let invitation = Invitation { referee: listener.local_addr().map_err(io)?, key: crate::random_number() };
    let (mailbox, words) = mpsc::channel();
    let serve = move |stream| hear_out(stream, invitation.key, &mailbox);
    Ok((words, transport::each_connection(listener, serve).map_err(io)?, invitation))
}

/// Hears whoever has connected, if it is a node of this run.
fn hear_out(stream: TcpStream, key: u64, mailbox: &Sender<Heard>) {
    let Ok(reader) = stream.try_clone() else { return };
    let mut stream = Some(stream);
    let mut who = None;
    control::listen(reader, |word| match (who, word) {
        (None, Word::Hello { node, key: theirs }) if theirs == key => {
            who = Some(node);
            stream.take().is_some_and(|stream| mailbox.send(Heard::Met(node, Connection::new(stream))).is_ok())
        }
        (None, _) => false,
        (Some(node), word) => mailbox.send(Heard::Word(node, word)).is_ok(),
    });
    if let Some(node) = who {
        let _ = mailbox.send(Heard::Gone(node));
    }
}
