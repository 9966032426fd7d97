//! Semaphores, groups, readers and writers, elections and several locks, while nodes are killed, stopped, restarted and joined.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use rustix::process::Signal;
use tokio::{sync::SemaphorePermit, task::JoinHandle, time::timeout};
use vez::{Client, Fence, RemoteGuard};

use crate::{
    machines::{LONG, Machines, eventually, processor},
    thorough,
    witness::{Part, Wanted, Witness},
};

const LEASE: Duration = Duration::from_millis(1500);
const UNITS: u32 = 5;

/// Three nodes, and those who want something of them.
struct Work {
    _processor: SemaphorePermit<'static>,
    machines: Machines,
    witness: Arc<Witness>,
    workers: Vec<JoinHandle<()>>,
}

impl Work {
    async fn new() -> Self {
        let processor = processor().await;
        let machines = Machines::new(3, LEASE).await;
        Self { _processor: processor, machines, witness: Arc::default(), workers: Vec::new() }
    }

    /// Somebody at every node wants this, and goes to another when that is gone.
    fn everywhere(&mut self, part: &Part, wanted: &Wanted) {
        for number in 0..3 {
            let mut addresses: Vec<String> = self.machines.nodes.iter().map(|node| node.client.clone()).collect();
            addresses.rotate_left(number);
            self.workers.push(self.witness.work(addresses.join(","), part.clone(), Arc::clone(wanted)));
        }
    }

    /// A node that leads is killed and comes back; before, if there is time, one that does not; one sleeps for longer than its
    /// lease; all are killed.
    async fn suffer(&mut self) {
        self.witness.progress().await;
        for leads in if thorough() { &[false, true][..] } else { &[true] } {
            let leader = self.machines.leader().await;
            let killed = if *leads { leader } else { leader % 3 + 1 };
            self.machines.nodes[usize::from(killed) - 1].kill();
            self.witness.progress().await;
            self.machines.restart(killed);
            self.machines.ready(killed).await;
            self.witness.progress().await;
        }
        let sleeper = self.machines.leader().await % 3 + 1;
        let before = self.machines.members(sleeper % 3 + 1).await;
        self.machines.node(sleeper).send(Signal::STOP);
        let machines = &self.machines;
        eventually(async || {
            let members = machines.members(sleeper % 3 + 1).await;
            !members.is_empty() && members != before
        })
        .await;
        self.witness.progress().await;
        self.machines.node(sleeper).send(Signal::CONT);
        self.machines.ready(sleeper).await;
        self.witness.progress().await;
        for node in &mut self.machines.nodes {
            node.kill();
        }
        for number in 1..=3 {
            self.machines.restart(number);
        }
        for number in 1..=3 {
            self.machines.ready(number).await;
        }
        self.witness.progress().await;
    }

    /// Ends the load. The machines stay.
    async fn end(self) -> Machines {
        self.witness.end(self.workers).await;
        self.machines
    }
}

fn wanted(turn: impl for<'a> Fn(&'a Client) -> vez::turn::Turn<'a, Client> + Send + Sync + 'static) -> Wanted {
    Arc::new(turn)
}

async fn had(turn: vez::turn::Turn<'_, Client>) -> RemoteGuard {
    timeout(LONG, turn).await.expect("it is our turn some time").expect("it is granted")
}

#[tokio::test(flavor = "multi_thread")]
async fn permits_are_neither_created_nor_lost() {
    let mut work = Work::new().await;
    *work.witness.size.lock().unwrap() = Some((Fence::FIRST, UNITS));
    for weight in [1, 2, 3] {
        let take = wanted(move |client| client.semaphore("db", UNITS).acquire(weight));
        work.everywhere(&Part::Units(weight), &take);
    }
    work.suffer().await;
    let machines = work.end().await;
    for number in 1..=3 {
        let client = machines.client(number).await;
        had(client.semaphore("db", UNITS).acquire(UNITS)).await.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_semaphore_is_resized_up_and_down_under_load() {
    let mut work = Work::new().await;
    let size = Arc::new(AtomicU32::new(UNITS));
    *work.witness.size.lock().unwrap() = Some((Fence::FIRST, UNITS));
    for weight in [1, 2] {
        let size = Arc::clone(&size);
        let take = wanted(move |client| client.semaphore("db", size.load(Ordering::Relaxed)).acquire(weight));
        work.everywhere(&Part::Units(weight), &take);
    }
    let client = work.machines.client(1).await;
    // It stays in use.
    let _one = had(client.semaphore("db", UNITS).acquire(1)).await;
    let sizes = [2, 7, 3, 9, UNITS, 4, 8, 6];
    for (round, units) in sizes.into_iter().take(if thorough() { 8 } else { 5 }).enumerate() {
        *work.witness.size.lock().unwrap() = None;
        let known = size.load(Ordering::Relaxed);
        let resized = timeout(LONG, client.semaphore("db", known).resize(units)).await.expect("in time").unwrap();
        size.store(units, Ordering::Relaxed);
        // One unit is always taken, by nobody who is witnessed.
        *work.witness.size.lock().unwrap() = Some((resized.since, units - 1));
        work.witness.progress().await;
        if round == 3 {
            let leader = work.machines.leader().await;
            let killed = if leader == 1 { 2 } else { leader };
            work.machines.nodes[usize::from(killed) - 1].kill();
            work.witness.progress().await;
            work.machines.restart(killed);
            work.machines.ready(killed).await;
        }
    }
    work.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_weight_is_not_starved_by_lighter_ones() {
    let mut work = Work::new().await;
    *work.witness.size.lock().unwrap() = Some((Fence::FIRST, UNITS));
    let light = wanted(|client| client.semaphore("db", UNITS).acquire(1));
    for _ in 0..3 {
        work.everywhere(&Part::Units(1), &light);
    }
    work.witness.progress().await;
    for number in 1..=3 {
        let client = work.machines.client(number).await;
        for _ in 0..5 {
            had(client.semaphore("db", UNITS).acquire(UNITS)).await.release().await.unwrap();
        }
    }
    work.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_are_never_inside_together() {
    let mut work = Work::new().await;
    for session in ["chess", "cards"] {
        let enter = wanted(move |client| client.group("room").enter(session));
        work.everywhere(&Part::Session(session), &enter);
    }
    work.suffer().await;
    work.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_is_alone() {
    let mut work = Work::new().await;
    work.everywhere(&Part::Reads, &wanted(|client| client.rw("book").read()));
    work.everywhere(&Part::Writes, &wanted(|client| client.rw("book").write()));
    work.suffer().await;
    work.end().await;
}

#[tokio::test]
async fn readers_on_three_nodes_stay_inside_through_a_new_view() {
    let mut machines = Machines::new(3, Duration::from_secs(20)).await;
    let mut readers = Vec::new();
    for number in 1..=3 {
        readers.push(had(machines.client(number).await.rw("book").read()).await);
    }
    assert!(readers.iter().all(|reader| reader.fence() == readers[0].fence()), "they share a session");
    let client = machines.client(1).await;
    let writer = tokio::spawn(async move { had(client.rw("book").write()).await });
    machines.waiters(1, "book", 1).await;
    let fourth = machines.start(4, &[]);
    machines.nodes.push(fourth);
    machines.ready(4).await;
    for number in 1..=4 {
        machines.ready(number).await;
    }
    let later = machines.client(4).await;
    assert!(later.rw("book").write().now().await.unwrap().is_none(), "they are inside still");
    assert!(readers.iter().all(|reader| !reader.is_lost()) && !writer.is_finished());
    let fence = readers[0].fence();
    for reader in readers {
        reader.release().await.expect("it was held through the new view");
    }
    assert!(timeout(LONG, writer).await.expect("it is its turn").unwrap().fence() > fence);
}

/// What an observer has seen so far.
type Seen = Arc<Mutex<Vec<Fence>>>;

/// An observer at the first of some addresses that answers.
fn observe(addresses: String) -> (Seen, JoinHandle<()>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = Arc::clone(&seen);
    let task = tokio::spawn(async move {
        let mut observer = Client::connect(addresses).await.unwrap().elect("boss").observe().await.unwrap();
        loop {
            if let Some(leader) = observer.next().await.expect("it goes on") {
                sees.lock().unwrap().push(leader.fence);
            }
        }
    });
    (seen, task)
}

/// Of those who lead from now on for a while, every observer sees every one.
async fn all_are_seen(witness: &Witness, observers: &[(Seen, JoinHandle<()>)]) {
    let terms = || witness.fences.lock().unwrap().keys().copied().collect::<BTreeSet<Fence>>();
    let saw = |seen: &Seen| seen.lock().unwrap().iter().copied().collect::<BTreeSet<Fence>>();
    witness.progress().await;
    let newest = terms().last().copied();
    // They have to be there, and to have caught up.
    eventually(async || observers.iter().all(|(seen, _)| saw(seen).last().copied() > newest)).await;
    let since = observers.iter().filter_map(|(seen, _)| saw(seen).last().copied()).max();
    witness.progress().await;
    let led: BTreeSet<Fence> = terms().into_iter().filter(|fence| Some(*fence) > since).collect();
    assert!(led.len() > 10, "somebody leads after somebody else");
    eventually(async || observers.iter().all(|(seen, _)| led.is_subset(&saw(seen)))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_two_terms_have_one_fence_and_observers_see_every_change() {
    let mut work = Work::new().await;
    let nodes: Vec<String> = work.machines.nodes.iter().map(|node| node.client.clone()).collect();
    let observers: Vec<_> = (0..3).map(|at| observe([&nodes[at..], &nodes[..at]].concat().join(","))).collect();
    for number in 0..3 {
        let value = format!("candidate {number}");
        let campaign = {
            let value = value.clone();
            wanted(move |client| client.elect("boss").campaign(&value))
        };
        work.everywhere(&Part::Leads(value), &campaign);
    }
    // As long as nothing goes wrong they see all; and again, once all of them are back.
    all_are_seen(&work.witness, &observers).await;
    work.suffer().await;
    all_are_seen(&work.witness, &observers).await;
    for (seen, task) in observers {
        task.abort();
        let seen = seen.lock().unwrap();
        assert!(seen.is_sorted_by(|one, other| one < other), "an older leader after a newer one");
    }
    work.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_locks_are_had_by_one_and_nobody_waits_for_ever() {
    let mut work = Work::new().await;
    for names in [["a", "b", "c"], ["c", "b", "a"], ["b", "a", "d"]] {
        // All of them have `b`: whoever has several is alone.
        work.everywhere(&Part::Locks, &wanted(move |client| client.lock_all(names)));
    }
    work.suffer().await;
    let machines = work.end().await;
    for name in ["a", "b", "c", "d"] {
        machines.lock(1, name).await;
    }
}

#[tokio::test]
async fn what_a_killed_client_had_is_free_at_once() {
    // Longer than any test may take: it is not time that frees it.
    let machines = Machines::new(3, Duration::from_secs(50)).await;
    for (verb, rest) in
        [("sem", &["db", "--limit", "5", "--take", "4"][..]), ("group", &["room", "chess"]), ("elect", &["boss"])]
    {
        let mut command = crate::machines::vez();
        let name = rest[0];
        command.arg(verb).args(["--addr", &machines.node(1).client]).args(rest).args(["--", "sleep", "1000"]);
        let mut child = crate::machines::process(command).spawn().unwrap();
        let client = machines.client(2).await;
        eventually(async || {
            let shown = client.call(&[b"SHOW", name.as_bytes()]).await.expect("it answers");
            shown["holders"].as_array().is_some_and(|holders| holders.len() == 1)
        })
        .await;
        child.kill().await.unwrap();
        had(match verb {
            "sem" => client.semaphore(name, 5).acquire(5),
            "group" => client.group(name).enter("cards"),
            _ => client.elect(name).campaign("me"),
        })
        .await;
    }
}
