//! The real shards of three members, explored exhaustively: one name, every order of events.
//!
//! *What is real*: [`Shard`](vez_peer::shard::Shard) with all that is in it (settlement, locks by fila, ledgers,
//! forgetting), and [`View`](vez_peer::view::View), with its homes and its barrier.
//!
//! *What stands for the rest*: messages between two members of a view are neither lost nor doubled, and arrive in any order,
//! or in the order of their sending. They count in their view only: one that comes early waits, one that comes late is dropped.
//! An oracle announces views, at any moment, and each member goes on to the next at a moment of its own, so that they may
//! be two views apart. Who crashes sends nothing more, but what its clients held counts until a view without that
//! process is announced: by then its lease is over, and they know. A member that is removed alive has stopped by then as well.
//! A restart is a new process, which has never held anything, in the view that ends the old one. Clients ask, may give up,
//! and release some time; a name that is idle may be found to have been so for long enough at any moment.
//!
//! *What is not here*: clocks and leases, the agreement on views, lost messages, sessions, several names. `storm` has those.
//!
//! *Laws*, in every state: those inside may be inside together; fences grow from grant to grant, those of readers that are
//! inside together are the same, no holder is below a floor that was given out; no violation, no panic. Where nothing is bound to
//! happen any more nobody waits, all are settled, and nothing is left of a name that was forgotten; and who only tries has its answer
//! even if nobody ever leaves. Where messages are counted a circle of events would be an endless state space, so there is none.
//!
//! Member 2 is the home of the name, member 1 if 2 is new or gone. With `joined: [0, 0, 1]` member 2 is new at first, and the
//! home moves in the next view. Each test prints how many states there were.

mod config;
mod model;
mod steps;
mod world;

use config::{
    Change::{Restarted, Same, Without},
    Config,
    Event::*,
    LOCK, NOTHING, ONE, READ, TRY, TRY_READ, TRY_TWO, TWO, WRITE,
};
use model::{ALL_SEEN, Explorer};
use stateright::{Checker, HasDiscoveries, Model};
use vez_algorithms::Order;

/// Explores it all, or until a law is broken; the way there is among the shortest.
fn check(what: &str, config: Config) {
    let checker = Explorer::new(config).checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    eprintln!("{what}: {} states, {} steps at most", checker.unique_state_count(), checker.max_depth() - 1);
    if let Some((law, path)) = checker.discoveries().into_iter().find(|(law, _)| *law != ALL_SEEN) {
        let (end, steps) = (path.last_state().clone(), path.into_actions());
        let lines: String = steps.iter().map(|step| format!("  {step:?}\n")).collect();
        let breach = end.breach.unwrap_or_default();
        panic!("{what}: not so after {} steps: {law}. {breach}\n{lines}{end:#?}", steps.len());
    }
    assert!(
        checker.discovery(ALL_SEEN).is_some(),
        "{what}: never seen: {:?}",
        checker.model().missed().collect::<Vec<_>>()
    );
}

#[test]
fn a_lock_through_two_views() {
    let config = Config {
        joined: [0, 0, 1],
        asks: [&[LOCK], &[LOCK], &[LOCK]],
        changes: &[&[Same], &[Same]],
        shows: &[
            HolderInNewView,
            ReleasedWhileSettling,
            AskedWhileSettling,
            WaiterServedInNewView,
            HomeMoved,
            StaleDropped,
            EarlyWaited,
        ],
        ..NOTHING
    };
    check("a lock through two views", config);
}

#[test]
fn a_lock_with_a_crash_a_removal_and_a_restart() {
    let config = Config {
        asks: [&[LOCK], &[LOCK], &[LOCK]],
        crashes: 1,
        changes: &[
            &[Same, Without(0), Without(2), Restarted(0), Restarted(2)],
            &[Same, Restarted(0), Without(1), Restarted(2)],
        ],
        shows: &[
            HolderInNewView,
            ReleasedWhileSettling,
            AskedWhileSettling,
            WaiterServedInNewView,
            HomeMoved,
            StaleDropped,
            EarlyWaited,
            HolderCrashed,
            ServedAfterRestart,
        ],
        ..NOTHING
    };
    check("a lock with a crash, a removal and a restart", config);
}

#[test]
fn a_lock_with_a_member_removed_alive() {
    let config = Config {
        asks: [&[LOCK], &[LOCK, LOCK], &[LOCK]],
        changes: &[&[Without(0), Without(1), Without(2), Restarted(0), Restarted(1), Restarted(2)]],
        evicts: true,
        shows: &[HolderInNewView, ReleasedWhileSettling, WaiterServedInNewView, HolderEvicted, ServedAfterRestart],
        ..NOTHING
    };
    check("a lock with a member removed alive", config);
}

#[test]
fn a_lock_with_cancellation_and_tries_through_a_view() {
    let config = Config {
        joined: [0, 0, 1],
        asks: [&[LOCK, TRY], &[LOCK], &[TRY]],
        cancels: 1,
        changes: &[&[Same]],
        shows: &[HolderInNewView, WaiterServedInNewView, HomeMoved, TokenForNobodyMovedOn, Busy, TriedWhileSettling],
        ..NOTHING
    };
    check("a lock with cancellation and tries through a view", config);
}

#[test]
fn readers_and_a_writer_through_a_view() {
    let config = Config {
        joined: [0, 0, 1],
        asks: [&[READ], &[READ, WRITE], &[TRY_READ]],
        cancels: 1,
        changes: &[&[Same, Without(2)]],
        evicts: true,
        shows: &[TwoMembersHoldInNewView, ReleasedWhileSettling, WaiterServedInNewView, HomeMoved, Busy, StaleDropped],
        ..NOTHING
    };
    check("readers and a writer through a view", config);
}

#[test]
fn a_semaphore_through_a_view_with_a_crash() {
    let config = Config {
        asks: [&[TWO], &[ONE, TRY_TWO], &[TWO]],
        crashes: 1,
        changes: &[&[Same, Without(2), Restarted(2), Restarted(0)]],
        shows: &[
            TwoMembersHoldInNewView,
            ReleasedWhileSettling,
            WaiterServedInNewView,
            HomeMoved,
            Busy,
            StaleDropped,
            HolderCrashed,
            ServedAfterRestart,
        ],
        ..NOTHING
    };
    check("a semaphore through a view with a crash", config);
}

/// What is forgotten while others ask, try and give up.
const FORGETTING: Config = Config {
    asks: [&[LOCK, TRY], &[LOCK], &[TRY, LOCK]],
    cancels: 1,
    forgets: true,
    counts: true,
    shows: &[Pulled, Forgotten, Busy, TokenForNobodyMovedOn],
    ..NOTHING
};

#[test]
fn forgetting_against_requests() {
    check("forgetting against requests", FORGETTING);
}

#[test]
fn forgetting_against_requests_in_order() {
    check("forgetting against requests, in order", Config { order: Order::Fifo, ..FORGETTING });
}

#[test]
fn forgetting_through_a_view() {
    let config = Config {
        joined: [0, 0, 1],
        asks: [&[LOCK, TRY], &[LOCK], &[LOCK]],
        changes: &[&[Same]],
        forgets: true,
        shows: &[HolderInNewView, WaiterServedInNewView, HomeMoved, Pulled, IdleWhileSettling, Forgotten],
        ..NOTHING
    };
    check("forgetting through a view", config);
}

#[test]
fn forgetting_a_ledger_through_a_view() {
    let config = Config {
        joined: [0, 0, 1],
        asks: [&[TWO], &[TWO], &[ONE]],
        cancels: 1,
        changes: &[&[Same]],
        forgets: true,
        counts: true,
        shows: &[HolderInNewView, WaiterServedInNewView, HomeMoved, Forgotten],
        ..NOTHING
    };
    check("forgetting a ledger through a view", config);
}

#[test]
fn forgetting_with_cancellation_at_a_home_that_settles() {
    let config = Config {
        joined: [0, 0, 1],
        asks: [&[LOCK], &[], &[LOCK, LOCK]],
        cancels: 1,
        changes: &[&[Same]],
        forgets: true,
        counts: true,
        shows: &[HolderInNewView, ReleasedWhileSettling, HomeMoved, Pulled, IdleWhileSettling, Forgotten],
        ..NOTHING
    };
    check("forgetting with cancellation at a home that settles", config);
}

#[test]
fn a_name_taken_for_two_things() {
    let config = Config {
        asks: [&[LOCK], &[ONE], &[TWO]],
        cancels: 1,
        changes: &[&[Same]],
        forgets: true,
        shows: &[HolderInNewView, WaiterServedInNewView, Forgotten, Mismatch],
        ..NOTHING
    };
    check("a name taken for two things", config);
}

#[test]
fn a_name_taken_for_two_things_at_its_home() {
    let config = Config {
        asks: [&[], &[LOCK], &[LOCK, TWO]],
        cancels: 1,
        changes: &[&[Same]],
        forgets: true,
        shows: &[HolderInNewView, WaiterServedInNewView, Forgotten, Mismatch],
        ..NOTHING
    };
    check("a name taken for two things at its home", config);
}
