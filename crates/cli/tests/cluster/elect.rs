//! `vez elect`: one command leads, and all can see which.

use std::{process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout},
    time::timeout,
};

use crate::machines::{LONG, Machines, finish};

/// Nothing in these tests waits for a lease to run out.
const LONG_LEASE: Duration = Duration::from_secs(50);

/// One who looks.
fn observe(machines: &Machines, more: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut command = machines.vez(2, &[&["elect", "s", "--observe"], more].concat());
    let mut observer = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(observer.stdout.take().unwrap()).lines();
    (observer, lines)
}

async fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    timeout(LONG, lines.next_line()).await.expect("it is seen").unwrap().expect("it goes on")
}

#[tokio::test]
async fn the_next_leads_when_the_first_is_killed_and_all_see_it() {
    let machines = Machines::new(2, LONG_LEASE).await;
    let (observer, mut lines) = observe(&machines, &[]);
    assert_eq!(next(&mut lines).await, "-");
    let now = async || machines.told(1, &["elect", "s"]).await;
    assert_eq!(now().await, (Some(1), "-\n".into(), String::new()));

    let mut first = machines.inside(1, &["elect", "s", "--value", "the first"]).await;
    let seen = next(&mut lines).await;
    let fence = seen.strip_suffix(" the first").expect("it leads").to_owned();
    assert_eq!(now().await, (Some(0), format!("{seen}\n"), String::new()));
    let second = machines.waiting(2, &["elect", "s"]);
    machines.waiters(1, "s", 1).await;
    assert_eq!(machines.told(2, &["elect", "-n", "-E", "9", "s", "true"]).await.0, Some(9));
    assert!(!second.was_in());
    first.wrapper.kill().await.unwrap();
    second.is_in().await;
    let (_other, mut late) = observe(&machines, &["--json"]);
    let process = second.wrapper.id().unwrap();
    let seen = next(&mut lines).await;
    let (later, value) = seen.split_once(' ').expect("a fence and a value");
    assert!(later > fence.as_str() && value.ends_with(&format!("[{process}]")), "{seen}");
    let object = format!("{{\"name\":\"s\",\"fence\":\"{later}\",\"value\":\"{value}\"}}");
    assert_eq!(next(&mut late).await, object);
    assert_eq!(second.end().await, Some(0));
    assert_eq!(next(&mut lines).await, "-");
    assert_eq!(next(&mut late).await, "{\"name\":\"s\",\"fence\":null,\"value\":null}");

    // Nothing is printed any more, and nobody would read it.
    drop(lines);
    assert_eq!(finish(observer).await.status.code(), Some(0));
}

#[tokio::test]
async fn who_ceases_to_lead_is_ended() {
    let machines = Machines::new(2, LONG_LEASE).await;
    let mut leads = machines.inside(1, &["elect", "s", "--value", "a"]).await;
    let _input = leads.wrapper.stdin.take(); // It does not end by itself.
    let (_, told, _) = machines.told(2, &["elect", "s"]).await;
    let fence = told.strip_suffix(" a\n").expect("it leads");
    let released = machines.told(2, &["release", "--force", "s", "--fence", fence]).await;
    assert_eq!(released, (Some(0), String::new(), String::new()));
    let output = finish(leads.wrapper).await;
    assert_eq!(output.status.code(), Some(75));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.starts_with("vez: s is lost, its node says so: "), "{words}");
}
