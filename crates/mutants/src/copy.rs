//! A copy of the working tree, in which mutants are applied.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use vez_mutants::rule::Mutant;

/// A copy of the working tree. It stays from one run to the next, so that builds are incremental.
pub(crate) struct Copy {
    root: PathBuf,
    path: PathBuf,
}

impl Copy {
    /// Brings a copy up to date, and writes only the files that differ.
    pub(crate) fn update(root: &Path, path: &Path) -> Result<Self> {
        let copy = Self { root: root.to_owned(), path: path.to_owned() };
        let files = tracked(root)?;
        for file in &files {
            copy.restore(file)?;
        }
        if path.is_dir() {
            for file in files_below(path, path)? {
                if !files.contains(&file) {
                    fs::remove_file(path.join(file))?;
                }
            }
        }
        Ok(copy)
    }

    /// Applies a mutant.
    pub(crate) fn apply(&self, mutant: &Mutant) -> Result<()> {
        for (file, code) in mutant.apply(&self.root)? {
            fs::write(self.path.join(file), code)?;
        }
        Ok(())
    }

    /// Takes a mutant back.
    pub(crate) fn revert(&self, mutant: &Mutant) -> Result<()> {
        mutant.files().try_for_each(|file| self.restore(file))
    }

    /// Makes a file what it is in the working tree. It is written only if it differs: what cargo has built of it stays.
    fn restore(&self, file: &Path) -> Result<()> {
        let (from, to) = (self.root.join(file), self.path.join(file));
        let contents = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
        if fs::read(&to).is_ok_and(|copied| copied == contents) {
            return Ok(());
        }
        fs::create_dir_all(to.parent().expect("it is below the copy"))?;
        fs::copy(&from, &to).with_context(|| format!("cannot write {}", to.display()))?;
        // Cargo compares times, and a file that was restored is newer than what was built of the mutant.
        fs::File::options().append(true).open(&to)?.set_modified(std::time::SystemTime::now())?;
        Ok(())
    }
}

/// The tracked and the new files of a working tree.
fn tracked(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().context("cannot run git")?;
    ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    Ok(names.split_terminator('\0').map(PathBuf::from).filter(|file| root.join(file).is_file()).collect())
}

/// The files below a directory, relative to the root of the copy.
fn files_below(root: &Path, directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            files.append(&mut files_below(root, &path)?);
        } else {
            files.push(path.strip_prefix(root).expect("it is below the root").to_owned());
        }
    }
    Ok(files)
}
