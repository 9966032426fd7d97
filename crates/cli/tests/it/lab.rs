//! `vez lab` from outside: what scripts rely on.

use assert_cmd::Command;
use serde_json::{Value, json};

/// Exit code, standard output, standard error.
fn vez(line: &str) -> (i32, String, String) {
    let output =
        Command::cargo_bin("vez").expect("the binary").args(line.split_whitespace()).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("an exit code"), text(output.stdout), text(output.stderr))
}

fn json(line: &str) -> Value {
    let (code, out, err) = vez(line);
    assert_eq!((code, err.as_str()), (0, ""), "{line}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{line}: {error}\n{out}"))
}

/// A mistake gets one sentence, and exit code 2.
fn refused(line: &str, sentence: &str) {
    let (code, out, err) = vez(line);
    assert_eq!((code, out.as_str(), err.trim_end()), (2, "", sentence), "{line}");
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(&file, text).expect("it can be written");
    file
}

#[test]
fn list() {
    let list = json("lab list --json");
    let names: Vec<&str> = list.as_array().expect("an array").iter().filter_map(|a| a["name"].as_str()).collect();
    assert_eq!(names.len(), 31);
    for entry in list.as_array().expect("an array") {
        for field in ["name", "family", "assumptions", "cost", "paper"] {
            assert!(!entry[field].is_null(), "{field} of {entry}");
        }
    }
    let (code, out, _) = vez("lab list");
    assert_eq!(code, 0);
    assert!(names.iter().all(|name| out.contains(name)));
}

#[test]
fn run_reports_what_was_asked_for() {
    let report = json("lab run nxr --nodes 7 --entries 2000 --runs 3 --rate 0.2 --topology line --json");
    assert_eq!(report["algorithm"], "nxr");
    assert_eq!(report["nodes"], 7);
    assert_eq!(report["topology"], "line");
    assert_eq!(report["rate"], 0.2);
    assert_eq!((&report["runs"], &report["entries"], &report["violations"]), (&3.into(), &2000.into(), &0.into()));
    for field in ["mean", "ci95"] {
        assert!(report["messages_per_entry"][field].is_number(), "{field}");
    }
    for field in ["mean", "ci95", "p50", "p95", "p99"] {
        assert!(report["wait"][field].is_number(), "{field}");
    }
    let by_type: u64 = report["messages_by_type"].as_object().expect("kinds").values().filter_map(Value::as_u64).sum();
    let mean = report["messages_per_entry"]["mean"].as_f64().expect("a number");
    assert!((by_type as f64 / 6000.0 - mean).abs() < 1e-9, "the kinds add up");
    assert!(report["deliveries"].as_u64() >= Some(by_type) && report["seconds"].is_number());
}

/// Whoever is cut off waits while the others go on: an average over those that were served hides it.
#[test]
fn run_says_who_was_never_served() {
    let faults = file("0 partition n0 n1 n2 n3 | n4\n");
    let line = format!("lab run central --nodes 5 --entries 500 --runs 2 --faults {}", faults.path().display());
    let report = json(&format!("{line} --json"));
    assert_eq!(
        (&report["starving"]["node"], &report["faults"][0]),
        (&4.into(), &"0 partition n0 n1 n2 n3 | n4".into())
    );
    assert!(report["starving"]["waited"].as_f64() > report["wait"]["max"].as_f64());
    let (code, out, _) = vez(&line);
    assert!(code == 0 && out.contains(" n4 had waited for "), "{out}");
    let (_, out, _) = vez(&format!("{line} --csv"));
    assert!(out.contains(",0 partition n0 n1 n2 n3 | n4,"), "{out}");
}

/// Who tells of crashes, and how often it looks, decides what comes out.
#[test]
fn run_says_who_tells_of_crashes() {
    let line = "lab run robust-k-direct --nodes 4 --k 1 --entries 100 --runs 1 --period 9 --detector oracle";
    let report = json(&format!("{line} --json"));
    assert_eq!(report["settings"], json!({ "k": 1, "patience": 0.25, "period": 9.0, "detector": "oracle" }));
    assert!(vez(line).1.contains("period = 9.0, detector = oracle"), "{}", vez(line).1);
}

#[test]
fn an_ordeal_can_be_written_down() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("bully.jsonl");
    let line = format!("lab ordeal bully --first 17 --ordeals 1 --trace {}", file.display());
    assert_eq!(vez(&line).0, 0);
    let trace = std::fs::read_to_string(&file).expect("it was written");
    assert!(trace.contains("\"kind\":\"crash\"") && trace.lines().count() > 20, "{trace}");
    refused(
        "lab ordeal bully ring --trace x",
        "vez: a trace is of one algorithm, and there are 2; name one, such as vez lab ordeal bully",
    );
}

#[test]
fn the_same_seed_prints_the_same() {
    let line = "lab run maekawa --nodes 13 --quorum plane --entries 500 --runs 4 --json";
    let strip = |mut report: Value| {
        report.as_object_mut().expect("an object").remove("seconds");
        report
    };
    assert_eq!(strip(json(line)), strip(json(line)));
    assert_ne!(strip(json(line)), strip(json(&format!("{line} --seed 2"))));
    let (trace, again) = (vez("lab trace fila --entries 30"), vez("lab trace fila --entries 30"));
    assert_eq!(trace, again);
}

#[test]
fn csv_has_a_line_of_names_and_one_of_values() {
    let (code, out, _) = vez("lab run central --entries 100 --runs 2 --csv");
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((code, lines.len(), lines[0].len()), (0, 2, lines[1].len()));
    assert!(lines[0].contains(&"messages_per_entry_mean") && lines[1][0] == "central");
}

#[test]
fn check_says_whether_the_laws_hold() {
    let report = json("lab check ricart-agrawala --json");
    assert_eq!(
        (&report["verdict"], &report["network"], &report["requests"]),
        (&"holds".into(), &"any".into(), &2.into())
    );
    assert_eq!((&report["states"], &report["nodes"]), (&36883.into(), &3.into()));
    assert_eq!(report["worst"]["messages_per_entry"], 4.0);
    assert_eq!(report["worst"]["bypasses"], 3);
    assert!(report["seconds"].is_number() && report["transitions"].is_number());

    let (code, out, _) = vez("lab check lamport --network any --json");
    let report: Value = serde_json::from_str(&out).expect("json");
    assert_eq!((code, &report["verdict"], &report["steps"]), (1, &"violated".into(), &10.into()));
    let (code, out, _) = vez("lab check lamport --network any");
    assert_eq!(code, 1);
    assert!(out.contains("violated: n0 and n1 are inside together, after 10 steps:\n\nask n0\n"), "{out}");
    // Other shapes and quorums are explored too.
    assert_eq!(vez("lab check raymond --nodes 4 --requests 1 --topology line").0, 0);
    assert_eq!(vez("lab check maekawa --nodes 4 --requests 1 --quorum star").0, 0);
    assert_eq!(vez("lab check fila-forest --nodes 4 --unbounded --exact").0, 0);
}

#[test]
fn trace_is_json_lines() {
    let path = tempfile::tempdir().expect("a temporary folder");
    let file = path.path().join("trace.jsonl");
    let (code, out, _) =
        vez(&format!("lab trace central-denying --nodes 3 --arrivals saturated --out {}", file.display()));
    assert_eq!((code, out.as_str()), (0, ""));
    let trace = std::fs::read_to_string(file).expect("it was written");
    let lines: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).expect("json")).collect();
    assert_eq!((&lines[0]["kind"], &lines[0]["algorithm"]), (&"system".into(), &"central-denying".into()));
    assert!(lines.iter().all(|line| line["time"].is_number() && line["kind"].is_string()));
    assert_eq!(lines.iter().filter(|line| line["kind"] == "enter").count(), 10);
    let inputs = ["start", "ask", "leave", "receive", "fire"];
    for line in &lines {
        let is_input = inputs.contains(&line["kind"].as_str().expect("a kind"));
        assert_eq!(is_input, line["state"].is_object(), "{line}");
    }
}

#[test]
fn mistakes_are_named_and_mended() {
    refused("lab run rikart", "vez: unknown algorithm \"rikart\"; did you mean ricart-agrawala?");
    refused("lab check zzz", "vez: unknown algorithm \"zzz\"; see vez lab list");
    refused("lab run nxr --rate 0", "vez: rate is 0; it must be above 0, such as --rate 0.1");
    refused("lab run nxr --rate -1", "vez: rate is -1; it must be above 0, such as --rate 0.1");
    refused("lab run nxr --rate NaN", "vez: rate is NaN; it must be above 0, such as --rate 0.1");
    refused("lab run nxr --delay 0", "vez: delay is 0; it must be above 0, such as --delay 0.1");
    refused("lab run nxr --hold -1", "vez: hold is -1; it must be 0 or above, such as --hold 0.01");
    refused(
        "lab run nxr --runs 0",
        "vez: runs is 0; there must be at least one, and an end to them, such as --runs 10",
    );
    refused(
        "lab run nxr --entries 0",
        "vez: entries is 0; there must be something to measure, and an end to it, such as --entries 100000",
    );
    refused("lab run nxr --nodes 0", "vez: a system of 0 nodes does nothing; take at least 1");
    refused("lab check nxr --nodes 0", "vez: a system of 0 nodes does nothing; take at least 1");
    refused("lab check nxr --requests 0", "vez: requests is 0; clients that never ask show nothing, try --requests 1");
    refused(
        "lab check nxr --nodes 99",
        "vez: 99 nodes are too many to explore; take at most 16, or simulate them with vez lab run",
    );
    refused(
        "lab run maekawa --quorum plane --nodes 8",
        "vez: no projective plane has 8 points: that takes q² + q + 1 with q a prime power; the nearest are 7 and 13, \
         and a grid takes any number",
    );
    refused(
        "lab check suzuki-kasami --unbounded --max-states 1000",
        "vez: there are more than 1000 states, and with requests for ever perhaps no end of them; try --requests 2",
    );
    refused("lab run nxr --faults /nowhere", "vez: cannot read /nowhere: No such file or directory (os error 2)");
    refused(
        "lab run nxr --arrivals saturated --hot 1:0.5",
        "vez: hot shifts a rate, and saturated or scripted clients have none; take closed, periodic or queued arrivals",
    );
    let nobody = "vez: k is 0 and nobody could enter; take at least 1, such as --k 2";
    for line in
        ["run raymond-k", "run ledger", "check robust-k", "trace robust-k-direct", "run superpeers-by-repulsion"]
    {
        refused(&format!("lab {line} --k 0"), nobody);
    }
    refused("lab run robust-k --k 32", "vez: k is 32 but there are only 31 nodes; take at most 31, or more --nodes");
    refused("lab check raymond-k --k 4", "vez: k is 4 but there are only 3 nodes; take at most 3, or more --nodes");
    refused(
        "lab run nxr --k 2",
        "vez: nxr has no setting k; these have: raymond-k, robust-k-direct, robust-k, ledger, superpeers-by-repulsion",
    );
    refused(
        "lab run fila --period 1",
        "vez: fila has no setting period; these have: central-failover, robust-k-direct, robust-k, hi-adsd, spanning-tree, \
         superpeers-by-repulsion",
    );
    refused(
        "lab check fila --instant",
        "vez: --instant makes no difference to fila, which does not count on time; * marks those that do in vez lab list",
    );
    refused(
        "lab run group-quorum --groups 0",
        "vez: there are 0 groups to choose from; take at least 1, such as --groups 3",
    );
    refused(
        "lab check ledger-group --groups 4000000000",
        "vez: 4000000000 groups are too many to choose from; take at most 65536",
    );
    refused("lab check nxr --askers 4", "vez: askers is 4 but there are only 3 nodes; take at most 3");
    refused(
        "lab ordeal bully --ordeals 0",
        "vez: ordeals is 0; take at least 1 and at most 10000000, such as --ordeals 100",
    );
    let last = u64::MAX;
    refused(
        &format!("lab ordeal bully --first {last}"),
        &format!("vez: first is {last}; there are not so many after it, try --first 0"),
    );
    let no_majority = "vez: 2 of 5 votes are no majority, and two could have them; take at least 3";
    refused("lab run voting --majority 2", no_majority);
    refused("lab check voting --replicas 4 --majority 2", &no_majority.replace('5', "4"));
    refused("lab run voting --majority 6", "vez: a majority of 6 cannot be reached with 5 replicas; take at most 5");
    refused(
        "lab run superpeers-by-prefix --bits 8 --prefix 9",
        "vez: the first 9 bits of 8 cannot be reserved; take --prefix 8 or less",
    );
    refused("lab run bully --patience 0", "vez: patience is 0; take a time from 1e-6 to 1e6, such as 1");
    refused(
        "lab check bully --restarts 1",
        "vez: nobody returns who has not crashed; add --crashes 1, or take away --restarts",
    );
    refused(
        "lab check nxr --false-suspicions 1",
        "vez: nxr asks no failure detector that could be wrong; + marks those that do in vez lab list",
    );
    refused(
        "lab ordeal nxr",
        "vez: nxr claims to survive nothing, and so nothing would go wrong; vez lab list says who does",
    );
    let script = file("5 crash n2\n7 recover n2\n");
    refused(
        &format!("lab run nxr --faults {}", script.path().display()),
        &format!(
            "vez: {}: line 2: unknown fault \"recover\"; there are crash, restart, resets, partition, heal, loss and duplicate",
            script.path().display()
        ),
    );
    let script = file("5 crash n31\n");
    refused(
        &format!("lab run nxr --faults {}", script.path().display()),
        "vez: the fault script speaks of n31, but the last of 31 nodes is n30",
    );
    refused(
        "lab run nxr --topology ring",
        "vez: invalid value 'ring' for '--topology <SHAPE>': unknown topology \"ring\"; there are binary, tree:K, line, \
         star, random, hypercube, grid and geometric; see --help",
    );
    refused("lab run nxr --rat 1", "vez: unexpected argument '--rat' found; a similar argument exists: '--rate'");
    refused("lab run", "vez: the following required arguments were not provided: <ALGORITHM>; see --help");
    refused("lab run nxr --nodes 300000", "vez: 300000 nodes are too many; take at most 200000");
    refused("lab run nxr --delay 1e19", "vez: delay is 10000000000000000000; take one from 1e-6 to 1e6");
    refused("lab run nxr --hold 1e308 --rate 1", &format!("vez: hold is {}; take at most 1e6", 1e308));
    let most = u64::MAX;
    refused(
        &format!("lab run nxr --run {most}"),
        &format!("vez: invalid value '{most}' for '--run <NUMBER>': {most} is not in 0..{most}; see --help"),
    );
    refused(
        &format!("lab run nxr --runs {most}"),
        &format!("vez: runs is {most}; there must be at least one, and an end to them, such as --runs 10"),
    );
    refused(
        &format!("lab run nxr --warmup {most}"),
        &format!("vez: warmup is {most}; there must be an end to it, such as --warmup 1000"),
    );
    let empty = file("# nobody asks\n");
    refused(
        &format!("lab run nxr --script {}", empty.path().display()),
        "vez: script is 0 requests long; there must be requests in it, and more than --warmup leaves out",
    );
}

#[test]
fn a_run_that_goes_wrong_names_the_command_that_repeats_it() {
    let faults = file("0 duplicate 0.5\n");
    let line = format!("lab run ricart-agrawala --nodes 5 --runs 4 --rate 1 --faults {}", faults.path().display());
    let (code, out, err) = vez(&line);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("objects: a Reply that nobody waits for (run 0, at time "), "{err}");
    let replay = err.lines().find_map(|line| line.strip_prefix("vez: to repeat it: vez ")).expect("a command");
    assert!(replay.ends_with("--run 0") && !replay.contains("--runs"), "{replay}");
    let (again, _, err_again) = vez(replay);
    assert_eq!((again, err_again), (1, err), "the same run, the same end");

    let (code, out, _) = vez(&format!("{line} --json"));
    let report: Value = serde_json::from_str(&out).expect("json");
    assert_eq!((code, &report["violations"], &report["run"]), (1, &1.into(), &0.into()));
}

#[test]
fn a_script_is_played_to_its_end() {
    let script = file("# two that do not meet, two that do\n1 n3\n5 n0\n9 n1\n9 n2\n");
    let report = json(&format!("lab run suzuki-kasami --nodes 4 --script {} --runs 1 --json", script.path().display()));
    assert_eq!(report["entries"], 4);
    assert_eq!(report["messages_per_entry"]["mean"], 4.0);
    assert_eq!(report["rate"], Value::Null);
}

#[test]
fn whoever_has_read_enough_may_leave() {
    use std::process::{Command as Std, Stdio};
    let binary = assert_cmd::cargo::cargo_bin("vez");
    let mut child = Std::new(binary)
        .args(["lab", "trace", "nxr", "--entries", "100000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}
