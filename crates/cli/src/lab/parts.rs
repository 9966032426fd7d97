//! The rows of a sweep while it is under way: a part for each shard, a line for each run.
//!
//! A line is written as soon as its run is over, so that nothing is lost when the sweep is interrupted. A part is locked while
//! somebody writes to it.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    sync::Mutex,
};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use vez_lab::study::{
    Work,
    table::{Row, Table},
};

/// What the first line of a part says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Which format this is.
    pub(crate) format: String,
    /// What the study is called.
    pub(crate) name: String,
    /// Which shard, from 1, of how many.
    pub(crate) shard: (usize, usize),
    /// Whether it is the quick form of the study.
    pub(crate) quick: bool,
    /// Where its randomness comes from.
    pub(crate) seed: u64,
    /// The whole file of the study.
    pub(crate) study: String,
}

/// The format that we write and read.
pub(crate) const FORMAT: &str = "vez-sweep-1";

/// A part that is open for writing.
pub(crate) struct Part {
    path: PathBuf,
    file: Mutex<File>,
    /// What could not be written, if anything.
    failed: Mutex<Option<io::Error>>,
}

/// The file of a part.
pub(crate) fn path(directory: &Path, name: &str, (i, n): (usize, usize)) -> PathBuf {
    directory.join("parts").join(format!("{name}-{i}-of-{n}.jsonl"))
}

impl Part {
    /// Opens a part, or makes one. The rows that it has come back.
    pub(crate) fn open(path: PathBuf, head: &Head) -> Result<(Self, Vec<Row>)> {
        let cannot = || format!("cannot write {}", path.display());
        fs::create_dir_all(path.parent().context("a part has a directory")?).with_context(cannot)?;
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).with_context(cannot)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("somebody else is writing {}; wait until that is done", path.display())
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
        }
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(|| format!("cannot read {}", path.display()))?;
        text.truncate(whole_lines(&text).len());
        file.set_len(text.len() as u64).and_then(|()| file.seek(io::SeekFrom::End(0))).with_context(cannot)?;
        let rows = if text.is_empty() {
            file.write_all(format!("{}\n", serde_json::to_string(head)?).as_bytes()).with_context(cannot)?;
            Vec::new()
        } else {
            let (found, rows) = parse(&text).with_context(|| path.display().to_string())?;
            if found != *head {
                bail!("{} is of another study; take another --out, or --fresh to begin anew", path.display());
            }
            rows
        };
        Ok((Self { path, file: Mutex::new(file), failed: Mutex::new(None) }, rows))
    }

    /// Adds a row.
    pub(crate) fn keep(&self, row: &Row) {
        let line = serde_json::to_string(row).map_err(io::Error::from).map(|line| line + "\n");
        let mut file = self.file.lock().expect("nobody panics while writing");
        let written = line.and_then(|line| file.write_all(line.as_bytes()));
        if let Err(error) = written {
            self.failed.lock().expect("nobody panics while writing").get_or_insert(error);
        }
    }

    /// Whether all could be written.
    pub(crate) fn finish(self) -> Result<PathBuf> {
        match self.failed.into_inner().expect("nobody panics while writing") {
            Some(error) => Err(error).with_context(|| format!("cannot write {}", self.path.display())),
            None => Ok(self.path),
        }
    }
}

/// A line without an end was being written when the sweep was interrupted.
fn whole_lines(text: &str) -> &str {
    &text[..text.rfind('\n').map_or(0, |end| end + 1)]
}

/// Reads a part: what it is of, and its rows.
pub(crate) fn parse(text: &str) -> Result<(Head, Vec<Row>)> {
    let mut lines = whole_lines(text).lines();
    let head = lines.next().and_then(|line| serde_json::from_str(line).ok());
    let head: Head = head.filter(|head: &Head| head.format == FORMAT).context("this is no part of a sweep")?;
    let rows = (2..)
        .zip(lines)
        .map(|(number, line)| serde_json::from_str(line).with_context(|| format!("line {number} is no row")));
    Ok((head, rows.collect::<Result<_>>()?))
}

/// Rows by their names. A row that the work does not ask for is an error: whoever wrote it may still want it.
pub(crate) fn by_name(work: &Work, rows: Vec<Row>, of: &Path) -> Result<BTreeMap<String, Row>> {
    let asked: std::collections::BTreeSet<String> = work.units.iter().map(|unit| work.name(&unit.key)).collect();
    let rows: BTreeMap<String, Row> = rows.into_iter().map(|row| (work.name(&row), row)).collect();
    let strange = rows.keys().filter(|name| !asked.contains(*name)).count();
    if strange > 0 {
        bail!(
            "{} has {strange} rows that this study does not ask for; take another --out, or --fresh to begin anew",
            of.display()
        );
    }
    Ok(rows)
}

/// The rows of a finished table, if there is one.
pub(crate) fn finished(path: &Path) -> Result<Vec<Row>> {
    match fs::read_to_string(path) {
        Ok(csv) => Table::rows_of(&csv).with_context(|| format!("cannot read {}", path.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}
