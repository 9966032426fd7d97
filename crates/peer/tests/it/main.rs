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
