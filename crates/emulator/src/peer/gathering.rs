//! Who is there: every process says hello to every other and to the resource, until it is welcome.

use std::net::SocketAddr;

use vez_algorithms::NodeId;

use super::PeerError;
use crate::{
    frame::{Body, Frame, Hello, Malformed, readable},
    transport::Identity,
};

/// Somebody to wait for.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Other {
    name: String,
    address: SocketAddr,
    /// The life that it leads, once it has said something.
    life: Option<u64>,
    /// Whether it knows us.
    knows_us: bool,
}

/// Who is there, and who is missing.
pub(super) struct Gathering {
    me: Identity,
    processes: usize,
    /// What the algorithm was told, in words: all have to be told the same.
    settings: String,
    /// The processes, in order; then the resource.
    others: Vec<Other>,
}

/// What a frame means for the gathering.
pub(super) enum Reply {
    /// Nothing.
    Nothing,
    /// Something to answer.
    Send(Body),
    /// Somebody is not welcome, for this reason.
    Refuse(String),
    /// Something to print.
    Tell(String),
    /// Somebody is there who was missing.
    Here(String),
    /// We have to end.
    Give(PeerError),
    /// It is one of those who take part: what it says is no matter of the gathering.
    TakePart,
}

impl Gathering {
    pub(super) fn new(me: Identity, addresses: Vec<SocketAddr>, resource: SocketAddr, settings: String) -> Self {
        let processes = addresses.len();
        let other = |(at, address)| {
            let name = if at < processes { format!("process {}", at + 1) } else { "the resource".to_owned() };
            Other { name, address, life: None, knows_us: at == me.me.index() }
        };
        let others = addresses.into_iter().chain([resource]).enumerate().map(other).collect();
        Self { me, processes, settings, others }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.others.iter().all(|other| other.knows_us)
    }

    /// Who is missing, in words.
    pub(super) fn missing(&self) -> String {
        let missing = self.others.iter().filter(|other| !other.knows_us);
        missing.map(|other| format!("{} ({})", other.name, other.address)).collect::<Vec<_>>().join(", ")
    }

    /// What to say to those who are missing.
    pub(super) fn hellos(&self) -> Vec<(SocketAddr, Body)> {
        let missing = self.others.iter().filter(|other| !other.knows_us);
        let hello = Hello { processes: self.processes, settings: self.settings.clone() };
        missing.map(|other| (other.address, Body::Hello(hello.clone()))).collect()
    }

    /// A frame comes from an address.
    pub(super) fn meet(&mut self, address: SocketAddr, frame: &Frame) -> Result<Reply, Malformed> {
        let found = self.others.iter().position(|other| other.address == address);
        if let Body::Hello(hello) = &frame.body {
            return Ok(match self.objection(found, frame, hello) {
                None => self.greet(frame.from.index(), frame.life),
                Some(why) => Reply::Refuse(why),
            });
        }
        if let Some(error) = found.and_then(|at| self.refusal(at, frame)) {
            return Ok(Reply::Give(error));
        }
        self.me.same_algorithm(frame)?;
        let at = found.ok_or(Malformed::UnknownSender(frame.from))?;
        // On the wire the resource is one more than the processes.
        if at == self.me.me.index() || frame.from != NodeId::from_index(at) {
            return Err(Malformed::UnknownSender(frame.from));
        }
        let other = &mut self.others[at];
        match (&frame.body, other.life) {
            (Body::Welcome(life), _) if *life == self.me.life && !other.knows_us => {
                other.knows_us = true;
                other.life = Some(frame.life);
                Ok(Reply::Here(other.name.clone()))
            }
            (Body::Refuse(why), _) => Ok(Reply::Tell(format!("{} refuses: {}", other.name, readable(why, 200)))),
            (Body::Welcome(_), _) => Ok(Reply::Nothing), // once more
            (Body::Message { .. } | Body::Ack(_) | Body::Hello(_), Some(life)) if life != frame.life => {
                Err(Malformed::OtherLife(frame.from))
            }
            (Body::Message { .. } | Body::Ack(_) | Body::Hello(_), Some(_)) => Ok(Reply::TakePart),
            (Body::Message { .. } | Body::Ack(_) | Body::Hello(_), None) => Ok(Reply::Nothing), // it will be sent again
        }
    }

    /// Why somebody who says hello is not welcome.
    fn objection(&self, found: Option<usize>, frame: &Frame, hello: &Hello) -> Option<String> {
        let is_resource = found == Some(self.processes);
        if frame.algorithm != self.me.algorithm {
            return Some(format!("{} is run here; give every process the same --algorithm", self.me.algorithm));
        }
        if hello.processes != self.processes {
            let n = self.processes;
            return Some(format!("there are {n} processes here; give every process the same addresses"));
        }
        if found != Some(frame.from.index()) || frame.from == self.me.me {
            let process = frame.from.0.saturating_add(1);
            let other = self.others[..self.processes].get(frame.from.index());
            let here = other.map_or("nowhere".to_owned(), |other| other.address.to_string());
            return Some(format!("process {process} is at {here} here; give every process the same addresses"));
        }
        let differ = !is_resource && hello.settings != self.settings;
        differ.then(|| format!("{}{} here; give every process the same options", self.me.algorithm, self.settings))
    }

    /// A process that is where it belongs says hello. One that was started again after we had begun cannot be taken back: it
    /// has forgotten what it promised.
    fn greet(&mut self, at: usize, life: u64) -> Reply {
        let complete = self.is_complete();
        let other = &mut self.others[at];
        if other.life.is_some_and(|known| known != life) {
            if complete {
                let why = format!("{} was here before; end all processes and start them again", other.name);
                return Reply::Refuse(why);
            }
            other.knows_us = false;
        }
        other.life = Some(life);
        Reply::Send(Body::Welcome(life))
    }

    /// Whether somebody does not want us. Once all are there it is too late for that.
    fn refusal(&self, at: usize, frame: &Frame) -> Option<PeerError> {
        let Body::Refuse(why) = &frame.body else { return None };
        let other = &self.others[at];
        let why = readable(why, 200);
        (!self.is_complete()).then(|| PeerError::Refused { who: format!("{} at {}", other.name, other.address), why })
    }
}
