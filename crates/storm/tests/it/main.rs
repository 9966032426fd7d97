//! Integration tests of the storms.

mod storm;
