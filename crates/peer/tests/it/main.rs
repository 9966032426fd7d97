//! Integration tests of the peer.

mod agreement;
mod cluster;
mod company;
mod cost;
mod explore;
mod join;
mod keep;
mod leader;
mod lease;
mod log;
mod lone;
mod member;
mod observe;
mod pledge;
mod resize;
mod strange;
mod table;

/// The size of something that takes time: a small one, unless larger sizes are asked for, as `.ci/run` does.
fn sized<T>(quick: T, large: T) -> T {
    if std::env::var_os("VEZ_THOROUGH").is_some() { large } else { quick }
}
