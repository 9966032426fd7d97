//! What was measured, in words: of a simulation, or of an emulation.

use std::fmt::Write;

use vez_algorithms::catalog::Entry;
use vez_lab::{
    sim::{Report, Starving},
    stats::Interval,
};

use super::system::arranged;
use crate::output::{counted, thousands};

/// What time is measured in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// In the unit of the simulation, which has no name.
    Virtual,
    /// In milliseconds; reports have seconds.
    Milliseconds,
}

impl Unit {
    /// A time.
    pub(crate) fn time(self, time: f64) -> String {
        match self {
            Self::Virtual => format!("{time:.4}"),
            Self::Milliseconds => format!("{:.3} ms", time * 1e3),
        }
    }

    fn interval(self, Interval { mean, ci95 }: Interval) -> String {
        let ci95 = ci95.map_or(String::new(), |ci95| format!(" ± {}", self.time(ci95)));
        format!("{}{ci95}", self.time(mean))
    }
}

/// The load, the world, and all that was measured.
pub(crate) fn describe(entry: &Entry, report: &Report, load: &str, world: &str, unit: Unit) -> String {
    let Report { nodes, askers, topology, settings, runs, entries, .. } = report;
    let whole = arranged(entry, *nodes, *askers, *topology, settings);
    let runs = counted(*runs, "run", "runs");
    let warmup = match report.warmup {
        0 => String::new(),
        warmup => format!(" after {} that are not measured", thousands(warmup)),
    };
    let mut text =
        format!("{whole}, {load}; {runs} of {}{warmup}\n{world}\n\n", counted(*entries as usize, "entry", "entries"));
    let measured = entries * report.runs as u64;
    let _ = writeln!(text, "messages an entry      {}", report.messages_per_entry);
    for (kind, count) in &report.messages_by_type {
        let _ = writeln!(text, "  {kind:20} {:.4}", *count as f64 / measured as f64);
    }
    let wait = &report.wait;
    let mean = Interval { mean: wait.mean, ci95: wait.ci95 };
    let _ = writeln!(text, "wait                   {}", unit.interval(mean));
    let [p50, p95, p99] = [wait.p50, wait.p95, wait.p99].map(|time| unit.time(time));
    let _ = writeln!(text, "  p50, p95, p99        {p50}, {p95}, {p99}");
    let starving = report.starving.map_or(String::new(), |Starving { node, waited, run }| {
        let waited = unit.time(waited);
        format!("; at the end of run {run} {node} had waited for {waited}, and was still waiting")
    });
    let _ = writeln!(text, "  longest              {}{starving}", unit.time(wait.max));
    if let Some(delay) = report.synchronisation_delay {
        let _ = writeln!(text, "synchronisation delay  {}", unit.interval(delay));
    }
    let _ = writeln!(text, "bypasses an entry      {}, at most {}", report.bypasses, report.most_bypasses);
    let _ = writeln!(text, "fairness (Jain)        {}", report.fairness);
    if let Some(detection) = report.detection {
        let mean = Interval { mean: detection.mean, ci95: detection.ci95 };
        let (mean, worst) = (unit.interval(mean), unit.time(detection.worst));
        let _ = writeln!(text, "detection of a crash   {mean}, at most {worst}");
    }
    for (name, value) in &report.measures {
        let _ = writeln!(text, "{name:22} {value}");
    }
    if !report.faults.is_empty() {
        let crashes = counted(report.crashes as usize, "crash", "crashes");
        let returns = counted(report.restarts as usize, "return", "returns");
        let losses = counted(report.losses as usize, "lost message", "lost messages");
        let doubles = counted(report.doubles as usize, "doubled message", "doubled messages");
        let _ = writeln!(text, "went wrong in all      {crashes}, {returns}, {losses}, {doubles}");
    }
    if report.violations > 0 {
        let _ = writeln!(text, "violations             {} in {} entries", report.violations, thousands(measured));
    }
    text
}
