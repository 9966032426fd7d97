//! `vez lab emulate`: processes, crashes, traces, mistakes.

use std::process::{Command, Output};

use serde_json::Value;
use vez_algorithms::catalog;

fn vez(words: &[&str]) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("vez")).args(words).output().expect("it runs")
}

fn json(words: &[&str]) -> Value {
    let output = vez(words);
    assert!(output.status.success(), "{words:?}: {output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn each_node_a_process() {
    for transport in ["udp", "tcp"] {
        let words =
            ["lab", "emulate", "fila", "--processes", "--nodes", "4", "--entries", "100", "--transport", transport];
        let report = json(&[&words[..], &["--json"]].concat());
        assert_eq!((&report["entries"], &report["violations"]), (&100.into(), &0.into()));
        assert_eq!(
            (&report["emulation"]["processes"], &report["emulation"]["transport"]),
            (&true.into(), &transport.into())
        );
        // What `vez lab run` has, this has.
        let run = json(&["lab", "run", "fila", "--nodes", "4", "--entries", "10", "--runs", "1", "--json"]);
        for field in run.as_object().expect("fields").keys() {
            assert!(report.get(field).is_some(), "{field} is missing");
        }
        let said = String::from_utf8(vez(&words).stdout).expect("text");
        for words in ["fila: 4 nodes, each thinks for 5.000 ms on average; 1 run of 100 entries", "processes, "] {
            assert!(said.contains(words), "{words:?} is not in:\n{said}");
        }
        assert!(said.contains("\nsimulated              2."), "{said}");
    }
}

#[test]
fn a_process_that_is_killed() {
    let survivor = ["lab", "emulate", "central-failover", "--processes", "--nodes", "4", "--entries", "200"];
    let report = json(&[&survivor[..], &["--crash", "n3@50ms", "--patience", "60ms", "--json"]].concat());
    assert_eq!((&report["entries"], &report["crashes"]), (&200.into(), &1.into()));
    let words = ["lab", "emulate", "ricart-agrawala", "--processes", "--nodes", "3", "--entries", "1000000"];
    let output = vez(&[&words[..], &["--crash", "n1@60ms"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.starts_with("vez: n1 crashes\nvez: ricart-agrawala is stuck after "), "{said}");
    assert!(
        said.contains("n1 crashed, and ricart-agrawala takes for granted that nobody does; these survive it:"),
        "{said}"
    );
}

/// Those who go on alone are not all: who waits for the dead is named.
#[test]
fn some_go_on_and_others_wait() {
    let words =
        ["lab", "emulate", "suzuki-kasami", "--nodes", "4", "--entries", "1000", "--hold", "2ms", "--think", "0"];
    let output = vez(&[&words[..], &["--crash", "n2@100ms"]].concat());
    let said = String::from_utf8(output.stderr).expect("text");
    // The token was lost with n2, or n2 stands in line for it and gets it sooner or later.
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("suzuki-kasami is stuck after ") && said.contains(": n2 crashed, and "), "{said}");
    let output = vez(&["lab", "emulate", "fila", "--nodes", "4", "--entries", "20", "--crash", "n2@60s"]);
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(
        (output.status.code(), said.as_str()),
        (Some(0), "vez: n2 was to crash at 60 s, but the run was over by then\n")
    );
}

/// What happened over sockets is what the algorithm does, effect by effect.
#[test]
fn traces_replay() {
    let folder = tempfile::tempdir().expect("a folder");
    let exclusion = |entry: &&catalog::Entry| ["mutex", "semaphore", "group"].contains(&entry.family);
    for entry in catalog::ALL.iter().filter(exclusion) {
        let path = folder.path().join(entry.name).display().to_string();
        let words =
            ["lab", "emulate", entry.name, "--nodes", "4", "--entries", "30", "--loss", "0.1", "--trace", &path];
        let patience: &[&str] = if entry.assumptions.survives_loss { &["--patience", "20ms"] } else { &[] };
        let output = vez(&[&words[..], patience].concat());
        assert!(output.status.success(), "{}: {output:?}", entry.name);
        let replay = json(&["lab", "replay", &path, "--json"]);
        // One more may have entered before the referee said that it was enough.
        assert!(replay[0]["entries"].as_u64().is_some_and(|entries| entries >= 30), "{}: {replay}", entry.name);
    }
    let path = folder.path().join("crash").display().to_string();
    let words = ["lab", "emulate", "ricart-agrawala-robust", "--nodes", "4", "--entries", "60", "--transport", "tcp"];
    let output =
        vez(&[&words[..], &["--processes", "--crash", "n2@50ms", "--patience", "40ms", "--trace", &path]].concat());
    assert!(output.status.success(), "{output:?}");
    let replay = vez(&["lab", "replay", &path]);
    assert!(replay.status.success(), "{replay:?}");
}

#[test]
fn a_mistake_gets_a_sentence() {
    let refuses = |words: &str, sentence: &str| {
        let output = vez(&[&["lab", "emulate"], &words.split(' ').collect::<Vec<_>>()[..]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), said.trim_end()), (Some(2), sentence), "{words}");
    };
    refuses("fil", "vez: unknown algorithm \"fil\"; did you mean fila?");
    refuses(
        "bully",
        "vez: nobody is ever inside of bully, which is of the family election; emulate one of mutex, semaphore or group",
    );
    refuses("fila --nodes 1", "vez: nodes is 1; take from 2 to 64");
    refuses("fila --nodes 65", "vez: nodes is 65; take from 2 to 64");
    refuses("fila --entries 0", "vez: entries is 0; there must be something to measure, such as --entries 1000");
    refuses("fila --hold -1ms", "vez: hold is -0.001 s; take from 0 to 3600 s, such as 1ms");
    refuses("fila --loss 1", "vez: loss is 1; take a share from 0 to 0.9, such as 0.1");
    refuses("fila --loss 0.1 --transport tcp", "vez: tcp loses nothing; take --transport udp, or leave --loss away");
    refuses("fila --crash n8@1s", "vez: n8 is to crash, but the last of 8 nodes is n7");
    refuses(
        "fila --crash 3",
        "vez: invalid value '3' for '--crash <NODE@TIME>': \"3\" is not NODE@TIME, such as n3@200ms; see --help",
    );
    refuses(
        "fila --think 5kg",
        "vez: invalid value '5kg' for '--think <TIME>': \"5kg\" is not a time; write one such as 200ms, 5s or 1.5s; \
         see --help",
    );
    refuses(
        "fila --transport smoke",
        "vez: invalid value 'smoke' for '--transport <TRANSPORT>': unknown transport \"smoke\"; there are udp and tcp; \
         see --help",
    );
    refuses(
        "fila --crash n3@200",
        "vez: invalid value 'n3@200' for '--crash <NODE@TIME>': 200 has no unit; write 200ms or 200s; see --help",
    );
    refuses(
        "voting --replicas 300",
        "vez: the number of nodes in all is 308; replicas and groups are nodes, too, and 64 are as many as there may be",
    );
    refuses(
        "fila --trace /no/such/folder/file",
        "vez: cannot write /no/such/folder/file: No such file or directory (os error 2)",
    );
}
