//! What nodes are asked.

use std::{
    cell::{Cell, RefCell},
    time::{Duration, Instant},
};

use anyhow::Result;
use tokio::time::sleep;
use vez::{Client, ClientError};

use super::{picture::Answers, remote::Remote, show, tell};

/// So many names in use are told of.
const MOST_NAMES: &[u8] = b"200";
/// The rest is asked for so much later than the nodes: each question is a client of the node, and their number is not to depend on
/// which was faster.
const BEHIND: Duration = Duration::from_millis(20);

/// One that asks the node that answers.
pub(super) struct Asker<'a> {
    remote: &'a Remote,
    client: RefCell<Client>,
    /// How many of the addresses that were named are asked after the others.
    turns: Cell<usize>,
    begin: Instant,
}

impl<'a> Asker<'a> {
    pub(super) async fn new(remote: &'a Remote) -> Result<Self> {
        let client = RefCell::new(remote.connect().await?);
        Ok(Self { remote, client, turns: Cell::new(0), begin: Instant::now() })
    }

    /// Asks for everything.
    pub(super) async fn ask(&self, prefix: &str) -> Result<Answers> {
        let answers = self.try_ask(prefix).await;
        if answers.as_ref().is_err_and(ClientError::is_temporary) {
            self.turn_away().await;
        }
        Ok(answers?)
    }

    async fn try_ask(&self, prefix: &str) -> Result<Answers, ClientError> {
        let client = self.client.borrow().clone();
        // Nodes tell their counters when they are asked, also if one that is silent keeps the answer back.
        let at = self.begin.elapsed();
        let rest = async {
            sleep(BEHIND).await;
            let names: [&[u8]; 4] = [b"LS", prefix.as_bytes(), b"COUNT", MOST_NAMES];
            tokio::try_join!(client.call(&names), client.call(&[b"STATUS"]))
        };
        let nodes: [&[u8]; 1] = [b"NODES"];
        let (nodes, (names, status)) = tokio::try_join!(client.call(&nodes), rest)?;
        Ok(Answers { at, nodes, names, status })
    }

    /// What is known of a name, in the words of `vez show`.
    pub(super) async fn show(&self, name: &str) -> String {
        let client = self.client.borrow().clone();
        match client.call(&[b"SHOW", name.as_bytes()]).await {
            Ok(shown) => show::words(&shown) + &tell::silent(&shown).unwrap_or_default(),
            Err(error) => format!("{:#}", anyhow::Error::new(error)),
        }
    }

    /// A node that serves nobody now answers all the same: if others were named, the next of them is asked.
    async fn turn_away(&self) {
        let Ok(mut target) = self.remote.target() else { return };
        let mut addresses: Vec<String> = target.addr.split(',').map(str::to_owned).collect();
        if addresses.len() == 1 {
            return;
        }
        self.turns.set((self.turns.get() + 1) % addresses.len());
        addresses.rotate_left(self.turns.get());
        target.addr = addresses.join(",");
        if let Ok(client) = target.connect().await {
            self.client.replace(client);
        }
    }
}
