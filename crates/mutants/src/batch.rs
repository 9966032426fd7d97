//! Which mutants can be built together.

use std::path::Path;

use vez_mutants::rule::{Detector, Mutant};

/// Mutants that are applied together, built once and examined one after the other.
pub(crate) type Batch<'a> = Vec<&'a Mutant>;

/// Code that other algorithms are made of: a fault there shows in their checks, too.
const SHARED_CODE: &[&str] = &["hi_adsd.rs", "spanning_tree.rs", "direct.rs", "bully.rs", "ledger.rs", "forces.rs"];

/// The transcripts of an algorithm are in `transcripts/<family>/<algorithm>/`.
const TRANSCRIPTS: &str = "transcripts/";

/// The only algorithm whose behaviour the detector looks at, if it is only one.
fn algorithm(mutant: &Mutant) -> Option<&str> {
    match &mutant.detector {
        Detector::Check(arguments) => arguments.split_whitespace().next(),
        Detector::Test(_) => {
            let mut path = mutant.expect.strip_prefix(TRANSCRIPTS)?.split('/');
            path.next(); // the family
            path.next().filter(|_| path.next().is_some())
        }
        Detector::Storm(_) => None,
    }
}

/// Whether a file belongs to a single algorithm: `crates/algorithms/src/<family>/…`.
fn belongs_to_one_algorithm(file: &Path) -> bool {
    let inside = file.strip_prefix("crates/algorithms/src").ok();
    let in_a_family = inside.is_some_and(|path| path.components().count() > 1);
    in_a_family && !SHARED_CODE.iter().any(|name| file.ends_with(name))
}

/// Whether two mutants can be in the same build, because neither changes what the detector of the other looks at.
fn independent(one: &Mutant, other: &Mutant) -> bool {
    let (Some(first), Some(second)) = (algorithm(one), algorithm(other)) else { return false };
    first != second
        && one.files().chain(other.files()).all(belongs_to_one_algorithm)
        && one.files().all(|file| other.files().all(|another| another != file))
}

/// Sorts mutants into batches: each goes into the first one in which it depends on no other.
pub(crate) fn batches<'a>(mutants: &[&'a Mutant]) -> Vec<Batch<'a>> {
    let mut batches: Vec<Batch<'a>> = Vec::new();
    for &mutant in mutants {
        let fits = |batch: &&mut Batch<'a>| batch.iter().all(|other| independent(mutant, other));
        match batches.iter_mut().find(fits) {
            Some(batch) => batch.push(mutant),
            None => batches.push(vec![mutant]),
        }
    }
    batches
}
