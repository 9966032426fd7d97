//! The referee stands for the shared resource: it sees every entry and every exit, applies the law of the family, and
//! measures.

mod opening;

use std::{net::SocketAddr, sync::mpsc::RecvTimeoutError, time::Duration};

use vez_algorithms::{
    Client, Family, NodeId, Phase, Scene,
    catalog::{self, Entry},
    link::Nanos,
};
use vez_lab::sim::Metrics;

pub(crate) use self::opening::{SystemInfo, emulate};
use crate::{
    clock::{nanos, now, seconds},
    company::{Company, Heard},
    control::{Account, Order, Word},
    outcome::{Failure, Outcome, Sum},
    settings::Settings,
};

/// Nobody waits longer than this for a node's account of what it has done.
const FAREWELL: Duration = Duration::from_secs(5);
/// Whoever has waited for so long when a run with a crash ends waits for the dead, unless the algorithm survives it.
const LONG_AFTER_A_CRASH: Duration = Duration::from_millis(500);
/// How often the referee looks whether anything still moves.
const LOOK_UP: Duration = Duration::from_millis(50);

/// Somebody who wants to know how it goes.
pub trait Watcher {
    /// The nodes listen here, and the run begins.
    fn listening(&self, _addresses: &[SocketAddr]) {}
    /// So many entries there have been.
    fn entries(&self, _entries: u64) {}
    /// Something was refused, or went wrong on purpose.
    fn odd(&self, _what: &str) {}
    /// Whether somebody wants it to end before its time.
    fn has_had_enough(&self) -> bool {
        false
    }
}

/// Nobody.
impl Watcher for () {}

struct Referee<'a, F: Family> {
    entry: &'a Entry,
    settings: &'a Settings,
    company: Company,
    crashed: Vec<bool>,
    gone: Vec<bool>,
    /// How many of the nodes have clients that ask: the first ones.
    askers: usize,
    clients: Vec<Client<F>>,
    /// When each client asked last.
    asked: Vec<Nanos>,
    /// Clients that are done with what they asked for, such as more units: the referee does not hear what they were told, so to
    /// the law it is as if they still asked for it.
    done: Vec<Client<F>>,
    inside: Vec<NodeId>,
    wants: Vec<F::Command>,
    metrics: Metrics,
    accounts: Vec<Option<Account>>,
    trace: Vec<(Nanos, String)>,
    epoch: Nanos,
    /// When somebody entered or left last.
    moved: Nanos,
}

impl<'a, F: Family> Referee<'a, F> {
    fn new(entry: &'a Entry, settings: &'a Settings, company: Company, system: SystemInfo<F>) -> Self {
        let nodes = company.addresses.len();
        let askers = settings.askers(system.clients);
        Self {
            entry,
            settings,
            company,
            crashed: vec![false; nodes],
            gone: vec![false; nodes],
            askers,
            clients: vec![Client::default(); nodes],
            asked: vec![0; nodes],
            done: Vec::new(),
            inside: Vec::new(),
            wants: system.wants,
            metrics: Metrics::new(nodes, askers, 0),
            accounts: (0..nodes).map(|_| None).collect(),
            trace: Vec::new(),
            epoch: 0,
            moved: 0,
        }
    }

    /// From the beginning to the end.
    fn officiate(mut self, processes: bool, watcher: &dyn Watcher) -> Outcome {
        watcher.listening(&self.company.addresses);
        let ended = self.run(watcher).and_then(|()| {
            if self.entry.assumptions.survives_crashes || !self.crashed.contains(&true) {
                return Ok(());
            }
            // Some may have gone on alone.
            self.nobody_waits_longer_than(LONG_AFTER_A_CRASH, now())
        });
        let failure = ended.err();
        self.finish(processes, failure)
    }

    fn run(&mut self, watcher: &dyn Watcher) -> Result<(), Failure> {
        let mut crashes = self.settings.crashes.clone();
        crashes.sort_by(|one, other| other.at.total_cmp(&one.at));
        self.epoch = now();
        self.moved = self.epoch;
        let epoch = self.epoch;
        self.tell_all(&Order::Begin(epoch));
        let mut looked_up = epoch;
        while self.metrics.entries() < self.settings.entries {
            while let Some(crash) = crashes.pop_if(|crash| epoch + nanos(crash.at) <= now()) {
                self.crash(crash.node);
                watcher.odd(&format!("{} crashes", crash.node));
            }
            let next_crash = crashes.last().map(|crash| epoch + nanos(crash.at));
            let wait = next_crash.map_or(LOOK_UP, |at| Duration::from_nanos(at.saturating_sub(now())).min(LOOK_UP));
            match self.company.hear(wait) {
                Ok(heard) => self.hear(heard, watcher)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.stuck("all nodes are gone")),
            }
            let time = now();
            if Duration::from_nanos(time - looked_up) > 20 * LOOK_UP {
                self.moved = time; // it was the referee who slept
            }
            looked_up = time;
            self.look_up(time)?;
            if watcher.has_had_enough() {
                let what = format!("interrupted after {} entries", self.metrics.entries());
                return Err(Failure { what, law_broken: false });
            }
        }
        for crash in crashes {
            watcher.odd(&format!("{} was to crash at {} s, but the run was over by then", crash.node, crash.at));
        }
        Ok(())
    }

    fn hear(&mut self, heard: Heard, watcher: &dyn Watcher) -> Result<(), Failure> {
        match heard {
            Heard::Word(_, Word::Trace { at, lines }) => {
                self.trace.push((at, lines));
                Ok(())
            }
            Heard::Word(node, _) if self.crashed[node.index()] => Ok(()), // its last words
            Heard::Word(node, word) => self.hear_word(node, word, watcher),
            Heard::Gone(node) => {
                self.gone(node);
                let told = self.crashed[node.index()];
                let what = || format!("{node} has ended, and nobody told it to");
                told.then_some(()).ok_or_else(|| Failure { what: what(), law_broken: false })
            }
            Heard::Met(..) => Ok(()), // too late to take part
        }
    }

    fn hear_word(&mut self, node: NodeId, word: Word, watcher: &dyn Watcher) -> Result<(), Failure> {
        let confused = |what: &str| Err(Failure { what: format!("{node} {what}"), law_broken: true });
        let phase = self.clients[node.index()].phase;
        match word {
            Word::Asks { want, at } if phase == Phase::Idle && want < self.wants.len() => {
                let time = self.time(at);
                self.clients[node.index()].ask(self.wants[want]);
                self.asked[node.index()] = at;
                self.metrics.crowd(time, 1, 0);
                self.metrics.asked(node, time);
            }
            Word::Enters { at } if phase == Phase::Waiting => {
                self.clients[node.index()].phase.arrive();
                self.inside.push(node);
                self.law()?;
                self.moved = now();
                self.metrics.entered(node, self.time(at));
                watcher.entries(self.metrics.entries());
                self.company.tell(node, &Order::Inside);
            }
            Word::Leaves { at } if phase == Phase::Inside => {
                self.clients[node.index()].leave();
                self.inside.retain(|other| *other != node);
                self.moved = now();
                self.metrics.left(self.time(at));
                self.company.tell(node, &Order::Outside);
            }
            Word::Finishes { at } if phase == Phase::Waiting => {
                let client = std::mem::take(&mut self.clients[node.index()]);
                if self.done.iter().all(|other| other.asked != client.asked) {
                    self.done.push(client);
                }
                self.moved = now();
                self.metrics.entered(node, self.time(at));
                watcher.entries(self.metrics.entries());
            }
            Word::Asks { .. } => return confused("asks twice"),
            Word::Finishes { .. } => return confused("is done with what it has not asked for"),
            Word::Enters { .. } => return confused("enters without having asked"),
            Word::Leaves { .. } => return confused("leaves without having been inside"),
            Word::Odd(what) => watcher.odd(&what),
            Word::Broken { what, law } => return Err(Failure { what, law_broken: law }),
            Word::Done(account) => self.accounts[node.index()] = Some(*account),
            Word::Hello { .. } | Word::Listening(_) | Word::Ready | Word::Trace { .. } => {
                return confused("begins anew");
            }
        }
        Ok(())
    }

    /// The law of the family.
    fn law(&self) -> Result<(), Failure> {
        let scene = Scene {
            nodes: self.clients.len() + self.done.len(),
            limit: self.settings.system.k,
            inside: &self.inside,
            client: &|node| self.clients.iter().chain(&self.done).nth(node.index()).expect("as many as said"),
            alive: &|node| !self.crashed.get(node.index()).is_some_and(|crashed| *crashed),
            connected: &|_, _| true,
        };
        F::law(&scene).map_err(|what| Failure { what, law_broken: true })
    }

    fn crash(&mut self, node: NodeId) {
        if std::mem::replace(&mut self.crashed[node.index()], true) {
            return;
        }
        self.company.crash(node);
        let at = now();
        if self.clients[node.index()].phase == Phase::Waiting {
            self.metrics.crowd(self.time(at), 0, 1);
            self.metrics.gave_up(node);
        }
        self.metrics.crashes += 1;
        self.clients[node.index()] = Client::default();
        self.inside.retain(|other| *other != node);
    }

    /// A node will say no more. Only now is it certain that all it has done is written down.
    fn gone(&mut self, node: NodeId) {
        self.gone[node.index()] = true;
        if self.settings.trace && self.crashed[node.index()] {
            let at = now();
            let line = format!("{{\"time\":{},\"node\":{},\"kind\":\"crash\"}}\n", self.time(at), node.0);
            self.trace.push((at, line));
        }
    }

    /// Whether anything still moves, and everybody moves whom a crash ought not to have stopped.
    fn look_up(&self, time: Nanos) -> Result<(), Failure> {
        let give_up = self.settings.give_up_after(&self.entry.assumptions);
        if !self.entry.assumptions.survives_crashes && self.crashed.contains(&true) {
            self.nobody_waits_longer_than(give_up, time)?;
        }
        let idle = Duration::from_nanos(time.saturating_sub(self.moved));
        if !self.inside.is_empty() || idle < give_up {
            return Ok(());
        }
        if self.crashed.iter().all(|crashed| *crashed) {
            return Err(self.stuck("all nodes have crashed"));
        }
        self.nobody_waits_longer_than(give_up, time)?;
        if self.wants.is_empty() || self.clients_left() == 0 {
            return Err(self.stuck("nobody who asks is left"));
        }
        Ok(())
    }

    /// Others may go on while somebody waits for one who is dead. Whoever has waited for half as long as the first waits for the
    /// same: it is named, too.
    fn nobody_waits_longer_than(&self, give_up: Duration, time: Nanos) -> Result<(), Failure> {
        let waited = |node: &NodeId| Duration::from_nanos(time.saturating_sub(self.asked[node.index()]));
        match self.waiting().map(|node| waited(&node)).max() {
            Some(longest) if longest >= give_up => {
                let waiting: Vec<NodeId> = self.waiting().filter(|node| waited(node) >= longest / 2).collect();
                Err(self.stuck(&self.reason(&waiting, longest)))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn clients_left(&self) -> usize {
        self.crashed[..self.askers].iter().filter(|crashed| !**crashed).count()
    }

    fn waiting(&self) -> impl Iterator<Item = NodeId> + '_ {
        let waits = |node: &NodeId| self.clients[node.index()].phase == Phase::Waiting;
        NodeId::all(self.clients.len()).filter(waits)
    }

    fn reason(&self, waiting: &[NodeId], longest: Duration) -> String {
        let verb = if waiting.len() == 1 { "waits" } else { "wait" };
        let waiting = names(waiting.iter().copied());
        let crashed = names(NodeId::all(self.crashed.len()).filter(|node| self.crashed[node.index()]));
        let why = match (crashed.as_str(), self.entry.assumptions.survives_crashes) {
            ("", _) => "nobody has crashed".to_owned(),
            (_, true) => format!("{crashed} crashed, which {} should survive", self.entry.name),
            (_, false) => {
                let family = |entry: &&Entry| entry.family == F::NAME;
                let survive = catalog::ALL.iter().filter(family).filter(|entry| entry.assumptions.survives_crashes);
                let others = survive.map(|entry| entry.name).collect::<Vec<_>>().join(", ");
                let others = if others.is_empty() { String::new() } else { format!("; these survive it: {others}") };
                format!("{crashed} crashed, and {} takes for granted that nobody does{others}", self.entry.name)
            }
        };
        format!("{waiting} {verb}, for up to {:.1} s: {why}", longest.as_secs_f64())
    }

    fn stuck(&self, why: &str) -> Failure {
        let entries = self.metrics.entries();
        let entries = if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") };
        Failure { what: format!("{} is stuck after {entries}: {why}", self.entry.name), law_broken: false }
    }

    fn time(&self, at: Nanos) -> f64 {
        seconds(at.saturating_sub(self.epoch))
    }

    fn tell_all(&mut self, order: &Order) {
        for node in NodeId::all(self.crashed.len()).filter(|node| !self.crashed[node.index()]) {
            self.company.tell(node, order);
        }
    }

    /// Ends the run, and asks all who live what they have done.
    fn finish(mut self, processes: bool, failure: Option<Failure>) -> Outcome {
        let elapsed = self.time(now());
        self.tell_all(&Order::Stop);
        let deadline = now() + FAREWELL.as_nanos() as Nanos;
        while !self.gone.iter().all(|gone| *gone) {
            let left = Duration::from_nanos(deadline.saturating_sub(now()));
            match self.company.hear(left) {
                Ok(Heard::Word(node, Word::Done(account))) => self.accounts[node.index()] = Some(*account),
                Ok(Heard::Word(_, Word::Trace { at, lines })) => self.trace.push((at, lines)),
                Ok(Heard::Gone(node)) => self.gone(node),
                Ok(Heard::Word(..) | Heard::Met(..)) => {}
                Err(_) => break,
            }
        }
        for node in self.waiting().collect::<Vec<_>>() {
            self.metrics.still_waits(node, elapsed);
        }
        self.trace.sort_by_key(|(at, _)| *at);
        let trace = std::mem::take(&mut self.trace).into_iter().map(|(_, lines)| lines).collect();
        let sum = Sum::of(&self.accounts);
        let outcome =
            sum.outcome(self.entry, self.settings, (processes, self.company.addresses), self.metrics, elapsed, failure);
        Outcome { trace, ..outcome }
    }
}

fn names(nodes: impl Iterator<Item = NodeId>) -> String {
    nodes.map(|node| node.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
