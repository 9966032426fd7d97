//! `vez lab trace`

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, Result};
use vez_lab::{
    named::{self, Record},
    sim::CannotReport,
};

use super::{find, system::LoadArgs};
use crate::output::tell;

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
        let config = self.load.config(entry, self.entries, 0, self.run..self.run + 1)?;
        let detector = self.load.detector.into();
        // What cannot be set up must not cost an existing file its contents.
        named::validate(entry.name, &config, self.run).expect("it is in the catalog")?;
        let mut out: Box<dyn Write> = match &self.out {
            Some(path) => Box::new(File::create(path).with_context(|| format!("cannot write {}", path.display()))?),
            None => Box::new(io::stdout().lock()),
        };
        let mut out = BufWriter::new(&mut out);
        let mut written = Ok(());
        let record = Record::Trace(&mut out, &mut written);
        let result = named::watch(entry.name, detector, &config, self.run, record).expect("it is in the catalog");
        written.and_then(|()| out.flush()).with_context(|| match &self.out {
            Some(path) => format!("cannot write {}", path.display()),
            None => "cannot write to standard output".to_owned(),
        })?;
        match result {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(CannotReport::Config(error)) => Err(error.into()),
            Err(CannotReport::Failure(failure)) => {
                tell(format_args!("vez: {failure}"));
                Ok(ExitCode::from(1))
            }
        }
    }
}
