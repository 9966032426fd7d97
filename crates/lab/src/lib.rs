//! The laboratory: algorithms of `vez-algorithms` simulated, checked, and put on a stage.
//!
//! - [`sim`] runs a system in virtual time, with random delays, loads and faults, and measures it.
//! - [`check`] explores every interleaving of a small system.
//! - [`ordeal`] simulates an algorithm under random faults, many times.
//! - [`stage`] plays a run step by step, for transcripts.
//! - [`director`] plays whole transcripts on one.
//! - [`trace`] writes a run down.
//! - [`replay`] lets the algorithm live through it once more, and compares.
//! - [`scene`] keeps one, to draw it and to state facts about it.
//! - [`draw`] draws: runs, trees, hypercubes.
//! - [`named`] does all that for whoever has only the name of an algorithm.
//! - [`meant`] finds the algorithm of a name, or the name that may have been meant.
//! - [`study`] measures, plots and judges what a file asks for; [`experiments`] are those of the papers.
//! - [`plot`] draws charts.
//! - [`span`] reads and writes spans of time.
//! - [`risk`] computes how likely coordinators that forget let two in.
//!
//! Nothing here knows a wall clock, and nothing depends on the order of a hash map: the same seed gives the same run, byte
//! for byte.

pub mod check;
pub mod director;
pub mod draw;
pub mod experiments;
pub mod meant;
pub mod named;
pub mod ordeal;
mod parallel;
pub mod plot;
pub mod quiet;
pub mod random;
mod reach;
pub mod replay;
pub mod risk;
pub mod scene;
pub mod sim;
pub mod span;
pub mod stage;
pub mod stats;
pub mod study;
pub mod system;
mod timers;
pub mod trace;
pub mod wanted;
