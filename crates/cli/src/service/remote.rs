//! Where a node is, for those who want something of it.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::{Result, anyhow, bail};
use vez::{Client, ClientError};

use super::config::{self, Config, FILE};

/// Where clients find a node that nothing is said about.
pub(crate) const DEFAULT_CLIENT: &str = "127.0.0.1:7400";

/// Which node.
#[derive(clap::Args)]
pub(crate) struct Remote {
    /// Where the node is [default: addr or client in vez.toml, or 127.0.0.1:7400]; several, with commas between them, are tried in turn.
    #[arg(long, env = "VEZ_ADDR", value_name = "ADDR", global = true)]
    addr: Option<String>,
    /// The configuration [default: vez.toml, if it is here].
    #[arg(long, env = "VEZ_CONFIG", value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// A file with the password of the node [or the password itself in VEZ_PASSWORD].
    #[arg(long, value_name = "FILE", global = true)]
    password_file: Option<PathBuf>,
}

/// Where a node is.
pub(crate) struct Target {
    pub addr: String,
    /// Whether somebody said so.
    pub given: bool,
    pub password: Option<String>,
    /// The file that it comes from.
    pub password_file: Option<PathBuf>,
}

impl Remote {
    pub(crate) fn target(&self) -> Result<Target> {
        let config = Config::read(self.config.as_deref())?;
        let password_file = self.password_file.clone().or(config.password_file);
        let password = config::password(password_file.as_deref())?;
        let said = self.addr.clone().filter(|addr| !addr.is_empty());
        // Whatever folder one happens to be in may hold a vez.toml.
        let is_named = said.is_some() || self.config.is_some();
        let given = said.or(config.addr).or(config.client);
        if let Some(addr) = &given
            && password.is_some()
            && !is_named
            && !is_here(addr)
        {
            bail!(
                "{FILE} in this folder says that the node is at {addr}, and the password is not sent there unless you say so: with --addr \
                 or VEZ_ADDR, or --config {FILE}"
            );
        }
        Ok(Target {
            given: given.is_some(),
            addr: given.unwrap_or_else(|| DEFAULT_CLIENT.to_owned()),
            password,
            password_file,
        })
    }

    /// A client of that node.
    pub(crate) async fn connect(&self) -> Result<Client> {
        let target = self.target()?;
        target.connect().await.map_err(|error| {
            let hint = if target.given { "start one there" } else { "start one, or say where one is with --addr" };
            let hint = if is_nobody_there(&error) { format!("; {hint}: `vez up`, `vez node`") } else { String::new() };
            anyhow!("{error:#}{hint}")
        })
    }
}

impl Target {
    pub(crate) async fn connect(&self) -> Result<Client> {
        self.connect_as(None).await
    }

    /// The same, with a name that others see.
    pub(crate) async fn connect_as(&self, name: Option<String>) -> Result<Client> {
        match Client::connect_as(&self.addr, self.password.clone(), name).await {
            Ok(client) => Ok(client),
            Err(ClientError::Connect(at, error)) if error.kind() == std::io::ErrorKind::InvalidInput => {
                bail!("{at} is no address; write HOST:PORT, such as {DEFAULT_CLIENT}")
            }
            Err(ClientError::Refused { code, .. }) if code == "NOAUTH" => {
                bail!(
                    "the node at {} wants a password; say --password-file FILE, or put it into VEZ_PASSWORD",
                    self.addr
                )
            }
            Err(ClientError::Refused { code, .. }) if code == "NOPASSWORD" => {
                bail!("the node at {} wants no password; leave --password-file out, and unset VEZ_PASSWORD", self.addr)
            }
            Err(ClientError::Refused { code, .. }) if code == "WRONGPASS" => {
                bail!("the node at {} has another password", self.addr)
            }
            Err(error @ ClientError::Strange(_)) => bail!("{}: {error}", self.addr),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether all these addresses are of this very machine, whatever a name server says.
fn is_here(addresses: &str) -> bool {
    let host = |address: &str| address.trim().parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback());
    addresses.split(',').all(|address| host(address) || address.trim().starts_with("localhost:"))
}

/// Whether nothing listens there.
pub(crate) fn is_nobody_there(error: &anyhow::Error) -> bool {
    let client = error.chain().find_map(|cause| cause.downcast_ref::<ClientError>());
    matches!(client, Some(ClientError::Connect(_, error)) if error.kind() == std::io::ErrorKind::ConnectionRefused)
}
