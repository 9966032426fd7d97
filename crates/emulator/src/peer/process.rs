//! The loop of one process.

use std::{
    collections::VecDeque,
    io,
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::AtomicBool,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use vez_algorithms::{Algorithm, Clock, CommandOf, Family, Input, NodeId};
use vez_lab::trace::{Header, Trace};

use super::{
    Outlets, PeerError, PeerSettings,
    gathering::{Gathering, Reply},
    system_of,
    words::Witness,
};
use crate::{
    clock::{nanos, now},
    frame::{Body, Frame, Malformed, Refused},
    host::{Circumstances, Delivery, Host},
    link::{Nanos, Service},
    resource::{Call, Desk},
    script::Typed,
    transport::{self, Arrived, Identity, Source, Udp},
};

/// Everybody has to be there within this time.
const A_MINUTE: Duration = Duration::from_secs(60);
/// How often a process looks for those who are missing.
const LOOK_OUT: Duration = Duration::from_millis(100);

/// What a process waits for.
enum Happening {
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

pub(super) struct Peer<'a, A: Algorithm> {
    pub(super) settings: &'a PeerSettings,
    pub(super) out: Outlets<'a>,
    pub(super) udp: Udp,
    happenings: Receiver<Happening>,
    gathering: Gathering,
    /// Nothing before all are there.
    pub(super) host: Option<Host<A, Witness>>,
    node: Option<A>,
    nodes: usize,
    want: Option<CommandOf<A>>,
    epoch: Nanos,
    script: VecDeque<(Nanos, Typed)>,
    pub(super) desk: Desk,
    pub(super) visit: Visit,
    /// What is held back, and until when, in that order.
    held_back: Vec<(Nanos, Delivery<A>)>,
    /// Who has been asked after.
    pub(super) silent: Vec<String>,
    refused: Refused,
}

impl<'a, A: Algorithm> Peer<'a, A> {
    pub(super) fn open(settings: &'a PeerSettings, mut out: Outlets<'a>) -> Result<Self, PeerError> {
        let (id, addresses) = (settings.id, &settings.addresses);
        if !(1..=addresses.len()).contains(&id) {
            return Err(PeerError::NoSuchId { id, addresses: addresses.len() });
        }
        if A::Family::NAME != "mutex" {
            return Err(PeerError::Family { name: A::NAME, family: A::Family::NAME });
        }
        let mut all: Vec<SocketAddr> = addresses.iter().copied().chain([settings.resource]).collect();
        all.sort_unstable();
        if let Some(twice) = all.windows(2).find(|two| two[0] == two[1]) {
            return Err(PeerError::SameAddress(twice[0]));
        }
        let me = NodeId::from_index(id - 1);
        let (system, nodes) = system_of::<A>(settings)?;
        let setup = system.setup(settings.seed, 0)?;
        let want = A::wants(&setup).first().copied().filter(|_| me.index() < A::clients(&setup));
        let node = nodes[me.index()].clone();
        let address = addresses[me.index()];
        let socket = UdpSocket::bind(address).map_err(|error| PeerError::Listen { address, id, error })?;
        let (mailbox, happenings) = mpsc::channel();
        let listen = transport::read_datagrams(&socket, mailbox.clone(), Arc::new(AtomicBool::new(false)));
        listen.map_err(|error| PeerError::Listen { address, id, error })?;
        if settings.script.is_none() {
            read_keyboard(mailbox);
        }
        if let Some(trace) = &mut out.trace {
            let world = serde_json::json!({ "driver": "peer", "id": id, "hold": settings.hold });
            let world = world.as_object().cloned().unwrap_or_default();
            Trace::new(trace, &Header::new(A::NAME, &system, (settings.seed, 0), None, world))?;
        }
        let identity = Identity { algorithm: A::NAME, life: crate::random_number(), me };
        Ok(Self {
            settings,
            out,
            udp: Udp { identity, socket, addresses: addresses.clone() },
            happenings,
            gathering: Gathering::new(identity, addresses.clone(), settings.resource),
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
            refused: Refused::default(),
        })
    }

    pub(super) fn run(mut self) -> Result<(), PeerError> {
        self.gather()?;
        self.begin()?;
        while self.go_on()? {}
        if !self.refused.counts.is_empty() {
            let counts = self.refused.counts.iter();
            let kinds: Vec<String> = counts.map(|(kind, count)| format!("{count} {kind}")).collect();
            self.print(&format!("refused: {}", kinds.join(", ")))?;
        }
        Ok(())
    }

    /// Waits for everybody.
    fn gather(&mut self) -> Result<(), PeerError> {
        let (id, n, address) = (self.settings.id, self.nodes, self.settings.addresses[self.settings.id - 1]);
        self.print(&format!(
            "process {id} of {n}, {}, at {address}; waiting for {}",
            A::NAME,
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
                    Ok(Happening::Typed(Typed::End)) | Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// All are there.
    fn begin(&mut self) -> Result<(), PeerError> {
        self.epoch = now();
        let service = match Service::for_model(&A::MODEL) {
            Service::Once | Service::Reliable => Service::Reliable,
            Service::InOrder => Service::InOrder,
        };
        let world =
            Circumstances { nodes: self.nodes, service, loss: 0.0, seed: self.settings.seed, epoch: self.epoch };
        let witness = Witness { sends: Vec::new(), trace: self.out.trace.is_some().then(Vec::new) };
        let node = self.node.take().expect("the run begins once");
        self.host = Some(Host::new(self.udp.identity.me, node, world, witness));
        let id = self.settings.id;
        self.print(&match (self.want, &self.settings.script) {
            (None, _) => "all are there; nobody asks at this process".to_owned(),
            (Some(_), Some(_)) => "all are there; the script begins".to_owned(),
            (Some(_), None) => {
                format!(
                    "all are there; {id} and Enter is an internal event, anything else asks for the critical section"
                )
            }
        })?;
        self.happen(now(), Input::Start)
    }

    /// Does what is due, and waits for the next thing that comes. False when the script has ended.
    fn go_on(&mut self) -> Result<bool, PeerError> {
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
        let a_second = time + 1_000_000_000;
        Duration::from_nanos(due.unwrap_or(a_second).min(a_second).saturating_sub(time))
    }

    pub(super) fn host(&mut self) -> &mut Host<A, Witness> {
        self.host.as_mut().expect("the run has begun")
    }

    fn typed(&mut self, typed: Typed) -> Result<bool, PeerError> {
        let line = match typed {
            Typed::Line(line) if line.trim().is_empty() => return Ok(true), // a slip
            Typed::Line(line) => line,
            Typed::End => return Ok(false),
        };
        let clock = self.host().clock();
        if self.settings.script.is_some() {
            self.print(&format!("           > {line}"))?;
        }
        let ignored = |why: &str| format!("clock {clock:>3}  ignored {line:?}: {why}");
        match (self.visit, self.want) {
            (Visit::Waiting { .. }, _) => self.print(&ignored("still waiting to get in"))?,
            (Visit::Entering { .. } | Visit::Inside { .. } | Visit::Leaving { .. }, _) => {
                self.print(&ignored("still inside"))?;
            }
            (Visit::Outside, _) if line.trim() == self.settings.id.to_string() => {
                self.happen(now(), Input::Internal)?;
            }
            (Visit::Outside, Some(want)) => self.happen(now(), Input::Command(want))?,
            (Visit::Outside, None) => self.print(&ignored("nobody asks at this process"))?,
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
            Reply::Here(who) => {
                return Ok(self.print(&format!("{who} is there")));
            }
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
                let leave = A::Family::LEAVE.expect("whoever can enter can leave");
                self.happen(now(), Input::Command(leave))
            }
            Visit::Outside
            | Visit::Waiting { .. }
            | Visit::Inside { .. }
            | Visit::Entering { .. }
            | Visit::Leaving { .. } => Ok(()), // it has said so before
        }
    }
}

/// Lines of the keyboard. When there is no more of them the process goes on: others count on it.
fn read_keyboard(mailbox: mpsc::Sender<Happening>) {
    std::thread::spawn(move || {
        for line in io::stdin().lines() {
            let Ok(line) = line else { return };
            if mailbox.send(Happening::Typed(Typed::Line(line))).is_err() {
                return;
            }
        }
    });
}
