//! `vez lock`: a command that holds a lock as long as it runs.

use std::{
    io::Write,
    process::{Command, Stdio},
    time::Duration,
};

use rustix::{net::sockopt::set_socket_linger, process::Signal};
use vez::Client;

use crate::machines::{Machines, eventually, is_there, says, send, vez};

/// Nothing in these tests waits for a lease to run out.
const LONG_LEASE: Duration = Duration::from_secs(50);

fn lock(machines: &Machines, node: u16, words: &[&str]) -> Command {
    let mut command = vez();
    command.args(["lock", "--addr", &machines.node(node).client]).args(words).stdin(Stdio::null());
    command
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
    holder.kill().unwrap();
    holder.wait().unwrap();
    // With a lease of nearly a minute, it does not come by time.
    let waiter = tokio::task::spawn_blocking(|| waiter.wait_with_output()).await.unwrap().unwrap();
    assert_eq!((waiter.status.code(), &waiter.stdout[..]), (Some(0), &b"mine\n"[..]));
    eventually(async || !is_there(&child)).await;
}

#[tokio::test]
async fn the_command_is_as_if_it_ran_by_itself() {
    let machines = Machines::new(1, LONG_LEASE).await;
    let script =
        "read line; echo \"$line $VEZ_LOCK_NAME ${#VEZ_LOCK_FENCE} ${#VEZ_LOCK_CLUSTER}\"; echo to stderr >&2; exit 7";
    let mut command = lock(&machines, 1, &["a/b", "--", "sh", "-c", script]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"typed\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "typed a/b 20 16\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "to stderr\n");
    assert_eq!(lock(&machines, 1, &["a", "sh", "-c", "kill -USR1 $$"]).status().unwrap().code(), Some(128 + 10));
    let missing = lock(&machines, 1, &["a", "--", "there-is-no-such-command"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(127));
    assert!(String::from_utf8(missing.stderr).unwrap().starts_with("vez: cannot run there-is-no-such-command: "));
    assert_eq!(lock(&machines, 1, &["a", "--", "/etc/passwd"]).output().unwrap().status.code(), Some(126));
}

#[tokio::test]
async fn who_does_not_get_it_is_told_by_the_exit_code() {
    let machines = Machines::new(1, LONG_LEASE).await;
    let _held = machines.lock(1, "a").await;
    let code = |words: &[&str]| lock(&machines, 1, words).status().unwrap().code();
    assert_eq!(code(&["-n", "a", "true"]), Some(1));
    assert_eq!(code(&["-w", "0.05", "a", "true"]), Some(1));
    assert_eq!(code(&["-n", "-E", "99", "a", "true"]), Some(99));
    assert_eq!(code(&["-n", "b", "true"]), Some(0));
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
    send(wrapper.id(), Signal::TERM);
    let output = wrapper.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(3), &b"told\n"[..]));
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
    let client = machines.client(3).await;
    let shown = client.call(&[b"SHOW", b"t"]).await.unwrap();
    let (holder, fence) = (&shown["holders"][0], shown["holders"][0]["fence"].as_str().unwrap());
    assert_eq!(holder["node"], 2);
    let release = |fence: &str| {
        let mut command = vez();
        command.args(["release", "--addr", &machines.node(3).client, "--force", "t", "--fence", fence]);
        command.output().unwrap()
    };
    let wrong = release("17");
    assert_eq!(wrong.status.code(), Some(1));
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("nobody holds t with the fence"));
    assert_eq!(release(fence).status.code(), Some(0));
    assert_eq!(tokio::task::spawn_blocking(move || wrapper.wait()).await.unwrap().unwrap().code(), Some(75));
    assert_eq!(says(&told).await, "yes");
    eventually(async || !is_there(&child)).await;
    assert!(machines.lock(1, "t").await.fence().to_string().as_str() > fence);
}

#[tokio::test]
async fn who_waits_goes_to_another_node_when_its_own_is_killed() {
    let mut machines = Machines::new(3, Duration::from_millis(1500)).await;
    let held = machines.lock(3, "t").await;
    let addresses = format!("{},{}", machines.node(1).client, machines.node(2).client);
    let mut waiter = vez();
    waiter.args(["lock", "--verbose", "--addr", &addresses, "t", "--", "echo", "mine"]);
    let waiter = waiter.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
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
    let output = tokio::task::spawn_blocking(|| waiter.wait_with_output()).await.unwrap().unwrap();
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
    let mut waiter = Command::new(&program);
    waiter.args(["lock", "--addr", &machines.node(1).client, "t", "--", "echo", "mine"]).stdin(Stdio::null());
    let waiter = waiter.stdout(Stdio::piped()).spawn().unwrap();
    machines.waiters(1, "t", 1).await;
    std::fs::remove_file(&program).unwrap();
    held.release().await.unwrap();
    let output = waiter.wait_with_output().unwrap();
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
    let output = lock(&machines, 1, &["-n", "--verbose", "a", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.starts_with("vez: a was not to be had: held by node 2, client 127.0.0.1:"), "{words}");
    assert!(words.contains(&format!(", fence {}", held.fence())), "{words}");
    let output = lock(&machines, 1, &["-w", "1.2", "--verbose", "a", "true"]).output().unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.starts_with("vez: waiting for a: held by node 2, "), "{words}");
}

#[tokio::test]
async fn eight_at_once_start_one_node() {
    let home = tempfile::tempdir().unwrap();
    let command = || {
        let mut command = vez();
        // Other tests must not find this node, nor this one theirs: a namespace of its own would be better, and is not
        // to be had everywhere.
        command.env("HOME", home.path()).env_remove("XDG_DATA_HOME").current_dir(home.path());
        command
    };
    if Client::connect("127.0.0.1:7400").await.is_ok() {
        return; // Somebody runs a node on this machine, and it is none of our business.
    }
    let start = |number: usize| {
        let mut command = command();
        let script = format!("echo {number}");
        command.args(["lock", "t", "--", "sh", "-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let all: Vec<_> = (0..8).map(start).collect();
    let mut started = 0;
    for (number, child) in all.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{number}\n"));
        started += usize::from(String::from_utf8(output.stderr).unwrap().contains("no node was there: started one"));
    }
    assert_eq!(started, 1);
    assert_eq!(command().arg("leave").status().unwrap().code(), Some(0));
}
