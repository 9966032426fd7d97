//! `vez lab trace`

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, Result};
use vez_algorithms::{Algorithm, catalog::Job};
use vez_lab::{
    sim::{self, CannotReport},
    trace::Trace,
};

use super::{system::LoadArgs, with};

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
        with(&self.algorithm.clone(), WriteDown(self))?
    }
}

struct WriteDown(Args);

impl Job for WriteDown {
    type Done = Result<ExitCode>;

    fn with<A: Algorithm>(self) -> Result<ExitCode> {
        let Self(args) = self;
        let config = args.load.config(A::MODEL.order, args.entries, 0, args.run..args.run + 1)?;
        // What cannot be set up must not cost an existing file its contents.
        A::system(&config.system.setup(config.seed, args.run)?)?;
        let mut out: Box<dyn Write> = match &args.out {
            Some(path) => Box::new(File::create(path).with_context(|| format!("cannot write {}", path.display()))?),
            None => Box::new(io::stdout().lock()),
        };
        let mut out = BufWriter::new(&mut out);
        let mut trace = Trace::new::<A>(&mut out, &config, args.run)?;
        let result = sim::watch::<A>(&config, args.run, &mut trace);
        let written = trace.finish().and_then(|()| out.flush());
        written.with_context(|| match &args.out {
            Some(path) => format!("cannot write {}", path.display()),
            None => "cannot write to standard output".to_owned(),
        })?;
        match result {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(CannotReport::Config(error)) => Err(error.into()),
            Err(CannotReport::Failure(failure)) => {
                eprintln!("vez: {failure}");
                Ok(ExitCode::from(1))
            }
        }
    }
}
