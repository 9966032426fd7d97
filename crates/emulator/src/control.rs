//! What the referee and the nodes say to each other, a JSON object a line over a connection of its own.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use vez_algorithms::{NodeId, link::Nanos};

use crate::host::Deeds;

/// How a node finds its referee.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Invitation {
    /// Where the referee listens.
    pub referee: SocketAddr,
    /// The number of this run, which nobody else knows.
    pub key: u64,
}

/// What the referee tells a node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// This is where the nodes listen.
    Addresses(Vec<SocketAddr>),
    /// The run begins; this is when it began.
    Begin(Nanos),
    /// I have seen you enter.
    Inside,
    /// I have seen you leave.
    Outside,
    /// The run is over: say what you have done.
    Stop,
    /// Crash.
    Die,
}

/// What a node tells the referee.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Word {
    /// This is who I am.
    Hello { node: NodeId, key: u64 },
    /// I listen here.
    Listening(SocketAddr),
    /// I can reach everybody.
    Ready,
    /// My client asks for one of the things that there are to ask for.
    Asks { want: usize, at: Nanos },
    /// It is inside.
    Enters { at: Nanos },
    /// What it asked for is done, and it was never inside.
    Finishes { at: Nanos },
    /// It is about to leave.
    Leaves { at: Nanos },
    /// Lines of a trace: something that happened, and what came of it.
    Trace { at: Nanos, lines: String },
    /// Something came that is none of ours.
    Odd(String),
    /// I cannot go on.
    Broken { what: String, law: bool },
    /// This is what I have done.
    Done(Box<Account>),
}

/// What a node has done in the whole run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) deeds: Deeds,
    /// What was refused, by kind.
    pub(crate) refused: BTreeMap<String, u64>,
    /// How often its client was inside, and for how long in all.
    pub(crate) stays: u64,
    pub(crate) inside: Nanos,
    /// How often its client asked, and how much later than it wanted to in all.
    pub(crate) requests: u64,
    pub(crate) late: Nanos,
}

/// Nobody waits longer than this for a node to be ready.
pub(crate) const PREPARATION: Duration = Duration::from_secs(20);

/// One end of the connection between the referee and a node. It ends with this value, whoever else reads from it.
pub(crate) struct Connection(TcpStream);

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        // Without it an answer would wait for another one to go with.
        let _ = stream.set_nodelay(true);
        Self(stream)
    }

    /// For whoever reads what the other side says.
    pub(crate) fn reader(&self) -> io::Result<TcpStream> {
        self.0.try_clone()
    }

    /// Says something.
    pub(crate) fn say(&mut self, what: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        self.0.write_all(&line)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// Hears everything until the other side is gone, or `hear` has had enough.
pub(crate) fn listen<T: DeserializeOwned>(stream: TcpStream, mut hear: impl FnMut(T) -> bool) {
    for line in BufReader::new(stream).lines() {
        let what = line.ok().and_then(|line| serde_json::from_str(&line).ok());
        if !what.is_some_and(&mut hear) {
            return;
        }
    }
}
