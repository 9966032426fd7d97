//! The shared resource of the laboratory exercise: it says who comes in, and objects if somebody else is inside.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    net::{SocketAddr, UdpSocket},
};

use serde::{Deserialize, Serialize};
use vez_algorithms::{
    Client, Clock, Family, NodeId, Phase, Scene,
    mutex::{Command, Mutex},
};

use crate::{
    clock::now,
    frame::{self, Body, Frame, MAX_FRAME, Malformed, Refused},
    link::{Link, Service},
    random_number,
};

/// More processes than this nobody starts by hand.
const MOST_PROCESSES: usize = 64;

/// What a process tells the resource.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Call {
    /// I come in, and greet you.
    Enter(String),
    /// I go.
    Leave,
}

impl From<&Call> for &'static str {
    fn from(call: &Call) -> Self {
        match call {
            Call::Enter(_) => "Enter",
            Call::Leave => "Leave",
        }
    }
}

/// Why a resource ends.
#[derive(Debug, thiserror::Error)]
pub enum ResourceError {
    /// It cannot listen.
    #[error("cannot listen on {address}: {error}; is there another resource? take another port, or end that one")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// It cannot hear or speak.
    #[error("the resource at {0} is cut off: {1}")]
    Socket(SocketAddr, io::Error),
    /// Two were inside together.
    #[error("{0}")]
    LawBroken(String),
}

/// A process that the resource knows.
struct Visitor {
    address: SocketAddr,
    life: u64,
    /// How many processes it says there are: on the wire the resource is one more.
    processes: usize,
    link: Link<(Clock, Call)>,
    client: Client<Mutex>,
}

/// Runs the resource until two are inside together, or for ever.
///
/// # Errors
/// If it cannot listen, or the law is broken.
pub fn resource(address: SocketAddr, out: &mut dyn Write) -> Result<(), ResourceError> {
    let socket = UdpSocket::bind(address).map_err(|error| ResourceError::Listen { address, error })?;
    let cut_off = |error| ResourceError::Socket(address, error);
    let mut resource =
        Resource { socket, life: random_number(), visitors: BTreeMap::new(), refused: Refused::default() };
    let here = resource.socket.local_addr().map_err(cut_off)?;
    say(out, &format!("the resource listens at {here}")).map_err(cut_off)?;
    let mut buffer = vec![0; MAX_FRAME + 1];
    loop {
        let (length, from) = resource.socket.recv_from(&mut buffer).map_err(cut_off)?;
        match resource.hear(from, &buffer[..length]) {
            Ok(lines) => lines.iter().try_for_each(|line| say(out, line)).map_err(cut_off)?,
            Err(malformed) => {
                if let Some(report) = resource.refused.note(Some(from), &malformed) {
                    say(out, &report).map_err(cut_off)?;
                }
            }
        }
        resource.law().map_err(ResourceError::LawBroken)?;
    }
}

fn say(out: &mut dyn Write, line: &str) -> io::Result<()> {
    writeln!(out, "{line}").and_then(|()| out.flush())
}

struct Resource {
    socket: UdpSocket,
    life: u64,
    visitors: BTreeMap<NodeId, Visitor>,
    refused: Refused,
}

impl Resource {
    /// What there is to say about a datagram.
    fn hear(&mut self, address: SocketAddr, bytes: &[u8]) -> Result<Vec<String>, Malformed> {
        let frame = Frame::decode(bytes)?;
        let (from, life) = (frame.from, frame.life);
        match frame.body {
            Body::Hello(processes) if processes > MOST_PROCESSES => {
                Err(Malformed::NoFrame(format!("{processes} processes are too many")))
            }
            Body::Hello(processes) => Ok(self.meet(from, life, address, processes, &frame.algorithm)),
            Body::Message { number, clock, says, .. } => {
                let visitor = self.visitors.get_mut(&from).filter(|visitor| visitor.address == address);
                let visitor = visitor.ok_or(Malformed::UnknownSender(from))?;
                if visitor.life != life {
                    return Err(Malformed::OtherLife(from));
                }
                let (clock, call) = (frame::is_possible(clock)?, frame::message(says)?);
                let arrival = visitor
                    .link
                    .receive(number, (clock, call))
                    .map_err(|_| Malformed::NoFrame(format!("the number {number} is far ahead")))?;
                let processes = visitor.processes;
                self.send(address, processes, &frame.algorithm, Body::Ack(number));
                Ok(arrival.messages.into_iter().map(|(clock, call)| self.serve(from, clock, &call)).collect())
            }
            Body::Ack(_) | Body::Welcome(_) | Body::Refuse(_) => {
                Err(Malformed::NoFrame("nothing that one says to a resource".to_owned()))
            }
        }
    }

    /// A process introduces itself. One that was started again is a new one; one of the same number elsewhere is none.
    fn meet(&mut self, from: NodeId, life: u64, address: SocketAddr, processes: usize, algorithm: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let process = from.0.saturating_add(1);
        match self.visitors.get(&from) {
            None if self.visitors.len() == MOST_PROCESSES => {
                let why = format!("{MOST_PROCESSES} processes are known already");
                self.send(address, processes, algorithm, Body::Refuse(why));
                return lines;
            }
            Some(known) if known.address != address && known.client.phase != Phase::Idle => {
                let why = format!("process {process} is inside, and came from {}", known.address);
                self.send(address, processes, algorithm, Body::Refuse(why));
                return lines;
            }
            Some(known) if known.life == life && known.address == address => {}
            known => {
                if known.is_some_and(|known| known.client.phase == Phase::Inside) {
                    lines.push(format!("process {process} was inside, and has been started again: it has left"));
                }
                let (link, client) = (Link::new(Service::InOrder), Client::default());
                self.visitors.insert(from, Visitor { address, life, processes, link, client });
            }
        }
        self.send(address, processes, algorithm, Body::Welcome(life));
        lines
    }

    fn serve(&mut self, from: NodeId, clock: Clock, call: &Call) -> String {
        let process = from.0.saturating_add(1);
        let client = &mut self.visitors.get_mut(&from).expect("it was just heard").client;
        match (call, client.phase) {
            (Call::Enter(greeting), Phase::Idle | Phase::Waiting) => {
                client.asked = Some(Command::Request);
                client.phase = Phase::Inside;
                let greeting: String = greeting.chars().filter(|c| !c.is_control()).take(80).collect();
                format!("clock {clock:>3}  process {process} is inside and says: {greeting}")
            }
            (Call::Leave, Phase::Inside) => {
                *client = Client::default();
                format!("clock {clock:>3}  process {process} has left")
            }
            (Call::Enter(_), Phase::Inside) => format!("clock {clock:>3}  process {process} comes in twice"),
            (Call::Leave, Phase::Idle | Phase::Waiting) => {
                format!("clock {clock:>3}  process {process} leaves without having come in")
            }
        }
    }

    /// The law of mutual exclusion.
    fn law(&self) -> Result<(), String> {
        let inside = |(_, visitor): &(&NodeId, &Visitor)| visitor.client.phase == Phase::Inside;
        let inside: Vec<NodeId> = self.visitors.iter().filter(inside).map(|(node, _)| *node).collect();
        let broken = Mutex::law(&Scene {
            nodes: self.visitors.len(),
            limit: 1,
            inside: &inside,
            client: &|node| &self.visitors[&node].client,
            alive: &|_| true,
            connected: &|_, _| true,
        });
        broken.map_err(|_| {
            let names: Vec<String> = inside.iter().map(|node| node.0.saturating_add(1).to_string()).collect();
            format!("processes {} are inside together", names.join(" and "))
        })
    }

    fn send(&self, to: SocketAddr, processes: usize, algorithm: &str, body: Body) {
        let from = NodeId::from_index(processes);
        let frame = Frame { algorithm: algorithm.to_owned(), life: self.life, from, body };
        let _ = self.socket.send_to(&frame.encode(), to);
    }
}

/// A link to the resource, as a process has it.
pub(crate) struct Desk {
    link: Link<(Clock, Call)>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self { link: Link::new(Service::InOrder) }
    }

    /// The number and the frame of a call.
    pub(crate) fn call(&mut self, clock: Clock, call: Call) -> (u64, Body) {
        let call = (clock, call);
        let number = self.link.send(now(), &call);
        (number, body(number, &call))
    }

    pub(crate) fn acknowledged(&mut self, number: u64) {
        self.link.acknowledged(now(), number);
    }

    pub(crate) fn resend(&mut self) -> Vec<Body> {
        self.link.resend(now()).into_iter().map(|(number, _, call)| body(number, &call)).collect()
    }

    pub(crate) fn deadline(&self) -> Option<crate::link::Nanos> {
        self.link.deadline()
    }

    /// Since when the resource owes an answer.
    pub(crate) fn unanswered_since(&self) -> Option<crate::link::Nanos> {
        self.link.unanswered_since()
    }
}

fn body(number: u64, (clock, call): &(Clock, Call)) -> Body {
    let says = serde_json::to_value(call).expect("a call has a text");
    Body::Message { number, clock: *clock, at: None, says }
}
