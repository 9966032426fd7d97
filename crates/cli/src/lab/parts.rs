//! The rows of a sweep while it is under way: a part for each shard, a line for each run.
//!
//! A line is written as soon as its run is over, so that nothing is lost when the sweep is interrupted. A part is locked while
//! somebody writes to it.

use std::{
    collections::{BTreeMap, BTreeSet},
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
    /// Which vez wrote it.
    pub(crate) version: String,
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
}

/// The file of a part.
pub(crate) fn path(directory: &Path, name: &str, (i, n): (usize, usize)) -> PathBuf {
    directory.join("parts").join(format!("{name}-{i}-of-{n}.jsonl"))
}

impl Part {
    /// Opens a part, or makes one, and keeps others from writing to it. The rows that it has come back, unless it is to begin
    /// anew.
    pub(crate) fn open(path: PathBuf, head: &Head, fresh: bool) -> Result<(Self, Vec<Row>)> {
        let cannot = || format!("cannot write {}", path.display());
        fs::create_dir_all(path.parent().context("a part has a directory")?).with_context(cannot)?;
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(false).open(&path).with_context(cannot)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("somebody else is writing {}; wait until that is done", path.display())
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
        let rows = if fresh || whole_lines(&bytes).is_empty() {
            Vec::new()
        } else {
            let (found, rows) = parse(&bytes).with_context(|| path.display().to_string())?;
            // Other words, plots and claims are welcome: rows say themselves what they are of.
            if !rows.is_empty() && (Head { study: head.study.clone(), ..found }) != *head {
                bail!(
                    "{} is of another study, seed or version; take another --out, or --fresh to begin anew",
                    path.display()
                );
            }
            rows
        };
        let part = Self { path: path.clone(), file: Mutex::new(file) };
        part.write(head, &rows).with_context(cannot)?;
        Ok((part, rows))
    }

    /// Writes everything that is known so far.
    fn write(&self, head: &Head, rows: &[Row]) -> io::Result<()> {
        let mut text = serde_json::to_string(head)? + "\n";
        for row in rows {
            text += &(serde_json::to_string(row)? + "\n");
        }
        let mut file = self.file.lock().expect("nobody panics while writing");
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(text.as_bytes())
    }

    /// Adds a row.
    pub(crate) fn keep(&self, row: &Row) -> io::Result<()> {
        let line = serde_json::to_string(row)? + "\n";
        self.file.lock().expect("nobody panics while writing").write_all(line.as_bytes())
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it: what was in it is elsewhere now.
    pub(crate) fn remove(self) -> Result<()> {
        fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))?;
        // Other shards may have their parts there.
        let _ = fs::remove_dir(self.path.parent().unwrap_or(Path::new("")));
        Ok(())
    }
}

/// A line without an end was being written when the sweep was interrupted.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)]
}

/// Reads a part: what it is of, and its rows.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Head, Vec<Row>)> {
    let text = std::str::from_utf8(whole_lines(bytes)).context("this is no text")?;
    let mut lines = text.lines();
    let head = lines.next().and_then(|line| serde_json::from_str(line).ok());
    let is_good = |head: &Head| head.format == FORMAT && (1..=head.shard.1).contains(&head.shard.0);
    let head: Head = head.filter(is_good).context("this is no part of a sweep")?;
    if head.shard.1 > MOST_SHARDS {
        bail!("a sweep has at most {MOST_SHARDS} shards");
    }
    let rows = (2..)
        .zip(lines)
        .map(|(number, line)| serde_json::from_str(line).with_context(|| format!("line {number} is no row")));
    Ok((head, rows.collect::<Result<_>>()?))
}

/// Nobody has more machines.
pub(crate) const MOST_SHARDS: usize = 1_000_000;

/// Rows by their names. A row that the work does not ask for is an error: whoever wrote it may still want it.
pub(crate) fn by_name(work: &Work, rows: Vec<Row>, of: &Path, fix: &str) -> Result<BTreeMap<String, Row>> {
    let asked: BTreeSet<String> = work.names().collect();
    let rows: BTreeMap<String, Row> = rows.into_iter().map(|row| (work.name(&row), row)).collect();
    let strange = rows.keys().filter(|name| !asked.contains(*name)).count();
    if strange > 0 {
        bail!("{} has {strange} rows that this study does not ask for; {fix}", of.display());
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
