//! Integration tests of the mutants: the rules themselves, and how code is found.

mod find;
mod rules;
