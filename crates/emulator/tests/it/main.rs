//! Integration tests of the emulator.

mod agree;
mod link;
mod linked;
mod strangers;
