//! A trace that the algorithm lives through once more: does it do the same?
//!
//! Every input of the trace happens to the struct of its node again. The state after it, and every effect that follows, must be
//! what stands in the trace: the code that writes traces says what would stand there. Besides, a trace promises something
//! about time, timers, messages and the dead (`docs/trace.md`, "What follows what"), and the law of the family must hold
//! whenever a client is told something. The first line at which that is not so ends the replay.
//!
//! Nodes without a line in the trace are outside: what comes from them is taken on trust, and no law is applied to them.
//! A trace is read line by line. What is kept is the nodes, their clients, the timers that are set, and the messages on their
//! way.

mod books;
mod difference;
mod happen;
mod lines;

use std::{collections::VecDeque, fmt, io::BufRead};

use serde::Serialize;
use vez_algorithms::{Algorithm, CommandOf, EffectOf, NodeId, SetupError};

pub(crate) use self::lines::Lines;
use self::{
    books::Books,
    difference::{difference, in_words, phrase},
    lines::{Kind, Told},
};
use crate::{
    quiet,
    sim::Event,
    trace::{self, Header},
};

/// What was replayed without a difference.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// Whose trace it is.
    pub algorithm: String,
    /// How many nodes the system has, with those that have no client.
    pub nodes: usize,
    /// How many of them are in the trace.
    pub present: usize,
    /// How many lines were read, with the first one.
    pub lines: u64,
    /// How many things happened to nodes.
    pub inputs: u64,
    /// How many things nodes wanted done.
    pub effects: u64,
    /// How many of these are messages.
    pub messages: u64,
    /// How often somebody entered, or had what it asked for done.
    pub entries: u64,
    /// How often a node received what the algorithm rules out, and said so.
    pub objections: u64,
    /// The time from the first event to the last.
    pub span: f64,
    /// The line in whose midst the trace ends: an input whose effects are not all there, or a line that breaks off.
    pub ends_within: Option<u64>,
}

/// Why a replay came to an end before its trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// Whose fault it is.
    pub cause: Cause,
    /// At which line, counted from 1.
    pub line: u64,
    /// What is wrong, in one sentence.
    pub what: String,
    /// The last lines up to that one, each with its number; long ones are cut.
    pub before: Vec<(u64, String)>,
}

/// Whose fault it is that a replay came to an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Of the file: it is no trace, or a line of it makes no sense.
    Unreadable,
    /// Of the algorithm or of whoever ran it: what happened is not what the algorithm does, or cannot have happened.
    Parted,
    /// Of the algorithm: it does the same, and the law is broken.
    LawBroken,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, what) = (self.line, &self.what);
        match self.cause {
            Cause::Unreadable | Cause::Parted => write!(f, "line {line}: {what}"),
            Cause::LawBroken => write!(f, "line {line}: the law is broken: {what}"),
        }
    }
}

impl std::error::Error for Trouble {}

/// What is wrong with a line.
struct Wrong {
    cause: Cause,
    what: String,
}

impl Wrong {
    fn unreadable(what: impl Into<String>) -> Self {
        Self { cause: Cause::Unreadable, what: what.into() }
    }

    fn parted(what: impl Into<String>) -> Self {
        Self { cause: Cause::Parted, what: what.into() }
    }

    fn law_broken(what: impl Into<String>) -> Self {
        Self { cause: Cause::LawBroken, what: what.into() }
    }
}

/// Replays the trace of a run of this algorithm.
///
/// # Errors
/// At the first line that makes no sense, that is not what the algorithm does, or at which the law is broken.
pub fn replay<P: Algorithm>(from: &mut dyn BufRead) -> Result<Summary, Trouble> {
    let mut lines = Lines::new(from);
    let header = lines.header()?;
    if header.algorithm != P::NAME {
        let what = format!("this is a trace of {}, not of {}", header.algorithm, P::NAME);
        return Err(lines.trouble(Wrong::unreadable(what)));
    }
    go_on::<P>(&header, lines)
}

/// Replays what follows the header.
pub(crate) fn go_on<P: Algorithm>(header: &Header, mut lines: Lines<'_>) -> Result<Summary, Trouble> {
    let mut replay = Replay::<P>::new(header).map_err(|wrong| lines.trouble(wrong))?;
    let mut first = None;
    loop {
        let next = lines.next(replay.nodes.len()).and_then(|told| {
            let Some(told) = told else { return Ok(false) };
            first.get_or_insert(told.time);
            replay.take(&told, lines.number()).map(|()| true)
        });
        match next {
            Ok(true) => {}
            Ok(false) => break,
            Err(wrong) => return Err(lines.trouble(wrong)),
        }
    }
    let within = replay.step.as_ref().filter(|step| !step.owed.is_empty()).map(|step| step.line);
    Ok(Summary {
        algorithm: header.algorithm.clone(),
        nodes: replay.nodes.len(),
        present: replay.books.present(),
        lines: lines.number(),
        inputs: replay.inputs,
        effects: replay.effects,
        messages: replay.books.messages,
        entries: replay.books.entries,
        objections: replay.books.objections,
        span: first.map_or(0.0, |first| replay.now - first),
        ends_within: within.or(lines.broken_off()),
    })
}

/// An input that has happened, and what it still has to lead to.
struct Step<P: Algorithm> {
    line: u64,
    node: NodeId,
    time: f64,
    owed: VecDeque<EffectOf<P>>,
}

struct Replay<P: Algorithm> {
    nodes: Vec<P>,
    /// How each node starts.
    fresh: Vec<P>,
    /// What clients usually ask for, by the words that a trace has for it.
    wants: Vec<(String, CommandOf<P>)>,
    books: Books<P>,
    now: f64,
    /// The last thing that happened, if not all that it leads to has been told.
    step: Option<Step<P>>,
    inputs: u64,
    effects: u64,
}

impl<P: Algorithm> Replay<P> {
    fn new(header: &Header) -> Result<Self, Wrong> {
        let refuse = |what: String| Wrong::unreadable(what);
        let system = header.arrangement().map_err(|error| refuse(error.to_string()))?;
        // What no driver could set up may be too much for an assertion on the way.
        let built = quiet::catch(|| -> Result<_, SetupError> {
            let setup = system.setup(header.seed, header.run)?;
            Ok((P::system(&setup)?, P::wants(&setup), setup))
        });
        let built = built.map_err(|panic| refuse(format!("the header makes no system: {panic}")))?;
        let (nodes, wants, setup) = built.map_err(|error| refuse(format!("the header makes no system: {error}")))?;
        Ok(Self {
            books: Books::new(&setup, nodes.len()),
            fresh: nodes.clone(),
            nodes,
            wants: wants.into_iter().map(|want| (format!("{want:?}"), want)).collect(),
            now: 0.0,
            step: None,
            inputs: 0,
            effects: 0,
        })
    }

    /// Takes the next line.
    fn take(&mut self, told: &Told, line: u64) -> Result<(), Wrong> {
        if told.time < self.now {
            return Err(Wrong::parted(format!("time goes back there, from {} to {}", self.now, told.time)));
        }
        self.now = told.time;
        if let Some(mut step) = self.step.take()
            && let Some(effect) = step.owed.pop_front()
        {
            return self.go_through_with(step, effect, told);
        }
        match told.kind {
            Kind::Input(happening) => self.happen(happening, told, line),
            Kind::Effect => {
                self.books.is_alive(told.node).map_err(|how| self.but(told, how))?;
                Err(Wrong::parted(format!("{} there; the algorithm does nothing more", in_words::<P>(told))))
            }
            Kind::Lose | Kind::Double => self.books.on_the_way(told),
            Kind::Crash => self.books.crash(told.node).map_err(|how| self.but(told, how)),
        }
    }

    /// Takes a line while not all effects of the last input have been told: the next of them is this.
    fn go_through_with(&mut self, mut step: Step<P>, effect: EffectOf<P>, told: &Told) -> Result<(), Wrong> {
        let expected = written(told.time, step.node, &Event::<P>::Effect(&effect));
        let follows = matches!(told.kind, Kind::Effect | Kind::Lose | Kind::Double) && told.node == step.node;
        if !follows {
            let (what, owed) = (in_words::<P>(told), phrase::<P>(&expected));
            return Err(Wrong::parted(format!("{what} there; in the algorithm {} {owed} before that", step.node)));
        }
        if told.time != step.time {
            let what = in_words::<P>(told);
            let why = format!("what that follows from has happened at {}", step.time);
            return Err(Wrong::parted(format!("{what} at {} there; {why}", told.time)));
        }
        if told.kind == Kind::Effect {
            if let Some((path, there, here)) = difference(&told.fields, &expected) {
                return Err(parted::<P>(told, &expected, &path, (&there, &here)));
            }
            self.effects += 1;
            self.books.carry_out(step.node, self.now, effect)?;
        } else {
            self.books.on_the_way(told)?;
            step.owed.push_front(effect);
        }
        self.step = Some(step);
        Ok(())
    }

    /// Something happened that cannot have.
    fn but(&self, told: &Told, how: &str) -> Wrong {
        Wrong::parted(format!("{} there, but {how}", in_words::<P>(told)))
    }
}

/// What the trace has, and what the algorithm does instead.
fn parted<P: Algorithm>(told: &Told, expected: &serde_json::Value, path: &str, (there, here): (&str, &str)) -> Wrong {
    let (what, other) = (phrase::<P>(&told.fields), phrase::<P>(expected));
    Wrong::parted(if what == other {
        format!("{path} of {} is {there} there; the algorithm has {here}", told.node)
    } else {
        format!("{} {what} there; the algorithm {other}", told.node)
    })
}

/// What would stand in a trace.
fn written<P: Algorithm>(time: f64, node: NodeId, event: &Event<'_, P>) -> serde_json::Value {
    serde_json::to_value(trace::line(time, node, event)).expect("states, messages and timers are JSON")
}
