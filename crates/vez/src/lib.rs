//! Distributed locks without a lock server.
//!
//! A [`Node`] is a member of a cluster, inside this very process. A lock lives where it was used last: taking it again costs
//! no message, passing it on costs one.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let node = vez::Node::builder(1, "/var/lib/orders/vez").bootstrap().start().await?;
//! let guard = node.lock("orders/42").await?;
//! println!("it is ours until {:?}, under {}", guard.deadline(), guard.fence());
//! guard.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! A [`Client`] is a program beside a node, and talks to it in Redis' own protocol, as any Redis client can.

mod asking;
mod builder;
mod busy;
mod client;
mod clock;
mod disk;
mod door;
mod engine;
pub mod fence;
mod gather;
mod guard;
mod http;
mod identity;
mod inquiry;
mod keeping;
mod links;
mod listen;
mod metrics;
mod node;
mod observer;
mod resp;
mod session;
mod sockets;
mod store;
mod supervise;
pub mod turn;
mod wire;

pub use vez_peer::{
    ask::{Failure, Kind, Leader, Size},
    fence::Fence,
    identity::{ClusterId, MemberId},
    name::{Name, NoName},
    peer::{MemberStatus, Standings, Status},
};

pub use self::{
    builder::{Builder, StartError},
    client::{Client, ClientError, Loss, RemoteGuard, RemoteObserver},
    clock::Deadline,
    gather::{Listing, Picture, ReleaseError},
    guard::Guard,
    identity::number,
    inquiry::{Held, Report, Waiting},
    node::{LockError, Node},
    observer::Observer,
    store::StoreError,
    supervise::Ended,
};
