//! Plays the transcripts of `transcripts/<family>/<algorithm>/<scenario>` and compares what happens with what is written.
//!
//! What a transcript may say is described in [`vez_lab::director`].
//!
//! `UPDATE_GOLDENFILES=1 cargo test -p vez-lab --test it transcripts::` writes the outputs anew; then read the diff.

use std::{
    fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use vez_algorithms::catalog;
use vez_lab::director::Director;

/// An algorithm is documented by at least so many scenarios: alone, in competition, and as its paper draws it.
const SCENARIOS: usize = 3;

#[test]
fn transcripts_come_out_as_written() {
    let mut failures = Vec::new();
    for directory in algorithm_directories() {
        let name = name_of(&directory);
        for path in entries(&directory) {
            let play = || Director::find(&name).map(|mut director| goldenscript::run(&mut director, &path));
            match catch_unwind(AssertUnwindSafe(play)) {
                Ok(Some(Ok(()))) => {}
                Ok(Some(Err(error))) => failures.push(format!("{}: {error}", path.display())),
                Ok(None) => failures.push(format!("{}: unknown algorithm \"{name}\"", path.display())),
                Err(_) => failures.push(format!("{}: differs, or panicked; see above", path.display())),
            }
        }
    }
    assert!(failures.is_empty(), "{} transcripts failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_directory_is_an_algorithm_of_its_family() {
    for directory in algorithm_directories() {
        let (family, name) = (name_of(directory.parent().expect("transcripts/<family>")), name_of(&directory));
        let known = catalog::ALL.iter().any(|entry| entry.family == family && entry.name == name);
        assert!(known, "the family {family} has no algorithm \"{name}\"");
    }
}

#[test]
fn every_algorithm_has_its_scenarios() {
    for entry in catalog::ALL {
        let directory = transcripts().join(entry.family).join(entry.name);
        let found = if directory.is_dir() { entries(&directory).len() } else { 0 };
        assert!(found >= SCENARIOS, "{} has {found} transcripts; it needs {SCENARIOS}", entry.name);
    }
}

fn transcripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts")
}

fn algorithm_directories() -> Vec<PathBuf> {
    entries(&transcripts()).iter().flat_map(|family| entries(family)).collect()
}

/// What stands in a directory, in the order of names.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let read = || fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    let mut paths = read().unwrap_or_else(|error| panic!("cannot read {}: {error}", directory.display()));
    paths.sort();
    paths
}

fn name_of(path: &Path) -> String {
    path.file_name().expect("it has a name").to_string_lossy().into_owned()
}
