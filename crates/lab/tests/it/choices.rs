//! What an algorithm leaves to chance: the checker tries every answer, the simulator draws one.

use crate::{load, systems::check};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use vez_algorithms::{
    Algorithm, Context, Model, Never, NodeId, Order, Phase, Protocol, Setup, SetupError,
    mutex::{Command, Mutex},
};
use vez_lab::{
    check::{Breach, Verdict, Workload},
    sim::Arrivals,
};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
enum Message {
    Request,
    Grant,
    Release,
}

/// A coordinator that draws lots among those who wait. If it is `CARELESS` it draws two, and grants twice if both win.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Lottery<const CARELESS: bool> {
    phase: Phase,
    inside: Option<NodeId>,
    waiting: Vec<NodeId>,
}

impl<const CARELESS: bool> Algorithm for Lottery<CARELESS> {
    const NAME: &'static str = "lottery";
    const COST: &'static str = "3(n−1)/n";
    const PAPER: &'static str = "ours";

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        Ok(setup.ids().map(|_| Self { phase: Phase::Idle, inside: None, waiting: Vec::new() }).collect())
    }
}

impl<const CARELESS: bool> Protocol for Lottery<CARELESS> {
    const MODEL: Model = Model::RELIABLE;
    type Message = Message;
    type Timer = Never;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                self.phase.ask();
                cx.send(NodeId(0), Message::Request);
            }
            Command::Release => {
                self.phase.leave();
                cx.send(NodeId(0), Message::Release);
            }
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Request => self.waiting.push(from),
            Message::Release => self.inside = None,
            Message::Grant => return self.phase.enter(cx),
        }
        if self.inside.is_none() && !self.waiting.is_empty() {
            let winner = self.waiting.remove(cx.choose(self.waiting.len()));
            self.inside = Some(winner);
            cx.send(winner, Message::Grant);
            if CARELESS && !self.waiting.is_empty() && cx.choose(5) == 4 && cx.choose(3) == 2 {
                cx.send(self.waiting.remove(0), Message::Grant);
            }
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}

#[test]
fn every_answer_is_tried() {
    let careful = check::<Lottery<false>>(3, Workload::Requests(2), Order::Any);
    assert!(matches!(careful.verdict, Verdict::Holds(_)), "{careful:?}");
    // Only the last answer to the last of three questions lets two in.
    let careless = check::<Lottery<true>>(3, Workload::Requests(2), Order::Any);
    let Verdict::Violated(counterexample) = careless.verdict else { panic!("the unlikely was not tried") };
    assert!(matches!(counterexample.breach, Breach::Law(_)), "{}", counterexample.breach);
}

#[test]
fn lots_may_pass_somebody_over_for_ever() {
    let report = check::<Lottery<false>>(3, Workload::Unbounded, Order::Any);
    let Verdict::Violated(counterexample) = report.verdict else { panic!("lots promise nobody a turn") };
    assert!(matches!(counterexample.breach, Breach::Starvation(_)), "{}", counterexample.breach);
}

#[test]
fn the_simulator_draws_and_everybody_wins_in_the_end() {
    let report = load::measure::<Lottery<false>>(&load::config(5, Arrivals::Saturated));
    assert!(report.fairness.mean > 0.99 && report.bypasses.mean > 0.5, "{report:?}");
}
