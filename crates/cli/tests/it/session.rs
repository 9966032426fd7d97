//! The session at the beginning of the README, as a newcomer would type it.

use std::{
    io::{BufRead, BufReader, Read},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// Whatever takes longer does not come at all.
const LONG: Duration = Duration::from_secs(60);

/// A line that is typed, and what is shown after it.
struct Typed {
    line: String,
    shown: Vec<String>,
}

fn session() -> Vec<Typed> {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let session = readme.split("<!-- session -->").nth(1).expect("it has a beginning");
    let session = session.split("<!-- /session -->").next().expect("it has an end");
    let mut typed: Vec<Typed> = Vec::new();
    // What is between the fences, and not between the blocks.
    for line in session.split("```").skip(1).step_by(2).flat_map(|block| block.lines().skip(1)) {
        match (line.strip_prefix("$ "), typed.last_mut()) {
            (Some(line), _) => typed.push(Typed { line: line.to_owned(), shown: Vec::new() }),
            (None, Some(last)) => last.shown.push(line.to_owned()),
            (None, None) => panic!("what is shown comes after what is typed: {line}"),
        }
    }
    typed
}

/// Numbers, addresses and folders differ; and which node a name has for its home. Exit codes do not.
fn alike(line: &str) -> String {
    let words = line.split(' ').map(|word| if word.starts_with('/') { "/…" } else { word });
    let line = words.collect::<Vec<_>>().join(" ");
    if line.contains("exit code") {
        return line;
    }
    let mut out = String::new();
    for letter in line.chars() {
        match letter {
            '0'..='9' if out.ends_with('#') => {}
            '0'..='9' => out.push('#'),
            other => out.push(other),
        }
    }
    out
}

fn shell(line: &str, home: &Path) -> Command {
    let vez = Path::new(env!("CARGO_BIN_EXE_vez")).parent().unwrap();
    let path = format!("{}:{}", vez.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("PATH", path).env("HOME", home).current_dir(home).stdin(Stdio::null());
    for name in ["VEZ_ADDR", "VEZ_CONFIG", "VEZ_PASSWORD", "RUST_LOG", "XDG_DATA_HOME"] {
        command.env_remove(name);
    }
    command
}

/// What runs beside the rest, and ends with this.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_session_of_the_readme_goes_as_shown() {
    assert!(
        TcpStream::connect("127.0.0.1:7400").is_err(),
        "something runs on this machine at 127.0.0.1:7400, where this test wants to start a cluster: stop it first"
    );
    let home = tempfile::tempdir().unwrap();
    let mut beside: Vec<Beside> = Vec::new();
    for Typed { line, shown } in session() {
        // What is typed in another terminal goes on there.
        let background = if line == "vez up" { Some(&*line) } else { line.strip_suffix(" &") };
        let Some(background) = background else {
            let output = shell(&line, home.path()).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let found: Vec<String> = text.lines().map(alike).collect();
            let shown: Vec<String> = shown.iter().map(|line| alike(line)).collect();
            assert_eq!(found.len(), shown.len(), "$ {line}\n{text}");
            // Why somebody would wait depends on where the home is.
            let compared = if line.starts_with("vez show") { 2 } else { shown.len() };
            assert_eq!(found[..compared], shown[..compared], "$ {line}");
            continue;
        };
        let mut child = shell(&format!("exec {background}"), home.path()).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        beside.push(Beside(child));
        for shown in &shown {
            let mut found = String::new();
            out.read_line(&mut found).unwrap();
            assert_eq!(alike(found.trim_end()), alike(shown), "$ {line}");
        }
        if background == "vez up" {
            std::thread::spawn(move || out.read_to_end(&mut Vec::new()));
        } else {
            let held = || shell("vez show orders", home.path()).output().unwrap().status.success();
            let begin = Instant::now();
            while !held() {
                assert!(begin.elapsed() < LONG, "nobody holds it");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    // TERM ends the cluster as Ctrl-C does, also while somebody holds something.
    let mut up = beside.remove(0);
    let pid = Pid::from_raw(i32::try_from(up.0.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(up.0.wait().unwrap().code(), Some(0));
}
