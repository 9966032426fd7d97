//! What goes wrong in a run: crashes, returns, and what nodes hear of them.

use vez_algorithms::{Algorithm, Input, NodeId, NodeSet, Order, Phase};

use super::{super::agenda::Due, Arrivals, Engine, Event, Fault, Stopped, see};

impl<P: Algorithm> Engine<'_, P> {
    pub(super) fn go_wrong(&mut self, at: usize) -> Result<(), Stopped> {
        let config = self.config;
        match &config.faults.all()[at].1 {
            Fault::Crash(node) => self.crash(*node),
            Fault::CrashSending(node) => {
                self.troubles.breaking.insert(*node);
            }
            Fault::Restart(node) => {
                // Whoever has sent nothing since it was to crash does so now.
                if self.troubles.breaking.contains(*node) {
                    self.crash(*node);
                }
                if self.troubles.crashed[node.index()] {
                    return self.restart(*node);
                }
            }
            Fault::Partition(groups) => self.troubles.partition(groups),
            Fault::Heal => self.troubles.group = None,
            Fault::Loss(probability) => self.troubles.loss = *probability,
            Fault::Duplicate(probability) => self.troubles.duplicate = *probability,
            Fault::Resets(rate, nodes) => nodes.iter().for_each(|node| self.await_reset(*node, at, *rate)),
        }
        Ok(())
    }

    fn await_reset(&mut self, node: NodeId, fault: usize, rate: f64) {
        if rate > 0.0 {
            self.agenda.add(self.now + self.troubles.pause(rate), Due::Reset(node, fault));
        }
    }

    pub(super) fn reset(&mut self, node: NodeId, fault: usize) -> Result<(), Stopped> {
        let resets = |(_, other): &(f64, Fault)| match other {
            Fault::Resets(rate, nodes) if nodes.contains(&node) => Some(*rate),
            _ => None,
        };
        let faults = self.config.faults.all();
        let superseded = faults[fault + 1..].iter().any(|next| next.0 <= self.now && resets(next).is_some());
        let Some(rate) = resets(&faults[fault]).filter(|_| !superseded) else { return Ok(()) };
        if !self.troubles.crashed[node.index()] {
            self.crash(node);
            self.restart(node)?;
        }
        self.await_reset(node, fault, rate);
        Ok(())
    }

    pub(super) fn crash(&mut self, node: NodeId) {
        if std::mem::replace(&mut self.troubles.crashed[node.index()], true) {
            return;
        }
        self.metrics.crashes += 1;
        self.troubles.breaking.remove(node);
        let client = &mut self.clients[node.index()];
        let waiting = u64::from(client.seen.phase == Phase::Waiting);
        self.metrics.crowd(self.now, 0, waiting + client.backlog.len() as u64);
        if waiting > 0 {
            self.metrics.gave_up(node);
        }
        client.life += 1;
        client.seen = vez_algorithms::Client::default();
        client.backlog.clear();
        self.inside.retain(|other| *other != node);
        self.timers[node.index()].clear();
        self.crashed_at[node.index()] = self.now;
        see(&mut self.watch, self.now, node, Event::Crashed);
        if P::MODEL.detector {
            self.tell_of(node);
        }
    }

    /// Half of what a node has sent and has not arrived is lost. Where messages keep their order, so is what it sent after
    /// one that is lost.
    pub(super) fn lose_half(&mut self, node: NodeId) {
        let mut broken = NodeSet::new();
        let (troubles, fifo) = (&mut self.troubles, self.config.order == Order::Fifo);
        let lost = self.agenda.lose(node, |to| {
            let lost = (fifo && broken.contains(to)) || troubles.happens(0.5);
            if lost {
                broken.insert(to);
            }
            lost
        });
        for (to, message) in lost {
            self.in_flight -= 1;
            self.metrics.losses += 1;
            see(&mut self.watch, self.now, node, Event::Lost(to, &message));
        }
    }

    /// The failure detector tells every living node of a crash, each after a time of its own.
    fn tell_of(&mut self, crashed: NodeId) {
        let patience = self.config.system.patience.as_secs_f64();
        for node in NodeId::all(self.nodes.len()).filter(|node| *node != crashed) {
            let at = self.now + patience + self.troubles.within(patience);
            let life = self.clients[node.index()].life;
            if !self.troubles.crashed[node.index()] {
                self.agenda.add(at, Due::Notice { node, life, crashed });
            }
        }
    }

    fn restart(&mut self, node: NodeId) -> Result<(), Stopped> {
        self.metrics.restarts += 1;
        self.troubles.crashed[node.index()] = false;
        self.nodes[node.index()] = self.fresh[node.index()].clone();
        self.happen(node, Input::Restart)?;
        let is_alive = !self.troubles.crashed[node.index()];
        if is_alive && !matches!(self.config.arrivals, Arrivals::Scripted(_)) && node.index() < self.askers {
            self.await_arrival(node);
        }
        Ok(())
    }
}
