//! `vez lab merge`

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use vez_lab::study::{Study, table::Row};

use super::{
    parts::{self, Head},
    sweep::conclude,
};

/// Put the shards of a sweep together.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  vez lab merge locks                          # the shards that were written there
  vez lab merge from-a from-b --out locks      # those of several machines

What comes out is what vez lab sweep would have written without --shard, byte for byte. The parts
stay where they are. Plots and claims are those of the file when the shards were run; to judge
anew, run vez lab sweep FILE --out DIRECTORY on what was merged, which simulates nothing.")]
pub(crate) struct Args {
    /// The directories that the shards were written to.
    #[arg(required = true)]
    directories: Vec<PathBuf>,
    /// Where the report goes; by default the first of them.
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Print one JSON object, as vez lab reproduce does.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let parts = self.parts()?;
        let Some((head, ..)) = parts.first() else {
            bail!(
                "no shard was written to {}; vez lab sweep FILE --shard 1/2 writes one",
                self.directories[0].display()
            );
        };
        let (head, n) = (head.clone(), head.shard.1);
        let same = |other: &Head| Head { shard: head.shard, ..other.clone() } == head && other.shard.1 == n;
        if let Some((.., path)) = parts.iter().find(|(other, ..)| !same(other)) {
            let fix =
                "merge one at a time, and remove the parts of the other, or run them again if the file has changed";
            bail!(
                "{} and {} are not of one study, seed and number of shards; {fix}",
                parts[0].2.display(),
                path.display()
            );
        }
        let there: BTreeSet<usize> = parts.iter().map(|(head, ..)| head.shard.0).collect();
        let missing: Vec<String> =
            (1..=n).filter(|i| !there.contains(i)).take(10).map(|i| format!("{i}/{n}")).collect();
        if !missing.is_empty() {
            bail!("missing: shard {}; run it, or name the directory that it was written to", missing.join(", "));
        }
        let study = Study::parse(&head.study)?;
        let prepared = study.prepare(&head.name, head.options())?;
        let mut done = BTreeMap::new();
        for (Head { shard, .. }, rows, path) in parts {
            let share = prepared.work.shard(shard);
            let fix = "it was written by another sweep; remove it, and run the shard again";
            let rows = parts::by_name(&share, rows, &path, fix)?;
            if rows.len() < share.len() {
                let (i, n, asked) = (shard.0, shard.1, share.len());
                bail!(
                    "shard {i}/{n} is not finished: {} of {asked} runs are in {}; run it again",
                    rows.len(),
                    path.display()
                );
            }
            done.extend(rows);
        }
        // Everything is there: nothing is simulated.
        let rows = prepared.work.run(&done, &|_| Ok(()), &|_| {})?;
        conclude(study, prepared, &head, rows, self.out.as_ref().unwrap_or(&self.directories[0]), self.json)
    }

    /// All parts, in the order of their shards.
    fn parts(&self) -> Result<Vec<(Head, Vec<Row>, PathBuf)>> {
        let mut parts = Vec::new();
        for directory in &self.directories {
            let directory = directory.join("parts");
            let cannot = || format!("cannot read {}; no shard was written there", directory.display());
            for file in fs::read_dir(&directory).with_context(cannot)? {
                let path = file.with_context(cannot)?.path();
                if path.extension().is_some_and(|extension| extension == "jsonl") {
                    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                    let (head, rows) = parts::parse(&bytes).with_context(|| path.display().to_string())?;
                    parts.push((head, rows, path));
                }
            }
        }
        parts.sort_by(|(one, _, a), (other, _, b)| one.shard.cmp(&other.shard).then(a.cmp(b)));
        Ok(parts)
    }
}
