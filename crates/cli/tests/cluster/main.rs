//! Real nodes: processes of their own, on real sockets and disks, that are killed, stopped, cut off and restarted.

mod bench;
mod crash;
mod crowd;
mod evict;
mod machines;
mod network;
mod partition;
mod redis;
mod refusals;
mod rolling;
mod top;
mod web;
mod wrapper;
