//! Breadth first through all states.

use vez_algorithms::{Algorithm, Family, Phase, Setting};

use super::{
    Breach, CannotCheck, Config, Workload,
    model::{Model, Transition},
    visited::Visited,
};

/// What an exploration found.
pub(super) struct Explored {
    pub(super) visited: Visited,
    pub(super) transitions: usize,
    pub(super) depth: usize,
    /// The first law that was broken, and the run that breaks it.
    pub(super) breach: Option<(Breach, Vec<Transition>)>,
}

/// Somebody who wants to hear of every state and every way from one to another. States come in the order of their
/// numbers, each with the ways that lead out of it.
pub(super) trait Watcher<P: Algorithm> {
    fn state(&mut self, model: &Model<P>, state: &[u32]);
    fn way(&mut self, model: &Model<P>, transition: Transition, to: u32);
}

/// How many states are explored between two reports of progress.
const PROGRESS_EVERY: usize = 1 << 16;

pub(super) fn explore<'a, P: Algorithm>(
    model: &'a mut Model<P>,
    config: &Config,
    watcher: Option<&'a mut dyn Watcher<P>>,
    progress: &mut dyn FnMut(usize),
) -> Result<Explored, CannotCheck> {
    let first = model.first.clone();
    let explored = Explored { visited: Visited::new(config.exact), transitions: 0, depth: 0, breach: None };
    let mut search = Search {
        model,
        watcher,
        explored,
        sometimes: Sometimes::default(),
        below: Level::default(),
        ways: Vec::new(),
        next: Vec::new(),
    };
    search.explored.visited.insert(&first, 0);
    search.below.push(&first);
    if let Err(breach) = search.model.laws(&first) {
        return Ok(Explored { breach: Some((breach, Vec::new())), ..search.explored });
    }
    let mut level = Level::default();
    let mut number = 0;
    while !search.below.words.is_empty() {
        std::mem::swap(&mut level, &mut search.below);
        search.below.words.clear();
        let mut states = level.states();
        while let Some(state) = states.next() {
            search.sometimes.look(search.model, state);
            if let Some(breach) = search.expand(number, state) {
                // What is broken one step on is not the shortest if another state of this level is a deadlock already.
                let shorter = (number + 1..).zip(states).find_map(|(number, state)| search.deadlock(number, state));
                return Ok(Explored { breach: shorter.or(Some(breach)), ..search.explored });
            }
            number += 1;
            if (number as usize).is_multiple_of(PROGRESS_EVERY) {
                progress(search.explored.visited.len());
            }
            if search.explored.visited.len() > config.max_states {
                return Err(match config.workload {
                    Workload::Requests(_) => CannotCheck::TooManyStates(config.max_states),
                    Workload::Unbounded => CannotCheck::PerhapsNoEnd(config.max_states),
                });
            }
        }
        search.explored.depth += usize::from(!search.below.words.is_empty());
    }
    let breach = search.sometimes.missing(search.model).map(|what| (Breach::Never(what), Vec::new()));
    Ok(Explored { breach, ..search.explored })
}

/// The states that are equally far from the first, one after the other, each behind its length.
#[derive(Default)]
struct Level {
    words: Vec<u32>,
}

impl Level {
    fn push(&mut self, state: &[u32]) {
        self.words.push(state.len() as u32);
        self.words.extend_from_slice(state);
    }

    fn states(&self) -> impl Iterator<Item = &[u32]> {
        let mut rest = &self.words[..];
        std::iter::from_fn(move || {
            let (length, tail) = rest.split_first()?;
            let (state, tail) = tail.split_at(*length as usize);
            rest = tail;
            Some(state)
        })
    }
}

/// An exploration under way.
struct Search<'a, P: Algorithm> {
    model: &'a mut Model<P>,
    watcher: Option<&'a mut dyn Watcher<P>>,
    explored: Explored,
    sometimes: Sometimes,
    /// The states found one step farther away.
    below: Level,
    ways: Vec<Transition>,
    next: Vec<u32>,
}

impl<P: Algorithm> Search<'_, P> {
    /// Takes every way out of a state. If a law is broken on one of them, it is returned with the run that breaks it.
    fn expand(&mut self, number: u32, state: &[u32]) -> Option<(Breach, Vec<Transition>)> {
        if let Some(watcher) = &mut self.watcher {
            watcher.state(self.model, state);
        }
        if let Some(deadlock) = self.deadlock(number, state) {
            return Some(deadlock);
        }
        self.explored.transitions += self.ways.len();
        for at in 0..self.ways.len() {
            let way = self.ways[at];
            if let Some(breach) = self.model.outcome(way).breach.clone() {
                let mut run = self.run_to(number);
                run.push(way);
                return Some((breach, run));
            }
            self.sometimes.somebody_served |= self.model.outcome(way).served;
            self.model.follow(state, way, &mut self.next);
            let (to, new) = self.explored.visited.insert(&self.next, number);
            if let Some(watcher) = &mut self.watcher {
                watcher.way(self.model, way, to);
            }
            if !new {
                continue;
            }
            if let Err(breach) = self.model.laws(&self.next) {
                return Some((breach, self.run_to(to)));
            }
            self.below.push(&self.next);
        }
        None
    }

    /// Somebody waits, and nothing can happen any more but what need not: clients may think for ever, and nodes live on.
    /// `self.ways` are the ways out of the state afterwards.
    fn deadlock(&mut self, number: u32, state: &[u32]) -> Option<(Breach, Vec<Transition>)> {
        self.model.transitions(state, &mut self.ways);
        if self.ways.iter().any(|way| way.action.must_happen()) {
            return None;
        }
        let waiting = self.model.waiting(state).to_vec();
        (!waiting.is_empty()).then(|| (Breach::Deadlock(waiting), self.run_to(number)))
    }

    fn run_to(&mut self, number: u32) -> Vec<Transition> {
        let Explored { visited, .. } = &self.explored;
        self.model.retrace(&visited.path(number), visited)
    }
}

/// What must be seen in some state, so that a model in which nothing happens does not pass.
#[derive(Default)]
struct Sometimes {
    somebody_served: bool,
    two_waiting: bool,
}

impl Sometimes {
    fn look<P: Algorithm>(&mut self, model: &Model<P>, state: &[u32]) {
        if !self.two_waiting {
            self.two_waiting = model.in_phase(state, Phase::Waiting).len() >= 2;
        }
    }

    fn missing<P: Algorithm>(&self, model: &Model<P>) -> Option<&'static str> {
        let room_for_all = P::SETTINGS.contains(&Setting::K) && model.limit >= model.nodes;
        let competes = P::Family::LEAVE.is_some() && model.askers >= 2 && !room_for_all;
        match (self.somebody_served, self.two_waiting || !competes) {
            (false, _) if P::Family::LEAVE.is_some() => Some("somebody was inside"),
            (false, _) => Some("anything was done"),
            (true, false) => Some("two waited at once"),
            (true, true) => None,
        }
    }
}
