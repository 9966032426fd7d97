//! Our part in the algorithm of a lock, whichever that is.
//!
//! `fila` is made for it: it can try, be forsaken, and be forgotten. The other token algorithms may be chosen for a prefix of
//! names. They know nothing of that, and are made do: what is forsaken enters and leaves at once, a try is busy unless
//! the token is here, and nothing is forgotten before the view is.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use vez_algorithms::{
    Effect, EffectOf, Input, Never, NodeId, Phase, act,
    mutex::{
        Command, FilaForest, NaimiTrehel, Nxr, Output, Raymond, SuzukiKasami, TokenBased,
        fila::{self, Fila},
    },
    step,
};

use crate::charter::LockAlgorithm;

/// A message of whichever algorithm.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum TurnMessage {
    /// Of `fila`.
    Fila(fila::Message),
    /// Of `fila-forest`.
    FilaForest(MessageOf<FilaForest>),
    /// Of `naimi-trehel`.
    NaimiTrehel(MessageOf<NaimiTrehel>),
    /// Of `nxr`.
    Nxr(MessageOf<Nxr>),
    /// Of `raymond`.
    Raymond(MessageOf<Raymond>),
    /// Of `suzuki-kasami`.
    SuzukiKasami(MessageOf<SuzukiKasami>),
}

type MessageOf<P> = <P as vez_algorithms::Protocol>::Message;

/// Our part in the algorithm of a lock.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) enum Turns {
    Fila(Fila),
    FilaForest(Plain<FilaForest>),
    NaimiTrehel(Plain<NaimiTrehel>),
    Nxr(Plain<Nxr>),
    Raymond(Plain<Raymond>),
    SuzukiKasami(Plain<SuzukiKasami>),
}

/// One of the other algorithms, with what it does not know itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Plain<P> {
    node: P,
    phase: Phase,
    /// Nobody waits for what it waits for.
    for_nobody: bool,
    has_token: bool,
}

/// What happens to a lock here.
pub(super) enum Turn {
    Request,
    Release,
    /// Of `fila`: a request that does not want to wait.
    Attempt(u64),
    /// Of `fila`: the home wants the idle token back.
    Pull(u64),
    /// Nobody waits any more.
    Forsake,
    /// Somebody does again.
    Adopt,
    Message(NodeId, TurnMessage),
}

/// What an algorithm wants done.
pub(super) type TurnEffect = Effect<TurnMessage, Never, Output>;
/// It is seldom more than one thing.
type TurnEffects = SmallVec<[TurnEffect; 1]>;

/// The same for each of the other algorithms.
macro_rules! plain {
    ($turns:expr, $fila:ident => $of_fila:expr, $plain:ident => $of_plain:expr) => {
        match $turns {
            Turns::Fila($fila) => $of_fila,
            Turns::FilaForest($plain) => $of_plain,
            Turns::NaimiTrehel($plain) => $of_plain,
            Turns::Nxr($plain) => $of_plain,
            Turns::Raymond($plain) => $of_plain,
            Turns::SuzukiKasami($plain) => $of_plain,
        }
    };
}

impl Turns {
    /// A lock as it is born: the token is at its home.
    pub(super) fn new(algorithm: LockAlgorithm, me: NodeId, home: NodeId, nodes: usize) -> Self {
        match algorithm {
            LockAlgorithm::Fila => Self::Fila(Fila::new(me, home)),
            LockAlgorithm::FilaForest => Self::FilaForest(Plain::new(me, home, nodes)),
            LockAlgorithm::NaimiTrehel => Self::NaimiTrehel(Plain::new(me, home, nodes)),
            LockAlgorithm::Nxr => Self::Nxr(Plain::new(me, home, nodes)),
            LockAlgorithm::Raymond => Self::Raymond(Plain::new(me, home, nodes)),
            LockAlgorithm::SuzukiKasami => Self::SuzukiKasami(Plain::new(me, home, nodes)),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        plain!(self, fila => fila.phase(), plain => plain.phase)
    }

    pub(super) fn has_token(&self) -> bool {
        plain!(self, fila => fila.has_token(), plain => plain.has_token)
    }

    pub(super) fn is_for_nobody(&self) -> bool {
        plain!(self, fila => fila.is_for_nobody(), plain => plain.for_nobody)
    }

    pub(super) fn is_pulling(&self) -> bool {
        plain!(self, fila => fila.is_pulling(), _plain => false)
    }

    /// Whether somebody elsewhere waits, as far as is known here. The others do not say: somebody may.
    pub(super) fn others_wait(&self) -> bool {
        plain!(self, fila => fila.others_wait(), _plain => true)
    }

    /// Whether this is as good as nothing.
    pub(super) fn knows_nothing(&self) -> bool {
        plain!(self, fila => fila.knows_nothing(), _plain => false)
    }

    /// Whether the token is here, and could be given back to where it was born.
    pub(super) fn is_forgettable(&self) -> bool {
        plain!(self, fila => fila.has_token() && fila.phase() == Phase::Idle, _plain => false)
    }

    /// Who is known here to come next, and who was last seen with the token or asking for it.
    pub(super) fn line(&self) -> (Vec<NodeId>, Option<NodeId>) {
        plain!(self, fila => (fila.line().collect(), Some(fila.last())), _plain => (Vec::new(), None))
    }

    /// Something happens.
    pub(super) fn happen(&mut self, me: NodeId, turn: Turn) -> TurnEffects {
        match self {
            Self::Fila(fila) => happen_to_fila(fila, me, turn),
            Self::FilaForest(plain) => plain.happen(me, turn, TurnMessage::FilaForest, |message| match message {
                TurnMessage::FilaForest(message) => Some(message),
                _ => None,
            }),
            Self::NaimiTrehel(plain) => plain.happen(me, turn, TurnMessage::NaimiTrehel, |message| match message {
                TurnMessage::NaimiTrehel(message) => Some(message),
                _ => None,
            }),
            Self::Nxr(plain) => plain.happen(me, turn, TurnMessage::Nxr, |message| match message {
                TurnMessage::Nxr(message) => Some(message),
                _ => None,
            }),
            Self::Raymond(plain) => plain.happen(me, turn, TurnMessage::Raymond, |message| match message {
                TurnMessage::Raymond(message) => Some(message),
                _ => None,
            }),
            Self::SuzukiKasami(plain) => plain.happen(me, turn, TurnMessage::SuzukiKasami, |message| match message {
                TurnMessage::SuzukiKasami(message) => Some(message),
                _ => None,
            }),
        }
    }
}

impl TurnMessage {
    /// Whether somebody wants the token by it.
    pub(super) fn is_request(&self) -> bool {
        let answers = self.is_answer() || self.is_token();
        !answers
    }

    /// Whether it is the answer to a try.
    pub(super) fn is_answer(&self) -> bool {
        matches!(self, Self::Fila(fila::Message::Busy(_) | fila::Message::Refused(_)))
    }

    /// Whether it is of that algorithm, and everybody that it names is one of so many members.
    pub(super) fn is_sound(&self, algorithm: LockAlgorithm, members: usize) -> bool {
        match (self, algorithm) {
            (Self::Fila(message), LockAlgorithm::Fila) => message.names_only(members),
            (Self::FilaForest(message), LockAlgorithm::FilaForest) => FilaForest::names_only(message, members),
            (Self::NaimiTrehel(message), LockAlgorithm::NaimiTrehel) => NaimiTrehel::names_only(message, members),
            (Self::Nxr(message), LockAlgorithm::Nxr) => Nxr::names_only(message, members),
            (Self::Raymond(message), LockAlgorithm::Raymond) => <Raymond>::names_only(message, members),
            (Self::SuzukiKasami(message), LockAlgorithm::SuzukiKasami) => SuzukiKasami::names_only(message, members),
            _ => false,
        }
    }

    /// Whether the token goes along with it.
    pub(super) fn is_token(&self) -> bool {
        match self {
            Self::Fila(message) => matches!(message, fila::Message::Token(_)),
            Self::FilaForest(message) => FilaForest::is_token(message),
            Self::NaimiTrehel(message) => NaimiTrehel::is_token(message),
            Self::Nxr(message) => Nxr::is_token(message),
            Self::Raymond(message) => <Raymond>::is_token(message),
            Self::SuzukiKasami(message) => SuzukiKasami::is_token(message),
        }
    }
}

const NOT_THIS: &str = "a message of another algorithm";

fn happen_to_fila(fila: &mut Fila, me: NodeId, turn: Turn) -> TurnEffects {
    let mut effects: Vec<EffectOf<Fila>> = Vec::new();
    let out = &mut effects;
    match turn {
        Turn::Request => step(me, fila, Input::Command(Command::Request), out, &mut first),
        Turn::Release => step(me, fila, Input::Command(Command::Release), out, &mut first),
        Turn::Attempt(number) => act(me, fila, out, &mut first, |fila, cx| fila.attempt(number, cx)),
        Turn::Pull(number) => act(me, fila, out, &mut first, |fila, cx| fila.pull(number, cx)),
        Turn::Forsake => fila.forsake(),
        Turn::Adopt => act(me, fila, out, &mut first, Fila::adopt),
        Turn::Message(from, TurnMessage::Fila(message)) => {
            step(me, fila, Input::Message { from, message }, out, &mut first);
        }
        Turn::Message(..) => out.push(Effect::Violation(NOT_THIS)),
    }
    effects.into_iter().map(|effect| named(effect, TurnMessage::Fila)).collect()
}

impl<P: TokenBased> Plain<P> {
    fn new(me: NodeId, home: NodeId, nodes: usize) -> Self {
        let node = P::at_rest(me, father(me, home, nodes), nodes);
        Self { node, phase: Phase::Idle, for_nobody: false, has_token: me == home }
    }

    fn happen(
        &mut self,
        me: NodeId,
        turn: Turn,
        name: impl Fn(P::Message) -> TurnMessage,
        own: impl Fn(TurnMessage) -> Option<P::Message>,
    ) -> TurnEffects {
        let mut effects: Vec<EffectOf<P>> = Vec::new();
        match turn {
            Turn::Request => self.request(me, &mut effects),
            Turn::Release => self.release(me, &mut effects),
            Turn::Attempt(_) if self.has_token => self.request(me, &mut effects),
            Turn::Attempt(_) => effects.push(Effect::Output(Output::Busy)),
            Turn::Pull(_) => unreachable!("only fila is forgotten"),
            Turn::Forsake => self.for_nobody = true,
            Turn::Adopt => self.for_nobody = false,
            Turn::Message(from, message) => match own(message) {
                Some(message) => {
                    let is_token = P::is_token(&message);
                    step(me, &mut self.node, Input::Message { from, message }, &mut effects, &mut first);
                    let refused = effects.iter().any(|effect| matches!(effect, Effect::Violation(_)));
                    self.has_token |= is_token && !refused;
                    self.notice(me, &mut effects);
                }
                None => effects.push(Effect::Violation(NOT_THIS)),
            },
        }
        effects.into_iter().map(|effect| named(effect, &name)).collect()
    }

    fn request(&mut self, me: NodeId, effects: &mut Vec<EffectOf<P>>) {
        self.phase.ask();
        step(me, &mut self.node, Input::Command(Command::Request), effects, &mut first);
        self.notice(me, effects);
    }

    fn release(&mut self, me: NodeId, effects: &mut Vec<EffectOf<P>>) {
        self.phase.leave();
        step(me, &mut self.node, Input::Command(Command::Release), effects, &mut first);
        self.notice(me, effects);
    }

    /// What the effects of a step say about the token and our place. Who enters for nobody leaves at once.
    fn notice(&mut self, me: NodeId, effects: &mut Vec<EffectOf<P>>) {
        if effects.iter().any(|effect| matches!(effect, Effect::Send(_, message) if P::is_token(message))) {
            self.has_token = false;
        }
        let entered = effects.iter().position(|effect| matches!(effect, Effect::Output(Output::Entered)));
        if let Some(at) = entered
            && self.phase == Phase::Waiting
        {
            self.phase.arrive();
            if core::mem::take(&mut self.for_nobody) {
                effects.remove(at);
                self.release(me, effects);
            }
        }
    }
}

/// A balanced tree with the home at its root: where the token is from here.
fn father(me: NodeId, home: NodeId, nodes: usize) -> NodeId {
    let from_home = (me.index() + nodes - home.index()) % nodes;
    let father = if from_home == 0 { 0 } else { (from_home - 1) / 2 };
    NodeId::from_index((father + home.index()) % nodes)
}

fn named<M>(effect: Effect<M, Never, Output>, name: impl Fn(M) -> TurnMessage) -> TurnEffect {
    match effect {
        Effect::Send(to, message) => Effect::Send(to, name(message)),
        Effect::Output(output) => Effect::Output(output),
        Effect::Violation(what) => Effect::Violation(what),
        Effect::SetTimer(timer, _) | Effect::CancelTimer(timer) => match timer {},
    }
}

/// None of these algorithms leaves anything to chance.
fn first(_: usize) -> usize {
    0
}
