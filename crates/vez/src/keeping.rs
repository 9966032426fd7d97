//! What is kept for whoever knows a value, wherever in the cluster that is.
//!
//! A lock that was taken by `SET` is held by the node that took it, and belongs to its name and its value. Whoever knows both may
//! ask any node: if it is not kept there, all others are asked, and the one that keeps it compares and answers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vez_peer::{
    ask::Failure,
    identity::{Address, MemberId},
    keep::{Kept, Wish},
    name::Name,
};

use crate::{
    clock,
    engine::Asked,
    gather,
    inquiry::{Answer, Question},
    node::Inner,
    wire::Letter,
};

/// What is kept under a name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    pub value: Vec<u8>,
    /// For so long, in milliseconds: no longer than it is.
    pub left_ms: u64,
}

/// Why it is not known whether anything is kept, or not done what was wished.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Unfound {
    #[error(transparent)]
    Failure(#[from] Failure),
    #[error("{} did not answer, and may keep {name}; try again, or wait until it is back or gone", gather::words(.silent))]
    Silent { name: Name, silent: Vec<MemberId> },
}

impl Found {
    pub(crate) fn new(kept: Kept) -> Self {
        let left_ms = kept.deadline.saturating_sub(clock::now()) / 1_000_000;
        Self { value: kept.value, left_ms }
    }
}

impl Inner {
    /// Does something with what is kept under a name and a value, or under whichever value it is.
    pub(crate) async fn by_value(
        &self,
        name: &Name,
        value: Option<&[u8]>,
        wish: Wish,
    ) -> Result<Option<Found>, Unfound> {
        self.wherever(name, value, wish, self.engine.by_value(name, value, wish)).await
    }

    /// The same, where this node itself was asked already.
    pub(crate) async fn wherever(
        &self,
        name: &Name,
        value: Option<&[u8]>,
        wish: Wish,
        here: Asked<Option<Kept>>,
    ) -> Result<Option<Found>, Unfound> {
        match answer(here).await? {
            Some(kept) => Ok(Some(Found::new(kept))),
            None => self.elsewhere(name, value, wish).await,
        }
    }

    async fn elsewhere(&self, name: &Name, value: Option<&[u8]>, wish: Wish) -> Result<Option<Found>, Unfound> {
        let question = Question::ByValue { name: name.clone(), value: value.map(<[u8]>::to_vec), wish };
        let is_it = |answer: &Answer| matches!(answer, Answer::ByValue(Ok(Some(_))));
        let Some((answers, silent)) = self.ask_others(&question, is_it).await else {
            return Err(Failure::NoMember.into());
        };
        for answer in answers {
            match answer {
                Answer::ByValue(Ok(Some(found))) => return Ok(Some(found)),
                // One that is no member any more keeps nothing for anybody.
                Answer::ByValue(Err(failure)) if failure != Failure::NoMember => return Err(failure.into()),
                _ => {}
            }
        }
        if silent.is_empty() { Ok(None) } else { Err(Unfound::Silent { name: name.clone(), silent }) }
    }

    /// Answers another node, as soon as it can be told.
    pub(crate) fn answer_by_value(
        self: &Arc<Self>,
        number: u64,
        answer_to: &Address,
        name: &Name,
        value: Option<&[u8]>,
        wish: Wish,
    ) {
        let asked = self.engine.by_value(name, value, wish);
        let (inner, answer_to) = (Arc::clone(self), answer_to.clone());
        let tell = move |found: Result<Option<Kept>, Failure>| {
            let answer = Answer::ByValue(found.map(|kept| kept.map(Found::new)));
            inner.engine.send(&answer_to, &Letter::Answer { number, answer });
        };
        match asked {
            Asked::Now(found) => tell(found),
            later @ Asked::Later(_) => self.spawn(async move { tell(answer(later).await) }),
        }
    }
}

async fn answer(asked: Asked<Option<Kept>>) -> Result<Option<Kept>, Failure> {
    match asked {
        Asked::Now(found) => found,
        Asked::Later(pending) => pending.answer().await,
    }
}
