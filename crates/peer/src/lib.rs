//! The whole logic of a node of the lock service, pure.
//!
//! A [`Peer`] is one process of one member. It is told what happens, each time with the time on its own clock, and says
//! what it wants done: frames to send, a batch to write, words for a client. Whoever drives it has the sockets, the
//! clock, the disk and the randomness; `#![no_std]` is the compiler's word for that.
//!
//! ```text
//!   agreement   a small Raft group agrees on the sequence of views, and on nothing else
//!   membership  leases: who is a member keeps being one by heartbeats; only a view decides who is not
//!   shard       the lock table: names, their homes, who holds and who waits; settlement in each new view
//!   session     what clients have, and until when
//! ```
#![no_std]

extern crate alloc;

pub mod agreement;
pub mod ask;
pub mod charter;
pub mod fence;
pub mod frame;
pub mod identity;
pub mod keep;
mod lane;
mod leadership;
pub mod lease;
pub mod name;
pub mod peer;
pub mod session;
pub mod shard;
pub mod view;
pub mod views;

pub use peer::Peer;
