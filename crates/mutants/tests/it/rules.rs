//! The rules of `mutants/`: all of them, on every run, so that no change of the code leaves one behind.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use vez_mutants::rule::{Detector, Edit, Mutant, load};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn mutants() -> Vec<Mutant> {
    load(&root().join("mutants")).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_rule_matches_exactly_once() {
    let mutants = mutants();
    let faults: Vec<String> =
        mutants.iter().filter_map(|mutant| mutant.apply(&root()).err()).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{} of {} rules:\n{}", faults.len(), mutants.len(), faults.join("\n"));
    eprintln!("{} rules match", mutants.len());
}

/// The text of all source files of a package, with the names of its test programs.
fn package(name: &str) -> (Vec<String>, String) {
    let directory = root().join("crates").join(name.strip_prefix("vez-").unwrap_or(name));
    let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap_or_else(|error| panic!("{name}: {error}"));
    let tests =
        manifest.split("[[test]]\nname = \"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
    let mut text = String::new();
    let mut directories = vec![directory];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("it can be read") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text += &fs::read_to_string(path).expect("it can be read");
            }
        }
    }
    (tests.collect(), text)
}

/// A test that was renamed or moved would be noticed only by hours of `mutants/run`.
#[test]
fn every_rule_names_a_test_that_exists() {
    let mut packages = BTreeMap::new();
    let mut faults = Vec::new();
    for Mutant { name, detector, expect, .. } in mutants() {
        let Detector::Test(arguments) = detector else { continue };
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let ["-p", package_name, rest @ ..] = &words[..] else {
            faults.push(format!("{name}: test begins with -p"));
            continue;
        };
        let (tests, text) = packages.entry((*package_name).to_owned()).or_insert_with(|| package(package_name));
        if let ["--test", test, ..] = rest
            && !tests.iter().any(|known| known == test)
        {
            faults.push(format!("{name}: {package_name} has no test program {test}"));
        }
        let is_a_function = expect.contains('_') && expect.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
        if is_a_function && !text.contains(&expect) {
            faults.push(format!("{name}: {package_name} has no test {expect}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn mutant(edits: &[(&str, &str)]) -> Mutant {
    let edit = |(find, replace): &(&str, &str)| Edit {
        file: "crates/mutants/src/lib.rs".into(),
        find: (*find).into(),
        replace: (*replace).into(),
    };
    Mutant {
        name: "a".into(),
        why: String::new(),
        law: String::new(),
        edits: edits.iter().map(edit).collect(),
        detector: Detector::Storm(1),
        expect: "seed ".into(),
    }
}

#[test]
fn several_edits_of_a_file_are_applied_together() {
    let several = mutant(&[("pub mod source;", "mod source;"), ("pub mod rule", "mod rule")]);
    let code = several.apply(&root()).expect("both match").into_values().next().expect("a file");
    assert!(code.ends_with("\nmod rule;\nmod source;\n"), "{code}");
}

#[test]
fn edits_that_change_nothing_or_overlap_are_refused() {
    let fault = |edits: &[(&str, &str)]| mutant(edits).apply(&root()).expect_err("it is refused").to_string();
    assert_eq!(
        fault(&[("pub mod rule;", "pub  mod rule; // as before")]),
        "a: crates/mutants/src/lib.rs: the replacement is the same code"
    );
    assert_eq!(
        fault(&[("mod rule;", ""), ("rule;", "x;")]),
        "a: crates/mutants/src/lib.rs: two edits change the same code"
    );
    assert!(fault(&[("pub", "")]).contains("matches in several places"));
}
