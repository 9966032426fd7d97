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
        for transition in run {
            let node = transition.actor;
            let step = match transition.action {
                Action::Pass => None,
                Action::Ask(want) => {
                    let wants = &self.book.rules.wants;
                    Some(Step::<P>::Ask(node, (wants.len() > 1).then(|| wants[want as usize])))
                }
                Action::Leave => Some(Step::Leave(node)),
                Action::Crash => Some(Step::Crash(node)),
                Action::Restart => Some(Step::Restart(node)),
                Action::Notice(other) | Action::Accuse(other) => Some(Step::Notice(node, other)),
                Action::Lose(packet) | Action::Perish(packet) => Some(Step::Lose(self.book.message(packet).clone())),
                Action::Fire(timer) => Some(Step::Fire(node, self.book.timer(timer))),
                Action::Receive(packet) => Some(Step::Deliver(self.book.message(packet).clone())),
            };
            told += &step.map_or("# time passes\n".to_owned(), |step| format!("{step}\n"));
            for effect in &self.outcome(*transition).effects {
                told += &format!("    {}\n", describe::<P>(node, effect));
            }
        }
        told
    }
}
