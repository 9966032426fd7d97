//! What every Redis client may say, and what concerns the node as a whole.

use std::{fmt::Write, sync::Arc, time::Duration};

use super::{
    command::{ClientCommand, Command, Hello},
    connection::{Connection, Outcome, Step},
    reply::{Reply, Version},
    words,
};
use vez_peer::ask::Failure;

use crate::{identity, node::Inner};

/// No client calls itself by more.
const LONGEST_NAME: usize = 64;
const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Connection {
    /// Does what is not about its own locks.
    pub(super) fn attend(&mut self, command: Command) -> Step {
        let inner = Arc::clone(&self.seat.inner);
        if command.is_about_all() && inner.engine.look(|peer| peer.view().is_none()) != Some(false) {
            return Step::Say(words::failure(&Failure::NoMember)); // It would know of nobody.
        }
        match command {
            Command::Ping(None) => Step::Say(Reply::Simple("PONG")),
            Command::Ping(Some(text)) | Command::Echo(text) => Step::Say(Reply::Bytes(text)),
            Command::Status => Step::Say(words::status(&inner.engine)),
            Command::List { prefix, count } => wait(async move { words::listing(&inner.list(&prefix, count).await) }),
            Command::Nodes => wait(async move { words::nodes_of(&inner.vitals_of_all().await) }),
            Command::Show(name) => wait(async move { words::picture(&inner.show(&name).await) }),
            Command::Revoke { name, fence } => wait(async move {
                match inner.force_release(&name, fence).await {
                    Ok(()) => Reply::OK,
                    Err(error) => Reply::Error(format!("ERR {error}")),
                }
            }),
            Command::Evict(node) => Step::Say(evict(&inner, &node)),
            Command::Shutdown { grace_ms } => {
                let leaves = Arc::clone(&inner);
                inner.spawn(async move { leaves.leave(Duration::from_millis(grace_ms)).await });
                Step::Say(Reply::OK)
            }
            Command::Hello(hello) => Step::Say(self.hello(hello)),
            Command::Auth { password } => Step::Say(self.authenticate(&password)),
            Command::Client(command) => Step::Say(self.client(command)),
            Command::Commands { count: true } => Step::Say(Reply::Integer(0)),
            // Clients that want to know more than that ask for documentation, and do without.
            Command::Commands { count: false } => Step::Say(Reply::Array(Vec::new())),
            Command::Info => Step::Say(Reply::text(info(&inner))),
            Command::Select => Step::Say(Reply::OK),
            Command::Reset => {
                self.version = Version::Two;
                self.may_ask = self.password.is_none();
                self.seat.name.lock().clear();
                *self.seat.setter.lock() = None;
                self.observing.clear();
                Step::Say(Reply::Simple("RESET"))
            }
            Command::Quit => Step::Quit(Reply::OK),
            Command::Leader(name) => self.leader(name),
            Command::Observe(name) => Step::Say(self.observe(name)),
            Command::Unobserve(name) => Step::Say(self.unobserve(&name)),
            Command::Resize { name, units } => self.resize(name, units),
            Command::Take(_) | Command::Release { .. } | Command::Keeping(_) | Command::Extend { .. } => {
                unreachable!("the connection has done it")
            }
        }
    }
}

fn wait(future: impl Future<Output = Reply> + Send + 'static) -> Step {
    Step::Wait(Box::pin(async move { Outcome::Said(future.await) }))
}

impl Connection {
    fn hello(&mut self, hello: Hello) -> Reply {
        if let Some(password) = &hello.password
            && let Reply::Error(error) = self.authenticate(password)
        {
            return Reply::Error(error);
        }
        if !self.may_ask {
            return Reply::Error("NOAUTH authentication is required; say HELLO 3 AUTH default password".into());
        }
        if let Some(name) = hello.name
            && let Reply::Error(error) = self.call_itself(name)
        {
            return Reply::Error(error);
        }
        self.version = hello.version.unwrap_or(self.version);
        Reply::Map(vec![
            ("server", Reply::text("vez")),
            ("version", Reply::text(VERSION)),
            ("proto", Reply::Integer(if self.version == Version::Three { 3 } else { 2 })),
            ("id", Reply::integer(self.number)),
            ("cluster", words::cluster(self.seat.inner.engine.look(vez_peer::Peer::cluster).flatten())),
            ("mode", Reply::text("standalone")),
            ("role", Reply::text("master")),
            ("modules", Reply::Array(Vec::new())),
        ])
    }

    fn authenticate(&mut self, said: &[u8]) -> Reply {
        let Some(password) = &self.password else {
            return Reply::Error("NOPASSWORD this node wants no password; leave AUTH out".into());
        };
        if !is_same(password.as_bytes(), said) {
            return Reply::Error("WRONGPASS that is not the password of this node".into());
        }
        self.may_ask = true;
        Reply::OK
    }

    fn call_itself(&mut self, name: Vec<u8>) -> Reply {
        if name.len() > LONGEST_NAME {
            return Reply::Error(format!("ERR a client calls itself by at most {LONGEST_NAME} bytes"));
        }
        *self.seat.name.lock() = name;
        *self.seat.setter.lock() = None;
        Reply::OK
    }

    fn client(&mut self, command: ClientCommand) -> Reply {
        match command {
            ClientCommand::Id => Reply::integer(self.number),
            ClientCommand::GetName => Reply::Bytes(self.seat.name.lock().clone()),
            ClientCommand::SetName(name) => self.call_itself(name),
            ClientCommand::Info => {
                let name = self.seat.name.lock().escape_ascii().to_string();
                Reply::text(format!("id={} addr={} name={name} lib-name=\n", self.number, self.seat.from))
            }
            ClientCommand::Noted => Reply::OK,
        }
    }
}

/// Takes as long wherever they differ, so that nobody learns where.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differ = one.iter().zip(other).fold(0, |differ, (one, other)| differ | (one ^ other));
    one.len() == other.len() && differ == 0
}

fn evict(inner: &Inner, node: &str) -> Reply {
    let members = inner.engine.look(|peer| peer.status().members).unwrap_or_default();
    let named = |id: vez_peer::identity::MemberId| identity::number(id).to_string() == node || id.to_string() == node;
    let found: Vec<_> = members.iter().map(|member| member.id).filter(|id| named(*id)).collect();
    match found[..] {
        [id] => {
            inner.engine.happen(vez_peer::peer::Input::Evict(id));
            Reply::OK
        }
        [] => {
            let there: Vec<String> = members.iter().map(|member| identity::number(member.id).to_string()).collect();
            Reply::Error(format!("ERR there is no node {node}; there are {}", there.join(", ")))
        }
        _ => {
            let ids: Vec<String> = found.iter().map(ToString::to_string).collect();
            Reply::Error(format!("ERR several are called {node}; take one of {}", ids.join(", ")))
        }
    }
}

/// In the form that clients of Redis know.
fn info(inner: &Inner) -> String {
    let mut text = format!("# Server\r\nvez_version:{VERSION}\r\nredis_mode:standalone\r\n");
    if let Some(status) = inner.engine.look(vez_peer::Peer::status) {
        let (state, _, _) = words::standing(&status.standing, crate::clock::now());
        let lines = [
            ("node", identity::number(status.id).to_string()),
            ("state", state.to_owned()),
            ("view", status.view.unwrap_or(0).to_string()),
            ("members", status.members.len().to_string()),
            ("sessions", status.sessions.to_string()),
            ("names", status.names.to_string()),
            ("used_names", status.used_names.to_string()),
        ];
        for (name, value) in lines {
            let _ = write!(text, "{name}:{value}\r\n"); // A String takes everything.
        }
    }
    text.push_str("\r\n# Replication\r\nrole:master\r\n");
    text
}
