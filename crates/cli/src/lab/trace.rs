//! `vez lab trace`

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use vez_algorithms::catalog::Entry;
use vez_lab::{
    named::{self, Detector, Record},
    sim::{CannotReport, Config, Failure},
    wanted::Wanted,
};

use super::{find, system::LoadArgs};
use crate::output::{Output, tell};

/// Write a simulated run down as JSON Lines.
#[derive(clap::Args)]
#[command(
    after_help = "Each line is an event: its time, node and kind, and the message or the state that goes with it. See docs/trace.md.

Examples:
  vez lab trace ricart-agrawala --nodes 3 --entries 2
  vez lab trace nxr --nodes 7 --arrivals saturated --entries 20 --out nxr.jsonl"
)]
pub(crate) struct Args {
    /// Which algorithm; see vez lab list.
    algorithm: String,
    #[command(flatten)]
    load: LoadArgs,
    /// The trace ends with this entry.
    #[arg(long, default_value_t = 10)]
    entries: u64,
    /// Which run of this seed.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..u64::MAX))]
    run: u64,
    /// Where to; standard output by default.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let entry = find(&self.algorithm)?;
        let (entries, warmup) = (Some(self.entries), Some(0));
        let config = Wanted { entries, warmup, runs: 1, ..self.load.wanted()? }.config(entry)?;
        match write_trace(entry, self.load.detector, &config, self.run, self.out.as_deref())? {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(failure) => {
                tell(format_args!("vez: {failure}"));
                Ok(ExitCode::from(1))
            }
        }
    }
}

/// Writes a run down, to standard output if no file is named. The second result is how it went.
pub(crate) fn write_trace(
    entry: &Entry,
    detector: Detector,
    config: &Config,
    run: u64,
    path: Option<&Path>,
) -> Result<Result<(), Failure>> {
    // What cannot be set up must not cost an existing file its contents.
    named::validate(entry.name, config, run).expect("it is in the catalog")?;
    let mut out: Box<dyn Write> = match path {
        Some(path) => Box::new(File::create(path).with_context(|| format!("cannot write {}", path.display()))?),
        None => Box::new(Output),
    };
    let mut out = BufWriter::new(&mut out);
    let mut written = Ok(());
    let record = Record::Trace(&mut out, &mut written);
    let result = named::watch(entry.name, detector, config, run, record).expect("it is in the catalog");
    written.and_then(|()| out.flush()).with_context(|| match path {
        Some(path) => format!("cannot write {}", path.display()),
        None => "cannot write to standard output".to_owned(),
    })?;
    match result {
        Ok(()) => Ok(Ok(())),
        Err(CannotReport::Failure(failure)) => Ok(Err(failure)),
        Err(CannotReport::Config(error)) => Err(error.into()),
    }
}
