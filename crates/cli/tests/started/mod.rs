//! Processes that a test starts, and ends.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Read},
    net::UdpSocket,
    process::{Child, Command, Output, Stdio},
    sync::mpsc::{self, Receiver},
    thread::{self, JoinHandle},
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
        let found = self.lines.iter().any(|line| line.contains(words));
        assert!(found, "it ended before it said {words:?}");
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

/// Ports of this machine that nobody uses, as one types them: `:10001`.
pub(crate) fn free_ports(number: usize) -> Vec<String> {
    // All at once, or the system would give the same one again.
    let sockets: Vec<UdpSocket> = (0..number).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a port")).collect();
    sockets.iter().map(|socket| format!(":{}", socket.local_addr().expect("it is bound").port())).collect()
}
