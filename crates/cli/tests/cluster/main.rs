//! Real nodes: processes of their own, on real sockets and disks, that are killed, stopped, cut off and restarted.

mod bench;
mod crash;
mod crowd;
mod elect;
mod evict;
mod libraries;
mod machines;
mod network;
mod partition;
mod redis;
mod refusals;
mod rolling;
mod sharing;
mod top;
mod turns;
mod verbs;
mod web;
mod witness;
mod wrapper;

/// Whether larger sizes are asked for, as `.ci/run` does.
fn thorough() -> bool {
    std::env::var_os("VEZ_THOROUGH").is_some()
}
