//! `vez lock`: a command that holds a lock as long as it runs.

use std::{
    io::Write,
    os::fd::AsFd,
    process::Stdio,
    time::{Duration, Instant},
};

use rustix::{io::ioctl_fionread, net::sockopt::set_socket_linger, pipe::fcntl_getpipe_size, process::Signal};
use tokio::{io::AsyncWriteExt, process::Command};
use vez::Client;

use crate::machines::{Machines, Process, eventually, finish, is_there, process, says, send, vez, vez_in};

/// Nothing in these tests waits for a lease to run out.
const LONG_LEASE: Duration = Duration::from_secs(50);

fn lock(machines: &Machines, node: u16, words: &[&str]) -> Command {
    let mut command = process(vez());
    command.args(["lock", "--addr", &machines.node(node).client]).args(words).stdin(Stdio::null());
    command
}

/// What is written by one that says something on both.
fn piped(command: &mut Command) -> &mut Command {
    command.stdout(Stdio::piped()).stderr(Stdio::piped())
}

#[tokio::test]
async fn who_waits_gets_the_lock_of_a_killed_client_at_once_and_its_command_is_gone() {
    let machines = Machines::new(3, LONG_LEASE).await;
    let pid = machines.file("pid");
    let script = format!("echo $$ > {}; exec sleep 600", pid.display());
    let mut holder = lock(&machines, 1, &["t", "--", "sh", "-c", &script]).spawn().unwrap();
    let child = says(&pid).await;
    let waiter = lock(&machines, 2, &["t", "--", "echo", "mine"]).stdout(Stdio::piped()).spawn().unwrap();
    machines.waiters(3, "t", 1).await;
    let begin = Instant::now();
    holder.kill().await.unwrap();
    let waiter = finish(waiter).await;
    assert_eq!((waiter.status.code(), &waiter.stdout[..]), (Some(0), &b"mine\n"[..]));
    assert!(begin.elapsed() < LONG_LEASE / 2, "it did not come by time");
    eventually(async || !is_there(&child)).await;
}

#[tokio::test]
async fn the_command_is_as_if_it_ran_by_itself() {
    let machines = Machines::new(1, LONG_LEASE).await;
    let script =
        "read line; echo \"$line $VEZ_LOCK_NAME ${#VEZ_LOCK_FENCE} ${#VEZ_LOCK_CLUSTER}\"; echo to stderr >&2; exit 7";
    let mut command = lock(&machines, 1, &["a/b", "--", "sh", "-c", script]);
    let mut child = piped(&mut command).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"typed\n").await.unwrap();
    let output = finish(child).await;
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "typed a/b 20 16\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "to stderr\n");
    assert_eq!(lock(&machines, 1, &["a", "sh", "-c", "kill -USR1 $$"]).status().await.unwrap().code(), Some(128 + 10));
    let missing = lock(&machines, 1, &["a", "--", "there-is-no-such-command"]).output().await.unwrap();
    assert_eq!(missing.status.code(), Some(127));
    assert!(String::from_utf8(missing.stderr).unwrap().starts_with("vez: cannot run there-is-no-such-command: "));
    assert_eq!(lock(&machines, 1, &["a", "--", "/etc/passwd"]).output().await.unwrap().status.code(), Some(126));
    // Also for one who does not care about its children, as many who start programs in the background do not.
    let mut careless = process(std::process::Command::new("sh"));
    careless.args(["-c", "trap '' CHLD; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_vez"), "lock", "--addr"]);
    careless.args([&machines.node(1).client, "a", "sh", "-c", "exit 7"]);
    assert_eq!(careless.status().await.unwrap().code(), Some(7));
}

#[tokio::test]
async fn who_does_not_get_it_is_told_by_the_exit_code() {
    let machines = Machines::new(1, LONG_LEASE).await;
    let _held = machines.lock(1, "a").await;
    let code = async |words: &[&str]| lock(&machines, 1, words).status().await.unwrap().code();
    assert_eq!(code(&["-n", "a", "true"]).await, Some(1));
    assert_eq!(code(&["-w", "0.05", "a", "true"]).await, Some(1));
    assert_eq!(code(&["-n", "-E", "99", "a", "true"]).await, Some(99));
    assert_eq!(code(&["-n", "b", "true"]).await, Some(0));
    let nobody = vez().args(["lock", "--addr", "127.0.0.1:1", "a", "true"]).output().unwrap();
    assert_eq!(nobody.status.code(), Some(2));
    let words = String::from_utf8(nobody.stderr).unwrap();
    assert!(words.starts_with("vez: cannot reach a node at 127.0.0.1:1"), "{words}");
}

#[tokio::test]
async fn signals_are_handed_on() {
    let machines = Machines::new(1, LONG_LEASE).await;
    let ready = machines.file("ready");
    let script = format!("trap 'echo told; exit 3' TERM; echo yes > {}; while :; do sleep 0.01; done", ready.display());
    let wrapper = lock(&machines, 1, &["a", "--", "sh", "-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    says(&ready).await;
    // As long as there is no command, they are for who waits.
    let waiter = lock(&machines, 1, &["a", "--", "echo", "mine"]).stdout(Stdio::piped()).spawn().unwrap();
    machines.waiters(1, "a", 1).await;
    send(waiter.id().unwrap(), Signal::TERM);
    let output = finish(waiter).await;
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(128 + 15), &b""[..]));
    machines.waiters(1, "a", 0).await;
    send(wrapper.id().unwrap(), Signal::TERM);
    let output = finish(wrapper).await;
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(3), &b"told\n"[..]));
}

/// Takes a lock from who holds it: what became of that.
async fn release(machines: &Machines, name: &str, fence: &str) -> std::process::Output {
    let mut command = process(vez());
    command.args(["release", "--addr", &machines.node(1).client, "--force", name, "--fence", fence]);
    command.output().await.unwrap()
}

/// The fence of who holds a name.
async fn fence(machines: &Machines, name: &str) -> String {
    let shown = machines.client(1).await.call(&[b"SHOW", name.as_bytes()]).await.unwrap();
    shown["holders"][0]["fence"].as_str().expect("somebody holds it").to_owned()
}

#[tokio::test]
async fn a_lock_that_is_lost_ends_the_command_whether_anybody_reads_or_not() {
    let machines = Machines::new(1, LONG_LEASE).await;
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = lock(&machines, 1, &["t", "--", "sh", "-c", "exec yes >&2"]);
    let mut wrapper = command.stderr(writer).spawn().unwrap();
    drop(command); // And with it our own end of the pipe.
    // The command fills the pipe, and nobody reads.
    let size = u64::try_from(fcntl_getpipe_size(reader.as_fd()).unwrap()).unwrap();
    eventually(async || ioctl_fionread(&reader).unwrap() == size).await;
    let fence = fence(&machines, "t").await;
    assert_eq!(release(&machines, "t", &fence).await.status.code(), Some(0));
    let ended = tokio::time::timeout(crate::machines::LONG, wrapper.wait()).await.expect("it ends");
    assert_eq!(ended.unwrap().code(), Some(75));
}

#[tokio::test]
async fn a_lock_that_is_taken_away_ends_the_command() {
    let machines = Machines::new(3, LONG_LEASE).await;
    let (pid, told) = (machines.file("pid"), machines.file("told"));
    // It does not heed TERM, but tells that it came.
    let script =
        format!("trap 'echo yes > {}' TERM; echo $$ > {}; while :; do sleep 0.01; done", told.display(), pid.display());
    let mut wrapper = lock(&machines, 2, &["--grace", "50ms", "t", "--", "sh", "-c", &script]).spawn().unwrap();
    let child = says(&pid).await;
    let fence = fence(&machines, "t").await;
    let wrong = release(&machines, "t", "17").await;
    assert_eq!(wrong.status.code(), Some(1));
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("nobody holds t with the fence"));
    assert_eq!(release(&machines, "t", &fence).await.status.code(), Some(0));
    assert_eq!(wrapper.wait().await.unwrap().code(), Some(75));
    assert_eq!(says(&told).await, "yes");
    eventually(async || !is_there(&child)).await;
    assert!(machines.lock(1, "t").await.fence().to_string() > fence);
}

#[tokio::test]
async fn who_waits_goes_to_another_node_when_its_own_is_killed() {
    let mut machines = Machines::new(3, Duration::from_millis(1500)).await;
    let held = machines.lock(3, "t").await;
    let addresses = format!("{},{}", machines.node(1).client, machines.node(2).client);
    let mut waiter = process(vez());
    waiter.args(["lock", "--verbose", "--addr", &addresses, "t", "--", "echo", "mine"]);
    let waiter = piped(&mut waiter).stdin(Stdio::null()).spawn().unwrap();
    machines.waiters(3, "t", 1).await;
    machines.nodes[0].kill();
    let client = machines.client(3).await;
    // It waits at the second: what the first knew of it is gone with it.
    eventually(async || {
        let shown = client.call(&[b"SHOW", b"t"]).await.unwrap();
        shown["waiting"].as_array().unwrap().iter().any(|waiting| waiting["node"] == 2)
    })
    .await;
    held.release().await.unwrap();
    let output = finish(waiter).await;
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"mine\n"[..]), "{words}");
    assert!(words.contains("; still waiting for t\n"), "{words}");
    assert!(words.contains("vez: getting t took "), "{words}");
}

#[tokio::test]
async fn a_program_that_was_replaced_meanwhile_runs_its_command() {
    let machines = Machines::new(1, LONG_LEASE).await;
    let held = machines.lock(1, "t").await;
    let program = machines.file("vez");
    std::fs::copy(env!("CARGO_BIN_EXE_vez"), &program).unwrap();
    let mut waiter = process(std::process::Command::new(&program));
    waiter.args(["lock", "--addr", &machines.node(1).client, "t", "--", "echo", "mine"]).stdin(Stdio::null());
    let waiter = waiter.stdout(Stdio::piped()).spawn().unwrap();
    machines.waiters(1, "t", 1).await;
    std::fs::remove_file(&program).unwrap();
    held.release().await.unwrap();
    let output = finish(waiter).await;
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"mine\n"[..]));
}

/// One that answers like a node, and breaks the connection when it is asked for a lock.
#[tokio::test]
async fn a_connection_that_breaks_is_no_success() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = std::io::Read::read(&mut stream, &mut [0; 1024]);
            let _ = stream.write_all(b"%2\r\n+server\r\n+vez\r\n+cluster\r\n+00000000000000ff\r\n");
            // An end, and then a reset: to who writes then, the kernel says that the pipe is broken.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = set_socket_linger(&stream, Some(Duration::ZERO));
        }
    });
    for _ in 0..20 {
        let mut command = vez();
        let output = command.args(["lock", "-n", "--addr", &address, "t", "--", "echo", "mine"]).output().unwrap();
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b""[..]));
    }
}

#[tokio::test]
async fn who_does_not_get_it_can_hear_why() {
    let machines = Machines::new(3, LONG_LEASE).await;
    let held = machines.lock(2, "a").await;
    let output = lock(&machines, 1, &["-n", "--verbose", "a", "true"]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.starts_with("vez: a was not to be had: held by node 2, client 127.0.0.1:"), "{words}");
    assert!(words.contains(&format!(", fence {}", held.fence())), "{words}");
    let output = lock(&machines, 1, &["-w", "1.2", "--verbose", "a", "true"]).output().await.unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.starts_with("vez: waiting for a: held by node 2, "), "{words}");
}

/// Ends the node that `vez lock` has started, whatever becomes of a test.
struct Leave(tempfile::TempDir);

impl Leave {
    fn command(&self, words: &[&str]) -> std::process::Command {
        // Whoever is handed a file, as the shell does here, is not to keep it for good.
        let mut command = vez_in("sh");
        command.args(["-c", "exec \"$@\" 3>&1", "sh", env!("CARGO_BIN_EXE_vez")]).args(words);
        command.env("HOME", self.0.path()).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        let _ = self.command(&["leave", "--password-file", "password"]).output(); // It has left already, if all went well.
    }
}

#[tokio::test]
async fn eight_at_once_start_one_node() {
    // The one port that is chosen by the program, and not by the kernel.
    assert!(
        Client::connect("127.0.0.1:7400").await.is_err(),
        "a node runs on this machine at 127.0.0.1:7400, where this test wants to start one: stop it first"
    );
    let home = Leave(tempfile::tempdir().unwrap());
    std::fs::write(home.0.path().join("password"), "secret\n").unwrap();
    let start = |number: usize| {
        let script = format!("echo {number}");
        let words = ["lock", "--password-file", "password", "t", "--", "sh", "-c", &script];
        piped(&mut process(home.command(&words))).spawn().unwrap()
    };
    let all: Vec<_> = (0..8).map(start).collect();
    let mut started = 0;
    for (number, child) in all.into_iter().enumerate() {
        let output = finish(child).await;
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{number}\n"));
        started += usize::from(String::from_utf8(output.stderr).unwrap().contains("no node was there: started one"));
    }
    assert_eq!(started, 1);
    let without = home.command(&["leave"]).output().unwrap();
    assert!(String::from_utf8(without.stderr).unwrap().contains("wants a password; say --password-file FILE"));
    assert_eq!(home.command(&["leave", "--password-file", "password"]).status().unwrap().code(), Some(0));
    // Where this user has run another node, it would be a cluster of its own.
    let other = home.0.path().join("other");
    let node = ["node", "--json", "--id", "7", "--data", "other", "--bootstrap", "--client", "127.0.0.1:0"];
    let node = [&node[..], &["--http", "127.0.0.1:0", "--peer", "127.0.0.1:0"]].concat();
    drop(Process::start(&mut home.command(&node)));
    let refused = home.command(&["lock", "t", "--", "true"]).output().unwrap();
    let words = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{words}");
    assert!(words.contains(&format!("with its data in {}", other.display())), "{words}");
}
