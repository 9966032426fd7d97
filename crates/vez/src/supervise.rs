//! One process of the peer after the other: what is done when one has come to its end.

use std::{collections::BTreeSet, sync::Arc};

use tracing::{error, info, warn};
use vez_peer::{
    Peer,
    agreement::{Disk, Entry},
    charter::{Charter, VERSION},
    identity::{Address, Incarnation},
    peer::{Identity, Input, Start, Stopped},
    shard::Habits,
    views::Change,
};

use crate::{clock::Nanos, engine::Presence, identity, node::Inner, session::Lease, store::Contents};

/// What a node goes by through all its processes.
pub(crate) struct Settings {
    /// The number that people gave it.
    pub number: u16,
    /// Where others reach it.
    pub address: Address,
    /// Where others may be.
    pub seeds: Vec<Address>,
    /// The lease that it insists on.
    pub lease: Option<Nanos>,
    /// A name that is not used for so long is forgotten.
    pub idle: Option<Nanos>,
    /// Nothing is kept for whoever knows a value for longer.
    pub keep: Option<Nanos>,
}

/// How a node has come to its end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Ended {
    /// It has left, as it was told to.
    #[error("it has left its cluster")]
    Left,
    /// It was dropped.
    #[error("it was dropped")]
    Dropped,
    /// Its folder cannot be used any more.
    #[error("{0}")]
    Disk(String),
    /// The cluster that it wanted to join goes by something else.
    #[error("the cluster has {theirs}, this node has {ours}; start it with what the cluster has")]
    Refused {
        /// What the cluster goes by.
        theirs: String,
        /// What this node goes by.
        ours: String,
    },
    /// What its folder says cannot be true, or a part of it has failed.
    #[error("it cannot go on: {0}; what its log says has more")]
    Broken(&'static str),
}

/// Begins one process of the peer after the other, until the node has ended.
pub(crate) async fn run(inner: Arc<Inner>) {
    let mut presence = inner.engine.presence();
    let mut edit: Edit = Box::new(|contents| contents);
    let ended = loop {
        let contents = match renew(&inner, edit).await {
            Ok(contents) => contents,
            Err(ended) => break ended,
        };
        if inner.is_leaving() {
            break Ended::Left; // It was told to before it could hear of it.
        }
        begin(&inner, contents);
        if inner.is_leaving() {
            inner.engine.happen(Input::Leave);
        }
        let over = |presence: &Presence| matches!(presence, Presence::Stopped(_) | Presence::Closed);
        let presence = presence.wait_for(over).await.map_or(Presence::Closed, |presence| presence.clone());
        edit = match presence {
            Presence::Stopped(why) => match next(&inner, why) {
                Ok(edit) => edit,
                Err(ended) => break ended,
            },
            Presence::Closed | Presence::Outside | Presence::Member => break closed(&inner),
        };
    };
    inner.end(ended);
}

type Edit = Box<dyn FnOnce(Contents) -> Contents + Send>;

/// A new process has a higher number than any before it, and that is written before anybody hears of it.
async fn renew(inner: &Inner, edit: Edit) -> Result<Contents, Ended> {
    let renewed = inner.engine.renew_folder(move |contents| {
        let contents = edit(contents);
        Contents { incarnation: Incarnation(contents.incarnation.0 + 1), ..contents }
    });
    let Some(renewed) = renewed else { return Err(closed(inner)) };
    match renewed.await {
        Ok(Ok(contents)) => Ok(contents),
        Ok(Err(error)) => Err(Ended::Disk(error.to_string())),
        Err(_) => Err(closed(inner)),
    }
}

/// Why the engine is closed.
fn closed(inner: &Inner) -> Ended {
    inner.told.failure().map_or(Ended::Dropped, |error| Ended::Disk(error.to_string()))
}

fn begin(inner: &Inner, contents: Contents) {
    let seeds = known(&contents);
    let Contents { id, incarnation, charter, founds, disk, .. } = contents;
    let settings = &inner.settings;
    let me = Identity { id, incarnation, address: settings.address.clone() };
    info!(node = %id, incarnation = incarnation.0, address = %settings.address, "begins");
    let default = Habits::default();
    let (idle, keep) = (settings.idle.unwrap_or(default.idle), settings.keep.unwrap_or(default.keep));
    let habits = Habits { idle, keep, ..default };
    let lease = Lease::new(charter.lease, charter.stop() - charter.danger());
    let start = match founds {
        Some((cluster, first_view)) if disk == Disk::empty() => Start::Found { cluster, first_view },
        _ => Start::Join { disk: Box::new(disk), seeds: [&settings.seeds[..], &seeds].concat() },
    };
    inner.engine.begin(lease, |now, effects, choose| Peer::start(me, charter, habits, start, now, effects, choose));
}

/// What is different for the next process, if there is to be one.
fn next(inner: &Inner, why: Stopped) -> Result<Edit, Ended> {
    match why {
        Stopped::Left => Err(Ended::Left),
        Stopped::LeaseOver if inner.is_leaving() => Err(Ended::Left),
        Stopped::LeaseOver => {
            warn!("the lease of this node was not renewed in time; it joins again");
            Ok(Box::new(|contents| contents))
        }
        Stopped::Retired => {
            warn!("this node was removed from the cluster while it was away; it joins as a new one");
            let id = identity::draw(inner.settings.number);
            Ok(Box::new(move |contents| {
                let seeds = known(&contents);
                Contents { id, disk: Disk::empty(), founds: None, seeds, ..contents }
            }))
        }
        Stopped::Refused(theirs) => {
            let insists = inner.settings.lease.is_some_and(|lease| lease != theirs.lease);
            if theirs.version != VERSION || insists || theirs.check().is_err() {
                let ours = inner.settings.lease.map_or(theirs.lease, |lease| lease);
                let ours = Charter { lease: ours, version: VERSION, ..theirs.clone() };
                error!("the cluster goes by something else");
                return Err(Ended::Refused { theirs: in_words(&theirs), ours: in_words(&ours) });
            }
            Ok(Box::new(move |contents| Contents { charter: theirs, ..contents }))
        }
        Stopped::Broken(what) => Err(Ended::Broken(what)),
    }
}

/// Where others may be, by what the folder says: the snapshot may be older than those who have joined since.
fn known(contents: &Contents) -> Vec<Address> {
    let snapshot = contents.disk.snapshot.views.iter();
    let members = snapshot.flat_map(|views| views.members().values().map(|member| member.address.clone()));
    let changes = contents.disk.entries.iter().filter_map(|entry| match entry {
        Entry::Command(command) => Some(&command.changes),
        Entry::Term(_) | Entry::Config(_) => None,
    });
    let joined = changes.flatten().filter_map(|change| match change {
        Change::Admit { address, .. } => Some(address.clone()),
        Change::Remove { .. } | Change::Leave { .. } | Change::Pledge { .. } => None,
    });
    let all: BTreeSet<Address> = contents.seeds.iter().cloned().chain(members).chain(joined).collect();
    all.into_iter().collect()
}

fn in_words(charter: &Charter) -> String {
    format!("version {} and a lease of {} ms", charter.version, charter.lease / 1_000_000)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::{Node, engine::Failing};

    const LONG: Duration = Duration::from_secs(30);

    async fn node(folder: &std::path::Path) -> Node {
        let node = Node::builder(1, folder.join("1")).bootstrap().start().await.unwrap();
        node.ready().await;
        node
    }

    #[tokio::test]
    async fn a_charter_is_taken_over_if_it_can_be_gone_by() {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path()).await;
        let ours = node.inner().engine.look(|peer| peer.charter().clone()).unwrap();
        let longer = Charter { lease: 2 * ours.lease, ..ours.clone() };
        assert!(next(node.inner(), Stopped::Refused(longer)).is_ok());
        // Whoever answers where we want to join may say anything.
        let never = [
            Charter { lease: 0, ..ours.clone() },
            Charter { margin: ours.lease, ..ours.clone() },
            Charter { shards: 0, ..ours.clone() },
            Charter { version: VERSION + 1, ..ours },
        ];
        for theirs in never {
            let words = format!("{theirs:?}");
            let next = next(node.inner(), Stopped::Refused(theirs));
            assert!(matches!(next, Err(Ended::Refused { .. })), "{words}");
        }
    }

    #[tokio::test]
    async fn a_peer_that_fails_ends_its_node() {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path()).await;
        drop(Failing(&node.inner().engine));
        assert!(matches!(timeout(LONG, node.ended()).await, Ok(Ended::Broken(_))));
    }

    #[tokio::test]
    async fn a_disk_that_fails_ends_its_node() {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path()).await;
        let guard = node.lock("a").await.unwrap();
        let _ = node.inner().engine.renew_folder(|_| panic!("as if something were wrong with the folder"));
        timeout(LONG, guard.lost()).await.expect("who holds something is told");
        let ended = timeout(LONG, node.ended()).await.expect("its folder is closed");
        assert!(matches!(ended, Ended::Disk(_)), "{ended:?}");
    }

    #[test]
    fn a_runtime_may_end_while_a_node_begins() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        // As if it had ended between two lines of `start`: a task that is spawned then is dropped at once.
        let node = runtime.block_on(node(folder.path()));
        drop(runtime);
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let _inside = handle.enter();
            node.inner().spawn_vital(std::future::pending());
            let _ = tell.send(node.inner().engine.look(Peer::id).is_none());
        });
        assert_eq!(told.recv_timeout(LONG), Ok(true), "it has ended, and waits for nothing");
    }
}
