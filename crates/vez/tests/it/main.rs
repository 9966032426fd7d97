//! Integration tests of the library, except those that need a process of their own.

mod client;
mod examples;
mod keeping;
mod leave;
mod limits;
mod node;
mod primitives;
mod raw;
mod resp;
mod words;
