//! `vez top`

mod ask;
mod cells;
pub mod draw;
mod live;
pub mod picture;
mod popup;
mod print;
pub mod state;
mod tables;

use std::{
    io::{IsTerminal, stdout},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Result, ensure};

use self::{
    ask::Asker,
    picture::{Picture, Watch},
};
use super::{
    remote::{self, Remote},
    show,
    stop::Stop,
    tell, time,
};

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3600);

/// Watch the nodes and the busiest names, live.
#[derive(clap::Args)]
#[command(
    after_help = "Nodes: clients that are connected (vez top itself is two of those of the node that it asks), names in use, grants a second, which part of them at once, since the node \
had the token or gave a part away itself, and tokens passed on to other nodes a second. Names: those that are held or waited for, and those that are granted most, by a \
sample: a name that has become quiet takes a while to disappear.

Keys:
  q, Ctrl-C      quit; Esc drops the filter first
  ↑ ↓, j k       choose a name
  Enter          show who holds it, who waits, and why; Esc closes that
  s              sort by waiting, grants, longest wait, name
  /              only names that begin so
  p              pause, and go on

Examples:
  vez top
  vez top orders/ --addr 10.0.0.1:7400,10.0.0.2:7400 --interval 0.5
  vez top --once
  vez top --json | jq '.names[] | select(.waiters > 0).name'

Exit code: 0 it was ended, or has printed; 2 could not ask."
)]
pub(crate) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Only names that begin so.
    #[arg(default_value = "")]
    prefix: String,
    /// How often it looks.
    #[arg(long, value_name = "TIME", value_parser = time::parse, default_value = "1s")]
    interval: Duration,
    /// Print what is seen once, after one interval.
    #[arg(long)]
    once: bool,
    /// Print that as an object.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        ensure!(
            (SHORTEST..=LONGEST).contains(&self.interval),
            "interval is {}; take 0.1 s to 1 h, such as --interval 0.5",
            humantime::format_duration(self.interval)
        );
        let is_printed = self.once || self.json;
        ensure!(
            is_printed || stdout().is_terminal(),
            "the output is no terminal; say --once for text, or --json for an object"
        );
        let asker = Asker::new(&self.remote).await?;
        if is_printed {
            let picture = self.picture(&asker).await?;
            crate::output::print(&if self.json { print::json(&picture)? } else { print::words(picture) })?;
        } else {
            live::run(&asker, self.interval, self.prefix).await?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What is seen, and what was done in one interval.
    async fn picture(&self, asker: &Asker<'_>) -> Result<Picture> {
        let mut watch = Watch::default();
        watch.look(&asker.ask(&self.prefix).await?);
        tokio::time::sleep(self.interval).await;
        let mut picture = watch.look(&asker.ask(&self.prefix).await?);
        picture.keep(&self.prefix);
        Ok(picture)
    }
}
