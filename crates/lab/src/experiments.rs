//! The experiments of the papers, as studies: the files of `experiments/`, which are in this program.

use include_dir::{Dir, include_dir};

use crate::study::{Study, StudyError};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../experiments");

static TRANSCRIPTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../transcripts");

/// The names of all experiments, in the order of the papers.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let files = FILES.files().filter_map(|file| file.path().to_str()?.strip_suffix(".toml"));
    let mut names: Vec<(u32, &str)> =
        files.map(|name| (find(name).and_then(Result::ok).map_or(u32::MAX, |study| study.place), name)).collect();
    names.sort_unstable();
    names.into_iter().map(|(_, name)| name).collect()
}

/// A file of `transcripts/`.
#[must_use]
pub fn transcript(path: &str) -> Option<&'static str> {
    TRANSCRIPTS.get_file(path)?.contents_utf8()
}

/// The experiment of this name.
#[must_use]
pub fn find(name: &str) -> Option<Result<Study, StudyError>> {
    let text = FILES.get_file(format!("{name}.toml"))?.contents_utf8()?;
    Some(Study::parse(text))
}
