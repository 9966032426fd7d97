//! The laboratory for whoever has the name of an algorithm, not its type.
//!
//! Every function does for the algorithm of that name what the generic one of the same module does, and returns nothing
//! if there is no such algorithm. The code for all algorithms is compiled once, here, and not again in every crate that
//! has a use for it.

use std::{
    io::{BufRead, Write},
    time::Duration,
};

use vez_algorithms::{
    Algorithm, Monitored, Setup, SetupError,
    catalog::{self, Job},
};

use crate::{
    check::{self, CannotCheck},
    ordeal::{self, CannotSummarise, Ordeals, Summary},
    replay::{self, Lines, Trouble},
    scene::{Recorder, Scene},
    sim::{self, CannotReport, Watch},
    trace::{Header, Tail, Trace},
};

/// Who tells an algorithm of crashes, if it must be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detector {
    /// The algorithm of that name, which runs beside it on every node; its messages count.
    HiAdsd,
    /// The simulator, which knows.
    Oracle,
}

/// See [`check::check`].
pub fn check(
    name: &str,
    setup: &Setup,
    config: &check::Config,
    stopwatch: fn() -> Duration,
    progress: &mut dyn FnMut(usize),
) -> Option<Result<check::Report, CannotCheck>> {
    catalog::visit(name, Check { setup, config, stopwatch, progress })
}

struct Check<'a> {
    setup: &'a Setup,
    config: &'a check::Config,
    stopwatch: fn() -> Duration,
    progress: &'a mut dyn FnMut(usize),
}

impl Job for Check<'_> {
    type Done = Result<check::Report, CannotCheck>;

    fn with<A: Algorithm>(self) -> Self::Done {
        check::check::<A>(self.setup, self.config, self.stopwatch, self.progress)
    }
}

/// See [`sim::run`].
pub fn run(
    name: &str,
    detector: Detector,
    config: &sim::Config,
    stopwatch: fn() -> Duration,
    progress: &(dyn Fn(u64) + Sync),
) -> Option<Result<sim::Report, CannotReport>> {
    catalog::visit(name, Run { detector, config, stopwatch, progress })
}

struct Run<'a> {
    detector: Detector,
    config: &'a sim::Config,
    stopwatch: fn() -> Duration,
    progress: &'a (dyn Fn(u64) + Sync),
}

impl Job for Run<'_> {
    type Done = Result<sim::Report, CannotReport>;

    fn with<A: Algorithm>(self) -> Self::Done {
        sim::run::<A>(self.config, self.stopwatch, self.progress)
    }

    fn with_detector<A: Algorithm>(self) -> Self::Done {
        match self.detector {
            Detector::HiAdsd => self.with::<Monitored<A>>(),
            Detector::Oracle => self.with::<A>(),
        }
    }
}

/// What becomes of a run that is watched.
pub enum Record<'a> {
    /// A trace is written. Whether it could be is told apart from how the run went.
    Trace(&'a mut dyn Write, &'a mut std::io::Result<()>),
    /// Its last events are kept.
    Tail(&'a mut Tail),
}

/// See [`sim::watch`].
pub fn watch<'a>(
    name: &str,
    detector: Detector,
    config: &'a sim::Config,
    run: u64,
    record: Record<'a>,
) -> Option<Result<(), CannotReport>> {
    catalog::visit(name, WatchRun { detector, config, run, record })
}

struct WatchRun<'a> {
    detector: Detector,
    config: &'a sim::Config,
    run: u64,
    record: Record<'a>,
}

impl Job for WatchRun<'_> {
    type Done = Result<(), CannotReport>;

    fn with<A: Algorithm>(self) -> Self::Done {
        self.told_by::<A>(None)
    }

    fn with_detector<A: Algorithm>(self) -> Self::Done {
        match self.detector {
            Detector::HiAdsd => self.told_by::<Monitored<A>>(Some(Detector::HiAdsd)),
            Detector::Oracle => self.told_by::<A>(Some(Detector::Oracle)),
        }
    }
}

impl WatchRun<'_> {
    fn told_by<A: Algorithm>(self, detector: Option<Detector>) -> Result<(), CannotReport> {
        let watch = |watch: &mut dyn Watch<A>| sim::watch::<A>(self.config, self.run, watch);
        match self.record {
            Record::Tail(tail) => watch(tail),
            Record::Trace(mut to, written) => {
                let mut trace = match Trace::new(&mut to, &self.config.header::<A>(self.run, detector)) {
                    Ok(trace) => trace,
                    Err(error) => {
                        *written = Err(error);
                        return Ok(());
                    }
                };
                let result = watch(&mut trace);
                *written = trace.finish();
                result
            }
        }
    }
}

/// See [`sim::watch`]: one run, as a scene.
pub fn record(name: &str, detector: Detector, config: &sim::Config, run: u64) -> Option<Result<Scene, CannotReport>> {
    catalog::visit(name, RecordRun { detector, config, run })
}

struct RecordRun<'a> {
    detector: Detector,
    config: &'a sim::Config,
    run: u64,
}

impl Job for RecordRun<'_> {
    type Done = Result<Scene, CannotReport>;

    fn with<A: Algorithm>(self) -> Self::Done {
        let mut recorder = Recorder::<A>::default();
        sim::watch::<A>(self.config, self.run, &mut recorder)?;
        Ok(recorder.into_scene())
    }

    fn with_detector<A: Algorithm>(self) -> Self::Done {
        match self.detector {
            Detector::HiAdsd => self.with::<Monitored<A>>(),
            Detector::Oracle => self.with::<A>(),
        }
    }
}

/// See [`ordeal::draw`].
#[must_use]
pub fn draw(name: &str, detector: Detector, seed: u64, number: u64) -> Option<sim::Config> {
    catalog::visit(name, Draw { detector, seed, number })
}

struct Draw {
    detector: Detector,
    seed: u64,
    number: u64,
}

impl Job for Draw {
    type Done = sim::Config;

    fn with<A: Algorithm>(self) -> sim::Config {
        ordeal::draw::<A>(self.seed, self.number)
    }

    fn with_detector<A: Algorithm>(self) -> sim::Config {
        match self.detector {
            Detector::HiAdsd => self.with::<Monitored<A>>(),
            Detector::Oracle => self.with::<A>(),
        }
    }
}

/// See [`ordeal::run`].
pub fn ordeal(
    name: &str,
    detector: Detector,
    ordeals: &Ordeals,
    progress: &(dyn Fn() + Sync),
) -> Option<Result<Summary, CannotSummarise>> {
    catalog::visit(name, Endure { detector, ordeals, progress })
}

struct Endure<'a> {
    detector: Detector,
    ordeals: &'a Ordeals,
    progress: &'a (dyn Fn() + Sync),
}

impl Job for Endure<'_> {
    type Done = Result<Summary, CannotSummarise>;

    fn with<A: Algorithm>(self) -> Self::Done {
        ordeal::run::<A>(self.ordeals, self.progress)
    }

    fn with_detector<A: Algorithm>(self) -> Self::Done {
        match self.detector {
            Detector::HiAdsd => self.with::<Monitored<A>>(),
            Detector::Oracle => self.with::<A>(),
        }
    }
}

/// See [`replay::replay`]: of whichever algorithm the header names.
///
/// # Errors
/// At the first line that makes no sense, that is not what the algorithm does, or at which the law is broken.
pub fn replay(from: &mut dyn BufRead) -> Result<replay::Summary, Trouble> {
    let mut lines = Lines::new(from);
    let header = lines.header()?;
    match header.system() {
        Ok(_) => catalog::visit(&header.algorithm, Replay { header: &header, lines }).expect("the header found it"),
        Err(error) => Err(lines.refuse(&error)),
    }
}

struct Replay<'a> {
    header: &'a Header,
    lines: Lines<'a>,
}

impl Job for Replay<'_> {
    type Done = Result<replay::Summary, Trouble>;

    fn with<A: Algorithm>(self) -> Self::Done {
        replay::go_on::<A>(self.header, self.lines)
    }

    fn with_detector<A: Algorithm>(self) -> Self::Done {
        match self.header.detector {
            Some(Detector::HiAdsd) => self.with::<Monitored<A>>(),
            Some(Detector::Oracle) | None => self.with::<A>(),
        }
    }
}

/// Whether the system of a run can be set up.
pub fn validate(name: &str, config: &sim::Config, run: u64) -> Option<Result<(), SetupError>> {
    catalog::visit(name, Validate { config, run })
}

struct Validate<'a> {
    config: &'a sim::Config,
    run: u64,
}

impl Job for Validate<'_> {
    type Done = Result<(), SetupError>;

    fn with<A: Algorithm>(self) -> Self::Done {
        A::system(&self.config.system.setup(self.config.seed, self.run)?).map(|_| ())
    }
}
