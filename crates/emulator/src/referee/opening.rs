//! Before a run: whether what was asked for makes sense, and the nodes.

use std::thread;

use vez_algorithms::{Family, Setup, SetupError, catalog::Entry};

use super::{Referee, Watcher};
use crate::{
    CannotEmulate, Spawn,
    company::{Company, Performer},
    outcome::Outcome,
    player,
    settings::{MAX_NODES, Settings, SettingsError},
};

/// What the referee has to know of a system.
pub(crate) struct SystemInfo<F: Family> {
    pub(crate) nodes: usize,
    /// How many of the nodes have a client: the first ones.
    pub(crate) clients: usize,
    /// What there is to ask for.
    pub(crate) wants: Vec<F::Command>,
}

/// Runs a system to the end, and says what came out.
pub(crate) fn emulate<F: Family>(
    entry: &Entry,
    system: &dyn Fn(&Setup) -> Result<SystemInfo<F>, SetupError>,
    settings: &Settings,
    spawn: Option<Spawn<'_>>,
    watcher: &dyn Watcher,
) -> Result<Outcome, CannotEmulate> {
    settings.validate()?;
    let name = entry.name;
    if F::LEAVE.is_none() {
        return Err(SettingsError::Family { name, family: F::NAME }.into());
    }
    let system = system(&settings.system.setup(settings.seed, 0)?)?;
    let nodes = system.nodes;
    if nodes > MAX_NODES {
        let fix = format!("replicas and groups are nodes, too, and {MAX_NODES} are as many as there may be");
        return Err(SettingsError::Number { name: "the number of nodes in all", value: nodes.to_string(), fix }.into());
    }
    if let Some(crash) = settings.crashes.iter().find(|crash| crash.node.index() >= nodes) {
        return Err(SettingsError::NoSuchNode { node: crash.node, nodes }.into());
    }
    let company = Company::gather(nodes, |node, invitation| match spawn {
        Some(spawn) => {
            let child = spawn(node, invitation).map_err(|error| CannotEmulate::Io("start a process", error));
            child.map(Performer::Process)
        }
        None => {
            let settings = settings.clone();
            Ok(Performer::Thread(thread::spawn(move || player::play(name, node, &settings, invitation))))
        }
    })?;
    Ok(Referee::new(entry, settings, company, system).officiate(spawn.is_some(), watcher))
}
