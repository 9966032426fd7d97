//! Integration tests of the algorithms that need neither simulator nor checker.

mod fila_service;
mod group_quorum;
mod settings;
mod superpeers;
mod tidy;
