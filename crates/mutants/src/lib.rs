//! Mutants: deliberate faults in the code of this workspace, each of which some check or test must detect.
//!
//! A mutant is a rule in a file of `mutants/`: which code is replaced, by what, and how that is detected. Rules refer to
//! code by its tokens, so that formatting, comments and moved lines do not break them.
//!
//! - [`rule`] reads the rules.
//! - [`source`] finds and replaces code.
//!
//! The binary of this crate, `mutants/run`, applies them. See `mutants/README.md`.

pub mod rule;
pub mod source;
