//! After the storm: has everybody been served, can everything be had, is nothing left behind?

use vez_peer::{ask::Patience, name::Name, peer::Call};

use crate::{client::Stage, plan::Seconds, wish::names, world::World};

/// How far the trial after the storm has come: for each machine, the names that are still to be had there.
#[derive(Default)]
pub(crate) struct Probe {
    /// The first client of each machine, and which of the names it tries next.
    left: Vec<usize>,
}

impl World<'_> {
    /// Nothing goes wrong any more.
    pub(crate) fn calm_down(&mut self) -> Result<(), String> {
        for machine in 0..self.machines.len() {
            self.machines[machine].disk_fails = None;
            self.keep_awake(machine);
        }
        Ok(())
    }

    /// Everybody must have been served. From every machine, everything is asked for once more, and all of it.
    pub(crate) fn begin_probe(&mut self) -> Result<(), String> {
        // A vote may have been given to a disk that had been lost a moment before. All that was safe so far; it is over.
        if !self.has_votes_without(None) {
            self.is_bereft = true;
            self.tally.bereft += 1;
            return Ok(());
        }
        (0..self.machines.len()).try_for_each(|machine| self.observer_knows(machine))?;
        for client in &self.clients {
            let (what, name) = match &client.stage {
                Stage::Thinking => continue,
                Stage::Waiting { name, .. } => ("waits for", name),
                Stage::Holding { name, .. } => ("is still inside", name),
                Stage::Resizing { name, .. } => ("wants another size of", name),
            };
            let machine = client.machine;
            let why = self.machines[machine].process.as_ref().map(|process| process.peer.why(name));
            let since = Seconds(self.now - self.plan.calm);
            return Err(format!("{since} s after all trouble a client of m{machine} {what} {name}: {why:?}"));
        }
        if let Some((machine, name)) = self.busy_collector() {
            let why = self.machines[machine].process.as_ref().map(|process| process.peer.why(name));
            return Err(format!(
                "after all trouble a client of m{machine} that wants several has {name}, or waits: {why:?}"
            ));
        }
        if let Some(name) = self.busy_keeper() {
            return Err(format!("after all trouble somebody is still busy with a SET of {name}"));
        }
        self.probe.left = vec![0; self.machines.len()];
        for machine in 0..self.machines.len() {
            self.close_clients(machine)?;
            let Some(client) = self.clients.iter().position(|client| client.machine == machine) else { continue };
            self.open(client, None)?;
            self.probe_next(machine, client)?;
        }
        Ok(())
    }

    pub(crate) fn is_probing(&self) -> bool {
        !self.probe.left.is_empty()
    }

    /// A client has had what it asked for, and left. In the trial the next name follows.
    pub(crate) fn probe_on(&mut self, machine: usize, client: usize) -> Result<(), String> {
        if !self.is_probing() {
            return Ok(());
        }
        self.probe.left[machine] += 1;
        self.probe_next(machine, client)
    }

    fn probe_next(&mut self, machine: usize, client: usize) -> Result<(), String> {
        let Some(session) = self.clients[client].session else { return Ok(()) };
        let Some((name, ask)) = names().get(self.probe.left[machine]).cloned() else {
            self.close_clients(machine)?;
            return Ok(());
        };
        let request = self.next_request();
        self.clients[client].stage = Stage::Waiting { request, name: name.clone(), ask: ask.clone() };
        let patience = Patience::Endless;
        self.law.asked(self.now, machine, request, ask.clone(), patience);
        self.call(machine, Call::Acquire { session, request, name, ask, patience })
    }

    /// At the end: all machines are members of one settled view, everything could be had everywhere, and nothing is left.
    pub(crate) fn everything_is_at_rest(&self) -> Result<(), String> {
        let mut views = Vec::new();
        for (machine, place) in self.machines.iter().enumerate() {
            let Some(process) = &place.process else { return Err(format!("at the end m{machine} does not run")) };
            let status = process.peer.status();
            if !process.peer.is_settled() {
                let name = Name::new(b"lock/a").expect("short");
                return Err(format!("at the end m{machine} is not settled: {:?}", process.peer.why(&name)));
            }
            let left = self.probe.left[machine];
            if left < names().len() {
                let (name, _) = &names()[left];
                return Err(format!("at the end {name} cannot be had on m{machine}: {:?}", process.peer.why(name)));
            }
            // What runs on another algorithm than fila is forgotten with the view.
            let forgotten = status.names <= 1;
            let is_base = (status.used_names, status.sessions, status.unacknowledged) == (0, 0, 0);
            if !forgotten || !is_base || (status.kept, status.pledge) != (0, None) {
                return Err(format!("at the end something is left on m{machine}: {status:?}"));
            }
            views.push(status.view);
        }
        views.dedup();
        if views.len() == 1 { Ok(()) } else { Err(format!("at the end there are several views: {views:?}")) }
    }
}
