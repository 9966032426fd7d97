//! How a state was reached, and that in words.

use vez_algorithms::Algorithm;

use super::{
    super::{action::Action, visited::Visited},
    Model, Transition,
};
use crate::stage::{Step, describe};

impl<P: Algorithm> Model<P> {
    /// The transitions that lead from the first state through the states of these numbers.
    pub(in super::super) fn retrace(&mut self, numbers: &[u32], visited: &Visited) -> Vec<Transition> {
        let mut state = self.first.clone();
        let (mut next, mut transitions, mut run) = (Vec::new(), Vec::new(), Vec::new());
        for &number in numbers.iter().skip(1) {
            self.transitions(&state, &mut transitions);
            let taken = transitions.iter().find(|&&transition| {
                self.follow(&state, transition, &mut next);
                visited.is(number, &next)
            });
            run.push(*taken.expect("a state is reached from the one before it"));
            std::mem::swap(&mut state, &mut next);
        }
        run
    }

    /// A run as the commands of a transcript, each with what came of it.
    pub(in super::super) fn tell(&self, run: &[Transition]) -> String {
        let mut told = String::new();
        for same in run.chunk_by(|one, other| one.action == Action::Pass && other.action == Action::Pass) {
            match self.step(same[0]) {
                Some(step) => told += &format!("{step}\n"),
                None if same.len() == 1 => told += "# time passes\n",
                None => told += &format!("# time passes, {} steps\n", same.len()),
            }
            for effect in &self.outcome(same[0]).effects {
                told += &format!("    {}\n", describe::<P>(same[0].actor, effect));
            }
        }
        told
    }

    /// How often something happens in a run: more than that time passes.
    pub(in super::super) fn happenings(run: &[Transition]) -> usize {
        run.iter().filter(|transition| transition.action != Action::Pass).count()
    }

    /// A transition as a step on a stage; nothing if only time passes.
    fn step(&self, transition: Transition) -> Option<Step<P>> {
        let node = transition.actor;
        Some(match transition.action {
            Action::Pass => return None,
            Action::Ask(want) => {
                let wants = &self.book.rules.wants;
                Step::Ask(node, (wants.len() > 1).then(|| wants[want as usize]))
            }
            Action::Leave => Step::Leave(node),
            Action::Crash => Step::Crash(node),
            Action::Restart => Step::Restart(node),
            Action::Notice(other) | Action::Accuse(other) => Step::Notice(node, other),
            Action::Lose(packet) | Action::Perish(packet) => Step::Lose(self.book.message(packet).clone()),
            Action::Fire(timer) => Step::Fire(node, self.book.timer(timer)),
            Action::Receive(packet) => Step::Deliver(self.book.message(packet).clone()),
        })
    }
}
