//! The rules in `mutants/*.toml`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::source::{self, FindError};

/// A deliberate fault, and how it is detected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mutant {
    /// Its name, unique in the workspace.
    pub name: String,
    /// Which point of the algorithm or the design it breaks, in one sentence.
    pub why: String,
    /// The law or the kind of test that detects it, in a few words.
    pub law: String,
    /// What it changes.
    pub edits: Vec<Edit>,
    /// What must fail when it is applied.
    pub detector: Detector,
    /// What the output of the detector must contain.
    pub expect: String,
}

/// One change of a file.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The file, relative to the root of the repository.
    pub file: PathBuf,
    /// The code to replace; it must match exactly once.
    pub find: String,
    /// What replaces it.
    pub replace: String,
}

/// What detects a mutant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Detector {
    /// `vez lab check` with these arguments finds a violation.
    Check(String),
    /// `cargo test` with these arguments fails.
    Test(String),
    /// One of the first storms, up to this many, breaks a law.
    Storm(u32),
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    why: String,
    law: String,
    file: Option<PathBuf>,
    find: Option<String>,
    replace: Option<String>,
    #[serde(default)]
    edits: Vec<Edit>,
    check: Option<String>,
    test: Option<String>,
    storm: Option<u32>,
    expect: Option<String>,
}

/// A file of rules.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    mutant: Vec<Written>,
}

/// A mistake in a rule.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    Io(PathBuf, io::Error),
    /// A file is not TOML, or has keys that rules do not have.
    #[error("{0}: {1}")]
    Syntax(PathBuf, toml::de::Error),
    /// A rule has neither one edit nor a list of edits, or both.
    #[error("{0}: needs either file, find and replace, or edits")]
    Edits(String),
    /// A rule has no detector, or more than one.
    #[error("{0}: needs exactly one of check, test and storm")]
    Detector(String),
    /// A rule does not say what the detector prints.
    #[error("{0}: needs expect")]
    Expect(String),
    /// Two rules have the same name.
    #[error("{0}: the name is used twice")]
    Duplicate(String),
    /// The code to replace cannot be found.
    #[error("{0}: {1}: {2}")]
    Find(String, PathBuf, FindError),
    /// An edit changes nothing, or two edits change the same code.
    #[error("{0}: {1}: {2}")]
    Edit(String, PathBuf, &'static str),
}

impl Written {
    fn checked(self) -> Result<Mutant, RuleError> {
        let name = self.name;
        let edits = match (self.file, self.find, self.replace, self.edits) {
            (Some(file), Some(find), Some(replace), edits) if edits.is_empty() => vec![Edit { file, find, replace }],
            (None, None, None, edits) if !edits.is_empty() => edits,
            _ => return Err(RuleError::Edits(name)),
        };
        let detector = match (self.check, self.test, self.storm) {
            (Some(check), None, None) => Detector::Check(check),
            (None, Some(test), None) => Detector::Test(test),
            (None, None, Some(storms)) => Detector::Storm(storms),
            _ => return Err(RuleError::Detector(name)),
        };
        let expect = match (self.expect, &detector) {
            (Some(expect), _) => expect,
            (None, Detector::Storm(_)) => "seed ".to_owned(),
            (None, _) => return Err(RuleError::Expect(name)),
        };
        Ok(Mutant { name, why: self.why, law: self.law, edits, detector, expect })
    }
}

/// Reads all rules of a directory, in the order of files and of rules within them.
///
/// # Errors
/// At the first rule with a mistake.
pub fn load(directory: &Path) -> Result<Vec<Mutant>, RuleError> {
    let unreadable = |error| RuleError::Io(directory.to_owned(), error);
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(unreadable)?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut mutants = Vec::new();
    let mut names = BTreeSet::new();
    for path in files {
        let text = fs::read_to_string(&path).map_err(|error| RuleError::Io(path.clone(), error))?;
        let file: RuleFile = toml::from_str(&text).map_err(|error| RuleError::Syntax(path, error))?;
        for written in file.mutant {
            let mutant = written.checked()?;
            if !names.insert(mutant.name.clone()) {
                return Err(RuleError::Duplicate(mutant.name));
            }
            mutants.push(mutant);
        }
    }
    Ok(mutants)
}

impl Mutant {
    /// The files that it changes.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.edits.iter().map(|edit| &*edit.file)
    }

    /// The files that it changes, with their new contents.
    ///
    /// # Errors
    /// If the code to replace is not found exactly once, or stays the same.
    pub fn apply(&self, root: &Path) -> Result<BTreeMap<PathBuf, String>, RuleError> {
        let mut edits_by_file: BTreeMap<&Path, Vec<&Edit>> = BTreeMap::new();
        for edit in &self.edits {
            edits_by_file.entry(&edit.file).or_default().push(edit);
        }
        edits_by_file
            .into_iter()
            .map(|(file, edits)| Ok((file.to_owned(), self.apply_to(root, file, &edits)?)))
            .collect()
    }

    fn apply_to(&self, root: &Path, file: &Path, edits: &[&Edit]) -> Result<String, RuleError> {
        let path = root.join(file);
        let mut code = fs::read_to_string(&path).map_err(|error| RuleError::Io(path, error))?;
        let wrong = |what| RuleError::Edit(self.name.clone(), file.to_owned(), what);
        let mut changes: Vec<(Range<usize>, &str)> = Vec::new();
        for edit in edits {
            let place = source::find(&code, &edit.find);
            let place = place.map_err(|error| RuleError::Find(self.name.clone(), file.to_owned(), error))?;
            if !source::differ(&edit.find, &edit.replace) {
                return Err(wrong("the replacement is the same code"));
            }
            changes.push((place, edit.replace.trim()));
        }
        changes.sort_by_key(|(place, _)| place.start);
        if changes.windows(2).any(|pair| pair[0].0.end > pair[1].0.start) {
            return Err(wrong("two edits change the same code"));
        }
        for (place, replacement) in changes.into_iter().rev() {
            code.replace_range(place, replacement);
        }
        Ok(code)
    }
}
