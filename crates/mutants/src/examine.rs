//! Builds a copy of the tree and runs a detector on it.

use std::{
    io::{self, Read},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use vez_mutants::rule::Detector;

/// A detector that takes longer hangs: the mutant may loop for ever.
const DETECTOR_TIMEOUT: Duration = Duration::from_secs(300);
/// Interval between two looks at a running process.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The test that runs storms.
const STORMS: &str = "-p vez-storm --test it all_laws_hold";

/// A copy of the tree and where it is built.
pub(crate) struct Workshop {
    pub(crate) tree: PathBuf,
    pub(crate) target: PathBuf,
}

/// What became of a process.
pub(crate) struct Outcome {
    /// Its exit code, if it was not killed by a signal.
    pub(crate) code: Option<i32>,
    /// What it printed, on standard output and standard error.
    pub(crate) output: String,
}

impl Outcome {
    pub(crate) fn succeeded(&self) -> bool {
        self.code == Some(0)
    }

    /// Whether the detector has reported what it should.
    pub(crate) fn detects(&self, detector: &Detector, expect: &str) -> bool {
        let failed = match detector {
            Detector::Check(_) => 1,
            Detector::Test(_) | Detector::Storm(_) => 101,
        };
        self.code == Some(failed) && self.output.contains(expect)
    }

    /// What it printed, in a few words.
    pub(crate) fn gist(&self, expect: &str) -> String {
        let verdict =
            |line: &&str| ["violated:", "holds:", "vez:", "seed "].iter().any(|start| line.starts_with(start));
        if let Some(line) = self.output.lines().find(verdict) {
            return line.trim_end_matches(':').to_owned();
        }
        match (self.output.split_once(expect), self.code) {
            (Some((_, rest)), _) => {
                let rest: String =
                    rest.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
                format!("{expect}{rest} fails")
            }
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => format!("killed, after {} s or by a signal", DETECTOR_TIMEOUT.as_secs()),
        }
    }
}

impl Workshop {
    /// Builds what a detector needs.
    pub(crate) fn build(&self, detector: &Detector) -> io::Result<Outcome> {
        let mut cargo = self.cargo(detector);
        match detector {
            Detector::Check(_) => cargo.args(["build", "--quiet", "--bin", "vez"]),
            Detector::Test(arguments) => cargo.args(["test", "--quiet", "--no-run"]).args(arguments.split_whitespace()),
            Detector::Storm(_) => cargo.args(["test", "--quiet", "--no-run"]).args(STORMS.split_whitespace()),
        };
        run(&mut cargo, None)
    }

    /// Runs a detector that has been built.
    pub(crate) fn examine(&self, detector: &Detector) -> io::Result<Outcome> {
        match detector {
            Detector::Check(arguments) => {
                let mut vez = Command::new(self.target.join("debug/vez"));
                vez.args(["lab", "check"]).args(arguments.split_whitespace()).current_dir(&self.tree);
                run(&mut vez, Some(DETECTOR_TIMEOUT))
            }
            Detector::Test(arguments) => {
                let mut cargo = self.cargo(detector);
                run(cargo.args(["test", "--quiet"]).args(arguments.split_whitespace()), Some(DETECTOR_TIMEOUT))
            }
            Detector::Storm(storms) => {
                let mut cargo = self.cargo(detector);
                cargo.args(["test", "--quiet"]).args(STORMS.split_whitespace());
                run(cargo.env("VEZ_STORMS", storms.to_string()), Some(DETECTOR_TIMEOUT))
            }
        }
    }

    fn cargo(&self, detector: &Detector) -> Command {
        // Most builds run once and briefly, and optimising them would take longer than it saves. Storms run for longer.
        let opt_level = if matches!(detector, Detector::Storm(_)) { "1" } else { "0" };
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_INCREMENTAL", "1")
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", opt_level)
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_TERM_COLOR", "never")
            .env("VEZ_THOROUGH", "1")
            // With this a test would take what a mutant does for what is expected.
            .env_remove("UPDATE_GOLDENFILES");
        cargo
    }
}

/// Runs a process to its end, or kills it and its children when its time is over.
fn run(command: &mut Command, timeout: Option<Duration>) -> io::Result<Outcome> {
    let (mut reader, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
    let mut child = command.spawn()?;
    // The command keeps the writing end of the pipe, which would never be at its end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let read = thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = reader.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if timeout.is_some_and(|timeout| start.elapsed() > timeout) {
            kill_group(child.id());
            break child.wait()?;
        }
        thread::sleep(POLL_INTERVAL);
    };
    // Processes that a failed test has left behind hold the pipe open.
    kill_group(child.id());
    let output = read.join().unwrap_or_default();
    Ok(Outcome { code: status.code(), output })
}

fn kill_group(id: u32) {
    if let Some(group) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Where a job works.
pub(crate) fn workshop(target: &Path, job: usize) -> Workshop {
    let directory = target.join(job.to_string());
    Workshop { tree: directory.join("tree"), target: directory.join("build") }
}
