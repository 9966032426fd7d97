//! `redis-cli`, as it comes from Redis. Where there is none, there is nothing to be shown.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use tokio::io::AsyncWriteExt;

use crate::machines::{Machines, finish, process};

/// What `redis-cli` prints for some lines; none if it is not installed.
async fn redis_cli(machines: &Machines, options: &[&str], lines: &str) -> Option<String> {
    let (host, port) = machines.node(2).client.split_once(':').unwrap();
    let mut command = process(Command::new("redis-cli"));
    command.args(["-h", host, "-p", port]).args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().ok()?;
    child.stdin.take().unwrap().write_all(lines.as_bytes()).await.unwrap();
    let output = finish(child).await;
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[tokio::test]
async fn redis_cli_takes_and_releases_a_lock() {
    let machines = Machines::new(3, Duration::from_secs(20)).await;
    for options in [&[][..], &["-3"]] {
        let Some(said) = redis_cli(&machines, options, "PING\nLOCK orders/42 WAIT 1000\nLOCK orders/42\n").await else {
            eprintln!("there is no redis-cli here");
            return;
        };
        let said: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!((said[0], said[1].len()), ("PONG", 20), "{said:?}");
        assert!(said[2].starts_with("ALREADYYOURS "), "{said:?}");
        // Its connection has ended, and with it all that it held.
        let next = machines.lock(1, "orders/42").await;
        assert!(next.fence().to_string().as_str() > said[1]);
        let lines = "LOCK orders/42 WAIT 0\nSHOW orders/42\nSTATUS\nINFO\nLS\nHGET a b\n";
        let said = redis_cli(&machines, options, lines).await.unwrap();
        assert!(said.starts_with('\n'), "nil: {said:?}");
        let fence = next.fence().to_string();
        for word in [&*fence, "ready", "vez_version:", "orders/42", "ERR unknown command 'HGET'"] {
            assert!(said.contains(word), "{word} is not in {said}");
        }
        next.release().await.unwrap();
    }
}
