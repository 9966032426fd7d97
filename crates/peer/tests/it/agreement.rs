//! Members that agree on views, in a world that does its worst.

mod laws;
mod scenes;
mod storm;
mod strangers;
mod world;
