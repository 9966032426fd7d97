//! `vez lab reproduce`, `sweep` and `merge`, from outside.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

const STUDY: &str = r#"
title = "two locks"
[[sweep]]
algorithm = ["fila", "nxr"]
nodes = 5
rate = [0.1, 1.0]
entries = 300
warmup = 0
runs = 3
[[plot]]
title = "messages"
x = "rate"
y = "messages"
[[claim]]
text = "fila sends fewer messages than nxr"
rule = "messages[fila] < messages[nxr]"
"#;

fn vez(directory: &Path, words: &str) -> Output {
    let mut command = Command::cargo_bin("vez").expect("it is built");
    command.current_dir(directory).args(words.split(' ')).output().expect("it runs")
}

fn good(directory: &Path, words: &str) -> String {
    let output = vez(directory, words);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words}: {told}");
    String::from_utf8(output.stdout).expect("a text")
}

fn refused(directory: &Path, words: &str, sentence: &str) {
    let output = vez(directory, words);
    assert_eq!(output.status.code(), Some(2), "{words}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains(sentence) && told.starts_with("vez: "), "{words}: {told}");
    assert!(output.stdout.is_empty());
}

fn here() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("locks.toml"), STUDY).expect("it can be written");
    directory
}

/// All files below a directory, with what is in them.
fn files(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let text = fs::read_to_string(&path).expect("a text");
            found.push((path, text));
        }
    }
    found.sort();
    found
}

fn below(directory: &Path, all: Vec<(PathBuf, String)>) -> Vec<(PathBuf, String)> {
    let strip = |path: PathBuf| path.strip_prefix(directory).expect("it is below").to_owned();
    all.into_iter().map(|(path, text)| (strip(path), text)).collect()
}

fn report(directory: &Path) -> Vec<(PathBuf, String)> {
    below(directory, files(directory))
}

#[test]
fn an_experiment_is_reproduced() {
    let directory = here();
    let told = good(directory.path(), "lab reproduce raymond-k-figure robust-k-efficiency --quick");
    assert!(told.contains("raymond-k-figure: ") && told.ends_with("written to report/index.html\n"), "{told}");
    let report = report(&directory.path().join("report"));
    let names: Vec<&str> = report.iter().filter_map(|(path, _)| path.to_str()).collect();
    assert_eq!(
        names,
        [
            "data/raymond-k-figure-scenes.csv",
            "data/robust-k-efficiency-scenes.csv",
            "data/robust-k-efficiency-timeline.csv",
            "index.html",
            "plots/raymond-k-figure-scene-1.svg",
            "plots/raymond-k-figure-scene-2.svg",
            "plots/robust-k-efficiency-1.svg",
        ]
    );
    let page = &report[3].1;
    assert!(
        page.contains("<svg")
            && page.contains("holds")
            && page.contains("href=\"data/robust-k-efficiency-timeline.csv\"")
    );
    for from_outside in ["<script", "<link", "<img", "<iframe", "src=", "href=\"http", "url(", "@import"] {
        assert!(!page.contains(from_outside), "the page needs nothing from outside, and has {from_outside}");
    }
}

#[test]
fn for_programs_there_is_json() {
    let directory = here();
    let told = good(directory.path(), "lab reproduce hypercube-trees robust-k-efficiency --quick --json");
    let object: Value = serde_json::from_str(&told).expect("an object");
    let experiments = object["experiments"].as_array().expect("a list");
    assert_eq!(experiments.len(), 2);
    assert_eq!(experiments[0]["name"], "robust-k-efficiency", "in the order of the papers");
    for claim in experiments.iter().flat_map(|experiment| experiment["claims"].as_array().expect("a list")) {
        assert!(matches!(
            claim["verdict"].as_str(),
            Some("holds" | "holds only if" | "does not hold" | "cannot be told")
        ));
        assert!(claim["text"].is_string() && claim["detail"].is_string());
    }
    let series = &experiments[0]["series"][0];
    assert!(series["name"].is_string() && series["points"][0]["y"].is_number(), "{series}");
}

#[test]
fn experiments_are_listed_and_slips_are_named() {
    let directory = here();
    let list = good(directory.path(), "lab reproduce");
    assert!(list.contains("nxr-messages-load ") && list.contains("Figure 4 a–d"), "{list}");
    refused(directory.path(), "lab reproduce nxr-wat", "unknown experiment \"nxr-wat\"; did you mean nxr-wait?");
    assert!(!directory.path().join("report").exists());
}

#[test]
fn shares_put_together_are_the_whole() {
    let directory = here();
    let path = directory.path();
    good(path, "lab sweep locks.toml --out whole");
    for shard in ["3/3", "1/3", "2/3"] {
        good(path, &format!("lab sweep locks.toml --out parts --shard {shard}"));
    }
    good(path, "lab merge parts --out merged");
    let (whole, merged) = (report(&path.join("whole")), report(&path.join("merged")));
    assert!(whole == merged, "they differ");
    assert_eq!(whole.len(), 3, "the page, a plot and the data");
    assert_eq!(whole[0].1.lines().count(), 1 + 2 * 2 * 3);
}

#[test]
fn an_interrupted_sweep_goes_on() {
    let directory = here();
    let path = directory.path();
    good(path, "lab sweep locks.toml --out whole");
    good(path, "lab sweep locks.toml --out cut --shard 1/2");
    good(path, "lab sweep locks.toml --out cut --shard 2/2");
    let part = path.join("cut/parts/locks-1-of-2.jsonl");
    let text = fs::read_to_string(&part).expect("a part");
    assert_eq!(text.lines().count(), 1 + 6);
    // Interrupted in the midst of the fourth row.
    let end = text.match_indices('\n').nth(3).expect("a fourth line").0 + 20;
    fs::write(&part, &text[..end]).expect("it can be written");
    refused(
        path,
        "lab merge cut",
        "shard 1/2 is not finished: 3 of 6 runs are in cut/parts/locks-1-of-2.jsonl; run it again",
    );
    let again = vez(path, "lab sweep locks.toml --out cut --shard 1/2");
    assert!(String::from_utf8_lossy(&again.stderr).contains("3 of 6 runs are there already"));
    good(path, "lab merge cut --out merged");
    assert!(report(&path.join("whole")) == report(&path.join("merged")), "they differ");
}

#[test]
fn a_finished_sweep_is_not_run_again_but_extended() {
    let directory = here();
    let path = directory.path();
    good(path, "lab sweep locks.toml");
    let before = report(&path.join("locks"));
    let again = vez(path, "lab sweep locks.toml");
    assert!(String::from_utf8_lossy(&again.stderr).contains("12 of 12 runs are there already"));
    assert!(report(&path.join("locks")) == before);
    fs::write(path.join("locks.toml"), STUDY.replace("runs = 3", "runs = 4")).expect("it can be written");
    let more = vez(path, "lab sweep locks.toml");
    assert!(String::from_utf8_lossy(&more.stderr).contains("12 of 16 runs are there already"));
    refused_rows(path);
}

/// Rows that a study does not ask for are not thrown away.
fn refused_rows(path: &Path) {
    fs::write(path.join("locks.toml"), STUDY.replace("[0.1, 1.0]", "0.1")).expect("it can be written");
    refused(
        path,
        "lab sweep locks.toml",
        "has 10 rows that this study does not ask for; take another --out, or --fresh",
    );
    good(path, "lab sweep locks.toml --fresh");
    let table = fs::read_to_string(path.join("locks/data/locks.csv")).expect("a table");
    assert_eq!(table.lines().count(), 1 + 2 * 3);
}

#[test]
fn slips_in_sweeps_are_named() {
    let directory = here();
    let path = directory.path();
    refused(path, "lab sweep lock.toml", "cannot read lock.toml");
    refused(path, "lab sweep locks.toml --shard 4/3", "\"4/3\" is no share; give one from 1/8 to 8/8, say");
    refused(path, "lab merge locks", "cannot read locks/parts; no shard was written there");
    good(path, "lab sweep locks.toml --shard 1/3");
    refused(path, "lab merge locks", "missing: shard 2/3, 3/3; run it");
    fs::write(path.join("locks.toml"), STUDY.replace("300", "400")).expect("it can be written");
    refused(
        path,
        "lab sweep locks.toml --shard 1/3",
        "has 4 rows that this study does not ask for; take another --out",
    );
    refused(
        path,
        "lab sweep locks.toml --shard 1/3 --seed 2",
        "is of another study, seed or version; take another --out",
    );
    fs::write(path.join("locks.toml"), "title = 3").expect("it can be written");
    refused(path, "lab sweep locks.toml", "locks.toml: TOML parse error at line 1, column 9");
}

/// Shares of a study that was finished before take from its table what they can, and are whole without it.
#[test]
fn a_finished_sweep_is_extended_in_shares() {
    let directory = here();
    let path = directory.path();
    good(path, "lab sweep locks.toml --out old");
    fs::write(path.join("locks.toml"), STUDY.replace("[0.1, 1.0]", "[0.1, 0.5, 1.0]")).expect("it can be written");
    good(path, "lab sweep locks.toml --out new");
    for shard in ["1/2", "2/2"] {
        good(path, &format!("lab sweep locks.toml --out old --shard {shard}"));
    }
    good(path, "lab merge old --out merged");
    assert!(report(&path.join("new")) == report(&path.join("merged")), "they differ");
}

#[test]
fn words_may_change_under_way() {
    let directory = here();
    let path = directory.path();
    good(path, "lab sweep locks.toml --shard 1/2");
    fs::write(path.join("locks.toml"), STUDY.replace("two locks", "other words")).expect("it can be written");
    let again = vez(path, "lab sweep locks.toml --shard 1/2");
    assert!(String::from_utf8_lossy(&again.stderr).contains("6 of 6 runs are there already"));
    good(path, "lab sweep locks.toml --shard 2/2");
    assert!(good(path, "lab merge locks").contains("locks: other words"));
}

/// A baseline without faults beside one with: the empty text is nothing, also when it is read again.
#[test]
fn a_run_that_goes_wrong_is_told_and_the_rest_is_kept() {
    let directory = here();
    let path = directory.path();
    let faults = STUDY.replace("nodes = 5", "nodes = 5\nfaults = [\"\", \"1 crash n0\"]");
    let text = faults.replace("x = \"rate\"", "x = \"rate\"\nwhere = { faults = \"\" }");
    fs::write(path.join("locks.toml"), &text).expect("it can be written");
    for told in ["went wrong: ", "24 of 24 runs are there already"] {
        let output = vez(path, "lab sweep locks.toml");
        assert_eq!(output.status.code(), Some(1));
        let all = [output.stdout, output.stderr].concat();
        assert!(String::from_utf8_lossy(&all).contains(told));
    }
    let page = fs::read_to_string(path.join("locks/index.html")).expect("a page");
    assert!(page.contains("Runs that went wrong") && page.contains("faults 1 crash n0"));
    assert_eq!(vez(path, "lab sweep locks.toml --out s --shard 1/2").status.code(), Some(1));
}
