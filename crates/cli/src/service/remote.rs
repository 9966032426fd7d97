//! Where a node is, for those who want something of it.

use std::path::PathBuf;

use anyhow::Result;
use vez::{Client, ClientError};

use super::config::{self, Config};

/// Where clients find a node that nothing is said about.
pub(crate) const DEFAULT_CLIENT: &str = "127.0.0.1:7400";

/// Which node.
#[derive(clap::Args)]
pub(crate) struct Remote {
    /// Where the node is [default: addr or client in vez.toml, or 127.0.0.1:7400].
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
}

impl Remote {
    pub(crate) fn target(&self) -> Result<Target> {
        let config = Config::read(self.config.as_deref())?;
        let file = self.password_file.clone().or(config.password_file);
        let given = self.addr.clone().or(config.addr).or(config.client);
        Ok(Target {
            given: given.is_some(),
            addr: given.unwrap_or_else(|| DEFAULT_CLIENT.to_owned()),
            password: config::password(file.as_deref())?,
        })
    }

    /// A client of that node.
    pub(crate) async fn connect(&self) -> Result<Client> {
        self.target()?.connect().await
    }
}

impl Target {
    pub(crate) async fn connect(&self) -> Result<Client> {
        match Client::connect_with(&self.addr, self.password.clone()).await {
            Ok(client) => Ok(client),
            Err(error @ ClientError::Connect(..)) if !self.given => Err(anyhow::Error::new(error)
                .context("start one with `vez up` or `vez node`, or say where one is with --addr")),
            Err(error) => Err(error.into()),
        }
    }
}
