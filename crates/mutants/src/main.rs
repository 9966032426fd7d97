//! `mutants/run`: applies mutants to copies of the working tree and reports which ones go unnoticed.

#![expect(clippy::print_stdout, reason = "what it prints is its result")]

mod batch;
mod copy;
mod examine;
mod run;

use std::{
    env, iter,
    num::NonZero,
    path::{Path, PathBuf},
    process::ExitCode,
    str::FromStr,
    thread::available_parallelism,
};

use anyhow::{Context, Result, bail};
use clap::Parser;
use vez_mutants::rule::{self, Mutant};

/// Apply each mutant to a copy of the working tree, build it, and run the check, test or storms that must detect it.
#[derive(Parser)]
#[command(
    name = "mutants/run",
    after_help = "Examples:
  mutants/run                        all mutants, on two cores more than an hour
  mutants/run maekawa-sanders        one of them
  mutants/run --share 1/16           a sixteenth of them
  mutants/run --table                the list, with what detects each

Before a mutant is applied, its detector must pass on the unchanged code. VEZ_MUTANTS_TARGET names the build directory; by
default it is target/mutants.

Exit code: 0 all were caught, 1 one survived or could not be applied, 2 wrong usage."
)]
struct Args {
    /// The names of mutants; all if none is given.
    names: Vec<String>,
    /// Only the I-th of N parts of them.
    #[arg(long, value_name = "I/N")]
    share: Option<Share>,
    /// How many mutants to build and examine at the same time, each in a build directory of its own.
    #[arg(long, default_value_t = default_jobs())]
    jobs: NonZero<usize>,
    /// Print a Markdown table of all mutants.
    #[arg(long)]
    table: bool,
}

/// More jobs than this take more disk space than time is worth.
const MAX_DEFAULT_JOBS: usize = 4;

fn default_jobs() -> NonZero<usize> {
    let cores = available_parallelism().map_or(1, NonZero::get);
    NonZero::new(cores.min(MAX_DEFAULT_JOBS)).unwrap_or(NonZero::<usize>::MIN)
}

/// One of several equal parts.
#[derive(Clone, Copy)]
struct Share {
    /// Which of them, from 0.
    index: usize,
    parts: NonZero<usize>,
}

impl FromStr for Share {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text.split_once('/').and_then(|(index, parts)| {
            let (index, parts): (NonZero<usize>, NonZero<usize>) = (index.parse().ok()?, parts.parse().ok()?);
            (index <= parts).then_some(Self { index: index.get() - 1, parts })
        });
        parsed.ok_or("take I/N with 1 ≤ I ≤ N, such as 1/16")
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    match start(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("mutants/run: {error:#}");
            ExitCode::from(if error.is::<UnknownName>() { 2 } else { 1 })
        }
    }
}

/// A mutant was named that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("there is no mutant \"{0}\"; mutants/run --table lists all")]
struct UnknownName(String);

fn start(args: &Args) -> Result<ExitCode> {
    let root = root()?;
    let all = rule::load(&root.join("mutants"))?;
    if args.table {
        print!("{}", table(&all));
        return Ok(ExitCode::SUCCESS);
    }
    let mut chosen: Vec<&Mutant> = if args.names.is_empty() {
        all.iter().collect()
    } else {
        let find = |name: &String| all.iter().find(|mutant| mutant.name == *name).ok_or(UnknownName(name.clone()));
        args.names.iter().map(find).collect::<Result<_, _>>()?
    };
    if let Some(Share { index, parts }) = args.share {
        chosen = chosen.into_iter().skip(index).step_by(parts.get()).collect();
    }
    let target = env::var_os("VEZ_MUTANTS_TARGET").map_or_else(|| root.join("target/mutants"), PathBuf::from);
    let target = std::path::absolute(target)?;
    let not_applicable: Vec<String> =
        chosen.iter().filter_map(|mutant| mutant.apply(&root).err()).map(|error| error.to_string()).collect();
    if !not_applicable.is_empty() {
        bail!("these rules do not match the code:\n{}", not_applicable.join("\n"));
    }
    run::run(&root, &target, &chosen, args.jobs)
}

/// The root of the repository: the first directory above this one that has `mutants`.
fn root() -> Result<PathBuf> {
    let here = env::current_dir()?;
    let is_root = |directory: &&Path| directory.join("mutants/run").is_file();
    here.ancestors().find(is_root).map(Path::to_owned).context("this is not a clone of the repository of Vez")
}

fn table(mutants: &[Mutant]) -> String {
    let row = |mutant: &Mutant| format!("| `{}` | {} | {} |\n", mutant.name, mutant.why, mutant.law);
    iter::once("| mutant | what it breaks | what detects it |\n|---|---|---|\n".to_owned())
        .chain(mutants.iter().map(row))
        .collect()
}
