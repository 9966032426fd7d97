//! A node that nobody has started: `vez lock`, and whatever else runs a command, starts one where nothing is said about any.

use std::{
    ffi::OsString,
    fs::{self, File, TryLockError},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
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

/// The folder of the cluster that this machine has for itself: that of `vez up`, whose first node `vez lock` starts.
pub(crate) fn cluster() -> Result<PathBuf> {
    Ok(folder()?.join("up"))
}

/// Where is written that this user has run nodes.
const NOTE: &str = "nodes";

/// Notes that this user runs a node, with its data there. Where one was, wherever clients reach it, `vez lock` does not start another
/// of its own: it would be a cluster of its own, and know nothing of the locks of the first; or not have a majority of the votes.
pub(crate) fn note_node(data: &Path) {
    let Ok(folder) = folder() else { return }; // A user without a home has no local node either.
    let data = data.canonicalize().unwrap_or_else(|_| data.to_owned());
    let mut known = nodes(&folder);
    if known.contains(&data) {
        return;
    }
    known.push(data);
    let lines: Vec<&[u8]> = known.iter().map(|data| data.as_os_str().as_bytes()).collect();
    // Users that services run as have often no home that they may write to; then `vez lock` cannot start a node there either.
    let _ = fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join(NOTE), lines.join(&b'\n')));
}

/// Where nodes of this user have their data, if it is still there.
fn nodes(folder: &Path) -> Vec<PathBuf> {
    let note = fs::read(folder.join(NOTE)).unwrap_or_default();
    let lines = note.split(|byte| *byte == b'\n').map(|line| PathBuf::from(OsString::from_vec(line.to_vec())));
    lines.filter(|data| data.exists()).collect()
}

fn refuse_where_one_was() -> Result<()> {
    let up = cluster()?;
    // One of several has no majority alone.
    if up.join("2").exists() {
        bail!(
            "no node answers at {DEFAULT_CLIENT}, and a cluster was run on this machine with `vez up`; start it again, or say where a \
             node is with --addr"
        );
    }
    let up = up.canonicalize().ok();
    if let Some(data) = nodes(&folder()?).into_iter().find(|data| Some(data) != up.as_ref()) {
        bail!(
            "no node answers at {DEFAULT_CLIENT}, and one was run by this user, with its data in {}; start it again, or say where one \
             is with --addr or VEZ_ADDR",
            data.display()
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
    let folder = cluster()?.join("1");
    fs::create_dir_all(&folder).with_context(|| {
        format!(
            "no node answers at {DEFAULT_CLIENT}; say where one is with --addr (one could be started, but the folder {} cannot be made)",
            folder.display()
        )
    })?;
    let lock = File::create(folder.join("start.lock")).context("cannot make a file in the folder of the user")?;
    while let Err(error) = lock.try_lock() {
        if let TryLockError::Error(error) = error {
            bail!("cannot lock a file in the folder of the user: {error}");
        }
        tokio::time::sleep(PAUSE).await; // Somebody else is about to start it.
    }
    // Somebody may have started it meanwhile.
    match connect().await {
        Err(error) if is_nobody_there(&error) => {}
        connected => return connected,
    }
    let log = folder.join("node.log");
    let out = File::options().create(true).append(true).open(&log).context("cannot write the log of the node")?;
    let vez = std::env::current_exe().context("cannot find this very program")?;
    let mut node = Command::new(vez);
    node.args(["node", "--id", "1", "--bootstrap", "--detach", "--data"]).arg(&folder);
    if let Some(file) = &target.password_file {
        let file = file.canonicalize().with_context(|| format!("cannot find {}", file.display()))?;
        node.arg("--password-file").arg(file);
    }
    let mut node = node
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
        if let Some(status) = ended(&mut node)? {
            bail!("a local node was started and has ended ({status}); {} says why", log.display());
        }
        if begin.elapsed() > PATIENCE {
            bail!("a local node was started and does not answer; {} may say why", log.display());
        }
        tokio::time::sleep(PAUSE).await;
    };
    if ended(&mut node)?.is_some() {
        return Ok(client); // Somebody else was faster, with a node of its own.
    }
    tell(format_args!(
        "vez: no node was there: started one (process {}, data in {}); `vez leave` ends it",
        node.id(),
        folder.display()
    ));
    Ok(client)
}

fn ended(node: &mut Child) -> Result<Option<ExitStatus>> {
    node.try_wait().context("cannot look after the node")
}
