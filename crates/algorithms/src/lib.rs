//! Distributed mutual exclusion, each algorithm written once, as a pure state machine.
//!
//! An algorithm here is a struct that implements [`Protocol`]: the whole state of one node, and one handler for
//! each kind of thing that can happen to it. It knows nothing of sockets, clocks, threads, randomness or logging;
//! `#![no_std]` is the compiler's word for that. A *driver* — the simulator, the checker, an emulator over real
//! sockets, a lock service — calls [`step`] with an [`Input`] and carries out the [`Effect`]s that come back.
//!
//! The algorithms are grouped in *families*. A family owns the words (its commands and outputs) and the law that
//! every driver applies: for [`mutex`], that at most one node is inside. [`catalog`] is the one list of them all.
#![no_std]
#![deny(clippy::wildcard_enum_match_arm)]

extern crate alloc;

pub mod broadcast;
pub mod catalog;
pub mod detector;
pub mod election;
mod family;
pub mod graph;
pub mod group;
pub mod hypercube;
pub mod ledger;
pub mod link;
mod monitored;
pub mod mutex;
mod node;
mod protocol;
pub mod quorum;
pub mod semaphore;
mod setup;
pub mod superpeers;
pub mod tree;

pub use family::{Client, Entered, Family, Heard, Phase, Scene};
pub use monitored::Monitored;
pub use node::{NodeId, NodeSet};
pub use protocol::{
    Algorithm, Canonical, Clock, CommandOf, Context, Effect, EffectOf, Input, Invariant, Message, Model, Never, Order,
    OutputOf, Protocol, Reach, Timing, World, act, step,
};
pub use setup::{Setting, Setup, SetupError};
