//! What the command line refuses, and how it says so.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path, process::Output, time::Duration};

use crate::machines::{Machines, vez};

/// Runs `vez` in a folder: its exit code, and what it says.
fn run(folder: &Path, password: Option<&OsStr>, words: &[&str]) -> (Option<i32>, String) {
    let mut command = vez();
    command.args(words).current_dir(folder);
    if let Some(password) = password {
        command.env("VEZ_PASSWORD", password);
    }
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn a_node_does_not_begin_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let free = "127.0.0.1:0";
    let node = |[client, http, peer]: [&str; 3], more: &[&str]| {
        let words = ["node", "--id", "1", "--data", "data", "--client", client, "--http", http, "--peer", peer];
        let (code, words) = run(folder.path(), None, &[&words[..], more].concat());
        assert_eq!(code, Some(2), "{words}");
        assert!(!folder.path().join("data").exists(), "nothing has begun");
        words
    };
    let words = node([free; 3], &[]);
    assert!(words.contains("--bootstrap") && words.contains("--join"), "{words}");
    let open = "0.0.0.0:0";
    for addresses in [[open, free, free], [free, open, free], [free, free, open]] {
        let words = node(addresses, &["--bootstrap"]);
        assert!(words.contains("0.0.0.0:0 can be reached from other machines"), "{words}");
        assert!(words.contains("--insecure"), "{words}");
    }
}

#[test]
fn a_password_that_cannot_be_read_is_not_none() {
    let folder = tempfile::tempdir().unwrap();
    let node = ["node", "--id", "1", "--data", "data", "--bootstrap"];
    for (password, told) in [(&b"\xff"[..], "VEZ_PASSWORD is no UTF-8"), (b"", "VEZ_PASSWORD is empty")] {
        let (code, words) = run(folder.path(), Some(OsStr::from_bytes(password)), &node);
        assert_eq!(code, Some(2));
        assert!(words.contains(told), "{words}");
    }
}

#[tokio::test]
async fn a_password_is_sent_only_where_one_has_said() {
    let machines = Machines::new(1, Duration::from_secs(20)).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), "secret\n").unwrap();
    // A folder that somebody else has written, with an address that is not plainly of this machine.
    let write = |addr: &str| {
        std::fs::write(folder.path().join("vez.toml"), format!("addr = \"{addr}\"\npassword-file = \"secret\"\n"))
            .unwrap();
    };
    write("0.0.0.0:1");
    for words in [&["status"][..], &["lock", "a", "true"]] {
        let (code, words) = run(folder.path(), None, words);
        assert_eq!(code, Some(2));
        assert!(words.contains("the password is not sent there unless you say so"), "{words}");
    }
    // This very machine is nobody else; and that node wants no password.
    write(&machines.node(1).client);
    let (code, words) = run(folder.path(), None, &["status"]);
    assert_eq!(code, Some(2));
    assert!(words.contains("wants no password"), "{words}");
}
