//! Election: whoever calls for one learns of a leader, and in the end all agree on it.

mod ad_hoc;
mod bully;
mod ring;

use alloc::{format, string::String, vec, vec::Vec};

pub use ad_hoc::AdHoc;
pub use bully::Bully;
pub use ring::Ring;

use crate::{Family, Heard, NodeId, Phase, Scene, Setup};

/// Elections are numbered; a later one has a higher number.
pub type Term = u64;

/// What a client asks of its node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// The leader does not answer: let there be an election.
    Start,
}

/// What a client is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Output {
    /// This is the leader now.
    Elected {
        /// Who.
        leader: NodeId,
        /// In which term.
        term: Term,
    },
}

/// The family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Election {}

impl Family for Election {
    const NAME: &'static str = "election";
    const LAW: &'static str = "at most one leader a term, and agreement in the end";
    type Command = Command;
    type Output = Output;
    /// The last leader that this client was told of, and its term.
    type News = Option<(NodeId, Term)>;
    const LEAVE: Option<Command> = None;

    fn wants(_setup: &Setup) -> Vec<Command> {
        vec![Command::Start]
    }

    fn hear(news: &mut Self::News, output: &Output) -> Heard {
        let Output::Elected { leader, term } = *output;
        *news = Some((leader, term));
        Heard::Finished
    }

    /// Of those who are alive and can reach each other, no two take themselves for the leader of one term.
    fn law(scene: &Scene<'_, Self>) -> Result<(), String> {
        let leads = |(node, client): (NodeId, &crate::Client<Self>)| match client.news {
            Some((leader, term)) if leader == node => Some((node, term)),
            Some(_) | None => None,
        };
        let leaders: Vec<(NodeId, Term)> = scene.living().filter_map(leads).collect();
        for (at, (one, term)) in leaders.iter().enumerate() {
            let rival = leaders[at + 1..].iter().find(|(other, of)| of == term && (scene.connected)(*one, *other));
            if let Some((other, _)) = rival {
                return Err(format!("{one} and {other} both lead in term {term}"));
            }
        }
        Ok(())
    }

    /// Whoever called for an election waits for its end, and whoever knows of no leader, or of another than the latest, waits
    /// for that one. But if a leader is dead, nothing is owed to those that follow it before one of them has found it silent.
    fn waits(scene: &Scene<'_, Self>, node: NodeId) -> bool {
        let client = scene.client(node);
        let reaches = |other: NodeId| (scene.alive)(other) && (scene.connected)(node, other);
        let known = scene.living().filter(|(other, _)| reaches(*other)).filter_map(|(_, theirs)| theirs.news);
        let latest = known.max_by_key(|(_, term)| *term).filter(|(leader, _)| reaches(*leader));
        let content = client.news.is_some_and(|(leader, _)| !reaches(leader));
        client.phase == Phase::Waiting || !content && latest.is_some_and(|latest| client.news != Some(latest))
    }
}
