//! Integration tests of the emulator.

mod agree;
mod link;
mod linked;
mod strangers;

/// Whether larger sizes are asked for, as `.ci/run` does.
fn thorough() -> bool {
    std::env::var_os("VEZ_THOROUGH").is_some()
}
