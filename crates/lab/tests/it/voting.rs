//! Coordinators that forget: how many must do so before two are inside, and how often that happens.

use std::time::Duration;

use crate::{load, systems::check_on};
use serde::Serialize;
use vez_algorithms::{
    Algorithm, CommandOf, Context, Input, Model, NodeId, Order, OutputOf, Protocol, Setup, SetupError, Timing,
    mutex::{Mutex, Voting},
};
use vez_lab::{
    check::{Breach, Config, Report, Verdict, Workload},
    risk::Risk,
    sim::{self, Arrivals, Fault, Faults},
    system::System,
};

fn system(replicas: usize, majority: usize) -> System {
    System { replicas, majority, ..System::of(2) }
}

fn explore<A: Algorithm>(system: &System, resets: usize) -> Report {
    let once = Config::new(Workload::Requests(1), Order::Any);
    let config = Config { crashes: resets, restarts: resets, instant: true, ..once };
    check_on::<A>(&system.setup(1, 0).expect("a system"), &config)
}

/// Whether two can be inside together. That a process which crashes keeps its votes, and lets others wait for ever, is
/// looked at only after every state has been seen.
fn breaks<A: Algorithm>(system: &System, resets: usize) -> bool {
    match explore::<A>(system, resets).verdict {
        Verdict::Holds(_) => false,
        Verdict::Violated(counterexample) => match counterexample.breach {
            Breach::Law(_) => true,
            Breach::Starvation(_) => false,
            other => panic!("{resets} resets: {other}"),
        },
    }
}

#[test]
fn two_get_in_when_2m_minus_n_forget_and_not_before() {
    for (n, m) in [(1, 1), (2, 2), (3, 2)] {
        let needed = Risk::new(n, m, 0.0).expect("a majority").needed_resets();
        for resets in 0..needed {
            assert!(!breaks::<Voting>(&system(n, m), resets), "{m} of {n}, {resets} forget");
        }
        assert!(breaks::<Voting>(&system(n, m), needed), "{m} of {n}, {needed} forget");
    }
    assert!(!breaks::<Voting>(&system(3, 3), 1));
}

/// The same, but timers fire at any moment, also while messages are on their way. Nobody gives up: a coordinator that does not
/// answer would be asked again without end.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Hasty(Voting);

impl Hasty {
    fn pass_on(&mut self, cx: &mut Context<'_, Self>, input: Input<Voting>) {
        let outputs = cx.inner::<Voting>(
            |message| message,
            |timer| timer,
            |cx| match input {
                Input::Command(command) => self.0.on_command(command, cx),
                Input::Message { from, message } => self.0.on_message(from, message, cx),
                Input::Timer(timer) => self.0.on_timer(timer, cx),
                Input::Start | Input::Restart | Input::Crash(_) | Input::Internal => unreachable!("it ignores these"),
            },
        );
        outputs.into_iter().for_each(|output: OutputOf<Voting>| cx.output(output));
    }
}

impl Protocol for Hasty {
    const MODEL: Model = Model { timing: Timing::Any, ..Voting::MODEL };
    type Message = <Voting as Protocol>::Message;
    type Timer = <Voting as Protocol>::Timer;
    type Family = Mutex;

    fn on_command(&mut self, command: CommandOf<Self>, cx: &mut Context<'_, Self>) {
        self.pass_on(cx, Input::Command(command));
    }

    fn on_message(&mut self, from: NodeId, message: Self::Message, cx: &mut Context<'_, Self>) {
        self.pass_on(cx, Input::Message { from, message });
    }

    fn on_timer(&mut self, timer: Self::Timer, cx: &mut Context<'_, Self>) {
        if format!("{timer:?}") != "GiveUp" {
            self.pass_on(cx, Input::Timer(timer));
        }
    }
}

impl Algorithm for Hasty {
    const NAME: &'static str = "hasty-voting";
    const COST: &'static str = Voting::COST;
    const PAPER: &'static str = Voting::PAPER;

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        Ok(Voting::system(setup)?.into_iter().map(Self).collect())
    }
}

#[test]
fn time_does_not_matter_for_safety() {
    for (n, m) in [(2, 2), (3, 2), (3, 3)] {
        assert!(!breaks::<Hasty>(&system(n, m), 0), "{m} of {n}");
    }
}

/// How often two were inside together, for each entry, if each coordinator forgets so often in a stay.
fn measured(n: usize, m: usize, resets: f64) -> f64 {
    const PROCESSES: usize = 3;
    let coordinators = NodeId::all(PROCESSES + n).skip(PROCESSES).collect();
    let delay = 0.005;
    let about = Duration::from_secs_f64(delay);
    let config = sim::Config {
        system: System { nodes: PROCESSES, retry: about / 2..about * 3 / 2, patience: about * 5 / 2, ..system(n, m) },
        hold: 1.0,
        delay,
        faults: Faults::new(vec![(0.0, Fault::Resets(resets, coordinators))]),
        keep_going: true,
        entries: 2500,
        warmup: 0,
        runs: 0..4,
        ..load::config(PROCESSES, Arrivals::Saturated)
    };
    let report = load::measure::<Voting>(&config);
    report.violations as f64 / 10_000.0
}

/// The formula is for exactly m votes, a stay of exactly Δt, and a second process that asks all the time. A process that has
/// more votes is safer, so the formula is a bound; with m = n nobody can have more, and it is nearly met.
#[test]
fn as_often_as_the_formula_says_or_less() {
    for (n, m, resets, least) in [(3, 3, 0.5, 0.7), (2, 2, 0.2, 0.7), (3, 2, 0.1, 0.3), (5, 4, 0.2, 0.1)] {
        let p = 1.0 - f64::exp(-resets);
        let formula = Risk::new(n, m, p).expect("a majority").probability().as_f64().expect("a number");
        let measured = measured(n, m, resets);
        let noise = 3.0 * (formula / 10_000.0).sqrt();
        let ratio = measured / formula;
        assert!(measured <= formula + noise && ratio >= least, "{m} of {n}: {measured:.4}, formula {formula:.4}");
    }
}
