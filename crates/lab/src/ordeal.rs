//! An algorithm under random faults, many times: does it keep its law, and is everybody who lives served in the end?
//!
//! Each ordeal has a number, and everything in it is drawn from the seed and that number: how many nodes there are, when
//! their clients ask, and what goes wrong. Only what the algorithm claims to survive goes wrong.

use std::{ops::Range, time::Duration};

use vez_algorithms::{Algorithm, Model, NodeId, Setup};

use crate::{
    parallel,
    random::{Purpose, Stream},
    sim::{self, Arrivals, CannotReport, Config, DelayLaw, Failure, Fault, Faults, Script},
    system::{System, Topology},
};

/// What is put to the test.
#[derive(Clone, Debug)]
pub struct Ordeals {
    /// By number.
    pub numbers: Range<u64>,
    /// Where all randomness comes from.
    pub seed: u64,
}

/// How an algorithm fared.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Summary {
    /// How many ordeals there were.
    pub ordeals: u64,
    /// How often somebody entered, or had what it asked for done.
    pub entries: u64,
    /// How many messages it took.
    pub messages: u64,
    /// How many nodes crashed.
    pub crashes: u64,
    /// How many came back.
    pub restarts: u64,
    /// How many messages were lost, on the way or with a node that crashed in the midst of sending.
    pub losses: u64,
}

/// An ordeal that was not survived.
#[derive(Clone, Debug, thiserror::Error)]
#[error("ordeal {number}: {failure}")]
pub struct NotSurvived {
    /// Which one.
    pub number: u64,
    /// What happened.
    pub failure: Failure,
    /// What was simulated.
    pub config: Box<Config>,
}

/// Why there is no summary.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CannotSummarise {
    /// There can be no such system.
    #[error(transparent)]
    Config(#[from] sim::ConfigError),
    /// An ordeal was not survived: the first one, by number.
    #[error(transparent)]
    NotSurvived(Box<NotSurvived>),
}

/// Puts an algorithm to the test. `progress` is told of every ordeal that is over.
///
/// # Errors
/// The first ordeal, by number, that was not survived.
pub fn run<A: Algorithm>(ordeals: &Ordeals, progress: &(dyn Fn() + Sync)) -> Result<Summary, CannotSummarise> {
    let one = |number: u64| {
        let config = draw::<A>(ordeals.seed, number);
        let result = sim::run::<A>(&config, || Duration::ZERO, &|_| {});
        progress();
        match result {
            Ok(report) => Ok(Summary {
                ordeals: 1,
                entries: report.entries,
                messages: report.messages_by_type.values().sum::<u64>(),
                crashes: report.crashes,
                restarts: report.restarts,
                losses: report.losses,
            }),
            Err(CannotReport::Config(error)) => Err(CannotSummarise::Config(error)),
            Err(CannotReport::Failure(failure)) => {
                let config = Box::new(config);
                Err(CannotSummarise::NotSurvived(Box::new(NotSurvived { number, failure, config })))
            }
        }
    };
    let all: Vec<_> = parallel::map(ordeals.numbers.clone(), &one);
    let mut summary = Summary::default();
    for result in all {
        let one = result?;
        summary.ordeals += one.ordeals;
        summary.entries += one.entries;
        summary.messages += one.messages;
        summary.crashes += one.crashes;
        summary.restarts += one.restarts;
        summary.losses += one.losses;
    }
    Ok(summary)
}

/// Things go wrong within this time.
const TROUBLE: f64 = 20.0;

/// Clients ask within this time, so that some do when nothing goes wrong any more; afterwards all must come to a good end.
const SPAN: f64 = 30.0;

/// The ordeal of that number.
#[must_use]
pub fn draw<A: Algorithm>(seed: u64, number: u64) -> Config {
    draw_for(A::MODEL, &|setup| !A::wants(setup).is_empty(), seed, number)
}

/// The ordeal of that number for an algorithm of that model, whose clients ask for something or not.
fn draw_for(model: Model, asks: &dyn Fn(&Setup) -> bool, seed: u64, number: u64) -> Config {
    let mut stream = Stream::new(seed, number, NodeId(0), Purpose::Ordeal);
    let nodes = 2 + stream.below(7);
    let topologies = [Topology::Hypercube, Topology::Grid, Topology::Geometric];
    let system = System { k: 1 + stream.below(nodes), topology: topologies[stream.below(3)], ..System::of(nodes) };
    let laws = [DelayLaw::Uniform, DelayLaw::Constant];
    // Who is never asked works by itself: it is enough that something goes wrong.
    let asked = system.setup(seed, number).is_ok_and(|setup| asks(&setup));
    let requests = if asked { 5 + stream.below(40) } else { 0 };
    let mut ask = |_| (SPAN * stream.uniform(), NodeId::from_index(stream.below(nodes)));
    let mut asks: Vec<(f64, NodeId)> = (0..requests).map(&mut ask).collect();
    asks.sort_by(|one, other| one.0.total_cmp(&other.0));
    Config {
        hold: 0.5 * stream.uniform(),
        delay_law: laws[stream.below(2)].clone(),
        order: model.order,
        faults: faults(model, nodes, &mut stream),
        entries: 1,
        runs: number..number + 1,
        seed,
        ..Config::new(system, Arrivals::Scripted(Script::of(asks)))
    }
}

fn faults(model: Model, nodes: usize, stream: &mut Stream) -> Faults {
    let mut faults = Vec::new();
    let crashes = if model.survives_crashes { 1 + stream.below(nodes - 1) } else { 0 };
    let mut victims: Vec<NodeId> = NodeId::all(nodes).collect();
    for _ in 0..crashes {
        let victim = victims.swap_remove(stream.below(victims.len()));
        let mut at = 0.0;
        loop {
            at += (TROUBLE - at) * stream.uniform();
            faults.push((at, if stream.below(2) == 0 { Fault::Crash(victim) } else { Fault::CrashSending(victim) }));
            if !model.survives_restarts || stream.below(2) == 0 {
                faults.push((TROUBLE, Fault::Crash(victim))); // if it has sent nothing since
                break;
            }
            at += (TROUBLE - at) * stream.uniform();
            faults.push((at, Fault::Restart(victim)));
            if stream.below(2) == 0 {
                break;
            }
        }
    }
    if model.survives_loss {
        let from = TROUBLE * stream.uniform();
        faults.push((from, Fault::Loss(0.2 * stream.uniform())));
        faults.push((from + (TROUBLE - from) * stream.uniform(), Fault::Loss(0.0)));
    }
    // This mends nothing, but a run is not over before its last fault: what went wrong late has time to be noticed.
    faults.push((SPAN, Fault::Heal));
    Faults::new(faults)
}
