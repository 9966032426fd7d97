//! How processes begin and end.

use vez_peer::{
    Peer,
    identity::{ClusterId, Incarnation, MemberId},
    peer::{Identity, Start, Stopped},
    shard::{Habits, Nanos},
};

use crate::{
    machine::{Process, Sleep, address_of},
    plan::{MILLISECOND, SECOND},
    world::{Event, World},
};

/// The first view of a storm.
const FIRST_VIEW: u64 = 100;

impl World<'_> {
    /// A process has come to its end.
    pub(crate) fn stopped(&mut self, machine: usize, why: Stopped) -> Result<(), String> {
        self.tell(|| format!("m{machine} stops: {why:?}"));
        self.tally.leases_lost += u64::from(why == Stopped::LeaseOver);
        let mut back = self.now + self.whims.below(50 * MILLISECOND);
        match why {
            Stopped::LeaseOver => {}
            Stopped::Retired => self.wipe(machine),
            Stopped::Left => back = self.machines[machine].away.take().unwrap_or(back).max(back),
            Stopped::Refused(_) | Stopped::Broken(_) => return Err(format!("m{machine} stops: {why:?}")),
        }
        self.machines[machine].away = None;
        // Its clients are told that all is lost.
        self.end_process(machine, true);
        self.start_at(machine, back);
        Ok(())
    }

    pub(crate) fn end_process(&mut self, machine: usize, clients_know: bool) {
        let place = &mut self.machines[machine];
        place.process = None;
        place.sleep = Sleep::Awake;
        self.lose_clients(machine, clients_know);
        self.lose_collector(machine, clients_know);
        self.lose_orders(machine);
    }

    pub(crate) fn start_at(&mut self, machine: usize, time: Nanos) {
        if !self.machines[machine].starting {
            self.machines[machine].starting = true;
            self.at(time, Event::Start(machine));
        }
    }

    pub(crate) fn start(&mut self, machine: usize) -> Result<(), String> {
        let place = &mut self.machines[machine];
        place.starting = false;
        if place.process.is_some() {
            return Ok(());
        }
        let first = machine == 0 && place.incarnation == Incarnation(0) && place.id == MemberId(1);
        place.incarnation.0 += 1;
        let identity = Identity { id: place.id, incarnation: place.incarnation, address: address_of(machine) };
        let start = if first {
            Start::Found { cluster: ClusterId(self.plan.seed), first_view: FIRST_VIEW }
        } else {
            let seeds = (0..self.plan.nodes).map(address_of).collect();
            Start::Join { disk: Box::new(place.disk.clone()), seeds }
        };
        let habits = Habits { visit: 3, idle: SECOND, log: 6, keep: self.plan.longest_kept() };
        let reads = place.clock.reads(self.now);
        let mut effects = Vec::new();
        let charter = self.plan.charter.clone();
        let peer = Peer::start(identity, charter, habits, start, reads, &mut effects, &mut |n| self.choices.below(n));
        place.process = Some(Process { peer, tick: None, writing: None });
        self.tally.restarts += u64::from(place.incarnation.0 > 1 || place.id.0 > self.plan.nodes as u64);
        let (id, incarnation) = (place.id, place.incarnation);
        self.tell(|| format!("m{machine} starts as {id} {incarnation:?}"));
        self.do_all(machine, effects)
    }
}
