//! `vez top`: what is printed of a cluster that is busy, and the screen in a terminal.

use std::{
    cell::Cell,
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::{Output, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use rustix::{
    process::Signal,
    pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};
use serde_json::Value;
use tokio::process::Child;

use crate::machines::{Machines, eventually, finish, process, send, vez};

/// Nothing in these tests waits for a lease to run out.
const LONG_LEASE: Duration = Duration::from_secs(20);

/// Some nodes, with a name that is granted all the time, and another that two wait for; whoever does so goes on until the end.
async fn busy() -> Machines {
    let machines = Machines::new(3, LONG_LEASE).await;
    let client = machines.client(1).await;
    tokio::spawn(async move {
        while let Ok(guard) = client.lock("hot").await {
            guard.release().await.expect("it was held");
        }
    });
    let held = machines.lock(2, "orders/42").await;
    for number in [1, 3] {
        let client = machines.client(number).await;
        tokio::spawn(async move { client.lock("orders/42").await.map(drop) });
    }
    tokio::spawn(async move {
        let _held = held;
        std::future::pending::<()>().await;
    });
    machines.waiters(3, "orders/42", 2).await;
    let client = machines.client(1).await;
    eventually(async || {
        let told = client.call(&[b"NODES"]).await.expect("it answers");
        told["nodes"][0]["busiest"][0]["name"] == "hot"
    })
    .await;
    machines
}

async fn top(machines: &Machines, words: &[&str]) -> Output {
    let mut command = process(vez());
    command.args(["top", "--addr", &machines.node(1).client, "--interval", "0.3"]).args(words);
    finish(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()).await
}

async fn object(machines: &Machines, words: &[&str]) -> Value {
    let output = top(machines, words).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("an object")
}

fn named<'a>(seen: &'a Value, name: &str) -> &'a Value {
    seen["names"].as_array().unwrap().iter().find(|known| known["name"] == name).unwrap_or(&Value::Null)
}

#[tokio::test]
async fn what_is_seen_can_be_printed() {
    let machines = busy().await;
    let seen = object(&machines, &["--json"]).await;
    assert_eq!(seen["leader"], 1);
    let nodes = seen["nodes"].as_array().unwrap();
    assert_eq!(nodes.iter().map(|node| &node["node"]).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(nodes.iter().all(|node| node["state"] == "ready"), "{seen:#}");
    let rate = |value: &Value| value["grants_per_second"].as_f64();
    assert!(rate(&nodes[0]) > Some(0.0) && rate(&nodes[2]) == Some(0.0), "{seen:#}");
    assert!(rate(named(&seen, "hot")) > Some(0.0), "{seen:#}");
    let wanted = named(&seen, "orders/42");
    assert_eq!((&wanted["waiters"], &wanted["holders"][0]["node"]), (&2.into(), &2.into()));
    assert!(wanted["longest_wait_ms"].as_u64() > Some(0), "{seen:#}");
    let some = object(&machines, &["--json", "orders/"]).await;
    assert_eq!(some["names"].as_array().unwrap().len(), 1);

    let output = top(&machines, &["--once"]).await;
    let text = String::from_utf8(output.stdout).unwrap();
    let row = |begin: &str| text.lines().find(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("{text}"));
    assert!(row("cluster ").contains("3 members, node 1 leads"), "{text}");
    assert!(row("1 ").contains("leads") && row("2 ").contains("ready"), "{text}");
    // The busiest name may be free at this moment, and the kind of a free name is unknown.
    assert!(row("hot ").contains("node 1, ") || row("hot ").ends_with('-'), "{text}");
    assert!(row("orders/42 ").contains("lock") && row("orders/42 ").contains("node 2, "), "{text}");

    machines.node(3).send(Signal::STOP);
    let seen = object(&machines, &["--json"]).await;
    machines.node(3).send(Signal::CONT);
    assert_eq!((&seen["nodes"][2]["state"], &seen["nodes"][2]["grants_per_second"]), (&"silent".into(), &Value::Null));
    assert!(rate(&seen["nodes"][0]) > Some(0.0), "{seen:#}");
}

#[tokio::test]
async fn without_a_terminal_it_says_what_to_do() {
    let machines = Machines::new(1, LONG_LEASE).await;
    for (words, sentence) in [
        (&[][..], "vez: the output is no terminal; say --once for text, or --json for an object\n"),
        (&["--interval", "0.01"], "vez: interval is 10ms; take 0.1 s to 1 h, such as --interval 0.5\n"),
    ] {
        let mut command = process(vez());
        let command = command.args(["top", "--addr", &machines.node(1).client]).args(words);
        let output = command.stdin(Stdio::null()).output().await.unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert_eq!((&output.stdout[..], String::from_utf8(output.stderr).unwrap().as_str()), (&b""[..], sentence));
    }
}

/// A terminal, and what was written to it.
struct Screen {
    user: File,
    terminal: OwnedFd,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Screen {
    fn new() -> Self {
        let how = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let user = openpt(how).unwrap();
        unlockpt(&user).unwrap();
        let terminal = ioctl_tiocgptpeer(&user, how).unwrap();
        let (user, written) = (File::from(user), Arc::new(Mutex::new(Vec::new())));
        let (mut reader, all) = (user.try_clone().unwrap(), Arc::clone(&written));
        thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(count) = reader.read(&mut some) {
                all.lock().unwrap().extend_from_slice(&some[..count]);
            }
        });
        Self { user, terminal, written }
    }

    fn top(&self, address: &str) -> Child {
        let mut command = process(vez());
        command.args(["top", "--interval", "0.1", "--addr", address]).env("TERM", "xterm");
        let end = || Stdio::from(self.terminal.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap()
    }

    /// Waits until it was written. Only what differs is, unless the size does.
    async fn says(&self, text: &str) {
        let columns = Cell::new(100);
        eventually(async || {
            columns.set(columns.get() ^ 1);
            let size = Winsize { ws_row: 24, ws_col: columns.get(), ws_xpixel: 0, ws_ypixel: 0 };
            tcsetwinsize(&self.terminal, size).unwrap();
            String::from_utf8_lossy(&self.written.lock().unwrap()).contains(text)
        })
        .await;
    }

    fn press(&mut self, keys: &str) {
        self.written.lock().unwrap().clear();
        self.user.write_all(keys.as_bytes()).unwrap();
    }

    /// Whether keys are shown as they are typed, and only heeded by the line.
    fn is_as_before(&self) -> bool {
        tcgetattr(&self.terminal).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }
}

#[tokio::test]
async fn the_screen_follows_keys_and_leaves_the_terminal_as_it_was() {
    const LEAVES_THE_SCREEN: &str = "\u{1b}[?1049l";
    let mut machines = busy().await;
    let mut screen = Screen::new();
    let running = screen.top(&machines.node(1).client);
    screen.says("orders/42").await;
    assert!(!screen.is_as_before());
    screen.press("j\r");
    screen.says("home").await;
    screen.press("\u{1b}");
    screen.says("choose").await;
    screen.press("q");
    assert_eq!(finish(running).await.status.code(), Some(0));
    screen.says(LEAVES_THE_SCREEN).await;
    assert!(screen.is_as_before());

    screen.press("");
    let several = format!("{},{}", machines.node(3).client, machines.node(2).client);
    let running = screen.top(&several);
    screen.says("orders/42").await;
    screen.press("");
    machines.nodes[2].kill();
    screen.says("by node 2").await;
    machines.nodes[1].kill();
    screen.says("cannot reach a node").await;
    send(running.id().unwrap(), Signal::TERM);
    assert_eq!(finish(running).await.status.code(), Some(0));
    screen.says(LEAVES_THE_SCREEN).await;
    assert!(screen.is_as_before());
}
