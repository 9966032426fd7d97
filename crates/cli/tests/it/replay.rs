//! `vez lab replay` from outside.

use std::path::Path;

use assert_cmd::Command;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Exit code, standard output, standard error.
fn vez(directory: &Path, line: &str, stdin: &str) -> (i32, String, String) {
    let output = Command::cargo_bin("vez")
        .expect("the binary")
        .current_dir(directory)
        .args(line.split_whitespace())
        .write_stdin(stdin)
        .output()
        .expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("an exit code"), text(output.stdout), text(output.stderr))
}

/// A directory with a trace in it, and the trace.
fn traced(arguments: &str) -> (TempDir, String) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (code, _, err) = vez(directory.path(), &format!("lab trace {arguments} --out run.jsonl"), "");
    assert_eq!((code, err.as_str()), (0, ""));
    let text = std::fs::read_to_string(directory.path().join("run.jsonl")).expect("it was written");
    (directory, text)
}

fn write(directory: &TempDir, name: &str, text: &str) {
    std::fs::write(directory.path().join(name), text).expect("it can be written");
}

/// The trace of `docs/trace.md`: line 5 is a request, 7 the reply to it.
const SMALL: &str = "ricart-agrawala --nodes 2 --entries 1";

#[test]
fn the_algorithm_does_the_same() {
    let (directory, text) = traced(SMALL);
    assert!(
        include_str!("../../../../docs/trace.md").contains(&format!("```json\n{text}```\n")),
        "the page shows another"
    );
    let same = "9 lines, 5 inputs of 2 nodes, 1 entry: the algorithm does the same\n";
    let replay = |line, stdin| vez(directory.path(), line, stdin);
    assert_eq!(replay("lab replay run.jsonl", ""), (0, format!("run.jsonl: {same}"), String::new()));
    assert_eq!(replay("lab replay -", &text), (0, format!("standard input: {same}"), String::new()));
    let both = format!("run.jsonl: {same}standard input: {same}");
    assert_eq!(replay("lab replay run.jsonl -", &text), (0, both, String::new()));
}

#[test]
fn every_way_to_write_a_trace() {
    for detector in ["hi-adsd", "oracle"] {
        let (directory, _) = traced(&format!("robust-k --nodes 5 --entries 20 --detector {detector}"));
        let line = format!("lab ordeal bully --first 17 --ordeals 1 --trace ordeal.jsonl --detector {detector}");
        assert_eq!(vez(directory.path(), &line, "").0, 0);
        let (code, out, err) = vez(directory.path(), "lab replay run.jsonl ordeal.jsonl", "");
        assert_eq!((code, out.matches(": the algorithm does the same\n").count(), err.as_str()), (0, 2, ""), "{out}");
    }
}

#[test]
fn a_difference_is_shown_with_what_came_before() {
    let (directory, text) = traced(SMALL);
    let sends = "\"kind\":\"send\",\"peer\":0,\"message\":\"Reply\"";
    assert!(text.lines().nth(6).is_some_and(|line| line.contains(sends)), "{text}");
    write(&directory, "other.jsonl", &text.replace(sends, "\"kind\":\"cancel\",\"timer\":\"Retry\""));
    let (code, out, err) = vez(directory.path(), "lab replay other.jsonl run.jsonl", "");
    assert_eq!((code, out.lines().count()), (1, 1), "the other file is replayed all the same");
    let told: Vec<&str> = err.lines().collect();
    let sentence = "vez: other.jsonl: line 7: n1 cancels \"Retry\" there; the algorithm sends Reply to n0";
    assert_eq!((told.len(), told[6]), (7, sentence), "{err}");
    let numbers: Vec<&str> = told[..6].iter().map(|line| &line[..3]).collect();
    assert_eq!(numbers, ["2  ", "3  ", "4  ", "5  ", "6  ", "7  "]);
    assert!(told[0].starts_with("2  {\"time\":0.0,\"node\":0,\"kind\":\"start\",\"state\":{"), "{err}");
}

#[test]
fn a_broken_law() {
    let (directory, _) = traced(SMALL);
    // Without FIFO Lamport's algorithm lets two in; the simulator says so, and so does the trace.
    let line = "lab trace lamport --nodes 4 --network any --arrivals saturated --entries 5000 --out broken.jsonl";
    let (code, _, simulated) = vez(directory.path(), line, "");
    assert_eq!(code, 1, "{simulated}");
    let (code, out, err) = vez(directory.path(), "lab replay broken.jsonl", "");
    assert_eq!((code, out.as_str()), (1, ""));
    let last = err.lines().last().expect("a sentence");
    assert!(last.contains(": the law is broken: n") && last.ends_with(" are inside together"), "{last}");
}

#[test]
fn a_file_that_breaks_off() {
    let (directory, text) = traced(SMALL);
    let lines: Vec<&str> = text.lines().collect();
    let midst = |line| format!("the algorithm does the same; the trace ends in the midst of line {line}\n");
    write(&directory, "killed.jsonl", &(lines[..6].join("\n") + "\n"));
    write(&directory, "torn.jsonl", &(lines[..7].join("\n") + "\n{\"time\":4.9"));
    let (code, out, err) = vez(directory.path(), "lab replay killed.jsonl torn.jsonl", "");
    let killed = format!("killed.jsonl: 6 lines, 4 inputs of 2 nodes, 0 entries: {}", midst(6));
    let torn = format!("torn.jsonl: 8 lines, 4 inputs of 2 nodes, 0 entries: {}", midst(8));
    assert_eq!((code, out, err.as_str()), (0, killed + &torn, ""));
}

#[test]
fn some_of_the_nodes() {
    let (directory, text) = traced("nxr --nodes 7 --entries 20");
    let some: Vec<&str> = text.lines().filter(|line| !line.contains("\"node\":3,")).collect();
    write(&directory, "some.jsonl", &(some.join("\n") + "\n"));
    let (code, out, err) = vez(directory.path(), "lab replay some.jsonl", "");
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains(" inputs of 6 of 7 nodes, "), "{out}");
}

#[test]
fn what_is_no_trace() {
    let (directory, text) = traced(SMALL);
    write(&directory, "empty", "");
    write(&directory, "poem", "Hello\nworld\n");
    write(&directory, "later.jsonl", &text.replace("vez-trace-1", "vez-trace-2"));
    write(&directory, "name.jsonl", &text.replace("ricart-agrawala", "rikart-agrawala"));
    write(&directory, "odd.jsonl", &text.replacen("\"kind\":\"enter\"", "\"kind\":\"center\"", 1));
    let refused = |name: &str, sentence: &str| {
        let (code, out, err) = vez(directory.path(), &format!("lab replay {name}"), "");
        assert_eq!((code, out.as_str(), err.trim_end()), (2, "", format!("vez: {name}: {sentence}").as_str()));
    };
    let no_header =
        "line 1: no header, and so no trace; its first line is of kind \"system\", as vez lab trace writes it";
    refused("empty", no_header);
    refused("poem", no_header);
    refused("later.jsonl", "line 1: the format is \"vez-trace-2\", which is unknown here; there is vez-trace-1");
    refused("name.jsonl", "line 1: unknown algorithm \"rikart-agrawala\"; did you mean ricart-agrawala?");
    refused("odd.jsonl", "line 9: unknown kind \"center\"; see docs/trace.md");
    let (code, out, err) = vez(directory.path(), "lab replay nowhere.jsonl run.jsonl", "");
    assert_eq!((code, out.lines().count()), (2, 1));
    assert!(err.starts_with("vez: cannot read nowhere.jsonl: ") && err.lines().count() == 1, "{err}");
    let (code, _, err) = vez(directory.path(), "lab replay", "");
    assert_eq!((code, err.lines().count()), (2, 1), "{err}");
}

#[test]
fn in_json() {
    let (directory, text) = traced(SMALL);
    write(&directory, "other.jsonl", &text.replacen("\"clock\":1", "\"clock\":2", 1));
    write(&directory, "empty", "");
    let (code, out, _) = vez(directory.path(), "lab replay run.jsonl other.jsonl empty nowhere --json", "");
    assert_eq!(code, 2);
    let report: Value = serde_json::from_str(&out).expect("json");
    let verdicts: Vec<&str> =
        report.as_array().expect("an array").iter().filter_map(|of| of["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["same", "parted", "unreadable", "unreadable"]);
    let same = &report[0];
    assert_eq!((&same["file"], &same["algorithm"]), (&json!("run.jsonl"), &json!("ricart-agrawala")));
    for (field, number) in
        [("nodes", 2), ("present", 2), ("lines", 9), ("inputs", 5), ("effects", 3), ("messages", 2), ("entries", 1)]
    {
        assert_eq!(same[field], number, "{field}");
    }
    assert!(same["span"].as_f64() > Some(4.9) && same["ends_within"].is_null(), "{same}");
    let what = "state.clock of n0 is 2 there; the algorithm has 1";
    assert_eq!(report[1], json!({ "file": "other.jsonl", "verdict": "parted", "line": 4, "what": what }));
    assert_eq!((&report[2]["line"], &report[3]["line"]), (&json!(1), &Value::Null));
}

#[test]
fn the_help_has_examples() {
    let (directory, _) = traced(SMALL);
    let (code, out, _) = vez(directory.path(), "lab replay --help", "");
    assert!(code == 0 && out.contains("vez lab replay nxr.jsonl") && out.contains("Exit code: 0"), "{out}");
}
