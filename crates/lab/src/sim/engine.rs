//! The loop over events.

use std::{collections::BTreeMap, time::Duration};

use vez_algorithms::{
    Effect, EffectOf, Input, Message, NodeId, SetupError,
    mutex::{self, Command, Mutex, Output, Phase},
    step,
};

use super::{
    Config, Failure, Fault,
    agenda::{Agenda, Due},
    clients::{Arrivals, Client},
    faults::Troubles,
    metrics::{Measured, Metrics},
    network::Network,
};
use crate::random::{Purpose, Stream};

/// Somebody who watches a run.
pub trait Watch<P: Mutex> {
    /// Something happened.
    fn see(&mut self, time: f64, node: NodeId, event: Event<'_, P>);
    /// Whether anybody watches at all.
    const WATCHES: bool = true;
}

/// Nobody.
impl<P: Mutex> Watch<P> for () {
    fn see(&mut self, _: f64, _: NodeId, _: Event<'_, P>) {}
    const WATCHES: bool = false;
}

/// Something that happens at a node.
pub enum Event<'a, P: Mutex> {
    /// Something happened to it, which left it in this state.
    Input(&'a Input<P>, &'a P),
    /// It wants something done.
    Effect(&'a EffectOf<P>),
    /// A message that it sent is lost.
    Lost(NodeId, &'a P::Message),
    /// A message that it sent will arrive twice.
    Doubled(NodeId, &'a P::Message),
    /// It crashes.
    Crashed,
}

/// Why a run stopped before its end.
pub(super) struct Stopped {
    pub(super) what: String,
    pub(super) law_broken: bool,
}

impl Stopped {
    fn law_broken(what: String) -> Self {
        Self { what, law_broken: true }
    }
}

/// After so many events with nobody inside, and ten more for each pair of nodes, somebody who waits will wait for ever.
const FRUITLESS: u64 = 100_000;

/// More messages than this on their way, and ten more for each pair of nodes, are an avalanche: doubled messages can double
/// again.
const CROWDED: u64 = 100_000;

/// How many entries there are between two reports of progress.
const PROGRESS_EVERY: u64 = 1000;

pub(super) struct Engine<'a, P: Mutex, W: Watch<P>> {
    config: &'a Config,
    now: f64,
    agenda: Agenda<P>,
    nodes: Vec<P>,
    /// How each node starts, for a restart.
    fresh: Vec<P>,
    clients: Vec<Client>,
    inside: Vec<NodeId>,
    timers: Vec<BTreeMap<P::Timer, u64>>,
    choices: Vec<Stream>,
    network: Network,
    troubles: Troubles,
    metrics: Metrics,
    effects: Vec<EffectOf<P>>,
    /// How many events there have been since the last entry while somebody waited and nobody was inside.
    fruitless: u64,
    in_flight: u64,
    /// How many requests of a script are still to come.
    script_left: usize,
    watch: W,
}

impl<'a, P: Mutex, W: Watch<P>> Engine<'a, P, W> {
    pub(super) fn new(config: &'a Config, run: u64, watch: W) -> Result<Self, SetupError> {
        let nodes = P::system(&config.system.setup(config.seed, run)?)?;
        let n = nodes.len();
        let stream = |node, purpose| Stream::new(config.seed, run, node, purpose);
        Ok(Self {
            config,
            now: 0.0,
            agenda: Agenda::new(),
            fresh: if config.faults.all().is_empty() { Vec::new() } else { nodes.clone() },
            nodes,
            clients: NodeId::all(n).map(|node| Client::new(config, run, node)).collect(),
            inside: Vec::new(),
            timers: vec![BTreeMap::new(); n],
            choices: NodeId::all(n).map(|node| stream(node, Purpose::Choices)).collect(),
            network: Network::new(config, run),
            troubles: Troubles::new(n, stream(NodeId(0), Purpose::Faults)),
            metrics: Metrics::new(n, config.warmup),
            effects: Vec::new(),
            fruitless: 0,
            in_flight: 0,
            script_left: 0,
            watch,
        })
    }

    /// Runs until enough entries are measured, or a script has been played.
    pub(super) fn run(&mut self, progress: &dyn Fn(u64)) -> Result<(), Stopped> {
        for (at, (time, _)) in self.config.faults.all().iter().enumerate() {
            self.agenda.add(*time, Due::Fault(at));
        }
        for node in NodeId::all(self.nodes.len()) {
            self.happen(node, Input::Start)?;
        }
        match &self.config.arrivals {
            Arrivals::Scripted(script) => {
                self.script_left = script.asks().len();
                for &(time, node) in script.asks() {
                    self.agenda.add(time, Due::Arrival(node, None));
                }
            }
            Arrivals::Closed { .. } | Arrivals::Queued { .. } | Arrivals::Saturated => {
                NodeId::all(self.nodes.len()).for_each(|node| self.await_arrival(node));
            }
        }
        let scripted = matches!(self.config.arrivals, Arrivals::Scripted(_));
        let mut reported = 0;
        let enough = if scripted { u64::MAX } else { self.config.warmup + self.config.entries };
        while self.metrics.entries() < enough && !(scripted && self.script_is_over()) {
            let Some((time, due)) = self.agenda.next() else {
                return Err(self.stuck());
            };
            self.now = time;
            self.take(due)?;
            if self.metrics.entries() - reported >= PROGRESS_EVERY {
                progress(self.metrics.entries() - reported);
                reported = self.metrics.entries();
            }
            let pairs = (self.nodes.len() as u64).pow(2);
            self.fruitless += u64::from(self.metrics.somebody_waits() && self.inside.is_empty());
            if self.fruitless > FRUITLESS + 10 * pairs {
                return Err(self.stuck());
            }
            if self.in_flight > CROWDED + 10 * pairs {
                let what = format!("messages multiply without end: {} are on their way", self.in_flight);
                return Err(Stopped { what, law_broken: false });
            }
        }
        Ok(())
    }

    /// A token that circulates for ever has no last event: a script is over when all that it asks for is done.
    fn script_is_over(&self) -> bool {
        self.script_left == 0 && self.inside.is_empty() && !self.metrics.somebody_waits()
    }

    fn take(&mut self, due: Due<P>) -> Result<(), Stopped> {
        if let Due::Arrival(..) = due {
            self.script_left = self.script_left.saturating_sub(1);
        }
        match due {
            Due::Arrival(node, None) if !self.troubles.crashed[node.index()] => self.arrive(node),
            Due::Arrival(node, Some(life)) | Due::Leave(node, life) if self.clients[node.index()].life != life => {
                Ok(()) // of a life that is over
            }
            Due::Arrival(_, None) => Ok(()), // nobody is there to ask
            Due::Arrival(node, Some(_)) => self.arrive(node),
            Due::Leave(node, _) => self.leave(node),
            Due::Receive { from, to, message } => {
                self.in_flight -= 1;
                if self.troubles.crashed[to.index()] {
                    return Ok(());
                }
                self.metrics.deliveries += 1;
                self.happen(to, Input::Message { from, message })
            }
            Due::Fire { node, timer, set } if self.timers[node.index()].get(&timer) == Some(&set) => {
                self.timers[node.index()].remove(&timer);
                self.happen(node, Input::Timer(timer))
            }
            Due::Fire { .. } => Ok(()), // cancelled, or set anew
            Due::Fault(at) => self.go_wrong(at),
        }
    }

    /// The next client of a node comes after a pause.
    fn await_arrival(&mut self, node: NodeId) {
        let client = &mut self.clients[node.index()];
        let (pause, life) = (client.pause(), client.life);
        self.agenda.add(self.now + pause, Due::Arrival(node, Some(life)));
    }

    fn arrive(&mut self, node: NodeId) -> Result<(), Stopped> {
        if matches!(self.config.arrivals, Arrivals::Queued { .. }) {
            self.await_arrival(node);
        }
        let client = &mut self.clients[node.index()];
        if client.phase == Phase::Idle {
            self.ask(node, self.now)
        } else {
            client.backlog.push_back(self.now);
            Ok(())
        }
    }

    fn ask(&mut self, node: NodeId, came_at: f64) -> Result<(), Stopped> {
        let client = &mut self.clients[node.index()];
        client.phase.ask();
        self.metrics.asked(client, came_at);
        self.happen(node, Input::Command(Command::Request))
    }

    fn enter(&mut self, node: NodeId) -> Result<(), Stopped> {
        let client = &mut self.clients[node.index()];
        if client.phase != Phase::Waiting {
            return Err(Stopped::law_broken(format!("{node} enters without having asked")));
        }
        client.phase.arrive();
        self.inside.push(node);
        mutex::law(&self.inside)
            .map_err(|(one, other)| Stopped::law_broken(format!("{one} and {other} are inside together")))?;
        self.metrics.entered(node, client, self.now);
        self.fruitless = 0;
        let life = client.life;
        self.agenda.add(self.now + self.config.hold, Due::Leave(node, life));
        Ok(())
    }

    fn leave(&mut self, node: NodeId) -> Result<(), Stopped> {
        self.clients[node.index()].phase.leave();
        self.inside.retain(|other| *other != node);
        self.metrics.left(self.now);
        self.happen(node, Input::Command(Command::Release))?;
        match self.config.arrivals {
            Arrivals::Closed { .. } | Arrivals::Saturated => self.await_arrival(node),
            Arrivals::Queued { .. } | Arrivals::Scripted(_) => {
                if let Some(came_at) = self.clients[node.index()].backlog.pop_front() {
                    return self.ask(node, came_at);
                }
            }
        }
        Ok(())
    }

    /// Lets something happen to a node, and does what it wants done.
    fn happen(&mut self, node: NodeId, input: Input<P>) -> Result<(), Stopped> {
        let mut effects = std::mem::take(&mut self.effects);
        let choices = &mut self.choices[node.index()];
        let mut choose = |n: usize| choices.below(n);
        let seen = W::WATCHES.then(|| input.clone());
        step(node, &mut self.nodes[node.index()], input, &mut effects, &mut choose);
        if let Some(input) = seen {
            self.watch.see(self.now, node, Event::Input(&input, &self.nodes[node.index()]));
        }
        for effect in effects.drain(..) {
            if W::WATCHES {
                self.watch.see(self.now, node, Event::Effect(&effect));
            }
            match effect {
                Effect::Send(to, message) => self.send(node, to, message),
                Effect::SetTimer(timer, after) => {
                    let share = self.choices[node.index()].uniform();
                    let (low, high) = (after.start.as_secs_f64(), after.end.as_secs_f64());
                    let set = self.agenda.next_number();
                    self.timers[node.index()].insert(timer, set);
                    self.agenda.add(self.now + low + share * (high - low), Due::Fire { node, timer, set });
                }
                Effect::CancelTimer(timer) => {
                    self.timers[node.index()].remove(&timer);
                }
                Effect::Output(Output::Entered) => self.enter(node)?,
                Effect::Violation(what) => return Err(Stopped::law_broken(format!("{node} objects: {what}"))),
            }
        }
        self.effects = effects;
        Ok(())
    }

    fn send(&mut self, from: NodeId, to: NodeId, message: P::Message) {
        self.metrics.sent(message.kind());
        if self.troubles.cut(from, to) || self.troubles.happens(self.troubles.loss) {
            self.watch.see(self.now, from, Event::Lost(to, &message));
            return;
        }
        if self.troubles.happens(self.troubles.duplicate) {
            self.watch.see(self.now, from, Event::Doubled(to, &message));
            self.put_on_its_way(from, to, message.clone());
        }
        self.put_on_its_way(from, to, message);
    }

    fn put_on_its_way(&mut self, from: NodeId, to: NodeId, message: P::Message) {
        self.in_flight += 1;
        let at = self.network.arrival(self.now, from, to);
        self.agenda.add(at, Due::Receive { from, to, message });
    }

    fn go_wrong(&mut self, at: usize) -> Result<(), Stopped> {
        let config = self.config;
        match &config.faults.all()[at].1 {
            Fault::Crash(node) => self.crash(*node),
            Fault::Restart(node) if self.troubles.crashed[node.index()] => return self.restart(*node),
            Fault::Restart(_) => {}
            Fault::Partition(groups) => self.troubles.partition(groups),
            Fault::Heal => self.troubles.group = None,
            Fault::Loss(probability) => self.troubles.loss = *probability,
            Fault::Duplicate(probability) => self.troubles.duplicate = *probability,
        }
        Ok(())
    }

    fn crash(&mut self, node: NodeId) {
        if std::mem::replace(&mut self.troubles.crashed[node.index()], true) {
            return;
        }
        let client = &mut self.clients[node.index()];
        if client.phase == Phase::Waiting {
            self.metrics.gave_up(client);
        }
        client.life += 1;
        client.phase = Phase::Idle;
        client.backlog.clear();
        self.inside.retain(|other| *other != node);
        self.timers[node.index()].clear();
        self.watch.see(self.now, node, Event::Crashed);
    }

    fn restart(&mut self, node: NodeId) -> Result<(), Stopped> {
        self.troubles.crashed[node.index()] = false;
        self.nodes[node.index()] = self.fresh[node.index()].clone();
        self.happen(node, Input::Start)?;
        if !matches!(self.config.arrivals, Arrivals::Scripted(_)) {
            self.await_arrival(node);
        }
        Ok(())
    }

    fn stuck(&self) -> Stopped {
        let waiting: Vec<String> = NodeId::all(self.nodes.len())
            .filter(|node| self.clients[node.index()].phase == Phase::Waiting)
            .map(|node| node.to_string())
            .collect();
        let (shown, rest) = waiting.split_at(waiting.len().min(5));
        let (shown, more) =
            (shown.join(", "), if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) });
        let entries = self.metrics.entries();
        let what = if waiting.is_empty() {
            format!("nobody asks any more after {entries} entries")
        } else {
            format!("stuck after {entries} entries: {shown}{more} wait and nothing lets them in")
        };
        Stopped { what, law_broken: false }
    }

    pub(super) fn failure(&self, run: u64, what: String, law_broken: bool) -> Failure {
        Failure { what, run, time: self.now, law_broken }
    }

    pub(super) fn measured(self, elapsed: Duration) -> Measured {
        self.metrics.measured(elapsed)
    }
}
