//! `vez lab`: the laboratory.

mod check;
mod emulate;
mod list;
mod measured;
mod merge;
mod ordeal;
mod parts;
mod peer;
mod replay;
mod report;
mod reproduce;
mod resource;
mod risk;
mod run;
mod session;
mod storm;
mod sweep;
mod system;
mod trace;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use vez_algorithms::catalog;
use vez_lab::meant;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the algorithms: what each assumes, costs, and where it comes from.
    List(list::Args),
    /// Simulate an algorithm and measure messages and waiting times.
    Run(run::Args),
    /// Explore every interleaving of a small system.
    Check(check::Args),
    /// Simulate an algorithm under random faults, many times.
    Ordeal(ordeal::Args),
    /// Let everything go wrong around whole clusters of the lock service, many times.
    Storm(storm::Args),
    /// Run an algorithm over real sockets, and measure it beside the simulator.
    Emulate(emulate::Args),
    /// Be one process of the laboratory exercise: a terminal that asks for the critical section.
    Peer(peer::Args),
    /// Be the shared resource of the laboratory exercise.
    Resource(resource::Args),
    /// Write a simulated run down as JSON Lines.
    Trace(trace::Args),
    /// Let the algorithm live through a trace once more, and compare.
    Replay(replay::Args),
    /// Run the experiments of the papers, and judge what they claim.
    Reproduce(reproduce::Args),
    /// Run a study of your own: a grid of algorithms, loads and systems.
    Sweep(sweep::Args),
    /// Put the shards of a sweep together.
    Merge(merge::Args),
    /// Compute how likely a vote lets two in when coordinators forget.
    Risk(risk::Args),
}

impl Command {
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self {
            Self::List(args) => args.run(),
            Self::Run(args) => args.run(),
            Self::Check(args) => args.run(),
            Self::Ordeal(args) => args.run(),
            Self::Storm(args) => args.run(),
            Self::Emulate(args) => args.run(),
            Self::Peer(args) => args.run(),
            Self::Resource(args) => args.run(),
            Self::Trace(args) => args.run(),
            Self::Replay(args) => args.run(),
            Self::Reproduce(args) => args.run(),
            Self::Sweep(args) => args.run(),
            Self::Merge(args) => args.run(),
            Self::Risk(args) => args.run(),
        }
    }
}

/// The algorithm of that name, or which one may have been meant.
fn find(name: &str) -> Result<&'static catalog::Entry> {
    Ok(meant::find(name)?)
}
