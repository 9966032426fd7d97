//! Breadth first through all states.

use smallvec::SmallVec;
use vez_algorithms::{
    NodeId,
    mutex::{self, Mutex, Phase},
};

use super::{
    Breach, CannotCheck, Config,
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
pub(super) trait Watcher<P: Mutex> {
    fn state(&mut self, _model: &Model<P>, _state: &[u32]) {}
    fn way(&mut self, _model: &Model<P>, _transition: Transition, _to: u32) {}
}

impl<P: Mutex> Watcher<P> for () {}

/// How many states are explored between two reports of progress.
const PROGRESS_EVERY: usize = 1 << 16;

pub(super) fn explore<P: Mutex>(
    model: &mut Model<P>,
    config: &Config,
    watcher: &mut impl Watcher<P>,
    progress: &mut dyn FnMut(usize),
) -> Result<Explored, CannotCheck> {
    let mut explored = Explored { visited: Visited::new(config.exact), transitions: 0, depth: 0, breach: None };
    let mut sometimes = Sometimes::default();
    // Two levels at a time, one state after the other, each behind its length.
    let (mut level, mut below) = (Vec::new(), Vec::new());
    let (mut transitions, mut next) = (Vec::new(), Vec::new());
    explored.visited.insert(&model.first, 0);
    level.push(model.first.len() as u32);
    level.extend(&model.first);
    let mut number = 0;
    loop {
        let mut rest = &level[..];
        while let [length, tail @ ..] = rest {
            let (state, tail) = tail.split_at(*length as usize);
            rest = tail;
            watcher.state(model, state);
            sometimes.look(model, state);
            model.transitions(state, &mut transitions);
            if !transitions.iter().any(|transition| transition.action != super::model::Action::Crash)
                && !model.all_served(state)
            {
                let waiting = model.in_phase(state, Phase::Waiting).to_vec();
                let run = model.retrace(&explored.visited.path(number), &explored.visited);
                explored.breach = Some((Breach::Deadlock(waiting), run));
                return Ok(explored);
            }
            explored.transitions += transitions.len();
            for &transition in &transitions {
                if let Some(breach) = model.outcome(transition).breach.clone() {
                    let mut run = model.retrace(&explored.visited.path(number), &explored.visited);
                    run.push(transition);
                    explored.breach = Some((breach, run));
                    return Ok(explored);
                }
                model.follow(state, transition, &mut next);
                let (to, new) = explored.visited.insert(&next, number);
                watcher.way(model, transition, to);
                if !new {
                    continue;
                }
                if let Err(breach) = laws(model, &next) {
                    let run = model.retrace(&explored.visited.path(to), &explored.visited);
                    explored.breach = Some((breach, run));
                    return Ok(explored);
                }
                below.push(next.len() as u32);
                below.extend_from_slice(&next);
            }
            number += 1;
            if (number as usize).is_multiple_of(PROGRESS_EVERY) {
                progress(explored.visited.len());
            }
            if explored.visited.len() > config.max_states {
                return Err(CannotCheck::TooManyStates(config.max_states));
            }
        }
        if below.is_empty() {
            break;
        }
        explored.depth += 1;
        std::mem::swap(&mut level, &mut below);
        below.clear();
    }
    if let Some(what) = sometimes.missing(model.nodes) {
        explored.breach = Some((Breach::Never(what), Vec::new()));
    }
    Ok(explored)
}

/// What holds in every state.
fn laws<P: Mutex>(model: &Model<P>, state: &[u32]) -> Result<(), Breach> {
    let inside: SmallVec<[NodeId; 8]> = model.in_phase(state, Phase::Inside);
    mutex::law(&inside).map_err(|(one, other)| Breach::Together(one, other))?;
    model.invariant(state).map_err(Breach::Invariant)
}

/// What must be seen in some state, so that a model in which nothing happens does not pass.
#[derive(Default)]
struct Sometimes {
    somebody_inside: bool,
    two_waiting: bool,
}

impl Sometimes {
    fn look<P: Mutex>(&mut self, model: &Model<P>, state: &[u32]) {
        if !(self.somebody_inside && self.two_waiting) {
            self.somebody_inside |= !model.in_phase(state, Phase::Inside).is_empty();
            self.two_waiting |= model.in_phase(state, Phase::Waiting).len() >= 2;
        }
    }

    fn missing(&self, nodes: usize) -> Option<&'static str> {
        match (self.somebody_inside, self.two_waiting || nodes < 2) {
            (false, _) => Some("somebody was inside"),
            (true, false) => Some("two waited at once"),
            (true, true) => None,
        }
    }
}
