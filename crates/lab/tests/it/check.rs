//! What the checker says of every algorithm. A file under `checks/` has the explorations of one algorithm, each a line such
//! as `check nodes=3 requests=2 crashes=1`, with what came out below; `UPDATE_GOLDENFILES=1` writes that anew. Those under
//! `checks/thorough/` take minutes in all, and run with `VEZ_THOROUGH=1`. Those under `checks/large/` take many minutes and some
//! gigabytes: `cargo test -p vez-lab --test it check:: -- --ignored`.

use std::{error::Error, fs, panic::AssertUnwindSafe, path::Path, time::Duration};

use crate::{
    systems::{check_on, setup},
    thorough,
};
use rayon::prelude::*;
use vez_algorithms::{Order, Setup, catalog, mutex, superpeers};
use vez_lab::{
    check::{Bound, Breach, Config, Report, Verdict, Workload},
    named,
    sim::DelayLaw,
    system::{MESSAGE_DELAY, SystemOptions},
    wanted::Network,
};

fn checks() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../checks")
}

#[test]
fn every_check_comes_out_as_written() {
    let failures: Vec<String> = catalog::ALL
        .par_iter()
        .filter_map(|entry| match std::panic::catch_unwind(AssertUnwindSafe(|| play(entry))) {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("{}: {error}", entry.name)),
            Err(_) => Some(format!("{}: differs; see above", entry.name)),
        })
        .collect();
    assert_eq!(failures, Vec::<String>::new());
}

#[test]
#[ignore = "takes many minutes"]
fn every_large_check_comes_out_as_written() {
    for name in files(&checks().join("large")) {
        let entry = catalog::find(&name).expect("it has a check");
        let mut explorer = Explorer { entry, max_states: 200_000_000, holds: Vec::new() };
        goldenscript::run(&mut explorer, checks().join("large").join(&name)).expect("a check that can be read");
    }
}

#[test]
fn every_file_belongs_to_an_algorithm() {
    for name in ["", "thorough", "large"].into_iter().flat_map(|folder| files(&checks().join(folder))) {
        assert!(catalog::find(&name).is_some(), "there is no algorithm \"{name}\"");
    }
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("there are checks").map(|entry| entry.expect("it can be read"));
    let mut files: Vec<_> = entries.filter(|entry| entry.path().is_file()).map(|entry| entry.file_name()).collect();
    files.sort();
    files.into_iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

/// Runs the explorations of an algorithm.
fn play(entry: &'static catalog::Entry) -> Result<(), String> {
    let mut explorer = Explorer { entry, max_states: 20_000_000, holds: Vec::new() };
    goldenscript::run(&mut explorer, checks().join(entry.name)).map_err(|error| error.to_string())?;
    if !thorough() {
        return Ok(());
    }
    let more = checks().join("thorough").join(entry.name);
    if more.exists() {
        goldenscript::run(&mut explorer, more).map_err(|error| error.to_string())?;
    }
    explorer.shows_what_the_model_claims()
}

/// What may stand in a file.
#[derive(goldenscript::Command)]
enum Command {
    Check {
        #[arg(key)]
        nodes: usize,
        /// How often each client asks; for ever if nothing is said.
        #[arg(key)]
        requests: Option<u32>,
        #[arg(key)]
        network: Option<Network>,
        #[arg(key)]
        askers: Option<usize>,
        #[arg(key)]
        mixed: Option<bool>,
        #[arg(key)]
        crashes: Option<usize>,
        #[arg(key)]
        restarts: Option<usize>,
        #[arg(key)]
        losses: Option<usize>,
        #[arg(key)]
        false_suspicions: Option<usize>,
        #[arg(key)]
        instant: Option<bool>,
        /// The parameters of the system.
        #[arg(key, many, optional)]
        options: Vec<(String, String)>,
    },
}

struct Explorer {
    entry: &'static catalog::Entry,
    max_states: usize,
    /// The explorations in which all laws held.
    holds: Vec<Config>,
}

impl Explorer {
    /// A claim of the catalog stands on a check that holds.
    fn shows_what_the_model_claims(&self) -> Result<(), String> {
        let model = self.entry.assumptions;
        for (claimed, shown, what) in [
            (true, self.holds.iter().any(|config| config.order == model.order), "holds on the weakest network"),
            (model.survives_crashes, self.holds.iter().any(|config| config.crashes > 0), "survives crashes"),
            (model.survives_restarts, self.holds.iter().any(|config| config.restarts > 0), "survives restarts"),
            (model.survives_loss, self.holds.iter().any(|config| config.losses > 0), "survives loss"),
        ] {
            if claimed && !shown {
                return Err(format!("no check shows that it {what}"));
            }
        }
        Ok(())
    }
}

impl goldenscript::Runner for Explorer {
    type Command = Command;

    fn run(&mut self, command: &Command, _context: &goldenscript::Context) -> Result<String, Box<dyn Error>> {
        let Command::Check {
            nodes,
            requests,
            network,
            askers,
            mixed,
            crashes,
            restarts,
            losses,
            false_suspicions,
            instant,
            options,
        } = command;
        let config = Config {
            askers: *askers,
            mixed: mixed.unwrap_or(false),
            crashes: crashes.unwrap_or(0),
            restarts: restarts.unwrap_or(0),
            losses: losses.unwrap_or(0),
            false_suspicions: false_suspicions.unwrap_or(0),
            instant: instant.unwrap_or(false),
            max_states: self.max_states,
            ..Config::new(
                requests.map_or(Workload::Unbounded, Workload::Requests),
                network.map_or(self.entry.assumptions.order, Order::from),
            )
        };
        let pairs = options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let options = SystemOptions::from_pairs(pairs)?;
        let setup = options.resolve(*nodes, MESSAGE_DELAY, &DelayLaw::Uniform)?.setup(1, 0)?;
        let report = named::check(self.entry.name, &setup, &config, || Duration::ZERO, &mut |_| {});
        let report = report.expect("it is in the catalog")?;
        let told = tell(&report);
        if matches!(report.verdict, Verdict::Holds(_)) {
            self.holds.push(config);
        }
        Ok(told)
    }
}

fn tell(report: &Report) -> String {
    match &report.verdict {
        Verdict::Holds(worst) => {
            let messages = match worst.messages_per_entry {
                Bound::AtMost(most) => format!("{most:.3}"),
                Bound::Unbounded => "∞".to_owned(),
                Bound::Unknown => "?".to_owned(),
            };
            let bypasses = match worst.bypasses {
                Bound::AtMost(most) => most.to_string(),
                Bound::Unbounded => "∞".to_owned(),
                Bound::Unknown => "?".to_owned(),
            };
            format!("holds in {} states, at worst {messages} messages an entry, {bypasses} bypasses\n", report.states)
        }
        Verdict::Violated(counterexample) => {
            let steps = if counterexample.steps == 1 { "step" } else { "steps" };
            let run = counterexample.transcript.lines().map(|line| format!("    {line}\n")).collect::<String>();
            format!("violated after {} {steps}: {}\n{run}", counterexample.steps, counterexample.breach)
        }
    }
}

#[test]
fn a_crash_stops_those_that_assume_none() {
    let config = Config { crashes: 1, ..Config::new(Workload::Requests(1), Order::Any) };
    for report in [
        check_on::<mutex::Central>(&setup(3), &config),
        check_on::<mutex::RicartAgrawala>(&setup(3), &config),
        check_on::<mutex::Fila>(&setup(3), &config),
    ] {
        let Verdict::Violated(counterexample) = report.verdict else { panic!("nobody survives the coordinator") };
        assert!(matches!(counterexample.breach, Breach::Deadlock(_)), "{}", counterexample.breach);
        assert!(counterexample.transcript.contains("crash n"), "{}", counterexample.transcript);
    }
}

/// Where the usual small systems have their nodes, two tokens do not move. Here they stand in a row, the tokens at its left:
/// one of them goes to the right, and the other is offered to a node that has one.
#[test]
fn two_tokens_part() {
    let places = vec![[5_000, 30_000], [20_000, 30_000], [50_000, 30_000]];
    let config = Config { askers: Some(1), ..Config::new(Workload::Requests(1), Order::Any) };
    let report = check_on::<superpeers::ByRepulsion>(&Setup { places, k: 2, ..setup(3) }, &config);
    assert!(matches!(report.verdict, Verdict::Holds(_)), "{:?}", report.verdict);
    assert!(report.states > 100_000, "{} states", report.states);
}

#[test]
fn fingerprints_and_whole_states_count_the_same() {
    for order in [Order::Fifo, Order::Any] {
        let config = Config::new(Workload::Requests(2), order);
        let exact = Config { exact: true, ..config.clone() };
        let (one, other) =
            (check_on::<mutex::SuzukiKasami>(&setup(3), &config), check_on::<mutex::SuzukiKasami>(&setup(3), &exact));
        assert_eq!((one.states, one.transitions, one.verdict), (other.states, other.transitions, other.verdict));
    }
}

#[test]
fn too_many_states_are_an_error() {
    let config = Config { max_states: 1000, ..Config::new(Workload::Requests(2), Order::Any) };
    let result = vez_lab::check::check::<mutex::RicartAgrawala>(&setup(3), &config, || Duration::ZERO, &mut |_| {});
    let error = result.expect_err("there are more than a thousand").to_string();
    assert_eq!(error, "there are more than 1000 states; take fewer nodes or requests, or raise --max-states");
}
