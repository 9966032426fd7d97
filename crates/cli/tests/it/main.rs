//! Integration tests of the command `vez`, except those that need a process of their own.

mod emulate;
mod lab;
mod peers;
mod readme;
mod replay;
mod risk;
mod session;
mod started;
mod studies;
mod top;
