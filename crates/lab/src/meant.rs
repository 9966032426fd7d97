//! What may have been meant by a name that there is not.

use vez_algorithms::catalog::{self, Entry};

/// There is no algorithm of that name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown algorithm \"{name}\"; {}", fix(*.nearest))]
pub struct UnknownAlgorithm {
    /// The name.
    pub name: String,
    /// The one that may have been meant.
    pub nearest: Option<&'static str>,
}

fn fix(nearest: Option<&str>) -> String {
    nearest.map_or("see vez lab list".to_owned(), |nearest| format!("did you mean {nearest}?"))
}

/// The algorithm of that name.
///
/// # Errors
/// If there is none; then the error says which one may have been meant.
pub fn find(name: &str) -> Result<&'static Entry, UnknownAlgorithm> {
    let nearest = || nearest(name, catalog::ALL.iter().map(|entry| entry.name));
    catalog::find(name).ok_or_else(|| UnknownAlgorithm { name: name.to_owned(), nearest: nearest() })
}

/// The name that may have been meant.
pub fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let likeness = |other: &&str| (strsim::jaro_winkler(name, other) * 1000.0) as u32;
    known.max_by_key(likeness).filter(|other| likeness(other) > 700)
}
