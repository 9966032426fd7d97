//! What happens to a node, once more.

use std::panic::resume_unwind;

use vez_algorithms::{Algorithm, EffectOf, Family, Input, step};

use super::{
    Replay, Step, Wrong,
    difference::{difference, in_words, text},
    lines::{Happening, Told, shortened},
    written,
};
use crate::{quiet, sim::Event};

impl<P: Algorithm> Replay<P> {
    /// Lets the input of a line happen, and compares the state after it.
    pub(super) fn happen(&mut self, happening: Happening, told: &Told, line: u64) -> Result<(), Wrong> {
        let node = told.node;
        let input = self.input(happening, told)?;
        self.books.happen(node, told.time, &input).map_err(|how| self.but(told, &how))?;
        if input == Input::Restart {
            self.nodes[node.index()] = self.fresh[node.index()].clone();
        }
        let owed = self.step_on(told, input.clone())?;
        let expected = written(told.time, node, &Event::<P>::Input(&input, &self.nodes[node.index()], &[]));
        if let Some((path, there, here)) = difference(&told.fields, &expected) {
            return Err(super::parted::<P>(told, &expected, &path, (&there, &here)));
        }
        self.inputs += 1;
        self.step = Some(Step { line, node, time: told.time, owed: owed.into() });
        Ok(())
    }

    /// Calls the handler, with the answers of chance that stand in the line.
    fn step_on(&mut self, told: &Told, input: Input<P>) -> Result<Vec<EffectOf<P>>, Wrong> {
        let (mut effects, mut asked, mut refusal) = (Vec::new(), 0, None);
        let state = &mut self.nodes[told.node.index()];
        let mut choose = |n: usize| {
            let answer = told.choices.get(asked).copied();
            asked += 1;
            match answer {
                Some(answer) if answer < n => answer,
                Some(_) | None => {
                    let answer = answer.map_or("nothing".to_owned(), |answer| answer.to_string());
                    refusal = Some(format!("chance answers {answer} there; the algorithm wants a number below {n}"));
                    // Whatever else it might be answered, the handler may ask again for ever.
                    resume_unwind(Box::new("no answer"))
                }
            }
        };
        let done = quiet::catch(|| step(told.node, state, input, &mut effects, &mut choose));
        let what = || in_words::<P>(told);
        if let Some(refusal) = refusal {
            return Err(Wrong::parted(format!("{} and {refusal}", what())));
        }
        if let Err(panic) = done {
            let panic = shortened(&panic);
            return Err(Wrong::parted(format!("{} there; the algorithm fails an assertion: {panic}", what())));
        }
        if asked < told.choices.len() {
            let (what, answers) = (what(), told.choices.len());
            let how_often = format!("chance answers {answers}× there; the algorithm asks {asked}×");
            return Err(Wrong::parted(format!("{what} and {how_often}")));
        }
        Ok(effects)
    }

    fn input(&self, happening: Happening, told: &Told) -> Result<Input<P>, Wrong> {
        let n = self.nodes.len();
        Ok(match happening {
            Happening::Start => Input::Start,
            Happening::Restart => Input::Restart,
            Happening::Internal => Input::Internal,
            Happening::Notice => Input::Crash(told.peer(n)?),
            Happening::Receive => Input::Message { from: told.peer(n)?, message: told.message::<P>()? },
            Happening::Fire => {
                let timer = &told.fields["timer"];
                let unknown = |_| Wrong::unreadable(format!("{} has no timer {}", P::NAME, text(timer)));
                Input::Timer(serde_json::from_value(timer.clone()).map_err(unknown)?)
            }
            Happening::Leave => {
                let never = || Wrong::unreadable(format!("{} leaves, but {} lets nobody in", told.node, P::NAME));
                Input::Command(P::Family::LEAVE.ok_or_else(never)?)
            }
            Happening::Ask => {
                let what = told.fields["what"].as_str().unwrap_or_default();
                let known = self.wants.iter().find(|(words, _)| words == what).map(|(_, want)| *want);
                let unknown = || {
                    let (node, what) = (told.node, shortened(what));
                    let usual = self.wants.iter().map(|(words, _)| &**words).min().unwrap_or("nothing");
                    Wrong::unreadable(format!(
                        "{node} asks for \"{what}\", which {} has no word for; clients ask for {usual}, for instance",
                        P::NAME
                    ))
                };
                Input::Command(known.ok_or_else(unknown)?)
            }
        })
    }
}

impl Told {
    /// What a message says.
    pub(super) fn message<P: Algorithm>(&self) -> Result<P::Message, Wrong> {
        let message = &self.fields["message"];
        let unknown = |_| Wrong::unreadable(format!("{} has no message {}", P::NAME, text(message)));
        serde_json::from_value(message.clone()).map_err(unknown)
    }
}
