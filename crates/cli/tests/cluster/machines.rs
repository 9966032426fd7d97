//! Some nodes, each a process.

use std::{
    cell::Cell,
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, sleep, timeout},
};
use vez::{Client, RemoteGuard};

/// Whatever takes longer does not come at all.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// Tests that keep the processor busy run three at a time: more would cost each other's nodes their leases.
static PROCESSOR: Semaphore = Semaphore::const_new(3);

/// Waits until the processor has room for a test that keeps it busy.
pub(crate) async fn processor() -> SemaphorePermit<'static> {
    PROCESSOR.acquire().await.expect("it is never closed")
}

const PAUSE: Duration = Duration::from_millis(5);

/// The program that is examined.
pub(crate) fn vez() -> Command {
    vez_in(env!("CARGO_BIN_EXE_vez"))
}

/// A program that is, or runs, what is examined: nothing that surrounds the tests is known to it.
pub(crate) fn vez_in(program: &str) -> Command {
    let mut command = Command::new(program);
    for name in ["VEZ_ADDR", "VEZ_CONFIG", "VEZ_PASSWORD", "RUST_LOG"] {
        command.env_remove(name);
    }
    command.env("HOME", env!("CARGO_TARGET_TMPDIR")).env_remove("XDG_DATA_HOME");
    command
}

/// The same as a process that ends with the test.
pub(crate) fn process(command: Command) -> tokio::process::Command {
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true);
    command
}

/// Waits until a process has ended: what it has said.
pub(crate) async fn finish(child: tokio::process::Child) -> Output {
    timeout(LONG, child.wait_with_output()).await.expect("it ends").unwrap()
}

/// Some nodes of one cluster.
pub(crate) struct Machines {
    folder: TempDir,
    lease: Duration,
    /// How many commands were run to hold something.
    commands: Cell<u32>,
    pub nodes: Vec<Process>,
}

/// A node that runs.
pub(crate) struct Process {
    running: Running,
    pub client: String,
    pub http: String,
    pub peer: String,
}

/// A process, which ends with this.
struct Running(Child);

/// A command that holds something, or waits for it.
pub(crate) struct Inside {
    pub wrapper: tokio::process::Child,
    pid: PathBuf,
}

impl Inside {
    /// Waits until it is inside: the process of the command.
    pub(crate) async fn is_in(&self) -> String {
        says(&self.pid).await
    }

    /// Whether it was inside.
    pub(crate) fn was_in(&self) -> bool {
        self.pid.exists()
    }

    /// Lets the command end: the exit code.
    pub(crate) async fn end(mut self) -> Option<i32> {
        drop(self.wrapper.stdin.take());
        finish(self.wrapper).await.status.code()
    }
}

impl Machines {
    /// Nothing yet.
    pub(crate) fn empty(lease: Duration) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), lease, commands: Cell::new(0), nodes: Vec::new() }
    }

    /// A cluster of so many, all of which are ready.
    pub(crate) async fn new(nodes: u16, lease: Duration) -> Self {
        let mut machines = Self::empty(lease);
        for number in 1..=nodes {
            let node = machines.start(number, &[]);
            machines.nodes.push(node);
            machines.ready(number).await;
        }
        machines
    }

    /// Starts a node: the first begins a cluster, the others join it. One that was there before goes on.
    pub(crate) fn start(&self, number: u16, more: &[&str]) -> Process {
        Process::start(&mut self.command(number, more))
    }

    /// The same, and it may not open more than so many files.
    pub(crate) fn start_limited(&self, number: u16, files: u32) -> Process {
        let node = self.command(number, &[]);
        let mut command = vez_in("sh");
        command.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &files.to_string()]);
        Process::start(command.arg(node.get_program()).args(node.get_args()))
    }

    fn command(&self, number: u16, more: &[&str]) -> Command {
        let mut command = vez();
        let free = "127.0.0.1:0";
        command.args(["node", "--json", "--http", free, "--id", &number.to_string()]);
        command.arg("--data").arg(self.folder.path().join(number.to_string()));
        for address in ["--peer", "--client"] {
            if !more.contains(&address) {
                command.args([address, free]);
            }
        }
        match self.nodes.first() {
            Some(first) if number > 1 => command.args(["--join", &first.peer]),
            _ => command.args(["--bootstrap", "--lease", &format!("{}ms", self.lease.as_millis())]),
        };
        command.args(more);
        command
    }

    /// Starts a node again, where it was before.
    pub(crate) fn restart(&mut self, number: u16) {
        let at = usize::from(number) - 1;
        let Process { peer, client, .. } = &self.nodes[at];
        self.nodes[at] = self.start(number, &["--peer", peer, "--client", client]);
    }

    pub(crate) fn node(&self, number: u16) -> &Process {
        &self.nodes[usize::from(number) - 1]
    }

    /// Waits until a node serves everything.
    pub(crate) async fn ready(&self, number: u16) {
        let node = self.node(number);
        eventually(async || node.status().await.is_some_and(|status| is_ready(&status))).await;
    }

    /// The number of who leads.
    pub(crate) async fn leader(&self) -> u16 {
        let leader = Cell::new(None);
        eventually(async || {
            leader.set(self.node(1).status().await.and_then(|status| status["leader"].as_u64()));
            leader.get().is_some()
        })
        .await;
        u16::try_from(leader.get().expect("somebody leads")).unwrap()
    }

    /// A client of a node.
    pub(crate) async fn client(&self, number: u16) -> Client {
        Client::connect(&self.node(number).client).await.expect("it answers")
    }

    /// The program as a client of a node.
    pub(crate) fn vez(&self, number: u16, words: &[&str]) -> tokio::process::Command {
        let mut command = process(vez());
        command.args(words).env("VEZ_ADDR", &self.node(number).client).stdin(Stdio::null());
        command
    }

    /// What it says, and its exit code, once it has ended.
    pub(crate) async fn told(&self, number: u16, words: &[&str]) -> (Option<i32>, String, String) {
        let mut command = self.vez(number, words);
        let Output { status, stdout, stderr } =
            finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()).await;
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }

    /// Holds something by a command, from when this is back until [`Inside::end`].
    pub(crate) async fn inside(&self, number: u16, words: &[&str]) -> Inside {
        let waiting = self.waiting(number, words);
        waiting.is_in().await;
        waiting
    }

    /// The same, and it may have to wait.
    pub(crate) fn waiting(&self, number: u16, words: &[&str]) -> Inside {
        let pid = self.file(&format!("pid{}", self.commands.replace(self.commands.get() + 1)));
        // It is done when its standard input is.
        let script = format!("echo $$ > {}; read line; exit 0", pid.display());
        let mut command = self.vez(number, &[words, &["--", "sh", "-c", &script]].concat());
        Inside { wrapper: command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(), pid }
    }

    /// Takes a lock.
    pub(crate) async fn lock(&self, number: u16, name: &str) -> RemoteGuard {
        let client = self.client(number).await;
        timeout(LONG, client.lock(name)).await.expect("it is our turn some time").expect("it is granted")
    }

    /// Waits until so many wait for a name.
    pub(crate) async fn waiters(&self, number: u16, name: &str, count: u64) {
        let client = self.client(number).await;
        eventually(async || {
            let shown = client.call(&[b"SHOW", name.as_bytes()]).await.expect("it answers");
            shown["waiters"] == count
        })
        .await;
    }

    /// Since which view each member is one, as a node has it.
    pub(crate) async fn members(&self, number: u16) -> BTreeMap<u64, u64> {
        let status = self.node(number).status().await.unwrap_or_default();
        let members = status["members"].as_array().into_iter().flatten();
        members.filter_map(|member| Some((member["node"].as_u64()?, member["since_view"].as_u64()?))).collect()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Whether a node is ready, and as many members vote as there will be. A node is ready a few milliseconds before its vote counts, and a
/// test that kills another in between may take the cluster its majority.
fn is_ready(status: &Value) -> bool {
    let members = status["members"].as_array().map_or(&[][..], Vec::as_slice);
    let voters = members.iter().filter(|member| member["votes"] == 1).count();
    let expected = match members.len() {
        0..=2 => 1,
        3 | 4 => 3,
        _ => 5,
    };
    status["state"] == "ready" && voters == expected
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let greeting: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        let at = |key: &str| greeting[key].as_str().unwrap().to_owned();
        Self { running: Running(child), client: at("client"), http: at("http"), peer: at("peer") }
    }

    pub(crate) async fn status(&self) -> Option<Value> {
        Client::connect(&self.client).await.ok()?.call(&[b"STATUS"]).await.ok()
    }

    pub(crate) fn send(&self, signal: Signal) {
        send(self.running.0.id(), signal);
    }

    /// Waits until it has ended; its exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.running.0.wait().unwrap().code()
    }

    pub(crate) fn kill(&mut self) {
        self.send(Signal::KILL);
        self.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn send(process: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    let _ = kill_process(pid, signal);
}

/// Waits until something is so.
pub(crate) async fn eventually(is_so: impl AsyncFn() -> bool) {
    let begin = Instant::now();
    while !is_so().await {
        assert!(begin.elapsed() < LONG, "it is not so, and that for long");
        sleep(PAUSE).await;
    }
}

/// Waits until a file says something.
pub(crate) async fn says(file: &Path) -> String {
    eventually(async || std::fs::read_to_string(file).is_ok_and(|text| text.ends_with('\n'))).await;
    std::fs::read_to_string(file).unwrap().trim_end().to_owned()
}

/// Whether a process is there.
pub(crate) fn is_there(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    // One that has ended and that nobody has asked about yet is not.
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}
