//! What time is to the checker, where an algorithm counts on it: an answer is back within `patience`, but perhaps only just.

use std::time::Duration;

use crate::systems::check_on;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use vez_algorithms::{
    Algorithm, Context, Model, NodeId, Order, Phase, Protocol, Setup, SetupError, Timing,
    mutex::{Command, Mutex},
};
use vez_lab::{
    check::{Breach, Config, Verdict, Workload},
    system::System,
};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
enum Message {
    Ping,
    Pong,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
enum Timer {
    Silence,
}

/// Whoever asks wants to hear from the next node within `PERCENT` of patience, and enters then.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Listener<const PERCENT: u32> {
    next: NodeId,
    patience: Duration,
    phase: Phase,
}

impl<const PERCENT: u32> Algorithm for Listener<PERCENT> {
    const NAME: &'static str = "listener";
    const COST: &'static str = "2";
    const PAPER: &'static str = "ours";

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let next = |me: NodeId| NodeId::from_index((me.index() + 1) % setup.nodes());
        Ok(setup.ids().map(|me| Self { next: next(me), patience: setup.patience, phase: Phase::Idle }).collect())
    }
}

impl<const PERCENT: u32> Protocol for Listener<PERCENT> {
    const MODEL: Model = Model { timing: Timing::Bounded, ..Model::RELIABLE };
    type Message = Message;
    type Timer = Timer;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                self.phase.ask();
                let time = self.patience * PERCENT / 100;
                cx.set_timer(Timer::Silence, time..time);
                cx.send(self.next, Message::Ping);
            }
            Command::Release => self.phase.leave(),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Ping => cx.send(from, Message::Pong),
            Message::Pong => {
                cx.cancel_timer(Timer::Silence);
                self.phase.enter(cx);
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Silence => cx.violation("silence"),
        }
    }
}

/// Whether somebody of two hears nothing for too long, when only one of them asks.
fn is_silent<const PERCENT: u32>(instant: bool) -> bool {
    let once = Config { askers: Some(1), instant, ..Config::new(Workload::Requests(1), Order::Any) };
    let setup = System::of(2).setup(1, 0).expect("such a system can be");
    match check_on::<Listener<PERCENT>>(&setup, &once).verdict {
        Verdict::Holds(_) => false,
        Verdict::Violated(counterexample) => {
            assert_eq!(counterexample.breach, Breach::Violation(NodeId(0), "silence"));
            assert!(counterexample.transcript.contains("# time passes"), "{}", counterexample.transcript);
            true
        }
    }
}

#[test]
fn a_message_takes_a_third_of_patience() {
    assert!(!is_silent::<100>(false), "there and back takes two thirds");
    assert!(!is_silent::<67>(false), "there and back takes two thirds");
    assert!(is_silent::<66>(false), "there and back takes two thirds");
}

#[test]
fn or_no_time() {
    assert!(!is_silent::<1>(true), "there and back takes no time");
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
enum Word {
    Hello,
    Over,
}

/// n1 wakes once, and if it has been greeted by then, once more as long after. n0 greets it when its client asks, and is there
/// for as long: will it still be there?
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Greeter {
    me: NodeId,
    patience: Duration,
    phase: Phase,
    greeted: bool,
    wakes: u8,
}

impl Algorithm for Greeter {
    const NAME: &'static str = "greeter";
    const COST: &'static str = "2";
    const PAPER: &'static str = "ours";

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let patience = setup.patience;
        Ok(setup.ids().map(|me| Self { me, patience, phase: Phase::Idle, greeted: false, wakes: 0 }).collect())
    }
}

impl Protocol for Greeter {
    const MODEL: Model = Model { timing: Timing::Bounded, ..Model::RELIABLE };
    type Message = Word;
    type Timer = Timer;
    type Family = Mutex;

    fn on_start(&mut self, cx: &mut Context<'_, Self>) {
        if self.me == NodeId(1) {
            cx.set_timer(Timer::Silence, self.patience..self.patience);
        }
    }

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                self.phase.ask();
                self.phase.enter(cx);
                cx.set_timer(Timer::Silence, self.patience..self.patience);
                cx.send(NodeId(1), Word::Hello);
            }
            Command::Release => self.phase.leave(),
        }
    }

    fn on_message(&mut self, _from: NodeId, word: Word, cx: &mut Context<'_, Self>) {
        match word {
            Word::Hello => self.greeted = true,
            Word::Over if self.wakes == 0 => cx.violation("still there"),
            Word::Over => {}
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        let Timer::Silence = timer;
        self.wakes += 1;
        match self.wakes {
            _ if self.me == NodeId(0) => {}
            1 if self.greeted => cx.set_timer(Timer::Silence, self.patience..self.patience),
            1 => {}
            _ => cx.send(NodeId(0), Word::Over),
        }
    }
}

/// It will, if its client asks at the very moment at which n1 is to wake, and not a step earlier.
#[test]
fn everything_may_happen_when_a_timer_is_due() {
    let once = Config { askers: Some(1), ..Config::new(Workload::Requests(1), Order::Any) };
    let setup = System::of(2).setup(1, 0).expect("such a system can be");
    let Verdict::Violated(counterexample) = check_on::<Greeter>(&setup, &once).verdict else { panic!("it is gone") };
    assert_eq!(counterexample.breach, Breach::Violation(NodeId(0), "still there"));
    let asks = counterexample.transcript.find("ask n0").expect("it asks");
    assert_eq!(&counterexample.transcript[..asks], "# time passes, 3 steps\n");
}
