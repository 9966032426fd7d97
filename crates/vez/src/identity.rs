//! The numbers that people give to nodes, within the ids that the members know each other by.
//!
//! A member's id is a disk's, and never used again. People want to say "node 2". So the upper sixteen bits of an id are the
//! number that the node was given, and the rest is drawn when its folder is made.

use rand::RngExt;
use vez_peer::identity::MemberId;

const DRAWN_BITS: u32 = 48;

/// An id that no other disk has, for a node of that number.
pub(crate) fn draw(number: u16) -> MemberId {
    let drawn: u64 = rand::rng().random();
    MemberId(u64::from(number) << DRAWN_BITS | drawn >> (u64::BITS - DRAWN_BITS))
}

/// The number that people gave to a node.
#[must_use]
pub fn number(id: MemberId) -> u16 {
    u16::try_from(id.0 >> DRAWN_BITS).expect("sixteen bits are left")
}

/// As people speak of it.
pub(crate) fn words(id: MemberId) -> String {
    format!("node {}", number(id))
}
