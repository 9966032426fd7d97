//! The lock service: nodes, and what one does with them.

mod bench;
mod child;
mod config;
mod elect;
mod evict;
mod group;
mod leave;
mod local;
mod lock;
mod ls;
mod node;
mod release;
mod remote;
mod sem;
mod show;
mod status;
mod stop;
mod tell;
mod time;
pub mod top;
mod up;
mod voice;
mod wrap;

use std::{future::Future, num::NonZero, process::ExitCode, thread::available_parallelism};

use anyhow::{Context, Result};
use clap::Subcommand;

/// How many threads a node has, if it is not half of the processors. Tokio looks there too, and panics at what is no number.
const THREADS: &str = "TOKIO_WORKER_THREADS";
/// So much is done at most before it is looked again which sockets have something to read.
const BATCH: u32 = 256;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a cluster of the lock service on this machine, to try it.
    Up(up::Args),
    /// Run one node of the lock service.
    Node(node::Args),
    /// Run a command while holding a lock, or several.
    Lock(lock::Args),
    /// Run a command while holding units of a semaphore.
    Sem(sem::Args),
    /// Run a command together with those of the same session, and with nobody else.
    Group(group::Args),
    /// Run a command while leading, or see who leads.
    Elect(elect::Args),
    /// List the names that are held or waited for.
    Ls(ls::Args),
    /// Show who holds a name, who waits for it, and why.
    Show(show::Args),
    /// Show how a node is, and who the members of its cluster are.
    Status(status::Args),
    /// Watch the nodes and the busiest names, live.
    Top(top::Args),
    /// Take a lock from whoever holds it.
    Release(release::Args),
    /// Make a node go that does not go by itself.
    Evict(evict::Args),
    /// Make a node leave its cluster politely.
    Leave(leave::Args),
    /// Measure the lock service on this machine, beside what the machine can do at all.
    Bench(bench::Args),
    /// Become a command that dies with the `vez` that started it.
    #[command(name = child::NAME, hide = true)]
    Child(child::Args),
}

impl Command {
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self {
            Self::Up(args) => node_threads(args.run()),
            Self::Node(args) => {
                args.detach()?;
                node_threads(args.run())
            }
            Self::Lock(args) => one_thread(args.run()),
            Self::Sem(args) => one_thread(args.run()),
            Self::Group(args) => one_thread(args.run()),
            Self::Elect(args) => one_thread(args.run()),
            Self::Ls(args) => one_thread(args.run()),
            Self::Show(args) => one_thread(args.run()),
            Self::Status(args) => one_thread(args.run()),
            Self::Top(args) => one_thread(args.run()),
            Self::Release(args) => one_thread(args.run()),
            Self::Evict(args) => one_thread(args.run()),
            Self::Leave(args) => one_thread(args.run()),
            Self::Bench(args) => threads(args.run()),
            Self::Child(args) => args.run(),
        }
    }
}

/// Runs a client. It is done in this very thread: a child that is to die with its parent dies with the thread that made it.
fn one_thread(run: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot begin")?.block_on(run)
}

/// Runs a node. A node is meant to be on the machine of those whom it serves, and half of the processors are theirs: with more
/// threads it does less, for what one of them has in its cache the other has to fetch. Who has a machine for it alone says so.
fn node_threads(run: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let processors = available_parallelism().map_or(1, NonZero::get);
    let threads = match std::env::var_os(THREADS) {
        None => NonZero::new(processors / 2).unwrap_or(NonZero::<usize>::MIN),
        Some(said) => said
            .to_str()
            .and_then(|said| said.parse().ok())
            .with_context(|| format!("{THREADS} is {}; take a number of threads from 1", said.display()))?,
    };
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(threads.get());
    // All who have said something are heard before it is looked who else has.
    runtime.event_interval(BATCH).enable_all().build().context("cannot begin")?.block_on(run)
}

/// Runs nodes and those whom they serve.
fn threads(run: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("cannot begin")?.block_on(run)
}
