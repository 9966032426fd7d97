//! `vez lab sweep`

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    str::FromStr,
};

use anyhow::{Context, Result};
use vez_lab::study::{
    Heading, Prepared, Study,
    sweep::Options,
    table::{FAILURE, Table},
};

use super::{
    parts::{self, FORMAT, Head, MOST_SHARDS, Part},
    report,
};
use crate::output::{progress, tell};

/// Run a study of your own: a grid of algorithms, loads and systems.
#[derive(clap::Args)]
#[command(after_help = "The file is TOML; docs/studies.md describes it. A small one:

  title = \"Two locks under load\"

  [[sweep]]
  algorithm = [\"fila\", \"nxr\"]
  nodes = [7, 31]
  rate = [0.05, 0.2, 0.8]
  runs = 5

  [[plot]]
  title = \"Messages an entry, {} nodes\"
  each = \"nodes\"
  x = \"rate\"
  y = \"messages\"

Examples:
  vez lab sweep locks.toml               # writes locks/index.html, the plots and the data
  vez lab sweep locks.toml --shard 3/8   # the third of eight shares, as one of a job array
  vez lab merge locks                    # puts the shares together

An interrupted sweep goes on where it was when the same command is given again. Values and
runs that were added to the file are simulated; what is there already is not simulated again,
so a plot or a claim can be changed at any time.

In a job array:
  Slurm, --array=1-8    --shard $SLURM_ARRAY_TASK_ID/8
  Kubernetes, indexed   --shard $((JOB_COMPLETION_INDEX + 1))/8
  GNU parallel          parallel vez lab sweep locks.toml --shard {}/8 ::: {1..8}

Exit code: 0 measured, 1 a law was broken in a simulation, or nothing moved any more, 2 could
not run.")]
pub(crate) struct Args {
    /// The file of the study.
    file: PathBuf,
    /// Where the report goes: a directory, which is made if need be; by default the name of the file without its ending.
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Only the i-th of n shares. All of them together are the whole, in any order, on any machines.
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    shard: Shard,
    /// Begin anew, whatever was measured before.
    #[arg(long)]
    fresh: bool,
    /// Simulate less, as the file says what that is.
    #[arg(long)]
    quick: bool,
    /// Where all randomness comes from; by default what the file says, or 1.
    #[arg(long)]
    seed: Option<u64>,
    /// Print one JSON object, as vez lab reproduce does.
    #[arg(long)]
    json: bool,
}

/// One of several shares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shard(usize, usize);

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        let good = parts.filter(|(i, n)| (1..=*n).contains(i) && *n <= MOST_SHARDS);
        good.map(|(i, n)| Self(i, n)).ok_or_else(|| format!("\"{text}\" is no share; give one from 1/8 to 8/8, say"))
    }
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let text = fs::read_to_string(&self.file).with_context(|| format!("cannot read {}", self.file.display()))?;
        let study = Study::parse(&text).with_context(|| self.file.display().to_string())?;
        let name = self.file.file_stem().map_or("study".into(), |stem| stem.to_string_lossy().into_owned());
        let out = self.out();
        let seed = self.seed.or(study.seed).unwrap_or(1);
        let head = Head {
            format: FORMAT.to_owned(),
            name: name.clone(),
            shard: (self.shard.0, self.shard.1),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            quick: self.quick,
            seed,
            study: text,
        };
        let prepared = study.prepare(&name, head.options()).with_context(|| self.file.display().to_string())?;
        let whole = &prepared.work;
        let fix = "take another --out, or --fresh to begin anew";
        let table = out.join("data").join(format!("{name}.csv"));
        let old = if self.fresh { Vec::new() } else { parts::finished(&table)? };
        let mut done = parts::by_name(whole, old, &table, fix)?;
        let (part, rows) = Part::open(parts::path(&out, &name, head.shard), &head, self.fresh)?;
        let in_part = parts::by_name(whole, rows, part.path(), fix)?;
        let work = whole.shard(head.shard);
        // A share is merged without the table, so what it takes from there is in its part.
        for name in work.names().filter(|name| head.shard.1 > 1 && !in_part.contains_key(name)) {
            if let Some(row) = done.get(&name) {
                part.keep(row).with_context(|| format!("cannot write {}", part.path().display()))?;
            }
        }
        done.extend(in_part);
        let there = work.names().filter(|name| done.contains_key(name)).count();
        if there > 0 {
            tell(format_args!("{there} of {} runs are there already", work.len()));
        }
        let bar = progress(work.entries(&done), "entries");
        let rows = work.run(&done, &|row| part.keep(row), &|entries| bar.inc(entries));
        bar.finish_and_clear();
        let rows = rows.with_context(|| format!("cannot write {}", part.path().display()))?;
        if head.shard.1 > 1 {
            let (i, n) = head.shard;
            let (path, out) = (part.path().display(), out.display());
            tell(format_args!("shard {i}/{n}: {} runs in {path}; vez lab merge {out} when all are there", work.len()));
            let failed = rows.rows.iter().any(|row| row.0.contains_key(FAILURE));
            return Ok(ExitCode::from(u8::from(failed)));
        }
        // What was simulated is kept, whatever is wrong with plots and claims.
        report::put(&table, &rows.csv())?;
        part.remove()?;
        conclude(study, prepared, &head, rows, &out, self.json)
    }

    /// Where the report goes.
    fn out(&self) -> PathBuf {
        let beside = match self.file.extension() {
            Some(_) => self.file.with_extension(""),
            None => self.file.with_extension("report"),
        };
        self.out.clone().unwrap_or(beside)
    }
}

impl Head {
    /// What the study was run with.
    pub(crate) fn options(&self) -> Options {
        Options { quick: self.quick, seed: Some(self.seed) }
    }
}

/// Writes the report of a whole sweep, and says what is in it.
pub(crate) fn conclude(
    study: Study,
    prepared: Prepared,
    head: &Head,
    rows: Table,
    out: &Path,
    json: bool,
) -> Result<ExitCode> {
    let title = study.title.clone();
    let findings = study.find(&head.name, prepared, rows).with_context(|| head.name.clone())?;
    let made_by = format!(
        "Made by vez {} lab sweep{}, seed {}. ± is a 95 % interval over independent runs.",
        env!("CARGO_PKG_VERSION"),
        if head.quick { " --quick" } else { "" },
        head.seed,
    );
    report::conclude(out, &Heading { title: &title, made_by: &made_by }, &[findings], json)
}
