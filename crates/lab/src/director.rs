//! Plays transcripts: scripts, with what came of them.
//!
//! A transcript is a script for a [`Stage`]: commands, `---`, and what came of them. It begins with `system`.
//!
//! | command | what happens |
//! |---|---|
//! | `system nodes=3 topology=line quorum=grid` | a new system starts; `SystemOptions` has its other parameters |
//! | `ask n1 n2` | the clients of these nodes ask, one after the other |
//! | `leave n1` | the client of this node leaves |
//! | `deliver n2 n1 "Request(1)"` | the first such message from n2 to n1 arrives; `Request` is any; without it, the first |
//! | `settle limit=100` | everything arrives, in the order of sending, until nothing is on its way |
//! | `fire n1 Retry` | this timer fires; without its name, the first that is set |
//! | `tick n1 times=3` | something happens at n1 that is nobody else's business |
//! | `lose n2 n1 "Request(1)"` | the first such message is lost |
//! | `crash n1` | n1 is dead; what arrives there meanwhile is lost |
//! | `restart n1` | n1 is back, as it was in the beginning |
//! | `notice n1 n2` | the failure detector tells n1 that n2 has crashed |
//! | `state n1 n2` | the state of these nodes, or of all |
//! | `flying` | the messages on their way, in the order of sending |
//!
//! `n1 → n2` is a message sent, `n2 ← n1` the same one received, with its effects indented below it. A step
//! that cannot be taken, a broken law and a broken invariant end the play, unless the command begins with `!`: then the
//! output says what went wrong.

use std::{error::Error, str::FromStr};

use vez_algorithms::{
    Algorithm, Message as _, NodeId, NodeSet, World,
    catalog::{self, Job},
};

use crate::{
    quiet,
    scene::{Recorder, Scene},
    sim::DelayLaw,
    stage::{CannotPlay, Packet, Stage, Step},
    system::{MESSAGE_DELAY, System, SystemOptions},
};

/// Deliveries until `settle` gives up, if the script does not say.
const SETTLE_LIMIT: usize = 1000;

/// A transcript that was played.
#[derive(Clone, PartialEq, Debug)]
pub struct Played {
    /// The script, with what came of it.
    pub transcript: String,
    /// What happened on the stage. The time of a thing is the number of its step: asking, leaving, delivering, losing,
    /// firing, crashing, coming back, noticing and ticking are a step each. If the script sets the stage more than once,
    /// this is the last one.
    pub scene: Scene,
}

/// A script that cannot be played to its end, and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct CannotDirect(String);

/// Plays a script for the algorithm of that name, if there is one. What the script says came of it is not looked at: that
/// is for whoever compares.
pub fn play(name: &str, script: &str) -> Option<Result<Played, CannotDirect>> {
    Director::find(name).map(|director| play_with(director, script))
}

fn play_with(mut director: Director, script: &str) -> Result<Played, CannotDirect> {
    // A script may do to an algorithm what no network does, and then its assertions fail.
    let generated = quiet::catch(|| goldenscript::generate(&mut director, script));
    let generated = generated.map_err(|panic| CannotDirect(format!("an assertion failed: {panic}")))?;
    let transcript = generated.map_err(|error| CannotDirect(error.to_string()))?;
    Ok(Played { transcript, scene: director.into_scene() })
}

/// What a script may say.
#[derive(goldenscript::Command)]
pub enum Command {
    /// A new system starts.
    System {
        /// How many nodes it has.
        #[arg(key)]
        nodes: usize,
        /// Its parameters, by name.
        #[arg(key, many, optional)]
        options: Vec<(String, String)>,
    },
    /// Nodes, and behind them what they ask for, if not for what they usually do.
    Ask(Vec<String>),
    /// The client of this node leaves.
    Leave(Name),
    /// A message arrives.
    Deliver {
        /// Who sent it.
        from: Name,
        /// Who gets it.
        to: Name,
        /// What it is called, in full or by its kind.
        message: Option<String>,
    },
    /// Everything arrives.
    Settle {
        /// After so many deliveries this gives up.
        #[arg(key)]
        limit: Option<usize>,
    },
    /// A timer fires.
    Fire {
        /// Where.
        node: Name,
        /// Which one.
        timer: Option<String>,
    },
    /// Something internal happens.
    Tick {
        /// Where.
        node: Name,
        /// How often.
        #[arg(key)]
        times: Option<usize>,
    },
    /// A message is lost.
    Lose {
        /// Who sent it.
        from: Name,
        /// Who was to have it.
        to: Name,
        /// What it is called, in full or by its kind.
        message: Option<String>,
    },
    /// This node crashes.
    Crash(Name),
    /// This node is back.
    Restart(Name),
    /// The failure detector speaks.
    Notice {
        /// To whom.
        node: Name,
        /// Of whom.
        crashed: Name,
    },
    /// The state of these nodes, or of all.
    State(#[arg(optional)] Vec<Name>),
    /// The messages on their way.
    Flying,
}

/// A node as one writes it: n1.
pub struct Name(NodeId);

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix('n').and_then(|number| number.parse().ok());
        number.map(|number| Self(NodeId(number))).ok_or_else(|| format!("\"{text}\" is no node; try n1"))
    }
}

type Watched<A> = Stage<A, Recorder<A>>;

/// Plays the commands of a script, and keeps what happened. It is a [`goldenscript::Runner`].
///
/// The algorithm is behind a pointer, so that what plays scripts is compiled once, and not for each algorithm.
pub struct Director(Box<dyn Direct>);

impl Director {
    /// For the algorithm of that name, if there is one.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        catalog::visit(name, MakeDirector)
    }

    /// For an algorithm.
    #[must_use]
    pub fn of<A: Algorithm>() -> Self {
        Self(Box::new(Play::<A> { stage: None }))
    }

    /// What happened on the stage that was set last; nothing if none was.
    #[must_use]
    pub fn into_scene(self) -> Scene {
        self.0.into_scene()
    }
}

impl goldenscript::Runner for Director {
    type Command = Command;

    fn run(&mut self, command: &Command, _context: &goldenscript::Context) -> Result<String, Box<dyn Error>> {
        self.0.run(command)
    }
}

struct MakeDirector;

impl Job for MakeDirector {
    type Done = Director;

    fn with<A: Algorithm>(self) -> Director {
        Director::of::<A>()
    }
}

/// Plays commands with one algorithm.
trait Direct {
    fn run(&mut self, command: &Command) -> Result<String, Box<dyn Error>>;
    fn into_scene(self: Box<Self>) -> Scene;
}

/// The stage of an algorithm, once it is set.
struct Play<A: Algorithm> {
    stage: Option<Watched<A>>,
}

impl<A: Algorithm> Direct for Play<A> {
    fn run(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        if let Some(system) = system(command) {
            let (stage, told) = Stage::watched(&system?.setup(0, 0)?, Recorder::default())?;
            self.stage = Some(stage);
            return Ok(told);
        }
        let stage = self.stage.as_mut().ok_or("there is no system yet; begin with system nodes=3")?;
        let told = direct(stage, command)?;
        if stage.law().is_err() {
            return Err(told.into()); // The stage has said how it is broken.
        }
        keeps_invariant(stage).map_err(|broken| format!("{told}broken: {broken}"))?;
        Ok(told)
    }

    fn into_scene(self: Box<Self>) -> Scene {
        self.stage.map(|stage| stage.into_watch().into_scene()).unwrap_or_default()
    }
}

/// The system that a command sets up, if it does.
fn system(command: &Command) -> Option<Result<System, Box<dyn Error>>> {
    let Command::System { nodes, options } = command else { return None };
    let pairs = options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let resolve = |options: SystemOptions| Ok(options.resolve(*nodes, MESSAGE_DELAY, &DelayLaw::Uniform)?);
    Some(SystemOptions::from_pairs(pairs).map_err(Box::from).and_then(resolve))
}

fn direct<A: Algorithm>(stage: &mut Watched<A>, command: &Command) -> Result<String, Box<dyn Error>> {
    let told = match command {
        Command::System { .. } => String::new(), // it has set the stage
        Command::Ask(words) => ask(stage, words)?,
        Command::Leave(name) => stage.play(Step::Leave(name.0), &[])?,
        Command::Deliver { from, to, message } => {
            let packet = find(stage, from.0, to.0, message.as_deref())?;
            stage.deliver(packet)?
        }
        Command::Lose { from, to, message } => {
            let packet = find(stage, from.0, to.0, message.as_deref())?;
            stage.play(Step::Lose(packet), &[])?
        }
        Command::Settle { limit } => stage.settle(limit.unwrap_or(SETTLE_LIMIT))?,
        Command::Fire { node, timer } => fire(stage, node.0, timer.as_deref())?,
        Command::Tick { node, times } => play_all(stage, (0..times.unwrap_or(1)).map(|_| Step::Tick(node.0)))?,
        Command::Crash(name) => stage.play(Step::Crash(name.0), &[])?,
        Command::Restart(name) => stage.play(Step::Restart(name.0), &[])?,
        Command::Notice { node, crashed } => stage.play(Step::Notice(node.0, crashed.0), &[])?,
        Command::State(names) => states(stage, names),
        Command::Flying => flying(stage),
    };
    Ok(told)
}

fn play_all<A: Algorithm>(stage: &mut Watched<A>, steps: impl Iterator<Item = Step<A>>) -> Result<String, CannotPlay> {
    let mut told = String::new();
    for step in steps {
        told += &stage.play(step, &[])?;
    }
    Ok(told)
}

fn ask<A: Algorithm>(stage: &mut Watched<A>, words: &[String]) -> Result<String, Box<dyn Error>> {
    let called = words.last().filter(|word| word.parse::<Name>().is_err());
    let command = called.map(|called| {
        let found = stage.wants().iter().copied().find(|want| format!("{want:?}") == *called);
        found.ok_or_else(|| format!("nobody asks for \"{called}\"; there are {:?}", stage.wants()))
    });
    let command = command.transpose()?;
    let names = &words[..words.len() - usize::from(called.is_some())];
    let names = names.iter().map(|word| word.parse::<Name>()).collect::<Result<Vec<_>, _>>()?;
    Ok(play_all(stage, names.iter().map(|name| Step::Ask(name.0, command)))?)
}

/// The first message between these two, or the first that is called so, in full or by its kind.
fn find<A: Algorithm>(
    stage: &Watched<A>,
    from: NodeId,
    to: NodeId,
    called: Option<&str>,
) -> Result<Packet<A::Message>, Box<dyn Error>> {
    let is_called = |message: &A::Message, name: &str| name == message.kind() || name == format!("{message:?}");
    let wanted = |packet: &&Packet<A::Message>| {
        packet.from == from && packet.to == to && called.is_none_or(|name| is_called(&packet.message, name))
    };
    let found = stage.in_flight().iter().find(wanted).cloned();
    Ok(found.ok_or_else(|| format!("no {} is on its way from {from} to {to}", called.unwrap_or("message")))?)
}

/// Fires the first timer that is set, or the one of that name.
fn fire<A: Algorithm>(stage: &mut Watched<A>, node: NodeId, name: Option<&str>) -> Result<String, Box<dyn Error>> {
    let found = stage.timers(node).find(|timer| name.is_none_or(|name| name == format!("{timer:?}")));
    let timer = found.ok_or_else(|| format!("{node} has not set {}", name.unwrap_or("a timer")))?;
    Ok(stage.play(Step::Fire(node, timer), &[])?)
}

/// The states of some nodes, or of all.
fn states<A: Algorithm>(stage: &Watched<A>, names: &[Name]) -> String {
    let wanted = |node: NodeId| names.is_empty() || names.iter().any(|name| name.0 == node);
    let all = NodeId::all(stage.nodes().len()).zip(stage.nodes());
    all.filter(|(node, _)| wanted(*node)).map(|(node, state)| format!("{node} is {state:?}\n")).collect()
}

/// What is on its way to those who live.
fn flying<A: Algorithm>(stage: &Watched<A>) -> String {
    let arrives = stage.in_flight().iter().filter(|packet| !stage.is_dead(packet.to));
    let line = |Packet { from, to, message }: &Packet<A::Message>| format!("{from} → {to} {message:?}\n");
    let lines: String = arrives.map(line).collect();
    if lines.is_empty() { "nothing is on its way\n".to_owned() } else { lines }
}

/// The lemmas of the algorithm's paper, if it has any.
fn keeps_invariant<A: Algorithm>(stage: &Watched<A>) -> Result<(), &'static str> {
    let Some(invariant) = A::INVARIANT else { return Ok(()) };
    let nodes: Vec<&A> = stage.nodes().iter().collect();
    let arrives = stage.in_flight().iter().filter(|packet| !stage.is_dead(packet.to));
    let in_flight: Vec<_> = arrives.map(|packet| (packet.from, packet.to, &packet.message)).collect();
    let crashed: NodeSet = NodeId::all(nodes.len()).filter(|node| stage.is_dead(*node)).collect();
    invariant(&World { nodes: &nodes, crashed: &crashed, in_flight: &in_flight })
}
