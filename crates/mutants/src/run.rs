//! Examines mutants, several at a time.

use std::{
    collections::{BTreeSet, VecDeque},
    fs::{self, File},
    num::NonZero,
    path::Path,
    process::ExitCode,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use vez_mutants::rule::{Detector, Mutant};

use crate::{
    batch::{Batch, batches},
    copy::Copy,
    examine::{Workshop, workshop},
};

/// A piece of work.
enum Task<'a> {
    /// A detector must pass on the unchanged code.
    Baseline(Detector),
    /// Mutants that can be built together.
    Mutants(Batch<'a>),
}

/// What has come out so far.
#[derive(Default)]
struct Tally {
    caught: usize,
    survived: Vec<String>,
    /// How many storms it took to detect each mutant that storms detect.
    storms: Vec<u64>,
}

/// The tasks that are left, and the results.
struct Progress<'a> {
    tasks: Mutex<VecDeque<Task<'a>>>,
    tally: Mutex<Tally>,
    total: usize,
}

/// Examines the mutants and prints a line for each.
pub(crate) fn run(root: &Path, target: &Path, mutants: &[&Mutant], jobs: NonZero<usize>) -> Result<ExitCode> {
    let start = Instant::now();
    fs::create_dir_all(target).with_context(|| format!("cannot create {}", target.display()))?;
    let lock = File::create(target.join("lock"))?;
    if lock.try_lock().is_err() {
        bail!("another run is using {}; wait for it, or set VEZ_MUTANTS_TARGET", target.display());
    }
    let baselines = baselines(mutants).into_iter().map(Task::Baseline);
    let batches = batches(mutants);
    let jobs = jobs.get().min(batches.len());
    let progress = Progress {
        tasks: Mutex::new(baselines.chain(batches.into_iter().map(Task::Mutants)).collect()),
        tally: Mutex::default(),
        total: mutants.len(),
    };
    thread::scope(|scope| {
        let work = |job| {
            let progress = &progress;
            scope.spawn(move || {
                let result = Worker::new(root, workshop(target, job)).and_then(|worker| worker.work(progress));
                if result.is_err() {
                    lock_of(&progress.tasks).clear();
                }
                result
            })
        };
        let workers: Vec<_> = (1..=jobs).map(work).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| anyhow!("a worker has panicked"))?)
    })?;
    Ok(summary(progress.tally.into_inner().unwrap_or_else(PoisonError::into_inner), start.elapsed()))
}

fn summary(mut tally: Tally, elapsed: Duration) -> ExitCode {
    let seconds = elapsed.as_secs();
    println!("{} caught, {} survived, in {} min {} s", tally.caught, tally.survived.len(), seconds / 60, seconds % 60);
    tally.storms.sort_unstable();
    if let (Some(median), Some(max)) = (tally.storms.get(tally.storms.len() / 2), tally.storms.last()) {
        println!("by storms: {}; storms until caught: median {median}, maximum {max}", tally.storms.len());
    }
    if tally.survived.is_empty() {
        ExitCode::SUCCESS
    } else {
        println!("survived: {}", tally.survived.join(" "));
        ExitCode::from(1)
    }
}

/// The detectors that must pass on the unchanged code. Of storms the longest series includes the others.
fn baselines(mutants: &[&Mutant]) -> Vec<Detector> {
    let detectors: BTreeSet<&Detector> = mutants.iter().map(|mutant| &mutant.detector).collect();
    let (storms, others): (Vec<&Detector>, Vec<&Detector>) =
        detectors.into_iter().partition(|detector| matches!(detector, Detector::Storm(_)));
    others.into_iter().chain(storms.into_iter().max()).cloned().collect()
}

fn lock_of<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of several workers: a copy of the tree, and where it is built.
struct Worker {
    copy: Copy,
    workshop: Workshop,
}

impl Worker {
    fn new(root: &Path, workshop: Workshop) -> Result<Self> {
        Ok(Self { copy: Copy::update(root, &workshop.tree)?, workshop })
    }

    fn work(&self, progress: &Progress<'_>) -> Result<()> {
        loop {
            let task = lock_of(&progress.tasks).pop_front();
            match task {
                None => return Ok(()),
                Some(Task::Baseline(detector)) => self.pass(&detector)?,
                Some(Task::Mutants(batch)) => self.examine_all(&batch, progress)?,
            }
        }
    }

    /// The detector must pass on the unchanged code.
    fn pass(&self, detector: &Detector) -> Result<()> {
        let built = self.workshop.build(detector)?;
        if !built.succeeded() {
            bail!("the unchanged code does not build:\n{}", built.output);
        }
        let outcome = self.workshop.examine(detector)?;
        if !outcome.succeeded() {
            bail!("this fails on the unchanged code: {detector:?}\n{}", outcome.output);
        }
        Ok(())
    }

    /// Applies all mutants of a batch and examines each; one by one if they do not build together.
    fn examine_all(&self, batch: &[&Mutant], progress: &Progress<'_>) -> Result<()> {
        let log = self.build(batch);
        let judged = match &log {
            Ok(None) => batch.iter().try_for_each(|mutant| self.judge(mutant, progress)),
            Ok(Some(_)) | Err(_) => Ok(()),
        };
        batch.iter().try_for_each(|mutant| self.copy.revert(mutant))?;
        judged?;
        match (log?, batch) {
            (None, _) => {}
            (Some(log), [mutant]) => progress.report(mutant, Err(format!("does not build\n{log}"))),
            (Some(_), several) => several.iter().try_for_each(|mutant| self.examine_all(&[mutant], progress))?,
        }
        Ok(())
    }

    /// Applies mutants and builds their detectors. Returns the compiler's output if that fails.
    fn build(&self, batch: &[&Mutant]) -> Result<Option<String>> {
        batch.iter().try_for_each(|mutant| self.copy.apply(mutant))?;
        // Checks share a binary, and so do the tests of a crate.
        let mut kinds = BTreeSet::new();
        for mutant in batch {
            let is_new = match &mutant.detector {
                Detector::Check(_) => kinds.insert(""),
                Detector::Test(arguments) => kinds.insert(arguments),
                Detector::Storm(_) => kinds.insert("storms"),
            };
            if is_new {
                let built = self.workshop.build(&mutant.detector)?;
                if !built.succeeded() {
                    return Ok(Some(built.output));
                }
            }
        }
        Ok(None)
    }

    fn judge(&self, mutant: &Mutant, progress: &Progress<'_>) -> Result<()> {
        let outcome = self.workshop.examine(&mutant.detector)?;
        let gist = outcome.gist(&mutant.expect);
        if outcome.detects(&mutant.detector, &mutant.expect) {
            if let (Detector::Storm(_), Some(seed)) = (&mutant.detector, seed(&outcome.output)) {
                lock_of(&progress.tally).storms.push(seed);
            }
            progress.report(mutant, Ok(gist));
        } else {
            progress.report(mutant, Err(format!("{gist}; expected: {}", mutant.expect)));
        }
        Ok(())
    }
}

/// The number of the storm that broke a law.
fn seed(output: &str) -> Option<u64> {
    let digits = output.split("seed ").nth(1)?;
    digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

impl Progress<'_> {
    fn report(&self, mutant: &Mutant, result: Result<String, String>) {
        let mut tally = lock_of(&self.tally);
        let (verdict, text) = match result {
            Ok(text) => {
                tally.caught += 1;
                ("caught  ", text)
            }
            Err(text) => {
                tally.survived.push(mutant.name.clone());
                ("SURVIVED", text)
            }
        };
        println!("[{}/{}] {verdict} {}: {text}", tally.caught + tally.survived.len(), self.total, mutant.name);
    }
}
