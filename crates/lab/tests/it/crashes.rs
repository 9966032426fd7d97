//! What a crash takes with it: any of what the node has sent and has not arrived, and whatever arrives while it is dead.

use crate::{
    load,
    systems::{check_on, setup},
};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use vez_algorithms::{
    Algorithm, Context, Invariant, Model, Never, NodeId, NodeSet, Order, Phase, Protocol, Setup, SetupError, World,
    mutex::{Command, Mutex},
};
use vez_lab::{
    check::{Breach, Config, Verdict, Workload},
    sim::{Arrivals, Fault, Faults, Script},
};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
enum Message {
    First,
    Second,
}

/// Node 0 tells all others two things. They believe that all hear the same.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Herald {
    nodes: usize,
    phase: Phase,
    first: bool,
    second: bool,
}

impl Algorithm for Herald {
    const NAME: &'static str = "herald";
    const COST: &'static str = "2(n−1)";
    const PAPER: &'static str = "ours";

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let nodes = setup.nodes();
        Ok(setup.ids().map(|_| Self { nodes, phase: Phase::Idle, first: false, second: false }).collect())
    }
}

impl Protocol for Herald {
    const MODEL: Model = Model { survives_crashes: true, ..Model::RELIABLE_FIFO };
    const INVARIANT: Option<Invariant<Self>> = Some(second_after_first);
    type Message = Message;
    type Timer = Never;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                self.phase.ask();
                for message in [Message::First, Message::Second] {
                    cx.multicast(NodeSet::others(self.nodes, NodeId(0)).iter(), &message);
                }
                self.phase.enter(cx);
            }
            Command::Release => self.phase.leave(),
        }
    }

    fn on_message(&mut self, _from: NodeId, message: Message, _cx: &mut Context<'_, Self>) {
        match message {
            Message::First => self.first = true,
            Message::Second => self.second = true,
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}

/// On one way, what was sent later is lost first. But whatever one node has heard, another may never hear.
fn second_after_first(world: &World<'_, Herald>) -> Result<(), &'static str> {
    if world.nodes.iter().any(|node| node.second && !node.first) {
        return Err("a message was lost and the next one was not");
    }
    let heard = |node: &&Herald| u8::from(node.first) + u8::from(node.second);
    let (most, least) = (world.nodes[1..].iter().map(heard).max(), world.nodes[1..].iter().map(heard).min());
    if world.in_flight.is_empty() && (most, least) == (Some(2), Some(1)) {
        return Err("one has heard more than another");
    }
    Ok(())
}

/// What the checker finds if node 0 of so many asks once.
fn breach(nodes: usize, crashes: usize, restarts: usize) -> Option<Breach> {
    let once = Config { askers: Some(1), crashes, restarts, ..Config::new(Workload::Requests(1), Order::Fifo) };
    match check_on::<Herald>(&setup(nodes), &once).verdict {
        Verdict::Holds(_) => None,
        Verdict::Violated(counterexample) => Some(counterexample.breach),
    }
}

#[test]
fn the_checker_lets_a_node_crash_in_the_midst_of_its_sending() {
    assert_eq!(breach(3, 0, 0), None);
    assert_eq!(breach(3, 1, 0), Some(Breach::Invariant("one has heard more than another")));
}

#[test]
fn what_is_under_way_to_the_dead_arrives_if_they_are_back() {
    assert_eq!(breach(2, 1, 0), None);
    assert_eq!(breach(2, 1, 1), Some(Breach::Invariant("a message was lost and the next one was not")));
}

#[test]
fn the_simulator_does_so_if_told_to() {
    let ask = Arrivals::Scripted(Script::of(vec![(1.0, NodeId(0))]));
    let crash = |fault| Faults::new(vec![(0.5, fault)]);
    let runs = 0..100;
    let count = |fault| {
        let faults = crash(fault);
        load::measure::<Herald>(&vez_lab::sim::Config {
            faults,
            entries: 1,
            warmup: 0,
            runs: runs.clone(),
            ..load::config(3, ask.clone())
        })
    };
    let report = count(Fault::CrashSending(NodeId(0)));
    assert_eq!(report.crashes, 100);
    // To each of two nodes, the first message with one half, and then the second as well; otherwise the second with one half.
    assert!((215..285).contains(&report.losses), "{} of 400 are lost", report.losses);
    // Whoever sends nothing does not crash.
    assert_eq!(count(Fault::CrashSending(NodeId(1))).crashes, 0);
}

/// Everybody counts the crashes that it hears of.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Witness {
    phase: Phase,
    heard: u8,
}

impl Algorithm for Witness {
    const NAME: &'static str = "witness";
    const COST: &'static str = "0";
    const PAPER: &'static str = "ours";

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        Ok(setup.ids().map(|_| Self { phase: Phase::Idle, heard: 0 }).collect())
    }
}

impl Protocol for Witness {
    const MODEL: Model = Model { survives_crashes: true, detector: true, ..Model::RELIABLE };
    const INVARIANT: Option<Invariant<Self>> = Some(never_twice);
    type Message = Message;
    type Timer = Never;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                self.phase.ask();
                self.phase.enter(cx);
            }
            Command::Release => self.phase.leave(),
        }
    }

    fn on_message(&mut self, _from: NodeId, _message: Message, _cx: &mut Context<'_, Self>) {}

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }

    fn on_crash(&mut self, _node: NodeId, _cx: &mut Context<'_, Self>) {
        self.heard += 1;
    }
}

fn never_twice(world: &World<'_, Witness>) -> Result<(), &'static str> {
    if world.nodes.iter().any(|node| node.heard > 1) { Err("somebody heard of two crashes") } else { Ok(()) }
}

/// Of every crash once: not twice of the same, but again of one who was back.
#[test]
fn the_detector_tells_of_every_crash_once() {
    let breach = |restarts| {
        let once = Config { askers: Some(1), crashes: 2, restarts, ..Config::new(Workload::Requests(1), Order::Any) };
        match check_on::<Witness>(&setup(2), &once).verdict {
            Verdict::Holds(_) => None,
            Verdict::Violated(counterexample) => Some(counterexample.breach),
        }
    };
    assert_eq!(breach(0), None);
    assert_eq!(breach(1), Some(Breach::Invariant("somebody heard of two crashes")));
}
