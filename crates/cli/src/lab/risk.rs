//! `vez lab risk`

use std::{fmt::Write, process::ExitCode};

use anyhow::Result;
use serde_json::{Value, json};
use vez_lab::risk::Risk;

use crate::output::print;

/// Compute how likely a vote lets two in when coordinators forget.
#[derive(clap::Args)]
#[command(
    after_help = "With `voting`, a process enters with the votes of m out of n coordinators. A coordinator that crashes comes back having
forgotten its vote. A second process can get in if 2m-n of the m that voted for the first forget while it is inside. If each
forgets with probability p in that time, independently of the others, the probability of that is

    the sum over k from 2m-n to m of C(m,k) p^k (1-p)^(m-k)

The trials are the m that voted, not all n. It says nothing of whether a second process asks.

Examples:
  vez lab risk --replicas 32 --majority 24 --reset-probability 0.000926     # nodes stay for 3 hours, 10 seconds inside
  vez lab risk --replicas 5 --majority 3 --reset-probability 0.01 --json

--json prints one object: probability (null if it is too small for a JSON number) and log10_probability (null if it is 0)."
)]
pub(crate) struct Args {
    /// n: how many replicas there are, each with a coordinator that has one vote.
    #[arg(long)]
    replicas: usize,
    /// m: how many votes a process needs, more than half of them.
    #[arg(long)]
    majority: usize,
    /// p: how likely a coordinator forgets while a process is inside.
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    reset_probability: f64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let risk = Risk::new(self.replicas, self.majority, self.reset_probability)?;
        print(&if self.json { format!("{:#}\n", as_json(&risk)) } else { describe(&risk) })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn as_json(risk: &Risk) -> Value {
    let row = |risk: &Risk| {
        let probability = risk.probability();
        json!({
            "majority": risk.majority(), "needed_resets": risk.needed_resets(),
            "probability": probability.as_f64(), "log10_probability": probability.log10(),
        })
    };
    let mut object = json!({ "replicas": risk.replicas(), "reset_probability": risk.reset_probability() });
    for (name, value) in row(risk).as_object().into_iter().flatten() {
        object[name] = value.clone();
    }
    object["table"] = risk.every_majority().map(|risk| row(&risk)).collect();
    object
}

fn describe(risk: &Risk) -> String {
    let (n, m, p) = (risk.replicas(), risk.majority(), risk.reset_probability());
    let mut text = format!("voting: {n} replicas, majority {m}, each forgets with probability {p}\n");
    let _ = writeln!(
        text,
        "a second one can get in if {} of the {m} that voted forget: probability {}\n",
        risk.needed_resets(),
        risk.probability()
    );
    let _ = writeln!(text, "{:>8} {:>12} {:>12}", "MAJORITY", "MUST FORGET", "PROBABILITY");
    for risk in risk.every_majority() {
        let _ = writeln!(text, "{:>8} {:>12} {:>12}", risk.majority(), risk.needed_resets(), risk.probability());
    }
    text
}
