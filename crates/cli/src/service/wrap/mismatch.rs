//! A name that stands for something else: what it is, and what to do about it.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use anyhow::{Error, anyhow};
use vez::{Client, ClientError, Kind};

use crate::service::tell::plain;

/// The same error. If it is that a name stands for something else, it is said in the words of the command line.
pub(in crate::service) async fn explained(client: &Client, names: &[&OsStr], asked: Kind, error: ClientError) -> Error {
    if !matches!(&error, ClientError::Refused { code, .. } if code == "MISMATCH") {
        return error.into();
    }
    for name in names {
        let shown = client.call(&[b"SHOW", name.as_bytes()]).await.unwrap_or_default();
        let is = shown["kind"].as_str().and_then(kind).filter(|is| *is != asked);
        if let Some(is) = is {
            let name = plain(&name.to_string_lossy());
            return anyhow!("{}, or take another name", remedy(&name, is, asked, names.len() > 1));
        }
    }
    error.into() // It is not in use any more.
}

/// What a node calls it.
fn kind(word: &str) -> Option<Kind> {
    match word {
        "lock" => Some(Kind::Lock),
        "group" => Some(Kind::Group),
        "read-write lock" => Some(Kind::ReadWrite),
        "election" => Some(Kind::Election),
        _ => word.strip_prefix("semaphore of ")?.parse().ok().map(|units| Kind::Semaphore { units }),
    }
}

/// What it is, and how it is taken as that.
fn remedy(name: &str, is: Kind, asked: Kind, is_of_several: bool) -> String {
    match (is, asked) {
        (Kind::Lock, Kind::ReadWrite) => format!("{name} is a plain lock here: leave out -s and -x"),
        (Kind::Lock, _) => format!("{name} is a plain lock here: say `vez lock {name}`"),
        (Kind::ReadWrite, Kind::Lock) if is_of_several => {
            format!("{name} is used with -s and -x here, which are for one name: take it by itself")
        }
        (Kind::ReadWrite, Kind::Lock) => format!("{name} is used with -s and -x here: say one of them"),
        (Kind::ReadWrite, _) => format!("{name} is used with -s and -x here: say `vez lock -s {name}`"),
        (Kind::Semaphore { units }, Kind::Semaphore { units: asked }) => format!(
            "{name} is a semaphore of {units}, not of {asked}: say --limit {units}, change it with `vez sem {name} --resize {asked}`"
        ),
        (Kind::Semaphore { units }, _) => {
            format!("{name} is a semaphore of {units} here: say `vez sem {name} --limit {units}`")
        }
        (Kind::Group, _) => format!("{name} is a group here: say `vez group {name} SESSION`"),
        (Kind::Election, _) => format!("{name} is an election here: say `vez elect {name}`"),
    }
}
