//! A node inside a service of one's own: a cluster of one, which others may join.
//!
//! ```text
//! cargo run -p vez --example embedded
//! ```

use std::{io::Write, path::Path, time::Duration};

use vez::Node;

/// Takes a lock in process, and says what is known of it.
///
/// # Errors
/// If the node cannot be started, or the lock cannot be had.
pub(crate) async fn run(folder: &Path, out: &mut (impl Write + Send)) -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::builder(1, folder.join("vez")).bootstrap().lease(Duration::from_secs(3)).start().await?;

    let guard = node.lock("orders/42").await?;
    writeln!(out, "{} is ours", guard.name())?;
    writeln!(
        out,
        "for less than a lease, unless it is renewed: {}",
        guard.deadline().remaining() <= Duration::from_secs(3)
    )?;
    let first = guard.fence();

    // Somebody else would have to wait, or not.
    let busy = node.lock("orders/42").now().await?.is_none();
    let waited = node.lock("orders/42").within(Duration::from_millis(10)).await?.is_none();
    writeln!(out, "others find it busy: {busy}, also after a while: {waited}")?;

    // Work, but not longer than it is ours.
    tokio::select! {
        () = work() => guard.release().await?,
        () = guard.danger() => writeln!(out, "it will soon be lost: time to stop")?,
        () = guard.lost() => writeln!(out, "it is lost: somebody else may have it")?,
    }

    let again = node.lock("orders/42").await?;
    writeln!(out, "and the next has a larger fence: {}", again.fence() > first)?;
    drop(again); // Which releases it.

    node.leave(Duration::from_secs(1)).await;
    Ok(())
}

async fn work() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

#[allow(dead_code, reason = "the tests call what is above")]
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    run(folder.path(), &mut std::io::stdout()).await
}
