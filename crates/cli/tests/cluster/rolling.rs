//! Nodes that come and go while everybody works.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use rustix::process::Signal;
use tokio::time::{sleep, timeout};
use vez::{Client, ClientError, RemoteGuard, fence::Register};

use crate::{
    machines::{LONG, Machines, eventually, processor},
    thorough,
};

/// Nothing in these tests waits for a lease to run out, and nobody loses anything by one.
const LEASE: Duration = Duration::from_secs(20);
const NAMES: u64 = 3;
const WORKERS: u64 = 12;

/// What must not be touched by two.
#[derive(Default)]
struct Resource {
    register: Register,
    inside: Option<u64>,
}

/// Everybody who works.
struct Work {
    /// Where nodes are, at this moment.
    nodes: Mutex<Vec<String>>,
    resources: Vec<Mutex<Resource>>,
    done: AtomicU64,
    retries: AtomicU64,
    over: AtomicBool,
}

impl Work {
    fn new(machines: &Machines) -> Arc<Self> {
        let work = Self {
            nodes: Mutex::default(),
            resources: (0..NAMES).map(|_| Mutex::default()).collect(),
            done: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            over: AtomicBool::new(false),
        };
        work.look(machines);
        Arc::new(work)
    }

    fn look(&self, machines: &Machines) {
        *self.nodes.lock().unwrap() = machines.nodes.iter().map(|node| node.client.clone()).collect();
    }

    /// Works until it is over. A node that goes is no error: another is asked.
    async fn worker(self: Arc<Self>, number: u64) {
        let mut turn = number;
        while !self.over.load(Ordering::Relaxed) {
            turn += 1;
            let at = {
                let nodes = self.nodes.lock().unwrap();
                nodes[usize::try_from(turn).unwrap() % nodes.len()].clone()
            };
            if let Err(error) = self.with_node(&at, number).await {
                assert!(is_retry(&error), "worker {number}: {error}");
                self.retries.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_millis(5)).await;
            }
        }
    }

    async fn with_node(&self, at: &str, number: u64) -> Result<(), ClientError> {
        let client = Client::connect(at).await?;
        for round in 0..20 {
            let name = (number + round) % NAMES;
            let guard = client.lock(format!("work/{name}")).await?;
            self.work(usize::try_from(name).unwrap(), number, &guard).await;
            // A node that leaves waits for those who hold something.
            guard.release().await.expect("what was granted is not lost");
        }
        Ok(())
    }

    /// Touches the resource.
    async fn work(&self, name: usize, number: u64, guard: &RemoteGuard) {
        {
            let mut resource = self.resources[name].lock().unwrap();
            resource.register.admit("it", guard.fence()).expect("whoever holds the lock has the highest fence");
            assert_eq!(resource.inside.replace(number), None, "nobody else is inside");
        }
        sleep(Duration::from_millis(1)).await;
        let mut resource = self.resources[name].lock().unwrap();
        assert_eq!(resource.inside.take(), Some(number), "nobody has come in meanwhile");
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until everybody has got on.
    async fn progress(&self) {
        let before = self.done.load(Ordering::Relaxed);
        eventually(async || self.done.load(Ordering::Relaxed) > before + 100).await;
    }
}

/// Whether one asks again, here or elsewhere.
fn is_retry(error: &ClientError) -> bool {
    match error {
        ClientError::Connect(..) | ClientError::Broken(_) => true,
        ClientError::Refused { .. } => error.is_temporary(),
        ClientError::Strange(_) | ClientError::Several | ClientError::Name(_) => false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_is_not_noticed_but_by_retries() {
    let _processor = processor().await;
    let mut machines = Machines::new(3, LEASE).await;
    let work = Work::new(&machines);
    let workers: Vec<_> = (0..WORKERS).map(|number| tokio::spawn(Arc::clone(&work).worker(number))).collect();
    for round in 0..if thorough() { 2 } else { 1 } {
        for number in 1..=3 {
            work.progress().await;
            let node = &mut machines.nodes[number - 1];
            node.send(Signal::TERM);
            let code = tokio::task::block_in_place(|| node.wait());
            assert_eq!(code, Some(0), "round {round}: node {number} has left");
            machines.restart(u16::try_from(number).unwrap());
            work.look(&machines);
            machines.ready(u16::try_from(number).unwrap()).await;
        }
    }
    work.progress().await;
    work.over.store(true, Ordering::Relaxed);
    for worker in workers {
        timeout(LONG, worker).await.expect("it comes to an end").expect("no law was broken");
    }
    assert!(work.retries.load(Ordering::Relaxed) > 0, "nodes did go");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_grows_to_five_voters_and_shrinks_to_one() {
    let _processor = processor().await;
    let mut machines = Machines::new(1, LEASE).await;
    let work = Work::new(&machines);
    let workers: Vec<_> = (0..4).map(|number| tokio::spawn(Arc::clone(&work).worker(number))).collect();
    let voters = async |machines: &Machines, count: usize| {
        eventually(async || {
            let Some(status) = machines.node(1).status().await else { return false };
            let members = status["members"].as_array().unwrap();
            members.iter().filter(|member| member["votes"] == 1).count() == count
        })
        .await;
    };
    for number in 2..=5 {
        let node = machines.start(number, &[]);
        machines.nodes.push(node);
        machines.ready(number).await;
        work.look(&machines);
        voters(&machines, [1, 1, 3, 3, 5][usize::from(number) - 1]).await;
        work.progress().await;
    }
    while machines.nodes.len() > 1 {
        let mut node = machines.nodes.pop().unwrap();
        work.look(&machines);
        node.send(Signal::TERM);
        assert_eq!(tokio::task::block_in_place(|| node.wait()), Some(0));
        voters(&machines, [1, 1, 3, 3][machines.nodes.len() - 1]).await;
        work.progress().await;
    }
    work.over.store(true, Ordering::Relaxed);
    for worker in workers {
        timeout(LONG, worker).await.expect("it comes to an end").expect("no law was broken");
    }
    machines.lock(1, "t").await;
}
