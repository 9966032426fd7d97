//! Whole clusters of the lock service under everything that can go wrong, many times.
//!
//! A storm has a seed, and everything in it is drawn from that: clocks that run too fast or too slow, a network that loses,
//! doubles, delays and cuts off, disks that are slow or fail, machines that crash, sleep, leave and come back, and clients
//! that ask, wait, try, give up, hold, forget and go. After a while nothing goes wrong any more, and everything must come to
//! rest. The peers are those of `vez-peer`, unchanged; only the world around them is made up.
//!
//! The laws are in `law.rs`. A storm that breaks one is run again with fewer faults, as long as it still does.

mod client;
mod clock;
mod collector;
mod keeper;
#[cfg(test)]
mod lasting;
mod law;
mod life;
mod machine;
mod mishap;
mod network;
mod observer;
mod plan;
mod probe;
mod quiet;
mod session;
mod shrink;
mod wish;
mod world;

use std::fmt;

use rayon::prelude::*;
use serde::Serialize;

pub use self::plan::{Fault, Midway, Mishap};
use self::{plan::Plan, world::World};

/// What is put to the test.
#[derive(Clone, Debug)]
pub struct Storm {
    /// How many machines.
    pub nodes: usize,
    /// How many seeds.
    pub seeds: u64,
    /// The first of them.
    pub first_seed: u64,
    /// How long each lasts, in simulated seconds; and then a little, for what was kept is waited for.
    pub seconds: u64,
}

/// What happened in storms that all laws were kept in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Tally {
    /// How often somebody was let in.
    pub grants: u64,
    /// How many processes crashed.
    pub crashes: u64,
    /// How many came back, after a crash or otherwise.
    pub restarts: u64,
    /// How many times the network was cut.
    pub partitions: u64,
    /// How many views there were, after the first of each storm.
    pub view_changes: u64,
    /// How many names were forgotten.
    pub forgotten: u64,
    /// How often an observer was told who leads.
    pub observations: u64,
    /// How many times a semaphore was resized.
    pub resizes: u64,
    /// How many locks were kept for whoever knows a value.
    pub kept: u64,
    /// How often somebody had several locks at once.
    pub collected: u64,
    /// How many machines were put to sleep.
    pub pauses: u64,
    /// How many memberships ran out.
    pub leases_lost: u64,
    /// How many storms ended early, for a majority of the votes was lost with their disks.
    pub bereft: u64,
    /// How many events there were in all.
    pub events: u64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.grants += other.grants;
        self.crashes += other.crashes;
        self.restarts += other.restarts;
        self.partitions += other.partitions;
        self.view_changes += other.view_changes;
        self.forgotten += other.forgotten;
        self.observations += other.observations;
        self.resizes += other.resizes;
        self.kept += other.kept;
        self.collected += other.collected;
        self.pauses += other.pauses;
        self.leases_lost += other.leases_lost;
        self.bereft += other.bereft;
        self.events += other.events;
    }
}

/// A storm in which a law was broken.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Which.
    pub seed: u64,
    /// How, in words.
    pub violation: String,
    /// What is enough to go wrong for it.
    pub faults: Vec<Fault>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.violation)?;
        write!(f, "what is enough to go wrong:")?;
        if self.faults.is_empty() {
            write!(f, " nothing")?;
        }
        self.faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

/// What became of storms.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How many there were: fewer than were asked for, if a law was broken.
    pub seeds: u64,
    /// What happened in those that kept all laws.
    pub tally: Tally,
    /// The seeds of those that broke one.
    pub broken: Vec<u64>,
    /// The first of them, with as few faults as it takes.
    pub first: Option<Broken>,
}

/// So many storms are let loose before anybody looks whether a law was broken.
const AT_ONCE: u64 = 64;

/// Lets storms pass until one breaks a law. `progress` is told of each that is over.
#[must_use]
pub fn run(storm: &Storm, progress: &(dyn Fn() + Sync)) -> Outcome {
    let mut outcome = Outcome { seeds: 0, tally: Tally::default(), broken: Vec::new(), first: None };
    while outcome.seeds < storm.seeds && outcome.first.is_none() {
        let first = storm.first_seed.wrapping_add(outcome.seeds);
        let count = AT_ONCE.min(storm.seeds - outcome.seeds);
        let one = |number: u64| {
            let plan = Plan::draw(first.wrapping_add(number), storm.nodes, storm.seconds);
            let result = weather(&plan);
            progress();
            (plan, result)
        };
        for (plan, result) in (0..count).into_par_iter().map(one).collect::<Vec<_>>() {
            match result {
                Ok(tally) => outcome.tally.add(&tally),
                Err(violation) => {
                    outcome.broken.push(plan.seed);
                    outcome.first.get_or_insert_with(|| shrink::shrink(&plan, violation));
                }
            }
        }
        outcome.seeds += count;
    }
    outcome
}

/// Lets one storm pass.
fn weather(plan: &Plan) -> Result<Tally, String> {
    quiet::catch(|| World::new(plan).pass())
}

/// Lets one storm pass again, and tells line by line what happened in it.
///
/// # Errors
/// If a law is broken, and how.
pub fn tell(storm: &Storm, seed: u64, line: &mut dyn FnMut(String)) -> Result<Tally, String> {
    let plan = Plan::draw(seed, storm.nodes, storm.seconds);
    quiet::catch(|| World::telling(&plan, line).pass())
}
