//! The loop over events.

mod mishaps;
mod visits;

use std::time::Duration;

use vez_algorithms::{Algorithm, CommandOf, Effect, EffectOf, Input, Message, NodeId, Phase, Protocol, step};

use super::{
    Config, ConfigError, Failure, Fault,
    agenda::{Agenda, Due},
    clients::{Arrivals, Client},
    faults::Troubles,
    metrics::{Measured, Metrics},
    network::Network,
};
use crate::{
    random::{Purpose, Stream},
    reach::Links,
    timers::Timers,
};

/// Somebody who watches a run.
pub trait Watch<P: Protocol> {
    /// Something happened.
    fn see(&mut self, time: f64, node: NodeId, event: Event<'_, P>);
    /// Whether anybody watches at all.
    fn watches(&self) -> bool {
        true
    }
}

/// Nobody.
impl<P: Protocol> Watch<P> for () {
    fn see(&mut self, _: f64, _: NodeId, _: Event<'_, P>) {}
    fn watches(&self) -> bool {
        false
    }
}

/// Something that happens at a node.
pub enum Event<'a, P: Protocol> {
    /// Something happened to it, which left it in this state; and what chance answered meanwhile, in order.
    Input(&'a Input<P>, &'a P, &'a [usize]),
    /// It wants something done.
    Effect(&'a EffectOf<P>),
    /// A message that it sent is lost.
    Lost(NodeId, &'a P::Message),
    /// A message that it sent will arrive twice.
    Doubled(NodeId, &'a P::Message),
    /// It crashes.
    Crashed,
}

/// Reports an event to the watcher, if there is one.
fn see<P: Protocol>(watch: &mut Option<&mut dyn Watch<P>>, time: f64, node: NodeId, event: Event<'_, P>) {
    if let Some(watch) = watch {
        watch.see(time, node, event);
    }
}

/// Why a run stopped before its end.
pub(super) struct Stopped {
    pub(super) what: String,
    pub(super) law_broken: bool,
}

impl Stopped {
    fn stuck(waiting: &[NodeId], entries: u64) -> Self {
        let waiting: Vec<String> = waiting.iter().map(NodeId::to_string).collect();
        let (shown, rest) = waiting.split_at(waiting.len().min(5));
        let (shown, more) =
            (shown.join(", "), if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) });
        let what = if waiting.is_empty() {
            format!("nobody asks any more after {entries} entries")
        } else {
            let entries = if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") };
            format!("stuck after {entries}: {shown}{more} wait and nothing lets them in")
        };
        Self { what, law_broken: false }
    }

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

/// A simulation. The watcher is behind a pointer, so that the engine is compiled once for each algorithm.
pub(super) struct Engine<'a, P: Algorithm> {
    config: &'a Config,
    now: f64,
    agenda: Agenda<P>,
    nodes: Vec<P>,
    /// How each node starts, for a restart.
    fresh: Vec<P>,
    clients: Vec<Client<P::Family>>,
    /// How many of the nodes have clients that ask: the first ones.
    askers: usize,
    wants: Vec<CommandOf<P>>,
    inside: Vec<NodeId>,
    links: Links,
    /// When each node crashed last.
    crashed_at: Vec<f64>,
    timers: Vec<Timers<P::Timer, u64>>,
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
    watch: Option<&'a mut dyn Watch<P>>,
}

impl<'a, P: Algorithm> Engine<'a, P> {
    pub(super) fn new(config: &'a Config, run: u64, watch: Option<&'a mut dyn Watch<P>>) -> Result<Self, ConfigError> {
        let setup = config.system.setup(config.seed, run)?;
        let nodes = P::system(&setup)?;
        let n = nodes.len();
        if let Some(node) = config.faults.last_node().filter(|node| *node >= n) {
            return Err(ConfigError::NoSuchNode { script: "fault script", node, nodes: n });
        }
        let wants = P::wants(&setup);
        let clients = if wants.is_empty() { 0 } else { P::clients(&setup) };
        let askers = config.askers.unwrap_or(clients).min(clients);
        if let Arrivals::Scripted(script) = &config.arrivals
            && clients == 0
            && !script.asks().is_empty()
        {
            return Err(ConfigError::NobodyAsks(P::NAME));
        }
        if let Arrivals::Scripted(script) = &config.arrivals
            && let Some(node) = script.last_node().filter(|node| *node >= askers)
        {
            return Err(ConfigError::NoSuchNode { script: "script", node, nodes: askers });
        }
        let stream = |node, purpose| Stream::new(config.seed, run, node, purpose);
        Ok(Self {
            config,
            now: 0.0,
            agenda: Agenda::new(),
            fresh: if config.faults.all().is_empty() { Vec::new() } else { nodes.clone() },
            nodes,
            clients: NodeId::all(n).map(|node| Client::new(config, run, node)).collect(),
            askers,
            wants,
            inside: Vec::new(),
            links: Links::of::<P>(&setup),
            crashed_at: vec![0.0; n],
            timers: vec![Timers::default(); n],
            choices: NodeId::all(n).map(|node| stream(node, Purpose::Choices)).collect(),
            network: Network::new(config, n, run),
            troubles: Troubles::new(n, stream(NodeId(0), Purpose::Faults)),
            metrics: Metrics::new(n, if askers == 0 { n } else { askers }, config.warmup),
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
            Arrivals::Periodic { .. } => {
                NodeId::all(self.askers).for_each(|node| self.agenda.add(0.0, Due::Arrival(node, Some(0))));
            }
            Arrivals::Closed { .. } | Arrivals::Queued { .. } | Arrivals::Saturated => {
                NodeId::all(self.askers).for_each(|node| self.await_arrival(node));
            }
        }
        let scripted = matches!(self.config.arrivals, Arrivals::Scripted(_));
        let mut reported = 0;
        let enough = if scripted { u64::MAX } else { self.config.warmup + self.config.entries };
        while self.metrics.entries() < enough && !(scripted && self.script_is_over()) {
            let next = self.agenda.next();
            if let Some(until) = self.config.until.filter(|until| next.as_ref().is_none_or(|(time, _)| time > until)) {
                self.now = until;
                return Ok(());
            }
            let Some((time, due)) = next else {
                return Err(self.stuck());
            };
            self.now = time;
            self.take(due)?;
            if self.metrics.entries() - reported >= PROGRESS_EVERY {
                progress(self.metrics.entries() - reported);
                reported = self.metrics.entries();
            }
            let pairs = (self.nodes.len() as u64).pow(2);
            let owes = self.metrics.somebody_waits() || (scripted && self.script_left == 0);
            self.fruitless += u64::from(owes && self.inside.is_empty());
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

    /// A token that circulates for ever has no last event: a script is over when nothing more is asked for, nothing more
    /// goes wrong, and nothing is owed to anybody who lives.
    fn script_is_over(&self) -> bool {
        let last_fault = self.config.faults.all().last().map_or(0.0, |(time, _)| *time);
        let idle = self.script_left == 0 && self.inside.is_empty() && !self.metrics.somebody_waits();
        idle && self.now >= last_fault
            && self.clients.iter().all(|client| client.backlog.is_empty())
            && self.owed().is_empty()
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
            Due::Backlog(node, life) if self.clients[node.index()].life == life => self.serve_backlog(node),
            Due::Backlog(..) => Ok(()),
            Due::Receive { from, to, message } => {
                self.in_flight -= 1;
                if self.troubles.crashed[to.index()] {
                    return Ok(());
                }
                self.metrics.received(to);
                self.happen(to, Input::Message { from, message })
            }
            Due::Fire { node, timer, set } if self.timers[node.index()].get(timer) == Some(&set) => {
                self.timers[node.index()].remove(timer);
                self.happen(node, Input::Timer(timer))
            }
            Due::Fire { .. } => Ok(()), // cancelled, or set anew
            Due::Notice { node, life, .. } if self.clients[node.index()].life != life => Ok(()), // it has died itself
            Due::Notice { node, crashed, .. } => self.happen(node, Input::Crash(crashed)),
            Due::Fault(at) => self.go_wrong(at),
            Due::Reset(node, fault) => self.reset(node, fault),
        }
    }

    /// Lets something happen to a node, and does what it wants done.
    fn happen(&mut self, node: NodeId, input: Input<P>) -> Result<(), Stopped> {
        let mut effects = std::mem::take(&mut self.effects);
        let choices = &mut self.choices[node.index()];
        let watched = self.watch.as_ref().is_some_and(|watch| watch.watches());
        let mut chosen = Vec::new();
        let mut choose = |n: usize| {
            let answer = choices.below(n);
            if watched {
                chosen.push(answer);
            }
            answer
        };
        let seen = watched.then(|| input.clone());
        step(node, &mut self.nodes[node.index()], input, &mut effects, &mut choose);
        if let Some(input) = seen {
            let event = Event::Input(&input, &self.nodes[node.index()], &chosen);
            see(&mut self.watch, self.now, node, event);
        }
        let sends = |effect: &Effect<_, _, _>| matches!(effect, Effect::Send(..));
        let breaks = self.troubles.breaking.contains(node) && effects.iter().any(sends);
        for effect in effects.drain(..) {
            see(&mut self.watch, self.now, node, Event::Effect(&effect));
            match effect {
                Effect::Send(to, _) if !self.links.link(node, to) => {
                    return Err(Stopped::law_broken(format!("{node} sends to {to}, which is out of its reach")));
                }
                Effect::Send(to, message) => self.send(node, to, message),
                Effect::SetTimer(timer, after) => {
                    let share = self.choices[node.index()].uniform();
                    let (low, high) = (after.start.as_secs_f64(), after.end.as_secs_f64());
                    let set = self.agenda.next_number();
                    self.timers[node.index()].set(timer, set);
                    self.agenda.add(self.now + low + share * (high - low), Due::Fire { node, timer, set });
                }
                Effect::CancelTimer(timer) => {
                    self.timers[node.index()].remove(timer);
                }
                Effect::Output(output) => self.hear(node, &output)?,
                Effect::Violation(what) => return Err(Stopped::law_broken(format!("{node} objects: {what}"))),
            }
        }
        self.effects = effects;
        if breaks {
            self.lose_half(node);
            self.crash(node);
        }
        Ok(())
    }

    fn send(&mut self, from: NodeId, to: NodeId, message: P::Message) {
        self.metrics.sent(message.kind());
        if self.troubles.cut(from, to) || self.troubles.happens(self.troubles.loss) {
            self.metrics.losses += 1;
            see(&mut self.watch, self.now, from, Event::Lost(to, &message));
            return;
        }
        if self.troubles.happens(self.troubles.duplicate) {
            self.metrics.doubles += 1;
            see(&mut self.watch, self.now, from, Event::Doubled(to, &message));
            self.put_on_its_way(from, to, message.clone());
        }
        self.put_on_its_way(from, to, message);
    }

    fn put_on_its_way(&mut self, from: NodeId, to: NodeId, message: P::Message) {
        self.in_flight += 1;
        let at = self.network.arrival(self.now, from, to);
        self.agenda.add(at, Due::Receive { from, to, message });
    }

    fn stuck(&self) -> Stopped {
        Stopped::stuck(&self.owed(), self.metrics.entries())
    }

    pub(super) fn failure(&self, run: u64, what: String, law_broken: bool) -> Failure {
        Failure { what, run, time: self.now, law_broken }
    }

    pub(super) fn measured(mut self, elapsed: Duration) -> Measured {
        let living = self.nodes.iter().zip(&self.troubles.crashed).filter(|(_, crashed)| !**crashed);
        for (node, client) in NodeId::all(self.nodes.len()).zip(&self.clients) {
            if client.seen.phase == Phase::Waiting {
                self.metrics.still_waits(node, self.now);
            }
        }
        self.metrics.measures = P::measures(&living.map(|(node, _)| node).collect::<Vec<_>>());
        self.metrics.measured(self.now, elapsed)
    }
}
