//! What clients do in a run, and what they are told.

use vez_algorithms::{Algorithm, Family, Heard, Input, NodeId, OutputOf, Phase, Scene};

use super::{super::agenda::Due, Arrivals, Engine, Stopped};

impl<P: Algorithm> Engine<'_, P> {
    /// The next client of a node comes after a pause.
    pub(super) fn await_arrival(&mut self, node: NodeId) {
        let client = &mut self.clients[node.index()];
        let (pause, life) = (client.pause(), client.life);
        self.agenda.add(self.now + pause, Due::Arrival(node, Some(life)));
    }

    pub(super) fn arrive(&mut self, node: NodeId) -> Result<(), Stopped> {
        if matches!(self.config.arrivals, Arrivals::Queued { .. }) {
            self.await_arrival(node);
        }
        self.metrics.crowd(self.now, 1, 0);
        let client = &mut self.clients[node.index()];
        if client.seen.phase == Phase::Idle {
            self.ask(node, self.now)
        } else {
            client.backlog.push_back(self.now);
            Ok(())
        }
    }

    fn ask(&mut self, node: NodeId, came_at: f64) -> Result<(), Stopped> {
        let client = &mut self.clients[node.index()];
        let command = client.choose(&self.wants);
        client.seen.ask(command);
        self.metrics.asked(node, came_at);
        self.happen(node, Input::Command(command))
    }

    /// The client of a node is told something.
    pub(super) fn hear(&mut self, node: NodeId, output: &OutputOf<P>) -> Result<(), Stopped> {
        let client = &mut self.clients[node.index()];
        let heard = client.seen.hear(output).map_err(|wrong| Stopped::law_broken(format!("{node} {wrong}")))?;
        if let Some(crashed) = P::Family::learns(output).filter(|crashed| self.troubles.crashed[crashed.index()]) {
            self.metrics.detected(self.now - self.crashed_at[crashed.index()]);
        }
        if heard == Heard::Entered {
            self.inside.push(node);
        }
        if let Err(broken) = self.law() {
            self.metrics.violations += 1;
            if !self.config.keep_going {
                return Err(Stopped::law_broken(broken));
            }
        }
        let client = &mut self.clients[node.index()];
        match heard {
            Heard::Began => {
                self.metrics.crowd(self.now, 1, 0);
                self.metrics.asked(node, self.now);
            }
            Heard::News => {}
            Heard::Entered => {
                self.metrics.entered(node, self.now);
                self.fruitless = 0;
                let life = client.life;
                self.agenda.add(self.now + self.config.hold, Due::Leave(node, life));
            }
            Heard::Finished => {
                self.metrics.entered(node, self.now);
                self.fruitless = 0;
                if node.index() < self.askers {
                    self.await_next(node);
                }
            }
        }
        Ok(())
    }

    fn law(&self) -> Result<(), String> {
        self.with_scene(P::Family::law)
    }

    /// The living nodes to whose clients something is still owed.
    pub(super) fn owed(&self) -> Vec<NodeId> {
        self.with_scene(|scene| {
            let living = NodeId::all(self.nodes.len()).filter(|node| (scene.alive)(*node));
            living.filter(|node| P::Family::waits(scene, *node)).collect()
        })
    }

    fn with_scene<T>(&self, look: impl FnOnce(&Scene<'_, P::Family>) -> T) -> T {
        look(&Scene {
            nodes: self.nodes.len(),
            limit: self.config.system.k,
            inside: &self.inside,
            client: &|node| &self.clients[node.index()].seen,
            alive: &|node| !self.troubles.crashed[node.index()],
            connected: &|one, other| {
                let alive = |node: NodeId| !self.troubles.crashed[node.index()];
                !self.troubles.cut(one, other) && self.links.connected(one, other, &alive)
            },
        })
    }

    pub(super) fn leave(&mut self, node: NodeId) -> Result<(), Stopped> {
        let command = self.clients[node.index()].seen.leave();
        self.inside.retain(|other| *other != node);
        self.metrics.left(self.now);
        self.happen(node, Input::Command(command))?;
        // It may have crashed in the midst of telling others that it leaves.
        if !self.troubles.crashed[node.index()] {
            self.await_next(node);
        }
        Ok(())
    }

    /// A client is done; the next one comes after a pause, or has been waiting at the node.
    fn await_next(&mut self, node: NodeId) {
        match self.config.arrivals {
            Arrivals::Closed { .. } | Arrivals::Periodic { .. } | Arrivals::Saturated => self.await_arrival(node),
            Arrivals::Queued { .. } | Arrivals::Scripted(_) => {
                // Not within this step: the node has not yet sent all that it wants to.
                self.agenda.add(self.now, Due::Backlog(node, self.clients[node.index()].life));
            }
        }
    }

    pub(super) fn serve_backlog(&mut self, node: NodeId) -> Result<(), Stopped> {
        let client = &mut self.clients[node.index()];
        if client.seen.phase != Phase::Idle {
            return Ok(()); // Somebody came at this very moment and was quicker: its end is the next turn.
        }
        match client.backlog.pop_front() {
            Some(came_at) => self.ask(node, came_at),
            None => Ok(()),
        }
    }
}
