//! The checker: every interleaving of a small system.
//!
//! [`check`] explores breadth first all states that a system can reach, whichever node asks or leaves, whichever message
//! arrives, whichever way a choice falls. In every state it applies the family's law, the algorithm's own lemmas and
//! assertions, and the rule that nothing stops before everybody is served. A breach is told as the shortest run that
//! leads to it. Then it looks at the graph of all states as a whole: can somebody be passed over for ever, and what is the
//! worst that a single entry can cost?

mod action;
mod book;
mod explore;
mod graph;
mod model;
mod starvation;
mod visited;
mod worst;

use std::time::Duration;

use serde::Serialize;
use vez_algorithms::{Algorithm, NodeId, Order, Setup, SetupError};

use self::{explore::explore, graph::Recorder, model::Model};

/// More nodes have more states than anybody can count.
pub const MAX_NODES: usize = 16;

/// More faults than this are not needed to break anything.
pub const MAX_FAULTS: usize = 100;

/// What is explored.
#[derive(Clone, Debug)]
pub struct Config {
    /// How often each client asks.
    pub workload: Workload,
    /// Whether messages may overtake each other.
    pub order: Order,
    /// How many of the clients ask, the first ones; all if none is given.
    pub askers: Option<usize>,
    /// Whether a client may ask for anything that can be asked for, instead of always the same.
    pub mixed: bool,
    /// How often a node may crash.
    pub crashes: usize,
    /// How often a crashed node may come back.
    pub restarts: usize,
    /// How many messages may be lost.
    pub losses: usize,
    /// How often the failure detector may take a living node for dead.
    pub false_suspicions: usize,
    /// Whether messages take no time, for algorithms that count on time. That leaves out much of what can happen, and there
    /// are far fewer states.
    pub instant: bool,
    /// Whether states are told apart by all they contain, instead of by a 64-bit fingerprint.
    pub exact: bool,
    /// More states than this are too many.
    pub max_states: usize,
}

impl Config {
    /// Without faults, with all clients, and at most 20 million states.
    #[must_use]
    pub fn new(workload: Workload, order: Order) -> Self {
        Self {
            workload,
            order,
            askers: None,
            mixed: false,
            crashes: 0,
            restarts: 0,
            losses: 0,
            false_suspicions: 0,
            instant: false,
            exact: false,
            max_states: 20_000_000,
        }
    }
}

/// How often each client asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    /// So many times.
    Requests(u32),
    /// Again and again, for ever.
    Unbounded,
}

/// What came out.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// How many states there are; if a law was broken, how many were seen until then.
    pub states: usize,
    /// How many ways lead from a state to another.
    pub transitions: usize,
    /// How many steps the state farthest from the first one is away.
    pub depth: usize,
    /// What the list of states weighs, in bytes a state.
    pub bytes_per_state: f64,
    /// Whether all laws hold.
    pub verdict: Verdict,
    /// How long the exploration took, with laws and deadlock.
    pub elapsed: Duration,
}

/// Whether all laws hold.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// They do, and this is the worst case.
    Holds(Worst),
    /// One does not.
    Violated(Counterexample),
}

/// The worst case over all interleavings.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Worst {
    /// Messages sent in a run until all are served, divided by the entries. Not known for requests for ever.
    pub messages_per_entry: Bound<f64>,
    /// How often others who asked later entered before the same request.
    pub bypasses: Bound<u64>,
}

/// How large something can become.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bound<T> {
    /// This large, and no larger.
    AtMost(T),
    /// As large as one likes.
    Unbounded,
    /// That was not found out.
    Unknown,
}

impl<T: Serialize> Serialize for Bound<T> {
    /// A number, `"unbounded"`, or nothing.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::AtMost(most) => most.serialize(serializer),
            Self::Unbounded => serializer.serialize_str("unbounded"),
            Self::Unknown => serializer.serialize_none(),
        }
    }
}

/// A law that does not hold.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Breach {
    /// The law of the family.
    #[error("{0}")]
    Law(String),
    /// An algorithm told a client what it cannot be told, such as to enter without having asked.
    #[error("{0} {1}")]
    Client(NodeId, &'static str),
    /// A node saw a peer do what the algorithm does not allow.
    #[error("{0} objects: {1}")]
    Violation(NodeId, &'static str),
    /// A handler's assertion failed.
    #[error("an assertion failed: {0}")]
    Assertion(String),
    /// The algorithm's own law about whole systems.
    #[error("{0}")]
    Invariant(&'static str),
    /// Nothing can happen any more, and somebody waits.
    #[error("deadlock: nothing can happen any more, and {} for ever", waits(.0))]
    Deadlock(Vec<NodeId>),
    /// Somebody waits for ever although nothing that can happen is put off for ever.
    #[error("starvation: {0} waits for ever while the others go on")]
    Starvation(NodeId),
    /// Something that must be possible never happened: the model is empty, or the algorithm never does anything.
    #[error("it never happened that {0}")]
    Never(&'static str),
}

fn waits(nodes: &[NodeId]) -> String {
    let names: Vec<String> = nodes.iter().map(NodeId::to_string).collect();
    format!("{} wait{}", names.join(", "), if nodes.len() == 1 { "s" } else { "" })
}

/// Why a run cannot be played as it is told.
const MOVED: &str = "# Numbers are moved down as the run goes on: what is sent with one may arrive with a lower one.\n";

/// A run in which a law is broken. No shorter one breaks any, but for starvation, which is found in the graph as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counterexample {
    /// The law.
    pub breach: Breach,
    /// How many steps lead to it, but for those in which only time passes.
    pub steps: usize,
    /// The run, as the commands of a transcript, each with what came of it.
    pub transcript: String,
}

/// Why there is no report.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CannotCheck {
    /// There can be no such system.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// There are too many nodes.
    #[error("{0} nodes are too many to explore; take at most {MAX_NODES}, or simulate them with vez lab run")]
    TooManyNodes(usize),
    /// There are too many crashes, losses or false suspicions.
    #[error("there are more than {MAX_FAULTS} faults of a kind; take fewer --crashes, --losses or --false-suspicions")]
    TooManyFaults,
    /// There are too many states.
    #[error("there are more than {0} states; take fewer nodes or requests, or raise --max-states")]
    TooManyStates(usize),
    /// There are too many states, and perhaps no end of them.
    #[error("there are more than {0} states, and with requests for ever perhaps no end of them; try --requests 2")]
    PerhapsNoEnd(usize),
}

/// Explores an algorithm. `stopwatch` tells the time since any fixed moment; `progress` is told now and then how many
/// states were seen.
///
/// # Errors
/// If the system cannot be set up or has too many states.
pub fn check<A: Algorithm>(
    setup: &Setup,
    config: &Config,
    stopwatch: fn() -> Duration,
    progress: &mut dyn FnMut(usize),
) -> Result<Report, CannotCheck> {
    if setup.nodes() > MAX_NODES {
        return Err(CannotCheck::TooManyNodes(setup.nodes()));
    }
    if config.crashes.max(config.losses).max(config.false_suspicions) > MAX_FAULTS {
        return Err(CannotCheck::TooManyFaults);
    }
    let started = stopwatch();
    let mut model = match Model::<A>::new(setup, config)? {
        Ok(model) => model,
        Err(breach) => {
            let counterexample = Counterexample { breach, steps: 0, transcript: String::new() };
            let verdict = Verdict::Violated(counterexample);
            return Ok(Report {
                states: 0,
                transitions: 0,
                depth: 0,
                bytes_per_state: 0.0,
                verdict,
                elapsed: Duration::ZERO,
            });
        }
    };
    if model.nodes > MAX_NODES {
        return Err(CannotCheck::TooManyNodes(model.nodes));
    }
    let explored = explore(&mut model, config, None, progress)?;
    let elapsed = stopwatch() - started;
    let visited = &explored.visited;
    let mut report = Report {
        states: visited.len(),
        transitions: explored.transitions,
        depth: explored.depth,
        bytes_per_state: visited.bytes() as f64 / visited.len() as f64,
        verdict: Verdict::Holds(Worst { messages_per_entry: Bound::Unknown, bypasses: Bound::Unknown }),
        elapsed,
    };
    let note = if model.canonical { MOVED } else { "" };
    if let Some((breach, run)) = explored.breach {
        let steps = Model::<A>::happenings(&run);
        let transcript = format!("{note}{}", model.tell(&run));
        let counterexample = Counterexample { breach, steps, transcript };
        report.verdict = Verdict::Violated(counterexample);
        return Ok(report);
    }
    let mut recorder = Recorder::default();
    let visited = explore(&mut model, config, Some(&mut recorder), progress)?.visited;
    let graph = recorder.finish();
    if let Some(starvation) = starvation::find(&graph, model.nodes) {
        let mut numbers = visited.path(starvation.cycle[0]);
        let steps = numbers.len() - 1;
        numbers.extend(&starvation.cycle[1..]);
        let run = model.retrace(&numbers, &visited);
        let (before, cycle) = run.split_at(steps);
        let transcript = format!("{note}{}# and from here on for ever:\n{}", model.tell(before), model.tell(cycle));
        let (breach, steps) = (Breach::Starvation(starvation.victim), Model::<A>::happenings(before));
        report.verdict = Verdict::Violated(Counterexample { breach, steps, transcript });
        return Ok(report);
    }
    report.verdict = Verdict::Holds(worst::case(&graph, model.nodes, model.askers, config));
    Ok(report)
}
