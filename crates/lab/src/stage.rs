//! A system in the hands of a director: it does what it is told, one step at a time, and says what came of it.
//!
//! The transcripts under `transcripts/` are played on a stage. The checker tells its counterexamples in the same words, so that
//! one can be played. Whoever watches a stage is told of events as in a simulation, at the number of the step as the time.

use std::{fmt, ops::Range, time::Duration};

use vez_algorithms::{
    Algorithm, Client, CommandOf, Effect, EffectOf, Family, Heard, Input, NodeId, Phase, Protocol, Scene, Setup,
    SetupError, step,
};

use crate::{
    reach::Links,
    sim::{Event, Watch},
    timers::Timers,
};

/// A message on its way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Packet<M> {
    /// Who sent it.
    pub from: NodeId,
    /// Who is to have it.
    pub to: NodeId,
    /// What it says.
    pub message: M,
}

/// Something that the director lets happen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step<P: Protocol> {
    /// A client asks: for this, or, if there is nothing to choose from or it does not matter, for what it usually does.
    Ask(NodeId, Option<CommandOf<P>>),
    /// A client leaves.
    Leave(NodeId),
    /// A message arrives: the first one in flight that is the same.
    Deliver(Packet<P::Message>),
    /// A message is lost: the first one in flight that is the same.
    Lose(Packet<P::Message>),
    /// A timer fires.
    Fire(NodeId, P::Timer),
    /// A node crashes. What arrives while it is dead is lost.
    Crash(NodeId),
    /// A crashed node is back, as it was in the beginning.
    Restart(NodeId),
    /// The failure detector tells the first node that the second has crashed.
    Notice(NodeId, NodeId),
    /// Something happens at a node that is nobody else's business.
    Tick(NodeId),
}

impl<P: Protocol> fmt::Display for Step<P> {
    /// As a command of a transcript.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask(node, None) => command(f, "ask", &[*node], None),
            Self::Ask(node, Some(what)) => command(f, "ask", &[*node], Some(what)),
            Self::Leave(node) => command(f, "leave", &[*node], None),
            Self::Deliver(Packet { from, to, message }) => command(f, "deliver", &[*from, *to], Some(message)),
            Self::Lose(Packet { from, to, message }) => command(f, "lose", &[*from, *to], Some(message)),
            Self::Fire(node, timer) => command(f, "fire", &[*node], Some(timer)),
            Self::Crash(node) => command(f, "crash", &[*node], None),
            Self::Restart(node) => command(f, "restart", &[*node], None),
            Self::Notice(node, crashed) => command(f, "notice", &[*node, *crashed], None),
            Self::Tick(node) => command(f, "tick", &[*node], None),
        }
    }
}

/// Writes a command: its name, the nodes that it concerns, and what is asked for, delivered, lost or fired.
fn command(f: &mut fmt::Formatter<'_>, name: &str, nodes: &[NodeId], what: Option<&dyn fmt::Debug>) -> fmt::Result {
    f.write_str(name)?;
    nodes.iter().try_for_each(|node| write!(f, " {node}"))?;
    what.map_or(Ok(()), |what| write!(f, " \"{what:?}\""))
}

/// A step that cannot be taken now. The stage is as it was.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct CannotPlay(String);

/// A system, its clients, and the messages between them; and whoever watches.
pub struct Stage<P: Protocol, W = ()> {
    nodes: Vec<P>,
    /// How each node starts.
    fresh: Vec<P>,
    clients: Vec<Client<P::Family>>,
    wants: Vec<CommandOf<P>>,
    limit: usize,
    links: Links,
    timers: Vec<Timers<P::Timer, ()>>,
    crashed: Vec<bool>,
    in_flight: Vec<Packet<P::Message>>,
    /// How many steps have been taken: the time.
    steps: u32,
    watch: W,
}

impl<P: Algorithm> Stage<P> {
    /// Sets the stage. The second value is what happened at the start.
    ///
    /// # Errors
    /// If there can be no such system.
    pub fn new(setup: &Setup) -> Result<(Self, String), SetupError> {
        Self::watched(setup, ())
    }
}

impl<P: Algorithm, W: Watch<P>> Stage<P, W> {
    /// Sets the stage and lets somebody watch. What happens at the start happens at time 0, what comes of the first step at
    /// time 1, and so on.
    ///
    /// # Errors
    /// If there can be no such system.
    pub fn watched(setup: &Setup, watch: W) -> Result<(Self, String), SetupError> {
        let nodes = P::system(setup)?;
        let n = nodes.len();
        let mut stage = Self {
            fresh: nodes.clone(),
            nodes,
            clients: vec![Client::default(); n],
            wants: P::wants(setup),
            limit: setup.k,
            links: Links::of::<P>(setup),
            timers: vec![Timers::default(); n],
            crashed: vec![false; n],
            in_flight: Vec::new(),
            steps: 0,
            watch,
        };
        let mut told = String::new();
        for node in NodeId::all(n) {
            told += &stage.let_happen(node, Input::Start, &[]);
        }
        Ok((stage, told))
    }

    /// Whoever has watched.
    pub fn into_watch(self) -> W {
        self.watch
    }

    /// The nodes, in the order of their numbers.
    pub fn nodes(&self) -> &[P] {
        &self.nodes
    }

    /// Whether a node has crashed.
    pub fn is_dead(&self, node: NodeId) -> bool {
        self.crashed[node.index()]
    }

    /// The messages on their way, in the order of their sending.
    pub fn in_flight(&self) -> &[Packet<P::Message>] {
        &self.in_flight
    }

    /// Who is inside.
    pub fn inside(&self) -> Vec<NodeId> {
        NodeId::all(self.nodes.len()).filter(|node| self.clients[node.index()].phase == Phase::Inside).collect()
    }

    /// What clients may ask for.
    pub fn wants(&self) -> &[CommandOf<P>] {
        &self.wants
    }

    /// Whether the law of the family holds.
    ///
    /// # Errors
    /// How it is broken.
    pub fn law(&self) -> Result<(), String> {
        P::Family::law(&Scene {
            nodes: self.nodes.len(),
            limit: self.limit,
            inside: &self.inside(),
            client: &|node| &self.clients[node.index()],
            alive: &|node| !self.crashed[node.index()],
            connected: &|one, other| self.links.connected(one, other, &|node| !self.crashed[node.index()]),
        })
    }

    /// Takes a step and tells what came of it, a line for each effect. `choices` answers what the algorithm leaves to
    /// chance, in order; 0 beyond its end.
    ///
    /// # Errors
    /// If the step cannot be taken.
    pub fn play(&mut self, step: Step<P>, choices: &[usize]) -> Result<String, CannotPlay> {
        self.steps += 1;
        let told = self.try_step(step, choices);
        self.steps -= u32::from(told.is_err());
        told
    }

    fn try_step(&mut self, step: Step<P>, choices: &[usize]) -> Result<String, CannotPlay> {
        match step {
            Step::Ask(node, command) => {
                self.expect(node, Phase::Idle, "cannot ask")?;
                let usual = || self.wants.get(node.index() % self.wants.len().max(1)).copied();
                let command =
                    command.or_else(usual).ok_or_else(|| CannotPlay("nobody asks for anything here".into()))?;
                self.clients[node.index()].ask(command);
                Ok(self.let_happen(node, Input::Command(command), choices))
            }
            Step::Leave(node) => {
                self.expect(node, Phase::Inside, "cannot leave")?;
                let command = self.clients[node.index()].leave();
                Ok(self.let_happen(node, Input::Command(command), choices))
            }
            Step::Deliver(packet) => {
                self.take(&packet)?;
                if self.is_dead(packet.to) {
                    self.see_lost(&packet);
                    return Ok(format!("{} is dead\n", packet.to));
                }
                let Packet { from, to, message } = packet;
                Ok(self.let_happen(to, Input::Message { from, message }, choices))
            }
            Step::Lose(packet) => {
                self.take(&packet)?;
                self.see_lost(&packet);
                Ok(format!("{:?} from {} to {} is lost\n", packet.message, packet.from, packet.to))
            }
            Step::Fire(node, timer) => {
                let set = self.timers.get_mut(node.index()).and_then(|timers| timers.remove(timer)).is_some();
                set.then(|| self.let_happen(node, Input::Timer(timer), choices))
                    .ok_or_else(|| CannotPlay(format!("{node} has not set {timer:?}")))
            }
            Step::Crash(node) => {
                self.exists(node)?;
                self.crashed[node.index()] = true;
                self.clients[node.index()] = Client::default();
                self.timers[node.index()].clear();
                self.see(node, Event::Crashed);
                Ok(format!("{node} is dead\n"))
            }
            Step::Restart(node) => {
                if self.crashed.get(node.index()) != Some(&true) {
                    return Err(CannotPlay(format!("{node} is not dead")));
                }
                self.crashed[node.index()] = false;
                self.nodes[node.index()] = self.fresh[node.index()].clone();
                Ok(self.let_happen(node, Input::Restart, choices))
            }
            Step::Notice(node, crashed) => {
                self.exists(node)?;
                Ok(self.let_happen(node, Input::Crash(crashed), choices))
            }
            Step::Tick(node) => {
                self.exists(node)?;
                Ok(self.let_happen(node, Input::Internal, choices))
            }
        }
    }

    /// Delivers a message and tells of it, with what came of it indented below.
    ///
    /// # Errors
    /// If it is not on its way.
    pub fn deliver(&mut self, packet: Packet<P::Message>) -> Result<String, CannotPlay> {
        let Packet { from, to, message } = &packet;
        let mut told = format!("{to} ← {from} {message:?}\n");
        let what = self.play(Step::Deliver(packet), &[])?;
        told.extend(what.lines().map(|line| format!("    {line}\n")));
        Ok(told)
    }

    /// Delivers messages in the order of their sending until none is left, and tells of each that arrives.
    ///
    /// # Errors
    /// If it takes more than `limit` deliveries. So many have been made then.
    pub fn settle(&mut self, limit: usize) -> Result<String, CannotPlay> {
        let mut told = String::new();
        for _ in 0..limit {
            self.drop_what_goes_to_the_dead();
            let Some(packet) = self.in_flight.first().cloned() else { return Ok(told) };
            told += &self.deliver(packet)?;
        }
        if self.in_flight.iter().any(|packet| !self.is_dead(packet.to)) {
            return Err(CannotPlay(format!("not settled after {limit} deliveries")));
        }
        Ok(told)
    }

    /// The timers that a node has set.
    pub fn timers(&self, node: NodeId) -> impl Iterator<Item = P::Timer> + '_ {
        self.timers.get(node.index()).into_iter().flat_map(Timers::iter).map(|(timer, ())| *timer)
    }

    fn drop_what_goes_to_the_dead(&mut self) {
        let in_flight = std::mem::take(&mut self.in_flight);
        let (arrives, lost) = in_flight.into_iter().partition(|packet| !self.crashed[packet.to.index()]);
        self.in_flight = arrives;
        let lost: Vec<_> = lost;
        lost.iter().for_each(|packet| self.see_lost(packet));
    }

    fn see(&mut self, node: NodeId, event: Event<'_, P>) {
        self.watch.see(f64::from(self.steps), node, event);
    }

    fn see_lost(&mut self, Packet { from, to, message }: &Packet<P::Message>) {
        self.see(*from, Event::Lost(*to, message));
    }

    fn take(&mut self, packet: &Packet<P::Message>) -> Result<(), CannotPlay> {
        let Packet { from, to, message } = packet;
        let at = self.in_flight.iter().position(|other| other == packet);
        let at = at.ok_or_else(|| CannotPlay(format!("no {message:?} is on its way from {from} to {to}")))?;
        self.in_flight.remove(at);
        Ok(())
    }

    fn exists(&self, node: NodeId) -> Result<(), CannotPlay> {
        match self.crashed.get(node.index()) {
            Some(false) => Ok(()),
            Some(true) => Err(CannotPlay(format!("{node} is dead"))),
            None => Err(CannotPlay(format!("there is no {node} among {} nodes", self.nodes.len()))),
        }
    }

    fn expect(&self, node: NodeId, phase: Phase, cannot: &str) -> Result<(), CannotPlay> {
        self.exists(node)?;
        let found = self.clients[node.index()].phase;
        if found == phase { Ok(()) } else { Err(CannotPlay(format!("{node} {cannot}: it is {found:?}"))) }
    }

    fn let_happen(&mut self, node: NodeId, input: Input<P>, choices: &[usize]) -> String {
        let mut effects = Vec::new();
        let (mut choices, mut chosen) = (choices.iter(), Vec::new());
        let mut choose = |n: usize| {
            chosen.push(choices.next().copied().unwrap_or(0).min(n - 1));
            chosen[chosen.len() - 1]
        };
        let time = f64::from(self.steps);
        let seen = self.watch.watches().then(|| input.clone());
        step(node, &mut self.nodes[node.index()], input, &mut effects, &mut choose);
        if let Some(input) = seen {
            self.watch.see(time, node, Event::Input(&input, &self.nodes[node.index()], &chosen));
        }
        let mut told = String::new();
        for effect in effects {
            told += &format!("{}\n", describe::<P>(node, &effect));
            self.watch.see(time, node, Event::Effect(&effect));
            match effect {
                Effect::Send(to, message) => self.in_flight.push(Packet { from: node, to, message }),
                Effect::SetTimer(timer, _) => {
                    self.timers[node.index()].set(timer, ());
                }
                Effect::CancelTimer(timer) => {
                    self.timers[node.index()].remove(timer);
                }
                Effect::Output(output) => {
                    if let Err(wrong) = self.clients[node.index()].hear(&output) {
                        told += &format!("{node} {wrong}\n");
                    }
                }
                Effect::Violation(_) => {}
            }
        }
        if let Err(broken) = self.law() {
            told += &format!("{broken}\n");
        }
        told
    }
}

/// An effect in words.
pub(crate) fn describe<P: Protocol>(node: NodeId, effect: &EffectOf<P>) -> String {
    match effect {
        Effect::Send(to, message) => sentence(node, &format!(" → {to} "), message),
        Effect::SetTimer(timer, after) => sentence(node, " sets ", timer) + &span(after),
        Effect::CancelTimer(timer) => sentence(node, " cancels ", timer),
        Effect::Output(output) if enters::<P::Family>(output) => format!("{node} enters"),
        Effect::Output(output) => sentence(node, ": ", output),
        Effect::Violation(what) => format!("{node} objects: {what}"),
    }
}

fn sentence(node: NodeId, verb: &str, what: &dyn fmt::Debug) -> String {
    format!("{node}{verb}{what:?}")
}

fn span(after: &Range<Duration>) -> String {
    if after.start == after.end { format!(" after {:?}", after.start) } else { format!(" after {after:?}") }
}

/// Whether an output says "you are inside".
pub(crate) fn enters<F: Family>(output: &F::Output) -> bool {
    F::hear(&mut F::News::default(), output) == Heard::Entered
}
