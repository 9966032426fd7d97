//! `vez lab risk` from outside.

use assert_cmd::Command;
use serde_json::Value;

/// Exit code, standard output, standard error.
fn risk(arguments: &str) -> (i32, String, String) {
    let output = Command::cargo_bin("vez")
        .expect("the binary")
        .args(["lab", "risk"])
        .args(arguments.split_whitespace())
        .output()
        .expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("an exit code"), text(output.stdout), text(output.stderr))
}

fn json(arguments: &str) -> Value {
    let (code, out, err) = risk(&format!("{arguments} --json"));
    assert_eq!((code, err.as_str()), (0, ""), "{arguments}");
    serde_json::from_str(&out).expect("json")
}

/// A mistake gets one sentence, and exit code 2.
fn refused(arguments: &str, sentence: &str) {
    let (code, out, err) = risk(arguments);
    assert_eq!((code, out.as_str(), err.trim_end()), (2, "", sentence), "{arguments}");
}

#[test]
fn a_small_table() {
    let (code, out, err) = risk("--replicas 5 --majority 4 --reset-probability 0.25");
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(
        out,
        "voting: 5 replicas, majority 4, each forgets with probability 0.25
a second one can get in if 3 of the 4 that voted forget: probability 5.078e-2

MAJORITY  MUST FORGET  PROBABILITY
       3            1     5.781e-1
       4            3     5.078e-2
       5            5     9.766e-4
"
    );
}

#[test]
fn the_lecture_in_json() {
    let report = json("--replicas 32 --majority 24 --reset-probability 0.000926");
    assert_eq!((&report["replicas"], &report["majority"]), (&32.into(), &24.into()));
    assert_eq!((&report["reset_probability"], &report["needed_resets"]), (&0.000926.into(), &16.into()));
    let probability = report["probability"].as_f64().expect("a number");
    assert!((probability / 2.134_578_095_096_032e-43 - 1.0).abs() < 1e-12);
    assert!((report["log10_probability"].as_f64().expect("a number") - probability.log10()).abs() < 1e-9);
    let table = report["table"].as_array().expect("a table");
    assert_eq!((table.len(), &table[0]["majority"], &table[15]["needed_resets"]), (16, &17.into(), &32.into()));
    assert_eq!(table[7]["probability"], report["probability"]);
}

#[test]
fn too_small_for_a_number() {
    let report = json("--replicas 32 --majority 32 --reset-probability 1e-30");
    assert!(report["probability"].is_null());
    assert!((report["log10_probability"].as_f64().expect("a number") + 960.0).abs() < 1e-9);
    let (_, out, _) = risk("--replicas 32 --majority 32 --reset-probability 1e-30");
    assert!(out.contains("probability 1.000e-960\n"), "{out}");
    let never = json("--replicas 3 --majority 2 --reset-probability 0");
    assert_eq!((&never["probability"], &never["log10_probability"]), (&0.0.into(), &Value::Null));
}

#[test]
fn mistakes() {
    let of = |n, m, p| format!("--replicas {n} --majority {m} --reset-probability {p}");
    let refuse = |n, m, p, sentence| refused(&of(n, m, p), sentence);
    refuse("32", "16", "0.1", "vez: 16 of 32 votes are no majority, and two could have them; take at least 17");
    refuse("32", "33", "0.1", "vez: a majority of 33 cannot be reached with 32 replicas; take at most 32");
    refuse("0", "1", "0.1", "vez: there are 0 replicas, and nobody to vote; take at least 1, such as --replicas 5");
    refuse("999999", "500001", "0.1", "vez: 999999 replicas are too many; take at most 16384");
    refuse("3", "2", "1.5", "vez: 1.5 is no probability; take a number from 0 to 1");
    refuse("3", "2", "-0.5", "vez: -0.5 is no probability; take a number from 0 to 1");
    refuse("3", "2", "NaN", "vez: NaN is no probability; take a number from 0 to 1");
    let (code, out, err) = risk("--replicas 3 --majority 2 --reset-probability often");
    assert_eq!((code, out.as_str(), err.lines().count()), (2, "", 1), "{err}");
    let (code, _, err) = risk("--majority 2");
    assert_eq!((code, err.lines().count()), (2, 1), "{err}");
}

#[test]
fn the_help_says_what_is_computed() {
    let (code, out, _) = risk("--help");
    assert_eq!(code, 0);
    assert!(
        out.contains("C(m,k) p^k (1-p)^(m-k)") && out.contains("The trials are the m that voted, not all n"),
        "{out}"
    );
}
