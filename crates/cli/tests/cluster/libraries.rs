//! Lock libraries that were written for Redis, as they come from their registries. Installing them takes minutes, so they are
//! tried only with `VEZ_THOROUGH`, and not where a registry cannot be reached.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    time::timeout,
};

use crate::{
    machines::{Machines, finish, process},
    thorough,
};

const LEASE: Duration = Duration::from_millis(1500);
/// Building one of them takes a while.
const VERY_LONG: Duration = Duration::from_secs(600);
/// And so does what each of them shows.
const LONG: Duration = Duration::from_secs(180);

/// A library, and how its programme is run.
#[derive(Clone, Copy)]
enum Library {
    RedisPy,
    Redlock,
    Rslock,
}

fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/libraries")
}

/// Where they are installed, all of them once.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("libraries")
}

impl Library {
    fn name(self) -> &'static str {
        match self {
            Self::RedisPy => "python",
            Self::Redlock => "node",
            Self::Rslock => "rust",
        }
    }

    /// Installs it. False if that cannot be done here; in the gate it must be.
    async fn install(self) -> bool {
        static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
        let _turn = ONE_AT_A_TIME.lock().await;
        let mut command = Command::new(files().join("install"));
        command.arg(folder()).arg(self.name()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let installed = process(command).spawn().expect("it can be started").wait_with_output();
        let output = timeout(VERY_LONG, installed).await.expect("it ends").unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let needed = std::env::var_os("VEZ_LIBRARIES").is_some();
        assert!(output.status.success() || !needed, "{said}");
        if !output.status.success() {
            eprintln!("cannot be shown here: {said}");
        }
        output.status.success()
    }

    fn command(self) -> Command {
        let mut command = match self {
            Self::RedisPy => Command::new(folder().join("python/bin/python")),
            Self::Redlock => Command::new("node"),
            Self::Rslock => Command::new(folder().join("rslock")),
        };
        match self {
            Self::RedisPy => drop(command.arg(files().join("redis_py.py"))),
            Self::Redlock => drop(command.arg(files().join("redlock.mjs")).arg(folder())),
            Self::Rslock => {}
        }
        command
    }

    /// Everything that its programme knows, at three nodes; and what it does when the first of them is killed.
    async fn check(self) {
        if !thorough() {
            eprintln!("not tried without VEZ_THOROUGH=1");
            return;
        }
        if !self.install().await {
            return;
        }
        let machines = Machines::new(3, LEASE).await;
        let all = addresses(&machines);
        let mut command = self.command();
        command.arg(&all).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = finish(process(command).spawn().unwrap()).await;
        assert!(output.status.success(), "{}: {}", self.name(), String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout.starts_with(b"ok: "), "{output:?}");

        // Others, that have pledged to keep nothing yet.
        let mut machines = Machines::new(3, LEASE).await;
        let all = addresses(&machines);
        let mut command = self.command();
        command.arg("--kill").arg(&all);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = process(command).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let holding = timeout(LONG, said.next_line()).await.expect("it holds something").unwrap();
        assert_eq!(holding.as_deref(), Some("holding"));
        machines.nodes[0].kill();
        child.stdin.take().unwrap().write_all(b"killed\n").await.unwrap();
        let output = timeout(LONG, child.wait_with_output()).await.expect("it ends").unwrap();
        assert!(output.status.success(), "{}: {}", self.name(), String::from_utf8_lossy(&output.stderr));
    }
}

fn addresses(machines: &Machines) -> String {
    machines.nodes.iter().map(|node| &*node.client).collect::<Vec<_>>().join(",")
}

#[tokio::test]
async fn the_lock_class_of_redis_py() {
    Library::RedisPy.check().await;
}

#[tokio::test]
async fn redlock_of_npm() {
    Library::Redlock.check().await;
}

#[tokio::test]
async fn rslock() {
    Library::Rslock.check().await;
}
