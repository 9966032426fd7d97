//! The shared resource of the laboratory exercise: it says who comes in, and objects if somebody else is inside.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    net::{SocketAddr, UdpSocket},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use vez_algorithms::{
    Client, Clock, Family, NodeId, Phase, Scene,
    link::{Link, Nanos, Service},
    mutex::{Command, Mutex},
};

use crate::{
    clock::now,
    frame::{self, Body, Frame, Hello, MAX_FRAME, Malformed, Refused},
    random_number,
    transport::advice,
};

/// More processes than this nobody starts by hand.
const MOST_PROCESSES: usize = 64;
/// How often the resource looks whether it is still wanted.
const LOOK_UP: Duration = Duration::from_millis(50);
/// Whoever is asked whether it is there answers sooner than this, if it is.
const SILENCE: Nanos = 1_000_000_000;
/// When somebody was asked after who then answered.
const IT_ANSWERED: Nanos = Nanos::MAX;

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
    #[error(
        "cannot listen on {address}: {error}{}",
        advice(error, "; is there another resource? take another port, or end that one")
    )]
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
    link: Link<(Clock, Call)>,
    client: Client<Mutex>,
    /// When it was asked whether it is still there, since another came in. If it answers, two are inside.
    asked_after: Option<Nanos>,
}

/// Runs the resource until it is interrupted, or two are inside together.
///
/// # Errors
/// If it cannot listen, or the law is broken.
pub fn resource(address: SocketAddr, out: &mut dyn Write, interrupted: &AtomicBool) -> Result<(), ResourceError> {
    let socket = UdpSocket::bind(address).map_err(|error| ResourceError::Listen { address, error })?;
    let cut_off = |error| ResourceError::Socket(address, error);
    socket.set_read_timeout(Some(LOOK_UP)).map_err(cut_off)?;
    let here = socket.local_addr().map_err(cut_off)?;
    let mut resource = Resource {
        socket,
        life: random_number(),
        processes: 0,
        algorithm: String::new(),
        visitors: BTreeMap::new(),
        refused: Refused::default(),
    };
    say(out, &format!("the resource listens at {here}")).map_err(cut_off)?;
    let mut buffer = vec![0; MAX_FRAME + 1];
    while !interrupted.load(Ordering::Relaxed) {
        let lines = match resource.socket.recv_from(&mut buffer) {
            Ok((length, from)) => match resource.hear(from, &buffer[..length]) {
                Ok(lines) => lines,
                Err(malformed) => resource.refused.note(Some(from), &malformed).into_iter().collect(),
            },
            Err(_) => Vec::new(), // nobody spoke, or the echo of a datagram that nobody wanted
        };
        for line in lines.into_iter().chain(resource.bury_the_dead()) {
            say(out, &line).map_err(cut_off)?;
        }
        resource.law().map_err(ResourceError::LawBroken)?;
    }
    resource.refused.in_words().map_or(Ok(()), |words| say(out, &words).map_err(cut_off))
}

fn say(out: &mut dyn Write, line: &str) -> io::Result<()> {
    writeln!(out, "{line}").and_then(|()| out.flush())
}

struct Resource {
    socket: UdpSocket,
    life: u64,
    /// How many processes there are, and what they run: as the first of them said.
    processes: usize,
    algorithm: String,
    visitors: BTreeMap<NodeId, Visitor>,
    refused: Refused,
}

impl Resource {
    /// What there is to say about a datagram.
    fn hear(&mut self, address: SocketAddr, bytes: &[u8]) -> Result<Vec<String>, Malformed> {
        let frame = Frame::decode(bytes)?;
        let (from, life) = (frame.from, frame.life);
        if let Body::Hello(hello) = &frame.body {
            if hello.processes > MOST_PROCESSES || from.index() >= hello.processes {
                return Err(Malformed::NoFrame(format!("\"from\":{} of {} processes", from.0, hello.processes)));
            }
            return Ok(self.meet(from, life, address, hello.processes, &frame.algorithm));
        }
        let Some(visitor) = self.visitors.get_mut(&from).filter(|visitor| visitor.address == address) else {
            let why = "this resource does not know you; end all processes and start them again";
            self.send(address, &frame.algorithm, Body::Refuse(why.to_owned()));
            return Err(Malformed::UnknownSender(from));
        };
        if visitor.life != life {
            return Err(Malformed::OtherLife(from));
        }
        // Whatever it says, it is there; even if it says that it leaves.
        visitor.asked_after = visitor.asked_after.map(|_| IT_ANSWERED);
        if self.law().is_err() {
            return Ok(Vec::new());
        }
        let visitor = self.visitors.get_mut(&from).expect("it was just heard");
        match frame.body {
            Body::Message { number, clock, says, .. } => {
                let (clock, call) = (frame::is_possible(clock)?, frame::message(&says)?);
                let arrival = visitor
                    .link
                    .receive(number, (clock, call))
                    .map_err(|_| Malformed::NoFrame(format!("the number {number} is far ahead")))?;
                self.send(address, &frame.algorithm, Body::Ack(number));
                Ok(arrival.messages.into_iter().map(|(clock, call)| self.serve(from, clock, &call)).collect())
            }
            Body::Welcome(_) | Body::Refuse(_) => Ok(Vec::new()),
            Body::Ack(_) | Body::Hello(_) => Err(Malformed::NoFrame("nothing that one says to a resource".to_owned())),
        }
    }

    /// A process introduces itself. One that was started again is a new one; one of the same number elsewhere is none.
    fn meet(&mut self, from: NodeId, life: u64, address: SocketAddr, processes: usize, algorithm: &str) -> Vec<String> {
        let process = from.0 + 1;
        let mut lines = Vec::new();
        let is_another_company = self.processes != processes || self.algorithm != algorithm;
        match self.visitors.get(&from) {
            Some(known) if known.address != address => {
                let why = format!("process {process} is at {} here; end it and the resource", known.address);
                self.send(address, algorithm, Body::Refuse(why));
                return lines;
            }
            Some(known) if known.life == life => {
                self.send(address, algorithm, Body::Welcome(life));
                return lines;
            }
            Some(_) if is_another_company => self.visitors.clear(),
            Some(known) if known.client.phase == Phase::Inside => {
                lines.push(format!("process {process} was inside, and has been started again: it has left"));
            }
            Some(_) => {}
            None if is_another_company && !self.visitors.is_empty() => {
                let why = format!("{} processes run {} here; start the resource again", self.processes, self.algorithm);
                self.send(address, algorithm, Body::Refuse(why));
                return lines;
            }
            None => {}
        }
        self.processes = processes;
        algorithm.clone_into(&mut self.algorithm);
        let (link, client) = (Link::new(Service::InOrder), Client::default());
        self.visitors.insert(from, Visitor { address, life, link, client, asked_after: None });
        let name = frame::readable(algorithm, 40);
        lines.push(format!("process {process} of {processes} is there, at {address}, with {name}"));
        self.send(address, algorithm, Body::Welcome(life));
        lines
    }

    fn serve(&mut self, from: NodeId, clock: Clock, call: &Call) -> String {
        let process = from.0 + 1;
        if matches!(call, Call::Enter(_)) {
            self.ask_after_others(from);
        }
        let visitor = self.visitors.get_mut(&from).expect("it was just heard");
        visitor.asked_after = None;
        let client = &mut visitor.client;
        match (call, client.phase) {
            (Call::Enter(greeting), Phase::Idle | Phase::Waiting) => {
                client.asked = Some(Command::Request);
                client.phase = Phase::Inside;
                let greeting = frame::readable(greeting, 80);
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

    /// Somebody comes in. Whoever is inside may have died there, if the algorithm survives that.
    fn ask_after_others(&mut self, entrant: NodeId) {
        let hello = Hello { processes: self.processes, settings: String::new() };
        let mut inside = Vec::new();
        for (node, visitor) in &mut self.visitors {
            if *node != entrant && visitor.client.phase == Phase::Inside {
                visitor.asked_after = Some(now());
                inside.push(visitor.address);
            }
        }
        inside.iter().for_each(|address| self.send(*address, &self.algorithm, Body::Hello(hello.clone())));
    }

    /// Whoever does not answer is dead, and no longer inside.
    fn bury_the_dead(&mut self) -> Vec<String> {
        let is_dead = |since: Nanos| since != IT_ANSWERED && now().saturating_sub(since) > SILENCE;
        let mut lines = Vec::new();
        for (node, visitor) in &mut self.visitors {
            if visitor.asked_after.is_some_and(is_dead) {
                visitor.client = Client::default();
                visitor.asked_after = None;
                lines.push(format!("process {} does not answer: it is dead, and no longer inside", node.0 + 1));
            }
        }
        lines
    }

    /// The law of mutual exclusion, among those that live.
    fn law(&self) -> Result<(), String> {
        let lives = |visitor: &Visitor| visitor.asked_after.is_none_or(|since| since == IT_ANSWERED);
        let inside = |(_, visitor): &(&NodeId, &Visitor)| visitor.client.phase == Phase::Inside && lives(visitor);
        let inside: Vec<NodeId> = self.visitors.iter().filter(inside).map(|(node, _)| *node).collect();
        let broken = Mutex::law(&Scene {
            nodes: self.processes,
            limit: 1,
            inside: &inside,
            client: &|node| &self.visitors[&node].client,
            alive: &|_| true,
            connected: &|_, _| true,
        });
        broken.map_err(|_| {
            let names: Vec<String> = inside.iter().map(|node| (node.0 + 1).to_string()).collect();
            format!("processes {} are inside together", names.join(" and "))
        })
    }

    /// On the wire the resource is one more than the processes.
    fn send(&self, to: SocketAddr, algorithm: &str, body: Body) {
        let from = NodeId::from_index(self.processes);
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
        self.link.resend(now()).into_iter().map(|(number, call)| body(number, &call)).collect()
    }

    pub(crate) fn deadline(&self) -> Option<Nanos> {
        self.link.deadline()
    }

    /// Since when the resource owes an answer.
    pub(crate) fn unanswered_since(&self) -> Option<Nanos> {
        self.link.unanswered_since()
    }
}

fn body(number: u64, (clock, call): &(Clock, Call)) -> Body {
    let says = serde_json::to_value(call).expect("a call has a text");
    Body::Message { number, clock: *clock, at: None, says }
}
