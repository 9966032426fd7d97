//! `vez lab sweep`

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    str::FromStr,
};

use anyhow::{Context, Result};
use vez_lab::study::{Findings, Heading, Study, Work, sweep::Options, table::Table};

use super::{
    parts::{self, FORMAT, Head, Part},
    report,
};
use crate::output::{print, progress, tell};

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
  vez lab sweep locks.toml                     # writes locks/index.html, the plots and the data
  vez lab sweep locks.toml --shard 3/8         # the third of eight shares, as one of a job array
  vez lab merge locks                          # puts the shares together

An interrupted sweep goes on where it was when the same command is given again. Values or runs that were added to the file are
simulated, and those that are there already are not simulated again. In a job array, for Slurm --shard
$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT with --array=1-8; for an indexed job of Kubernetes --shard
$((JOB_COMPLETION_INDEX+1))/8; with GNU parallel: parallel vez lab sweep locks.toml --shard {}/8 ::: {1..8}

Exit code: 0 measured, 1 a law was broken in a simulation, or nothing moved any more, 2 could not run.")]
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
        let good = parts.filter(|(i, n)| (1..=*n).contains(i) && *n <= 1_000_000);
        good.map(|(i, n)| Self(i, n)).ok_or_else(|| format!("\"{text}\" is no share; give one from 1/8 to 8/8, say"))
    }
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let text = fs::read_to_string(&self.file).with_context(|| format!("cannot read {}", self.file.display()))?;
        let study = Study::parse(&text).with_context(|| self.file.display().to_string())?;
        let name = self.file.file_stem().map_or("study".into(), |stem| stem.to_string_lossy().into_owned());
        let out = self.out.clone().unwrap_or_else(|| self.file.with_extension(""));
        let options = Options { quick: self.quick, seed: Some(self.seed.or(study.seed).unwrap_or(1)) };
        let whole = study.work(options).with_context(|| self.file.display().to_string())?;
        let shard = (self.shard.0, self.shard.1);
        let head = Head {
            format: FORMAT.to_owned(),
            name: name.clone(),
            shard,
            quick: self.quick,
            seed: options.seed.unwrap_or(1),
            study: text,
        };
        let part = parts::path(&out, &name, shard);
        let table = out.join("data").join(format!("{name}.csv"));
        if self.fresh {
            for old in [&part, &table] {
                if old.exists() {
                    fs::remove_file(old).with_context(|| format!("cannot remove {}", old.display()))?;
                }
            }
        }
        let work = whole.shard(shard);
        let mut done = parts::by_name(&whole, parts::finished(&table)?, &table)?;
        let (part, rows) = Part::open(part, &head)?;
        done.extend(rows.into_iter().map(|row| (whole.name(&row), row)));
        let (there, all) =
            (work.units.iter().filter(|unit| done.contains_key(&work.name(&unit.key))).count(), work.units.len());
        if there > 0 {
            tell(format_args!("{there} of {all} runs are there already"));
        }
        let bar = progress(work.entries(&done), "entries");
        let rows = work.run(&done, &|row| part.keep(row), &|entries| bar.inc(entries));
        bar.finish_and_clear();
        let part = part.finish()?;
        if shard.1 > 1 {
            let (i, n) = shard;
            tell(format_args!(
                "shard {i}/{n}: {all} runs in {}; vez lab merge {} when all are there",
                part.display(),
                out.display()
            ));
            return Ok(ExitCode::SUCCESS);
        }
        let code = conclude(study, &head, options, rows, &out, self.json)?;
        fs::remove_file(&part).with_context(|| format!("cannot remove {}", part.display()))?;
        // Other shards may have their parts there.
        let _ = fs::remove_dir(part.parent().unwrap_or(Path::new("")));
        Ok(code)
    }
}

/// Writes the report of a whole sweep, and says what is in it.
pub(crate) fn conclude(
    study: Study,
    head: &Head,
    options: Options,
    rows: Table,
    out: &Path,
    json: bool,
) -> Result<ExitCode> {
    let title = study.title.clone();
    let findings = study.find(&head.name, rows, options).with_context(|| head.name.clone())?;
    let made_by = format!(
        "Made by vez {} lab sweep{}, seed {}. ± is a 95 % interval over independent runs.",
        env!("CARGO_PKG_VERSION"),
        if head.quick { " --quick" } else { "" },
        head.seed,
    );
    let all: [Findings; 1] = [findings];
    report::write(out, &Heading { title: &title, made_by: &made_by }, &all)?;
    print(&if json { format!("{:#}\n", report::as_json(&all)) } else { report::in_words(&all, out) })?;
    Ok(ExitCode::from(u8::from(!report::failures(&all[0]).is_empty())))
}

/// The whole work of a study, as the head of a part has it.
pub(crate) fn work_of(head: &Head) -> Result<(Study, Options, Work)> {
    let study = Study::parse(&head.study)?;
    let options = Options { quick: head.quick, seed: Some(head.seed) };
    let work = study.work(options)?;
    Ok((study, options, work))
}
