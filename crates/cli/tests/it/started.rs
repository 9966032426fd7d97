//! Processes that a test starts, and ends.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Read},
    net::UdpSocket,
    process::{Child, Command, Output, Stdio},
    sync::{
        atomic::{AtomicU16, Ordering},
        mpsc::{self, Receiver},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// A process that runs beside the test. It ends with it.
pub(crate) struct Started {
    child: Child,
    lines: Receiver<String>,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Started {
    pub(crate) fn new<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(words: I) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("vez"));
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let (stdout, mut stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        let (told, lines) = mpsc::channel();
        let stdout = thread::spawn(move || {
            let mut all = Vec::new();
            let mut reader = BufReader::new(stdout);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).expect("readable") > 0 {
                let _ = told.send(String::from_utf8_lossy(&line).into_owned());
                all.append(&mut line);
            }
            all
        });
        let stderr = thread::spawn(move || {
            let mut all = Vec::new();
            stderr.read_to_end(&mut all).expect("readable");
            all
        });
        Self { child, lines, stdout: Some(stdout), stderr: Some(stderr) }
    }

    /// Waits until it prints a line with these words in it.
    pub(crate) fn until(&self, words: &str) {
        let mut before = String::new();
        while let Ok(line) = self.lines.recv_timeout(Duration::from_secs(60)) {
            if line.contains(words) {
                return;
            }
            before += &line;
        }
        panic!("it ended, or was silent for a minute, and did not say {words:?}, but:\n{before}");
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Output {
        let status = self.child.wait().expect("it ends");
        let read = |output: Option<JoinHandle<Vec<u8>>>| output.expect("once").join().expect("read");
        Output { status, stdout: read(self.stdout.take()), stderr: read(self.stderr.take()) }
    }

    /// Ends it.
    pub(crate) fn end(mut self) -> Output {
        self.child.kill().expect("it is there");
        self.wait()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end.
pub(crate) fn vez<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(words: I) -> Output {
    Started::new(words).wait()
}

/// Ports of this machine that nobody uses, as one types them: `:10001`. They are not among those that the system gives to
/// whoever asks for any.
pub(crate) fn free_ports(number: usize) -> Vec<String> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = 11_000 + u16::try_from(std::process::id() % 200).expect("below 200") * 100;
    let candidates = std::iter::repeat_with(|| begin + NEXT.fetch_add(1, Ordering::Relaxed));
    let free = candidates.take(1000).filter(|port| UdpSocket::bind(("127.0.0.1", *port)).is_ok());
    let free: Vec<String> = free.take(number).map(|port| format!(":{port}")).collect();
    assert_eq!(free.len(), number, "not enough free ports");
    free
}
