//! A node that nobody has started: `vez lock` starts one, where nothing is said about any.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use vez::Client;

use super::remote::{DEFAULT_CLIENT, Target, is_nobody_there};
use crate::output::tell;

const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

/// The folder of the user.
pub(crate) fn folder() -> Result<PathBuf> {
    let folders = directories::ProjectDirs::from("", "", "vez");
    let folders = folders.context("this user has no home folder; say --data DIR")?;
    Ok(folders.data_local_dir().to_owned())
}

/// Where is written that this user has run nodes.
const NOTE: &str = "nodes";

/// Notes that this user runs a node, with its data there. Where one was, `vez lock` does not start another of its own: it would be
/// a cluster of its own, and know nothing of the locks of the first.
pub(crate) fn note_node(data: &str) -> Result<()> {
    let Ok(folder) = folder() else { return Ok(()) }; // A user without a home has no local node either.
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    fs::write(folder.join(NOTE), format!("{data}\n")).context("cannot write to the folder of the user")
}

fn refuse_where_one_was() -> Result<()> {
    let note = folder()?.join(NOTE);
    if let Ok(data) = fs::read_to_string(&note) {
        bail!(
            "no node answers at {DEFAULT_CLIENT}, and one was run on this machine, with its data in {}; start it again, or say where one \
             is with --addr (or remove {}, and `vez lock` starts one of its own)",
            data.trim_end(),
            note.display()
        );
    }
    Ok(())
}

/// A client of the node of this machine, which is started if it is not there. Of many who want that at once, one does it.
pub(crate) async fn client(target: &Target, name: &str) -> Result<Client> {
    let connect = || target.connect_as(Some(name.to_owned()));
    match connect().await {
        Err(error) if is_nobody_there(&error) => {}
        connected => return connected,
    }
    refuse_where_one_was()?;
    let folder = folder()?.join("local");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let lock = File::create(folder.join("start.lock")).context("cannot make a file in the folder of the user")?;
    lock.lock().context("cannot lock a file in the folder of the user")?;
    // Somebody may have started it meanwhile.
    match connect().await {
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
        match connect().await {
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
