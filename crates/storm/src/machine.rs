//! A machine: a clock, a disk, and at most one process.

use std::collections::VecDeque;

use vez_peer::{
    Peer,
    agreement::{Batch, Disk},
    identity::{Address, Incarnation, MemberId},
    peer::{Effect, Input},
    shard::Nanos,
};

use crate::{clock::Clock, plan::Midway};

pub(crate) struct Machine {
    pub clock: Clock,
    pub id: MemberId,
    pub disk: Disk,
    /// How many processes there have been.
    pub incarnation: Incarnation,
    pub process: Option<Process>,
    pub sleep: Sleep,
    /// How long a write takes at most.
    pub latency: Vec<Nanos>,
    /// Its disk fails at the next write, and that is written, or not.
    pub disk_fails: Option<bool>,
    /// It is about to start.
    pub starting: bool,
    /// It is to stay away, until then.
    pub away: Option<Nanos>,
}

pub(crate) struct Process {
    pub peer: Peer,
    /// When it is to be woken.
    pub tick: Option<Nanos>,
    pub writing: Option<Batch>,
}

/// Where a machine is reached.
pub(crate) fn address_of(machine: usize) -> Address {
    Address::new(&format!("m{machine}"))
}

pub(crate) fn machine_at(address: &Address) -> usize {
    address.as_str()[1..].parse().expect("only our own addresses")
}

/// Whether a process sleeps.
pub(crate) enum Sleep {
    Awake,
    /// It falls asleep once it has decided something, for so long.
    Soon(Midway, Nanos),
    /// It sleeps, and this waits for it.
    Asleep {
        decided: Vec<Effect>,
        backlog: VecDeque<Input>,
    },
}
