//! `vez evict`

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Result;
use vez::ClientError;

use super::{
    remote::Remote,
    tell::{list, text},
    time,
};
use crate::output::tell;

const PAUSE: Duration = Duration::from_millis(100);

/// Make a node go that does not go by itself.
#[derive(clap::Args)]
#[command(
    after_help = "The lease of the node is not renewed any more. When it is over, its clients have lost what they held, and others get it. A node that is dead goes by itself, and needs \
no eviction. One that still runs joins again, and holds nothing: end it to keep it out.

Examples:
  vez evict 2

Exit code: 0 it is gone, 1 it is not, or there is no such node, 2 could not ask."
)]
pub(crate) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Which: its number, or its id.
    node: String,
    /// How long to wait until it is gone.
    #[arg(long, value_name = "TIME", value_parser = time::parse, default_value = "60s")]
    wait: Duration,
}

impl Args {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let client = self.remote.connect().await?;
        let status = client.call(&[b"STATUS"]).await?;
        let members = list(&status, "members");
        let named =
            members.iter().find(|member| text(&member["node"]) == self.node || text(&member["id"]) == self.node);
        let since = named.map(|member| member["since_view"].clone());
        let (begin, mut told) = (Instant::now(), false);
        // Said again and again: whoever leads may change, and the new one knows nothing of it.
        while begin.elapsed() < self.wait {
            match client.call(&[b"EVICT", self.node.as_bytes()]).await {
                Ok(_) => {}
                // The node that is asked is no member now: it will know again.
                Err(error) if error.is_temporary() => {
                    if !told {
                        tell(format_args!("vez: {error}; still waiting"));
                    }
                    told = true;
                }
                Err(ClientError::Refused { .. }) if since.is_some() && begin.elapsed() > PAUSE => {
                    return Ok(ExitCode::SUCCESS);
                }
                Err(ClientError::Refused { why, .. }) => {
                    tell(format_args!("vez: {why}"));
                    return Ok(ExitCode::FAILURE);
                }
                Err(error) => return Err(error.into()),
            }
            tokio::time::sleep(PAUSE).await;
            let status = client.call(&[b"STATUS"]).await?;
            let same = |member: &&serde_json::Value| {
                (text(&member["node"]) == self.node || text(&member["id"]) == self.node)
                    && Some(&member["since_view"]) == since.as_ref()
            };
            // One that begins anew knows of no members yet.
            let members = list(&status, "members");
            if !members.is_empty() && members.iter().find(same).is_none() {
                tell(format_args!(
                    "vez: node {} has gone; if it still runs, it joins again, and holds nothing",
                    self.node
                ));
                return Ok(ExitCode::SUCCESS);
            }
        }
        tell(format_args!("vez: node {} is still there after {}", self.node, humantime::format_duration(self.wait)));
        Ok(ExitCode::FAILURE)
    }
}
