//! Superpeers: some nodes hold an office and serve the others, and whoever looks for one finds one.
//!
//! Another problem than an election: many are chosen, none is the first among them, and the choice is good if it is
//! even. [`Spread`] says how good, by the four requirements of the lecture.

mod by_prefix;
mod by_repulsion;
mod forces;

use alloc::{collections::BTreeMap, format, string::String, vec, vec::Vec};

pub use by_prefix::ByPrefix;
pub use by_repulsion::ByRepulsion;

use crate::{Family, Heard, NodeId, Scene, Setup};

/// What a client looks for.
pub type Key = u64;

/// What makes a superpeer: a part of all keys, or a token. Offices are numbered from 0.
pub type Office = u64;

/// What a client asks of its node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Which superpeer do I turn to with this key?
    Lookup(Key),
}

/// What a client is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Output {
    /// This node is a superpeer from now on and holds this office; or it is a normal node from now on.
    Role(Option<Office>),
    /// This superpeer answers for the key.
    Found {
        /// What was looked for.
        key: Key,
        /// For which of its offices it answers.
        office: Office,
        /// Who.
        superpeer: NodeId,
    },
}

/// What the law remembers of what a client was told.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct News {
    /// The office that its node holds.
    office: Option<Office>,
    /// Whether its node has ever given up an office.
    resigned: bool,
    /// What it found last.
    found: Option<(Office, NodeId)>,
}

/// The family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Superpeers {}

impl Family for Superpeers {
    const NAME: &'static str = "superpeers";
    const LAW: &'static str = "one superpeer an office, and the same one for whoever looks for it";
    type Command = Command;
    type Output = Output;
    type News = News;
    const LEAVE: Option<Command> = None;

    fn wants(_setup: &Setup) -> Vec<Command> {
        vec![Command::Lookup(0)]
    }

    /// Any key.
    fn command(words: &str) -> Option<Command> {
        words.strip_prefix("Lookup(")?.strip_suffix(')')?.parse().ok().map(Command::Lookup)
    }

    fn hear(news: &mut News, output: &Output) -> Heard {
        match *output {
            Output::Role(office) => {
                news.resigned |= news.office.is_some();
                news.office = office;
                Heard::News
            }
            Output::Found { office, superpeer, .. } => {
                news.found = Some((office, superpeer));
                Heard::Finished
            }
        }
    }

    /// No two superpeers hold one office, so that there are never more of them than offices. Whoever was found is a
    /// superpeer, or was one and gave it up. Two who look for one office find the same superpeer, unless one of those
    /// found gave it up.
    fn law(scene: &Scene<'_, Self>) -> Result<(), String> {
        let mut holders: BTreeMap<Office, NodeId> = BTreeMap::new();
        let mut finders: BTreeMap<Office, (NodeId, NodeId)> = BTreeMap::new();
        for (node, client) in scene.living() {
            if let Some(office) = client.news.office
                && let Some(other) = holders.insert(office, node)
            {
                return Err(format!("{other} and {node} both hold office {office}"));
            }
            let Some((office, found)) = client.news.found.filter(|(_, found)| (scene.alive)(*found)) else { continue };
            match scene.client(found).news {
                News { resigned: true, .. } => {}
                News { office: None, .. } => return Err(format!("{node} found {found}, which never was a superpeer")),
                News { office: Some(_), .. } => match finders.insert(office, (node, found)) {
                    Some((other, theirs)) if theirs != found => {
                        return Err(format!("{other} found {theirs} for office {office}, but {node} found {found}"));
                    }
                    Some(_) | None => {}
                },
            }
        }
        Ok(())
    }
}

/// How well the superpeers of a system are chosen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    /// Superpeers a node.
    pub ratio: f64,
    /// How far a normal node is from its superpeer, on average; in what, the algorithm says.
    pub access: f64,
    /// The standard deviation of the number of normal nodes that a superpeer serves, over its mean: 0 if all serve the
    /// same number.
    pub unevenness: f64,
    /// The largest of these numbers over their mean.
    pub peak: f64,
}

impl Spread {
    /// Of superpeers that serve so many normal nodes each, which are so far from them in total. Where nobody is a
    /// superpeer, or everybody is, what cannot be divided is 0.
    fn of(served: &[u64], total: f64) -> Self {
        let (superpeers, normal) = (served.len() as u64, served.iter().sum::<u64>());
        let squares: u64 = served.iter().map(|count| count * count).sum();
        let per = |what: f64, of: u64| if of == 0 { 0.0 } else { what / of as f64 };
        Self {
            ratio: per(superpeers as f64, superpeers + normal),
            access: per(total, normal),
            unevenness: per(root(superpeers * squares - normal * normal), normal),
            peak: per((superpeers * served.iter().max().unwrap_or(&0)) as f64, normal),
        }
    }

    /// With names, and that of the access.
    fn named(self, access: &'static str) -> Vec<(&'static str, f64)> {
        vec![
            ("superpeers a node", self.ratio),
            (access, self.access),
            ("unevenness of load", self.unevenness),
            ("largest load over mean", self.peak),
        ]
    }
}

/// A square root, for want of a floating-point one.
fn root(square: u64) -> f64 {
    const SCALE: u32 = 24;
    (u128::from(square) << (2 * SCALE)).isqrt() as f64 / f64::from(1 << SCALE)
}
