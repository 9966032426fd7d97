//! Traces, written and replayed.

use vez_algorithms::NodeId;
use vez_lab::{
    meant,
    named::{self, Detector, Record},
    replay::{Cause, Summary, Trouble},
    sim::{Arrivals, CannotReport, Config, DelayLaw, Script},
};

use crate::load;

/// A run written down, and how it went.
pub(crate) fn trace(name: &str, detector: Detector, config: &Config, run: u64) -> (String, Result<(), CannotReport>) {
    let (mut bytes, mut written) = (Vec::new(), Ok(()));
    let record = Record::Trace(&mut bytes, &mut written);
    let result = named::watch(name, detector, config, run, record).expect("it is in the catalog");
    written.expect("memory is not full");
    (String::from_utf8(bytes).expect("JSON is text"), result)
}

pub(crate) fn replayed(text: &str) -> Result<Summary, Trouble> {
    named::replay(&mut text.as_bytes())
}

/// The lines of a run of three nodes in which these ask at these times, and every message takes a tenth.
pub(crate) fn scripted(name: &str, asks: &[(f64, u32)]) -> Vec<String> {
    let asks = asks.iter().map(|(time, node)| (*time, NodeId(*node))).collect();
    let order = meant::find(name).expect("it is in the catalog").assumptions.order;
    let arrivals = Arrivals::Scripted(Script::of(asks));
    let config = Config { delay_law: DelayLaw::Constant, order, ..load::config(3, arrivals) };
    let (text, result) = trace(name, Detector::HiAdsd, &config, 0);
    result.unwrap_or_else(|error| panic!("{name}: {error}"));
    text.lines().map(str::to_owned).collect()
}

/// The lines are as the algorithm would have it.
pub(crate) fn same(lines: &[String]) -> Summary {
    replayed(&(lines.join("\n") + "\n")).unwrap_or_else(|trouble| panic!("{trouble}"))
}

/// The lines are not, and this sentence says why.
pub(crate) fn troubled(lines: &[String], cause: Cause, sentence: &str) {
    let trouble = replayed(&(lines.join("\n") + "\n")).expect_err(sentence);
    assert_eq!((trouble.to_string().as_str(), trouble.cause), (sentence, cause));
    let last = trouble.before.last().expect("a line is to blame");
    assert_eq!((last.0, trouble.before.len() as u64), (trouble.line, trouble.line.min(6)));
}
