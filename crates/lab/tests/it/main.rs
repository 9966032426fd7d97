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
