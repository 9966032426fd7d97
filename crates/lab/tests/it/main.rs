//! Integration tests of the simulator, the checker and what is built on them.

mod check;
mod choices;
mod contract;
mod cost;
mod cost_elections;
mod crashes;
mod diagnosis;
mod experiments;
mod header;
mod load;
mod measures;
mod ordeal;
mod plain;
mod readme;
mod replay;
mod replay_choices;
mod replay_tampered;
mod scene;
mod simulate;
mod stateright;
mod study;
mod systems;
mod time;
mod traces;
mod transcripts;
mod voting;

/// Whether larger sizes are asked for, as `.ci/run` does.
fn thorough() -> bool {
    std::env::var_os("VEZ_THOROUGH").is_some()
}

/// The size of something that takes time: a small one, unless larger sizes are asked for.
fn sized<T>(quick: T, large: T) -> T {
    if thorough() { large } else { quick }
}
