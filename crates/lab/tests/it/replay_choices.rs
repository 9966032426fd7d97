//! What chance answered is answered again.

use crate::load;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use vez_algorithms::{
    Algorithm, Context, Model, Never, NodeId, Phase, Protocol, Setup, SetupError,
    mutex::{Command, Mutex},
};
use vez_lab::{
    replay::{Cause, Summary, Trouble, replay},
    sim::{self, Arrivals, Config},
    trace::Trace,
};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
enum Message {}

/// A node that is alone, and throws dice until there is a six: then it enters.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Dice {
    phase: Phase,
    throws: u64,
}

impl Algorithm for Dice {
    const NAME: &'static str = "dice";
    const COST: &'static str = "0";
    const PAPER: &'static str = "ours";

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        Ok(setup.ids().map(|_| Self { phase: Phase::Idle, throws: 0 }).collect())
    }
}

impl Protocol for Dice {
    const MODEL: Model = Model::RELIABLE;
    type Message = Message;
    type Timer = Never;
    type Family = Mutex;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Request => {
                self.phase.ask();
                self.throws += 1;
                while cx.choose(6) != 5 {
                    self.throws += 1;
                }
                self.phase.enter(cx);
            }
            Command::Release => self.phase.leave(),
        }
    }

    fn on_message(&mut self, _from: NodeId, message: Message, _cx: &mut Context<'_, Self>) {
        match message {}
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}

fn thrown() -> String {
    let config = Config { entries: 20, warmup: 0, ..load::config(1, Arrivals::Closed { rate: 1.0 }) };
    let mut bytes = Vec::new();
    let mut trace = Trace::new(&mut bytes, &config.header::<Dice>(0, None)).expect("memory is not full");
    sim::watch::<Dice>(&config, 0, &mut trace).expect("nothing goes wrong");
    trace.finish().expect("memory is not full");
    String::from_utf8(bytes).expect("JSON is text")
}

fn replayed(text: &str) -> Result<Summary, Trouble> {
    replay::<Dice>(&mut text.as_bytes())
}

#[test]
fn what_chance_answered_is_answered_again() {
    let text = thrown();
    assert!(text.contains("\"choices\":[") && !text.contains("\"choices\":[]"), "{text}");
    let summary = replayed(&text).unwrap_or_else(|trouble| panic!("{trouble}"));
    assert_eq!((summary.entries, summary.messages), (20, 0));
}

#[test]
fn another_answer_is_a_difference() {
    let text = thrown();
    let line = text.lines().position(|line| line.contains("\"choices\":[")).expect("it throws dice");
    let asks = text.lines().nth(line).expect("it is there");
    let (before, rest) = asks.split_once("\"choices\":[").expect("it is there");
    let (_, after) = rest.split_once(']').expect("a list ends");
    let throws = text.lines().nth(line).and_then(|line| line.split("\"throws\":").nth(1)).expect("it counts");
    let throws: usize = throws.trim_end_matches('}').parse().expect("a number");
    let parts = |answers: &str, what: &str| {
        let other = text.replacen(asks, &format!("{before}\"choices\":[{answers}]{after}"), 1);
        let trouble = replayed(&other).expect_err(what);
        assert_eq!((trouble.cause, trouble.to_string()), (Cause::Parted, format!("line {}: {what}", line + 1)));
    };
    parts("0,6,5", "n0 asks for Request and chance answers 6 there; the algorithm wants a number below 6");
    parts("", "n0 asks for Request and chance answers nothing there; the algorithm wants a number below 6");
    parts("0,0", "n0 asks for Request and chance answers nothing there; the algorithm wants a number below 6");
    parts("0,5,1", "n0 asks for Request and chance answers 3× there; the algorithm asks 2×");
    let longer = "0,".repeat(throws) + "5";
    let counted = format!("state.throws of n0 is {throws} there; the algorithm has {}", throws + 1);
    parts(&longer, &counted);
}

#[test]
fn a_trace_of_another_algorithm() {
    let text = thrown().replacen("dice", "nxr", 1);
    assert_eq!(replayed(&text).expect_err("another").to_string(), "line 1: this is a trace of nxr, not of dice");
}
