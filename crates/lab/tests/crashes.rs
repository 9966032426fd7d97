//! What a crash takes with it: any of what the node has sent and has not arrived.

mod load;
mod systems;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use systems::{check_on, config, setup};
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
    let heard = |node: usize| (world.nodes[node].first, world.nodes[node].second);
    if world.in_flight.is_empty() && (heard(1), heard(2)) == ((true, true), (true, false)) {
        return Err("one has heard more than another");
    }
    Ok(())
}

#[test]
fn the_checker_lets_a_node_crash_in_the_midst_of_its_sending() {
    let whole = Config { askers: Some(1), ..config(Workload::Requests(1), Order::Fifo) };
    let report = check_on::<Herald>(&setup(3), &whole);
    assert!(!matches!(&report.verdict, Verdict::Violated(found) if matches!(found.breach, Breach::Invariant(_))));
    let report = check_on::<Herald>(&setup(3), &Config { crashes: 1, ..whole });
    let Verdict::Violated(counterexample) = report.verdict else { panic!("it reached all or nobody") };
    assert_eq!(counterexample.breach, Breach::Invariant("one has heard more than another"));
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
    assert!((150..250).contains(&report.losses), "{} of 400 are lost", report.losses);
    // Whoever sends nothing does not crash.
    assert_eq!(count(Fault::CrashSending(NodeId(1))).crashes, 0);
}
