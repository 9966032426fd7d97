//! What arrives and is none of ours is counted, reported once, and changes nothing.

use std::{
    cell::RefCell,
    io::Write,
    net::{SocketAddr, TcpStream, UdpSocket},
    thread,
    time::Duration,
};

use vez_emulator::{Crash, Outcome, Settings, Transport, Watcher, emulate};
use vez_lab::system::System;

fn settings(transport: Transport) -> Settings {
    Settings {
        system: System::of(3),
        transport,
        entries: 300,
        askers: None,
        hold: 0.001,
        think: 0.002,
        loss: 0.0,
        seed: 1,
        crashes: Vec::new(),
        trace: false,
    }
}

/// Everything that a stranger might say. A socket holds twice as much, even if nobody reads.
fn nonsense() -> Vec<Vec<u8>> {
    let message = |algorithm: &str, from: u32| {
        let frame = r#","message":{"number":0,"clock":1,"says":{"Request":1}}}"#;
        format!(r#"{{"algorithm":"{algorithm}","life":1,"from":{from}{frame}"#).into_bytes()
    };
    let whole = message("ricart-agrawala", 1);
    vec![
        (0..200_u8).rev().filter(|byte| *byte != b'\n').collect(),
        whole[..whole.len() / 2].to_vec(),
        whole,
        message("ricart-agrawala", 77),
        message("suzuki-kasami", 1),
        vec![b'x'; 65_507],
        Vec::new(),
        vec![b'['; 20_000],
    ]
}

/// Says all of it to every node, twice, as soon as they listen.
struct Stranger {
    transport: Transport,
    heard: RefCell<Vec<String>>,
}

impl Watcher for Stranger {
    fn listening(&self, addresses: &[SocketAddr]) {
        for to in addresses.iter().chain(addresses) {
            for bytes in nonsense() {
                match self.transport {
                    Transport::Udp => {
                        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
                        socket.send_to(&bytes, to).expect("sent");
                    }
                    Transport::Tcp => {
                        let mut stream = TcpStream::connect(to).expect("it listens");
                        // It may have had enough before all is said.
                        let _ = stream.write_all(&bytes).and_then(|()| stream.write_all(b"\n"));
                    }
                }
            }
        }
    }

    fn odd(&self, what: &str) {
        self.heard.borrow_mut().push(what.to_owned());
    }
}

fn disturbed(transport: Transport) -> (Outcome, Vec<String>) {
    let stranger = Stranger { transport, heard: RefCell::default() };
    let run = emulate("ricart-agrawala", &settings(transport), None, &stranger);
    (run.expect("it is in the catalog").expect("a run"), stranger.heard.into_inner())
}

#[test]
fn strangers_change_nothing() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let (outcome, heard) = disturbed(transport);
        assert_eq!(outcome.failure, None);
        assert_eq!(outcome.report.entries, 300);
        let mean = outcome.report.messages_per_entry.mean;
        assert!((4.0..4.3).contains(&mean), "{mean}: two requests and two replies an entry, and none of a stranger");
        // Three nodes, twice each.
        let expected = [("no frame", 24), ("other algorithm", 6), ("too long", 6), ("unknown sender", 12)];
        let expected = expected.map(|(kind, count)| (kind.to_owned(), count)).into();
        assert_eq!(outcome.emulation.refused, expected, "over {transport}");
        assert_eq!(heard.len(), 12, "each node reports each kind once: {heard:#?}");
        let told = |what: &str| heard.iter().any(|line| line.contains(what));
        assert!(told("n0 ignored what came from 127.0.0.1:"), "{heard:#?}");
        assert!(told("a frame of suzuki-kasami, and this is ricart-agrawala"), "{heard:#?}");
    }
}

#[test]
fn a_crash_is_survived_by_those_who_say_so() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let crashes = vec![Crash { node: vez_algorithms::NodeId(0), at: 0.03 }];
        let system =
            System { patience: Duration::from_millis(60), period: Duration::from_millis(300), ..System::of(4) };
        for name in ["central-failover", "ricart-agrawala-robust", "token-ring-regenerating", "robust-k"] {
            let settings = Settings { system: system.clone(), crashes: crashes.clone(), ..settings(transport) };
            let outcome = emulate(name, &settings, None, &()).expect("it is in the catalog").expect("a run");
            assert_eq!(outcome.failure, None, "{name} over {transport}");
            assert_eq!((outcome.report.entries, outcome.report.crashes), (300, 1), "{name} over {transport}");
        }
    }
}

#[test]
fn others_are_stuck_and_it_is_said_why() {
    let crashes = vec![Crash { node: vez_algorithms::NodeId(1), at: 0.02 }];
    let settings = Settings { crashes, entries: 100_000, ..settings(Transport::Udp) };
    let outcome = emulate("ricart-agrawala", &settings, None, &()).expect("it is in the catalog").expect("a run");
    let failure = outcome.failure.expect("nobody answers for n1");
    assert!(!failure.law_broken);
    let what = failure.what;
    assert!(what.starts_with("ricart-agrawala is stuck after "), "{what}");
    assert!(what.contains(": n0, n2 wait, for up to "), "{what}");
    assert!(what.contains("n1 crashed, and ricart-agrawala takes for granted that nobody does"), "{what}");
    assert!(what.contains("these survive it: central-failover, token-ring-regenerating, "), "{what}");
}

/// A run leaves neither threads nor sockets behind.
#[cfg(target_os = "linux")]
#[test]
fn nothing_is_left_behind() {
    let open = || std::fs::read_dir("/proc/self/fd").expect("Linux").count();
    let few = Settings { entries: 5, ..settings(Transport::Tcp) };
    let run = |settings: &Settings| {
        let outcome = emulate("central", settings, None, &()).expect("it is in the catalog").expect("a run");
        assert_eq!(outcome.failure, None);
    };
    run(&few);
    let before = open();
    (0..20).for_each(|_| run(&few));
    // Three nodes have some twenty sockets, and the other tests of this file theirs. What has been closed may take its time.
    let few_are_open = |_| {
        thread::sleep(Duration::from_millis(20));
        open() < before + 100
    };
    assert!((0..100).any(few_are_open), "{before} files were open, and {} are", open());
}
