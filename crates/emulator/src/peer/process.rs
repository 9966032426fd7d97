//! The loop of one process.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        atomic::Ordering,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use vez_algorithms::{
    Clock,
    catalog::Entry,
    link::{Nanos, Service},
};
use vez_lab::{
    system::System,
    trace::{Header, Trace},
};

use super::{
    Outlets, PeerError, PeerSettings,
    gathering::{Gathering, Reply},
};
use crate::{
    clock::{nanos, now},
    event_log::EventLog,
    frame::{Body, Frame, Malformed, Refused},
    host::{Circumstances, Delivery, Host},
    node::{Input, Node},
    resource::{Call, Desk},
    script::Typed,
    transport::{Arrived, Listening, Source, Udp},
};

/// Everybody has to be there within this time.
const A_MINUTE: Duration = Duration::from_secs(60);
/// How often a process looks for those who are missing.
const LOOK_OUT: Duration = Duration::from_millis(100);

/// What a process waits for.
pub(super) enum Happening {
    Arrived(Arrived),
    Typed(Typed),
}

impl From<Arrived> for Happening {
    fn from(arrived: Arrived) -> Self {
        Self::Arrived(arrived)
    }
}

/// Where our client stands with the resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Visit {
    Outside,
    Waiting {
        asked: Clock,
    },
    /// The resource has not heard of it yet.
    Entering {
        asked: Clock,
        call: u64,
    },
    Inside {
        asked: Clock,
        until: Nanos,
    },
    /// The resource is to hear of it first.
    Leaving {
        asked: Clock,
        call: u64,
    },
}

pub(super) struct Peer<'a> {
    pub(super) entry: &'static Entry,
    pub(super) settings: &'a PeerSettings,
    pub(super) out: Outlets<'a>,
    pub(super) udp: Udp,
    pub(super) happenings: Receiver<Happening>,
    pub(super) gathering: Gathering,
    pub(super) listening: Listening,
    pub(super) system: System,
    /// Nothing before all are there.
    pub(super) host: Option<Host>,
    pub(super) node: Option<Box<dyn Node>>,
    pub(super) nodes: usize,
    /// Whether a client asks here.
    pub(super) asks: bool,
    pub(super) epoch: Nanos,
    pub(super) script: VecDeque<(Nanos, Typed)>,
    pub(super) desk: Desk,
    pub(super) visit: Visit,
    /// What is held back, and until when, in that order.
    pub(super) held_back: Vec<(Nanos, Delivery)>,
    /// Who has been asked after.
    pub(super) silent: Vec<String>,
    /// What is said once, however often it happens.
    pub(super) said: Vec<String>,
    pub(super) refused: Refused,
}

impl Peer<'_> {
    pub(super) fn run(mut self) -> Result<(), PeerError> {
        if self.gather()? {
            self.begin()?;
            while self.go_on()? {}
        }
        if matches!(self.visit, Visit::Entering { .. } | Visit::Inside { .. }) {
            self.call(Call::Leave); // a word of farewell, if it arrives
        }
        self.refused.overflowed(self.listening.overflow());
        self.refused.in_words().map_or(Ok(()), |words| self.print(&words))
    }

    /// Waits for everybody. False if somebody has had enough of that.
    fn gather(&mut self) -> Result<bool, PeerError> {
        let (id, n, address) = (self.settings.id, self.nodes, self.settings.addresses[self.settings.id - 1]);
        self.print(&format!(
            "process {id} of {n}, {}, at {address}; waiting for {}",
            self.entry.name,
            self.gathering.missing()
        ))?;
        let (begun, mut said) = (now(), now());
        while !self.gathering.is_complete() {
            let waited = Duration::from_nanos(now() - begun);
            if waited > A_MINUTE {
                return Err(PeerError::Missing(self.gathering.missing()));
            }
            if Duration::from_nanos(now() - said) > A_MINUTE / 6 {
                said = now();
                self.print(&format!("still waiting for {}", self.gathering.missing()))?;
            }
            for (to, hello) in self.gathering.hellos() {
                self.udp.send_to(to, hello);
            }
            let until = now() + LOOK_OUT.as_nanos() as Nanos;
            while !self.gathering.is_complete() && now() < until {
                match self.happenings.recv_timeout(Duration::from_nanos(until.saturating_sub(now()))) {
                    Ok(Happening::Arrived(arrived)) => self.arrived(arrived)?,
                    Ok(Happening::Typed(Typed::Line(line))) => {
                        self.print(&format!("ignored {line:?}: still waiting for {}", self.gathering.missing()))?;
                    }
                    Ok(Happening::Typed(Typed::End | Typed::Closed)) | Err(_) => {}
                }
            }
            if self.is_interrupted() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_interrupted(&self) -> bool {
        self.out.interrupted.load(Ordering::Relaxed)
    }

    /// All are there.
    fn begin(&mut self) -> Result<(), PeerError> {
        self.epoch = now();
        let service = match Service::for_model(&self.entry.assumptions) {
            Service::Once | Service::Reliable => Service::Reliable,
            Service::InOrder => Service::InOrder,
        };
        let world = Circumstances {
            nodes: self.nodes,
            service,
            loss: 0.0,
            seed: self.settings.seed,
            epoch: self.epoch,
            stamps: false,
        };
        if let Some(trace) = &mut self.out.trace {
            let world = serde_json::json!({ "driver": "peer", "id": self.settings.id, "hold": self.settings.hold });
            let world = world.as_object().cloned().unwrap_or_default();
            Trace::new(trace, &Header::new(self.entry.name, &self.system, (self.settings.seed, 0), None, world))?;
        }
        let event_log = EventLog::new(self.out.trace.is_some(), true);
        let node = self.node.take().expect("the run begins once");
        self.host = Some(Host::new(self.udp.identity.me, node, world, event_log));
        let id = self.settings.id;
        self.print(&match (self.asks, &self.settings.script) {
            (false, _) => "all are there; nobody asks at this process".to_owned(),
            (true, Some(_)) => "all are there; the script begins".to_owned(),
            (true, None) => {
                format!(
                    "all are there; {id} and Enter is an internal event, anything else asks for the critical section"
                )
            }
        })?;
        self.happen(now(), Input::Start)
    }

    /// Does what is due, and waits for the next thing that comes. False when the script has ended.
    fn go_on(&mut self) -> Result<bool, PeerError> {
        if self.is_interrupted() {
            return Ok(false);
        }
        let time = now();
        if let Some(input) = self.host().due(time) {
            self.happen(time, input)?;
            return Ok(true);
        }
        if let Some(at) = self.held_back.iter().position(|(due, _)| *due <= time) {
            let (_, delivery) = self.held_back.remove(at);
            self.deliver(time, delivery)?;
            return Ok(true);
        }
        let host = self.host.as_mut().expect("the run has begun");
        host.resend(time, &mut self.udp);
        for body in self.desk.resend() {
            self.udp.send_to(self.settings.resource, body);
        }
        if let Visit::Inside { asked, until } = self.visit
            && until <= time
        {
            self.visit = Visit::Leaving { asked, call: self.call(Call::Leave) };
        }
        self.ask_after_the_silent(time)?;
        if let Some((_, typed)) = self.script.pop_front_if(|(at, _)| self.epoch + *at <= time) {
            return self.typed(typed);
        }
        match self.happenings.recv_timeout(self.pause(time)) {
            Ok(Happening::Arrived(arrived)) => self.arrived(arrived)?,
            Ok(Happening::Typed(typed)) => return self.typed(typed),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(false),
        }
        Ok(true)
    }

    /// How long nothing is due.
    fn pause(&self, time: Nanos) -> Duration {
        let leave = if let Visit::Inside { until, .. } = self.visit { Some(until) } else { None };
        let script = self.script.front().map(|(at, _)| self.epoch + at);
        let held_back = self.held_back.iter().map(|(due, _)| *due).min();
        let host = self.host.as_ref().and_then(Host::deadline);
        let due = [leave, script, held_back, host, self.desk.deadline()].into_iter().flatten().min();
        let soon = time + LOOK_OUT.as_nanos() as Nanos;
        Duration::from_nanos(due.unwrap_or(soon).min(soon).saturating_sub(time))
    }

    pub(super) fn host(&mut self) -> &mut Host {
        self.host.as_mut().expect("the run has begun")
    }

    fn typed(&mut self, typed: Typed) -> Result<bool, PeerError> {
        let line = match typed {
            Typed::Line(line) if line.trim().is_empty() => return Ok(true), // a slip
            Typed::Line(line) => line,
            Typed::Closed => {
                self.print("there is no more input; this process goes on answering, and Ctrl-C ends it")?;
                return Ok(true);
            }
            Typed::End => return Ok(false),
        };
        let clock = self.host().clock();
        if self.settings.script.is_some() {
            self.print(&format!("           > {line}"))?;
        }
        let ignored = |why: &str| format!("clock {clock:>3}  ignored {line:?}: {why}");
        match (self.visit, self.asks) {
            (Visit::Waiting { .. }, _) => self.print(&ignored("still waiting to get in"))?,
            (Visit::Entering { .. } | Visit::Inside { .. } | Visit::Leaving { .. }, _) => {
                self.print(&ignored("still inside"))?;
            }
            (Visit::Outside, _) if line.trim() == self.settings.id.to_string() => {
                self.happen(now(), Input::Internal)?;
            }
            (Visit::Outside, true) => self.happen(now(), Input::Ask(0))?,
            (Visit::Outside, false) => self.print(&ignored("nobody asks at this process"))?,
        }
        Ok(true)
    }

    /// Tells the resource something.
    pub(super) fn call(&mut self, call: Call) -> u64 {
        let clock = self.host().clock();
        let (number, body) = self.desk.call(clock, call);
        self.udp.send_to(self.settings.resource, body);
        number
    }

    fn arrived(&mut self, arrived: Arrived) -> Result<(), PeerError> {
        let Arrived::Bytes(Source::Address(from), bytes) = arrived else { return Ok(()) };
        match self.read(from, &bytes) {
            Ok(read) => read,
            Err(malformed) => match self.refused.note(Some(from), &malformed) {
                Some(report) => self.print(&report),
                None => Ok(()),
            },
        }
    }

    fn read(&mut self, address: SocketAddr, bytes: &[u8]) -> Result<Result<(), PeerError>, Malformed> {
        let frame = Frame::decode(bytes)?;
        match self.gathering.meet(address, &frame)? {
            Reply::Nothing => return Ok(Ok(())),
            Reply::Send(body) => {
                self.udp.send_to(address, body);
                return Ok(Ok(()));
            }
            Reply::Refuse(why) => {
                self.udp.send_to(address, Body::Refuse(why.clone()));
                return Ok(self.print_once(format!("refused {address}: {why}")));
            }
            Reply::Here(who) => return Ok(self.print(&format!("{who} is there"))),
            Reply::Tell(what) => return Ok(self.print_once(what)),
            Reply::Give(error) => return Ok(Err(error)),
            Reply::TakePart => {}
        }
        if address == self.settings.resource {
            if let Body::Ack(number) = frame.body {
                self.desk.acknowledged(number);
                return Ok(self.resource_knows(number));
            }
            return Err(Malformed::NoFrame("nothing that a resource says".to_owned()));
        }
        let (from, time) = (frame.from, now());
        let Some(host) = &mut self.host else { return Ok(Ok(())) }; // it will be sent again
        match frame.body {
            Body::Message { number, clock, at, says } => {
                let deliveries = host.receive(from, (number, clock, at), says, &mut self.udp)?;
                let delay = self.settings.delays.iter().find(|(id, _)| *id == from.index() + 1);
                let due = time + delay.map_or(0, |(_, delay)| nanos(*delay));
                self.held_back.extend(deliveries.into_iter().map(|delivery| (due, delivery)));
            }
            Body::Ack(number) => host.acknowledged(time, from, number),
            Body::Hello(_) | Body::Welcome(_) | Body::Refuse(_) => {}
        }
        Ok(Ok(()))
    }

    /// The resource has seen us come, or go.
    fn resource_knows(&mut self, number: u64) -> Result<(), PeerError> {
        match self.visit {
            Visit::Entering { asked, call } if call == number => {
                self.visit = Visit::Inside { asked, until: now() + nanos(self.settings.hold) };
                Ok(())
            }
            Visit::Leaving { call, .. } if call == number => {
                self.visit = Visit::Outside;
                self.happen(now(), Input::Leave)
            }
            Visit::Outside
            | Visit::Waiting { .. }
            | Visit::Inside { .. }
            | Visit::Entering { .. }
            | Visit::Leaving { .. } => Ok(()), // it has said so before
        }
    }
}
