//! How long a message takes from one handler to the other, beside a bare datagram between two threads: the least that the
//! machine asks for. `cargo bench -p vez-emulator`

use std::{net::UdpSocket, thread, time::Instant};

use vez_emulator::{Settings, Transport, emulate};
use vez_lab::system::System;

/// As long as a frame usually is.
const FRAME: usize = 130;
const ROUNDS: u32 = 20_000;

/// There and back again, many times: half of the mean, in seconds.
fn bare() -> f64 {
    let [here, there] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a port"));
    here.connect(there.local_addr().expect("bound")).expect("loopback");
    there.connect(here.local_addr().expect("bound")).expect("loopback");
    let echo = thread::spawn(move || {
        let mut buffer = [0; FRAME];
        for _ in 0..ROUNDS {
            there.recv(&mut buffer).expect("a datagram");
            there.send(&buffer).expect("sent");
        }
    });
    let mut buffer = [0; FRAME];
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        here.send(&buffer).expect("sent");
        here.recv(&mut buffer).expect("a datagram");
    }
    echo.join().expect("it ends");
    begun.elapsed().as_secs_f64() / f64::from(2 * ROUNDS)
}

/// The median of an emulation of two nodes that hardly compete, in seconds.
fn emulated(transport: Transport) -> f64 {
    let settings = Settings {
        system: System::of(2),
        transport,
        entries: 2000,
        askers: Some(1),
        hold: 0.0,
        think: 0.0005,
        loss: 0.0,
        seed: 1,
        crashes: Vec::new(),
        trace: false,
    };
    let outcome = emulate("ricart-agrawala", &settings, None, &()).expect("it is in the catalog").expect("a run");
    assert_eq!(outcome.failure, None);
    outcome.emulation.delay_quantiles[0]
}

#[expect(clippy::print_stdout, reason = "that is what a benchmark is for")]
fn main() {
    let bare = bare();
    println!("a bare datagram between two threads: {:.1} µs", bare * 1e6);
    for transport in [Transport::Udp, Transport::Tcp] {
        let emulated = emulated(transport);
        println!("a message over {transport}: {:.1} µs, {:.2} times that", emulated * 1e6, emulated / bare);
    }
}
