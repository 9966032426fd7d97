//! Plays the transcripts of `transcripts/<family>/<algorithm>/<scenario>` and compares what happens with what is written.
//!
//! A transcript is a script for a [`Stage`]: commands, `---`, and what came of them. It begins with `system`.
//!
//! | command | what happens |
//! |---|---|
//! | `system nodes=3 topology=line quorum=grid` | a new system starts; topology and quorum may be left out (binary, grid) |
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
//! that cannot be taken, a broken law and a broken invariant fail the test, unless the command begins with `!`: then the
//! output says what went wrong.
//!
//! `UPDATE_GOLDENFILES=1 cargo test -p vez-lab --test transcripts` writes the outputs anew; then read the diff.

use std::{
    error::Error,
    fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    str::FromStr,
};

use vez_algorithms::{Algorithm, Message as _, NodeId, NodeSet, World, catalog};
use vez_lab::{
    stage::{CannotPlay, Packet, Stage, Step},
    system::{Quorum, System, Topology},
};

/// An algorithm is documented by at least so many scenarios: alone, in competition, and as its paper draws it.
const SCENARIOS: usize = 3;

/// Deliveries until `settle` gives up, if the script does not say.
const SETTLE_LIMIT: usize = 1000;

#[test]
fn transcripts_come_out_as_written() {
    let mut failures = Vec::new();
    for directory in algorithm_directories() {
        let name = name_of(&directory);
        for path in entries(&directory) {
            let play = || catalog::visit(&name, Play { path: &path });
            match catch_unwind(AssertUnwindSafe(play)) {
                Ok(Some(Ok(()))) => {}
                Ok(Some(Err(error))) => failures.push(format!("{}: {error}", path.display())),
                Ok(None) => failures.push(format!("{}: unknown algorithm \"{name}\"", path.display())),
                Err(_) => failures.push(format!("{}: differs, or panicked; see above", path.display())),
            }
        }
    }
    assert!(failures.is_empty(), "{} transcripts failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_directory_is_an_algorithm_of_its_family() {
    for directory in algorithm_directories() {
        let (family, name) = (name_of(directory.parent().expect("transcripts/<family>")), name_of(&directory));
        let known = catalog::ALL.iter().any(|entry| entry.family == family && entry.name == name);
        assert!(known, "the family {family} has no algorithm \"{name}\"");
    }
}

#[test]
fn every_algorithm_has_its_scenarios() {
    for entry in catalog::ALL {
        let directory = transcripts().join(entry.family).join(entry.name);
        let found = if directory.is_dir() { entries(&directory).len() } else { 0 };
        assert!(found >= SCENARIOS, "{} has {found} transcripts; it needs {SCENARIOS}", entry.name);
    }
}

fn transcripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts")
}

fn algorithm_directories() -> Vec<PathBuf> {
    entries(&transcripts()).iter().flat_map(|family| entries(family)).collect()
}

/// What stands in a directory, in the order of names.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let read = || fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    let mut paths = read().unwrap_or_else(|error| panic!("cannot read {}: {error}", directory.display()));
    paths.sort();
    paths
}

fn name_of(path: &Path) -> String {
    path.file_name().expect("it has a name").to_string_lossy().into_owned()
}

/// Plays one transcript with the algorithm that its directory names.
struct Play<'a> {
    path: &'a Path,
}

impl catalog::Job for Play<'_> {
    type Done = io::Result<()>;

    fn with<A: Algorithm>(self) -> io::Result<()> {
        goldenscript::run(&mut Director::<A> { stage: None }, self.path)
    }
}

/// What a script may say.
#[derive(goldenscript::Command)]
enum Command {
    System {
        #[arg(key)]
        nodes: usize,
        #[arg(key)]
        topology: Option<Topology>,
        #[arg(key)]
        quorum: Option<Quorum>,
        #[arg(key)]
        k: Option<usize>,
        #[arg(key)]
        groups: Option<usize>,
        #[arg(key)]
        replicas: Option<usize>,
        #[arg(key)]
        majority: Option<usize>,
        #[arg(key)]
        bits: Option<u32>,
        #[arg(key)]
        prefix: Option<u32>,
    },
    /// Nodes, and behind them what they ask for, if not for what they usually do.
    Ask(Vec<String>),
    Leave(Name),
    Deliver {
        from: Name,
        to: Name,
        message: Option<String>,
    },
    Settle {
        #[arg(key)]
        limit: Option<usize>,
    },
    Fire {
        node: Name,
        timer: Option<String>,
    },
    Tick {
        node: Name,
        #[arg(key)]
        times: Option<usize>,
    },
    Lose {
        from: Name,
        to: Name,
        message: Option<String>,
    },
    Crash(Name),
    Restart(Name),
    Notice {
        node: Name,
        crashed: Name,
    },
    State(#[arg(optional)] Vec<Name>),
    Flying,
}

/// A node as one writes it: n1.
struct Name(NodeId);

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix('n').and_then(|number| number.parse().ok());
        number.map(|number| Self(NodeId(number))).ok_or_else(|| format!("\"{text}\" is no node; try n1"))
    }
}

/// Does what a script says.
struct Director<A: Algorithm> {
    stage: Option<Stage<A>>,
}

impl<A: Algorithm> goldenscript::Runner for Director<A> {
    type Command = Command;

    fn run(&mut self, command: &Command, _context: &goldenscript::Context) -> Result<String, Box<dyn Error>> {
        if let Command::System { nodes, topology, quorum, k, groups, replicas, majority, bits, prefix } = command {
            let usual = System::of(*nodes);
            let system = System {
                topology: topology.unwrap_or(usual.topology),
                quorum: quorum.unwrap_or(usual.quorum),
                k: k.unwrap_or(usual.k),
                groups: groups.unwrap_or(usual.groups),
                replicas: replicas.unwrap_or(usual.replicas),
                majority: majority.unwrap_or(usual.majority),
                bits: bits.unwrap_or(usual.bits),
                prefix: prefix.unwrap_or(usual.prefix),
                ..usual
            };
            let (stage, told) = Stage::new(&system.setup(0, 0)?)?;
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
}

fn direct<A: Algorithm>(stage: &mut Stage<A>, command: &Command) -> Result<String, Box<dyn Error>> {
    let told = match command {
        Command::System { .. } => unreachable!("it sets the stage"),
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

fn play_all<A: Algorithm>(stage: &mut Stage<A>, steps: impl Iterator<Item = Step<A>>) -> Result<String, CannotPlay> {
    let mut told = String::new();
    for step in steps {
        told += &stage.play(step, &[])?;
    }
    Ok(told)
}

fn ask<A: Algorithm>(stage: &mut Stage<A>, words: &[String]) -> Result<String, Box<dyn Error>> {
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
    stage: &Stage<A>,
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
fn fire<A: Algorithm>(stage: &mut Stage<A>, node: NodeId, name: Option<&str>) -> Result<String, Box<dyn Error>> {
    let found = stage.timers(node).find(|timer| name.is_none_or(|name| name == format!("{timer:?}")));
    let timer = found.ok_or_else(|| format!("{node} has not set {}", name.unwrap_or("a timer")))?;
    Ok(stage.play(Step::Fire(node, timer), &[])?)
}

/// The states of some nodes, or of all.
fn states<A: Algorithm>(stage: &Stage<A>, names: &[Name]) -> String {
    let wanted = |node: NodeId| names.is_empty() || names.iter().any(|name| name.0 == node);
    let all = NodeId::all(stage.nodes().len()).zip(stage.nodes());
    all.filter(|(node, _)| wanted(*node)).map(|(node, state)| format!("{node} is {state:?}\n")).collect()
}

/// What is on its way to those who live.
fn flying<A: Algorithm>(stage: &Stage<A>) -> String {
    let arrives = stage.in_flight().iter().filter(|packet| !stage.is_dead(packet.to));
    let line = |Packet { from, to, message }: &Packet<A::Message>| format!("{from} → {to} {message:?}\n");
    let lines: String = arrives.map(line).collect();
    if lines.is_empty() { "nothing is on its way\n".to_owned() } else { lines }
}

/// The lemmas of the algorithm's paper, if it has any.
fn keeps_invariant<A: Algorithm>(stage: &Stage<A>) -> Result<(), &'static str> {
    let Some(invariant) = A::INVARIANT else { return Ok(()) };
    let nodes: Vec<&A> = stage.nodes().iter().collect();
    let arrives = stage.in_flight().iter().filter(|packet| !stage.is_dead(packet.to));
    let in_flight: Vec<_> = arrives.map(|packet| (packet.from, packet.to, &packet.message)).collect();
    let crashed: NodeSet = NodeId::all(nodes.len()).filter(|node| stage.is_dead(*node)).collect();
    invariant(&World { nodes: &nodes, crashed: &crashed, in_flight: &in_flight })
}
