//! What the README shows is what the commands print. `UPDATE_GOLDENFILES=1` writes it anew.

use std::path::Path;

use assert_cmd::Command;

/// Runs every `$ vez …` that is followed by a block of text, and compares the block with what it prints.
#[test]
fn the_readme_shows_what_the_commands_print() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(&path).expect("there is a README");
    let mut written = String::new();
    let mut rest = readme.as_str();
    let mut shown = 0;
    while let Some((before, command, block, after)) = next_example(rest) {
        let found = run(command);
        if std::env::var_os("UPDATE_GOLDENFILES").is_none() {
            let compared = if command.starts_with("vez lab emulate") { without_numbers } else { without_times };
            assert_eq!(compared(block), compared(&found), "$ {command}");
        }
        written += before;
        written += &found;
        rest = after;
        shown += 1;
    }
    assert!(shown >= 3, "only {shown} examples found: has the README another form?");
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        std::fs::write(&path, written + rest).expect("the README can be written");
    }
}

/// The text up to the next block of output, the command that makes it, the block, and what follows.
fn next_example(text: &str) -> Option<(&str, &str, &str, &str)> {
    const FENCE: &str = "```\n```text\n";
    let at = text.find(FENCE)? + FENCE.len();
    let (before, after) = text.split_at(at);
    let command = before[..at - FENCE.len()].lines().last()?.strip_prefix("$ ")?;
    let end = after.find("```")?;
    Some((before, command, &after[..end], &after[end..]))
}

fn run(command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    assert_eq!(words[0], "vez", "only vez is run");
    let here = tempfile::tempdir().expect("a directory for what is written");
    let mut vez = Command::cargo_bin("vez").expect("the binary");
    let output = vez.current_dir(here.path()).args(&words[1..]).output().expect("it runs");
    String::from_utf8(output.stdout).expect("text")
}

/// How long something took differs from run to run.
fn without_times(text: &str) -> String {
    let is_time = |word: &str| word.parse::<f64>().is_ok();
    let mut words: Vec<&str> = text.split(' ').collect();
    for at in 1..words.len() {
        if (words[at].starts_with("s,") || words[at] == "s" || words[at] == "million") && is_time(words[at - 1]) {
            words[at - 1] = "…";
        }
    }
    words.join(" ")
}

/// What is measured in real time differs from run to run, and so does whether somebody waits for very long at its end.
fn without_numbers(text: &str) -> String {
    let line = |line: &str| {
        let line = line.split("; at the end of run").next().unwrap_or(line);
        let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
        line.split_whitespace().map(|word| if is_number(word) { "…" } else { word }).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}
