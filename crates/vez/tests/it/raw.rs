//! A client that says what it is told to say, byte by byte.

use std::{net::SocketAddr, time::Duration};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use vez::{Fence, Node};

pub(crate) const LONG: Duration = Duration::from_secs(30);
/// The answer to HELLO 3: a map of eight, whose names and texts take two lines each, and whose numbers and lists one.
pub(crate) const HELLO_LINES: usize = 1 + 8 * 4 - 3;

pub(crate) async fn node() -> (TempDir, Node) {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::builder(1, folder.path().join("1")).client_addr("127.0.0.1:0").bootstrap().start().await.unwrap();
    node.ready().await;
    (folder, node)
}

/// A client that says what it is told to say.
pub(crate) struct Raw(pub TcpStream);

impl Raw {
    pub(crate) async fn new(node: &Node) -> Self {
        Self::at(node.client_addr().unwrap()).await
    }

    pub(crate) async fn at(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    pub(crate) async fn say(&mut self, line: &str) {
        self.0.write_all(format!("{line}\r\n").as_bytes()).await.unwrap();
    }

    /// The next so many lines, with a space between them.
    pub(crate) async fn hear(&mut self, lines: usize) -> String {
        let mut heard = Vec::new();
        while heard.iter().filter(|byte| **byte == b'\n').count() < lines {
            let byte = timeout(LONG, self.0.read_u8()).await.expect("an answer").expect("not the end");
            heard.push(byte);
        }
        String::from_utf8(heard).unwrap().replace("\r\n", " ").trim_end().to_owned()
    }

    pub(crate) async fn ask(&mut self, line: &str, lines: usize) -> String {
        self.say(line).await;
        self.hear(lines).await
    }

    /// A request whose words may be anything.
    pub(crate) async fn words(&mut self, words: &[&str]) {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.0.write_all(request.as_bytes()).await.unwrap();
    }

    /// Takes a lock: its fence.
    pub(crate) async fn lock(&mut self, words: &str) -> Fence {
        self.say(&format!("LOCK {words}")).await;
        self.granted().await
    }

    /// Waits until what was asked for is granted: its fence.
    pub(crate) async fn granted(&mut self) -> Fence {
        self.hear(2).await.strip_prefix("$20 ").expect("a fence").parse().unwrap()
    }

    pub(crate) async fn is_at_its_end(&mut self) -> bool {
        matches!(timeout(LONG, self.0.read_u8()).await.expect("the end"), Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof)
    }
}

/// Waits until so many wait for `a`.
pub(crate) async fn waiters(node: &Node, count: usize) {
    let name = vez::Name::new(b"a").unwrap();
    let so_many = async {
        while node.show(&name).await.reports.iter().map(|report| report.waiters).sum::<usize>() != count {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, so_many).await.expect("so many wait");
}
