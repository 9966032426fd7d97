//! `vez.toml`: what can be said on the command line of a node, and where clients find it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, ensure};
use serde::Deserialize;

/// Where it is looked for.
pub(crate) const FILE: &str = "vez.toml";

/// The variable that may have the password.
pub(crate) const PASSWORD: &str = "VEZ_PASSWORD";

/// What stands in `vez.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Config {
    /// The number of the node.
    pub id: Option<u16>,
    /// Its folder.
    pub data: Option<PathBuf>,
    /// Where other nodes reach it.
    pub peer: Option<String>,
    /// Where other nodes are told to reach it.
    pub advertise: Option<String>,
    /// Where clients reach it.
    pub client: Option<String>,
    /// Where metrics and status can be had.
    pub http: Option<String>,
    /// Whether it begins a new cluster.
    pub bootstrap: bool,
    /// Whose cluster it joins.
    pub join: Vec<String>,
    /// How long those who hold something have when it leaves.
    #[serde(deserialize_with = "duration")]
    pub grace: Option<std::time::Duration>,
    /// How long a membership lasts.
    #[serde(deserialize_with = "duration")]
    pub lease: Option<std::time::Duration>,
    /// How long a lock by SET is kept at most.
    #[serde(deserialize_with = "duration")]
    pub compat_ttl: Option<std::time::Duration>,
    /// Whether other machines may reach it, although nothing is encrypted.
    pub insecure: bool,
    /// A file with the password that clients have to say.
    pub password_file: Option<PathBuf>,
    /// Where clients find a node, if it is not at `client`.
    pub addr: Option<String>,
}

fn duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<std::time::Duration>, D::Error> {
    /// `3` is as good as `"3s"`.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Time {
        Seconds(f64),
        Text(String),
    }
    let text = match Time::deserialize(deserializer)? {
        Time::Seconds(seconds) => seconds.to_string(),
        Time::Text(text) => text,
    };
    super::time::parse(&text).map(Some).map_err(serde::de::Error::custom)
}

impl Config {
    /// The file that was named, or the one that is here; without one, nothing.
    pub(crate) fn read(named: Option<&Path>) -> Result<Self> {
        let path = named.unwrap_or(Path::new(FILE));
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => return Ok(Self::default()),
            Err(error) => return Err(anyhow!(error).context(format!("cannot read {}", path.display()))),
        };
        toml::from_str(&text).with_context(|| format!("{} cannot be understood", path.display()))
    }
}

/// The password that clients have to say: from a file, or from the environment.
pub(crate) fn password(file: Option<&Path>) -> Result<Option<String>> {
    let Some(file) = file else {
        let Some(password) = std::env::var_os(PASSWORD) else { return Ok(None) };
        let password =
            password.into_string().map_err(|_| anyhow!("VEZ_PASSWORD is no UTF-8; choose another password"))?;
        ensure!(!password.is_empty(), "VEZ_PASSWORD is empty; put the password in it, or unset it");
        return Ok(Some(password));
    };
    let text = fs::read_to_string(file).with_context(|| format!("cannot read the password in {}", file.display()))?;
    let password = text.trim_end_matches(['\r', '\n']).to_owned();
    ensure!(
        !password.is_empty(),
        "there is no password in {}; write one, or leave --password-file out",
        file.display()
    );
    Ok(Some(password))
}
