//! The experiments of the papers, as studies: the files of `experiments/`, which are in this program.

use include_dir::{Dir, include_dir};

use crate::study::{Study, StudyError};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../experiments");

/// The names of all experiments, in the order of the papers.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<(u64, &str)> = FILES
        .files()
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "toml"))
        .filter_map(|file| Some((place(file.contents_utf8()?), file.path().file_stem()?.to_str()?)))
        .collect();
    names.sort_unstable();
    names.into_iter().map(|(_, name)| name).collect()
}

/// The first line of a file says where it stands among the others: `# 3`.
fn place(text: &str) -> u64 {
    text.lines().next().and_then(|line| line.trim_start_matches('#').trim().parse().ok()).unwrap_or(u64::MAX)
}

/// The experiment of this name.
#[must_use]
pub fn find(name: &str) -> Option<Result<Study, StudyError>> {
    let text = FILES.get_file(format!("{name}.toml"))?.contents_utf8()?;
    Some(Study::parse(text))
}
