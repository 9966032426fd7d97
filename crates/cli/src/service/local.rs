//! A node that nobody has started: `vez lock` starts one, where nothing is said about any.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use vez::{Client, ClientError};

use super::remote::Target;
use crate::output::tell;

const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

/// The folder of the user.
pub(crate) fn folder() -> Result<PathBuf> {
    let folders = directories::ProjectDirs::from("", "", "vez");
    let folders = folders.context("this user has no home folder; say --data DIR")?;
    Ok(folders.data_local_dir().to_owned())
}

/// A client of the node of this machine, which is started if it is not there. Of many who want that at once, one does it.
pub(crate) async fn client(target: &Target) -> Result<Client> {
    match target.connect().await {
        Err(error) if is_nobody_there(&error) => {}
        connected => return connected,
    }
    let folder = folder()?.join("local");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let lock = File::create(folder.join("start.lock")).context("cannot make a file in the folder of the user")?;
    lock.lock().context("cannot lock a file in the folder of the user")?;
    // Somebody may have started it meanwhile.
    match target.connect().await {
        Err(error) if is_nobody_there(&error) => {}
        connected => return connected,
    }
    let log = folder.join("node.log");
    let out = File::options().create(true).append(true).open(&log).context("cannot write the log of the node")?;
    let vez = std::env::current_exe().context("cannot find this very program")?;
    let mut node = Command::new(vez)
        .args(["node", "--id", "1", "--bootstrap", "--detach", "--data"])
        .arg(&folder)
        .current_dir(&folder)
        .env_remove("VEZ_CONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(out)
        .spawn()
        .context("cannot start a node")?;
    let begin = Instant::now();
    let client = loop {
        match target.connect().await {
            Err(error) if is_nobody_there(&error) => {}
            connected => break connected?,
        }
        if let Some(status) = node.try_wait().context("cannot look after the node")? {
            bail!("a local node was started and has ended ({status}); {} says why", log.display());
        }
        if begin.elapsed() > PATIENCE {
            bail!("a local node was started and does not answer; {} may say why", log.display());
        }
        tokio::time::sleep(PAUSE).await;
    };
    tell(format_args!(
        "vez: no node was there: started one (process {}, data in {}); `vez leave` ends it",
        node.id(),
        folder.display()
    ));
    Ok(client)
}

fn is_nobody_there(error: &anyhow::Error) -> bool {
    let client = error.chain().find_map(|cause| cause.downcast_ref::<ClientError>());
    matches!(client, Some(ClientError::Connect(_, error)) if error.kind() == std::io::ErrorKind::ConnectionRefused)
}
