//! What goes wrong, and what is right again.

use std::collections::{BTreeSet, VecDeque};

use vez_peer::{
    agreement::{Disk, Entry},
    identity::{Incarnation, MemberId},
    peer::Input,
    shard::Nanos,
};

use crate::{
    machine::Sleep,
    plan::{MILLISECOND, Midway, Mishap},
    world::{Event, World},
};

impl World<'_> {
    pub(crate) fn fault(&mut self, number: usize) -> Result<(), String> {
        let fault = &self.plan.faults[number];
        self.tell(|| format!("-- {fault}"));
        match &fault.what {
            Mishap::Crash { machine, down, written, wiped, reboots } => {
                let runs = self.machines[*machine].process.is_some();
                self.crash(*machine, *written, *reboots);
                if *reboots && runs {
                    self.machines[*machine].clock.begin_anew(self.now);
                    self.law.set_clock(*machine, self.machines[*machine].clock);
                }
                if *wiped && self.has_votes_without(Some(*machine)) {
                    self.wipe(*machine);
                }
                self.start_at(*machine, self.now + down);
            }
            Mishap::Blackout { down } => {
                for machine in 0..self.plan.nodes {
                    self.crash(machine, true, false);
                    let later = self.whims.below(300 * MILLISECOND);
                    self.start_at(machine, self.now + down + later);
                }
            }
            Mishap::Pause { machine, lasts, midway } => self.pause(*machine, *lasts, *midway),
            Mishap::Cut { links, lasts } => {
                self.tally.partitions += 1;
                self.network.cut(links);
                self.at(self.now + lasts, Event::Over(number));
            }
            Mishap::Rough { lasts, loss, doubling, delay } => {
                self.network.roughen(*loss, *doubling, *delay);
                self.at(self.now + lasts, Event::Over(number));
            }
            Mishap::SlowDisk { machine, lasts, latency } => {
                self.machines[*machine].latency.push(*latency);
                self.at(self.now + lasts, Event::Over(number));
            }
            Mishap::FailingDisk { machine, written } => self.machines[*machine].disk_fails = Some(*written),
            Mishap::Leave { machine, away } => {
                self.machines[*machine].away = Some(self.now + away);
                self.input(*machine, Input::Leave)?;
                self.ask_collector_to_go(*machine);
                self.ask_clients_to_go(*machine)?;
            }
            Mishap::Evict { machine, by } => self.input(*by, Input::Evict(self.machines[*machine].id))?,
        }
        Ok(())
    }

    fn pause(&mut self, machine: usize, lasts: Nanos, midway: Option<Midway>) {
        let place = &mut self.machines[machine];
        if place.process.is_none() || !matches!(place.sleep, Sleep::Awake) {
            return;
        }
        self.tally.pauses += 1;
        if let Some(midway) = midway {
            place.sleep = Sleep::Soon(midway, lasts);
        } else {
            place.sleep = Sleep::Asleep { decided: Vec::new(), backlog: VecDeque::new() };
            let incarnation = place.incarnation;
            self.at(self.now + lasts, Event::Wake(machine, incarnation));
        }
    }

    /// A process that was about to fall asleep does not.
    pub(crate) fn keep_awake(&mut self, machine: usize) {
        let place = &mut self.machines[machine];
        if matches!(place.sleep, Sleep::Soon(..)) {
            place.sleep = Sleep::Awake;
        }
    }

    pub(crate) fn over(&mut self, number: usize) -> Result<(), String> {
        match &self.plan.faults[number].what {
            Mishap::Cut { links, .. } => self.network.heal(links),
            Mishap::Rough { loss, doubling, delay, .. } => self.network.smooth(*loss, *doubling, *delay),
            Mishap::SlowDisk { machine, latency, .. } => {
                let latencies = &mut self.machines[*machine].latency;
                let at = latencies.iter().position(|one| one == latency).expect("it was slow");
                latencies.remove(at);
            }
            Mishap::Crash { .. }
            | Mishap::Blackout { .. }
            | Mishap::Pause { .. }
            | Mishap::FailingDisk { .. }
            | Mishap::Leave { .. }
            | Mishap::Evict { .. } => unreachable!("it is over at once"),
        }
        Ok(())
    }

    /// Ends a process; what it was writing may be on its disk, or not.
    pub(crate) fn crash(&mut self, machine: usize, written: bool, clients_know: bool) {
        let place = &mut self.machines[machine];
        let Some(process) = &mut place.process else { return };
        if written && let Some(batch) = process.writing.take() {
            place.disk.write(&batch);
        }
        self.tally.crashes += 1;
        self.tell(|| format!("m{machine} crashes"));
        self.end_process(machine, clients_know);
    }

    /// Whether a majority of the votes is left, perhaps without this disk, whatever configuration one goes by. Agreement
    /// survives no more than that.
    pub(crate) fn has_votes_without(&self, machine: Option<usize>) -> bool {
        let lost = machine.map(|machine| self.machines[machine].id);
        let is_there = |id: &MemberId| Some(*id) != lost && self.machines.iter().any(|place| place.id == *id);
        let majority = |votes: &BTreeSet<MemberId>| 2 * votes.iter().filter(|id| is_there(id)).count() > votes.len();
        let configs = self.machines.iter().flat_map(|place| {
            let later = place.disk.entries.iter().filter_map(|entry| match entry {
                Entry::Config(config) => Some(config),
                Entry::Term(_) | Entry::Command(_) => None,
            });
            later.chain([&place.disk.snapshot.config])
        });
        let mut all = configs.flat_map(|config| [&config.voters, &config.new_voters]);
        all.all(|votes| votes.is_empty() || majority(votes))
    }

    pub(crate) fn wipe(&mut self, machine: usize) {
        let place = &mut self.machines[machine];
        place.disk = Disk::empty();
        place.id = MemberId(self.next_id);
        place.incarnation = Incarnation(0);
        self.next_id += 1;
    }
}
