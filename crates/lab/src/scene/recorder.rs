//! Somebody who watches a run and keeps all of it.

use std::collections::{BTreeMap, VecDeque};

use vez_algorithms::{Algorithm, Effect, EffectOf, Family, Heard, Input, Message as _, NodeId, Phase, Protocol};

use super::{Happening, Message, Scene, What};
use crate::sim::{Event, Watch};

/// Keeps all that happens, with the state of a node after everything that happened to it: for runs that one looks at.
pub struct Recorder<P: Protocol> {
    scene: Scene,
    /// What was sent and has not arrived, by sender, receiver and what it says; equal messages in the order of sending.
    on_their_way: BTreeMap<(NodeId, NodeId, String), VecDeque<usize>>,
    clients: BTreeMap<NodeId, Client<P::Family>>,
}

struct Client<F: Family> {
    phase: Phase,
    news: F::News,
}

impl<F: Family> Default for Client<F> {
    fn default() -> Self {
        Self { phase: Phase::Idle, news: F::News::default() }
    }
}

impl<P: Protocol> Default for Recorder<P> {
    fn default() -> Self {
        Self { scene: Scene::default(), on_their_way: BTreeMap::new(), clients: BTreeMap::new() }
    }
}

impl<P: Algorithm> Watch<P> for Recorder<P> {
    fn see(&mut self, time: f64, node: NodeId, event: Event<'_, P>) {
        let state = match event {
            Event::Input(_, state, _) => serde_json::to_value(state).ok(),
            Event::Effect(_) | Event::Lost(..) | Event::Doubled(..) | Event::Crashed => None,
        };
        let what = match event {
            Event::Input(input, ..) => self.input(time, node, input),
            Event::Effect(effect) => self.effect(time, node, effect),
            Event::Lost(to, message) => What::Lost { to, message: self.lost(time, node, to, message) },
            Event::Doubled(to, message) => What::Doubled { to, message: self.sent(time, node, to, message) },
            Event::Crashed => {
                self.clients.remove(&node);
                What::Crash
            }
        };
        let phase = self.clients.entry(node).or_default().phase;
        self.scene.nodes = self.scene.nodes.max(node.index() + 1);
        self.scene.end = time;
        self.scene.happenings.push(Happening { time, node, what, phase, state });
    }
}

impl<P: Algorithm> Recorder<P> {
    /// What was seen.
    #[must_use]
    pub fn into_scene(self) -> Scene {
        self.scene
    }

    fn input(&mut self, time: f64, node: NodeId, input: &Input<P>) -> What {
        let client = self.clients.entry(node).or_default();
        match input {
            Input::Start => What::Start,
            Input::Restart => What::Restart,
            Input::Command(command) if Some(*command) == P::Family::LEAVE => {
                client.phase = Phase::Idle;
                What::Leave
            }
            Input::Command(command) => {
                client.phase = Phase::Waiting;
                What::Ask(format!("{command:?}"))
            }
            Input::Message { from, message } => {
                What::Receive { from: *from, message: self.received(time, *from, node, message) }
            }
            Input::Timer(timer) => What::Fire(format!("{timer:?}")),
            Input::Crash(crashed) => What::Notice(*crashed),
            Input::Internal => What::Internal,
        }
    }

    fn effect(&mut self, time: f64, node: NodeId, effect: &EffectOf<P>) -> What {
        match effect {
            Effect::Send(to, message) => What::Send { to: *to, message: self.sent(time, node, *to, message) },
            Effect::SetTimer(timer, _) => What::Set(format!("{timer:?}")),
            Effect::CancelTimer(timer) => What::Cancel(format!("{timer:?}")),
            Effect::Output(output) => {
                let client = self.clients.entry(node).or_default();
                match P::Family::hear(&mut client.news, output) {
                    Heard::Began => client.phase = Phase::Waiting,
                    Heard::Entered => {
                        client.phase = Phase::Inside;
                        return What::Enter;
                    }
                    Heard::Finished => client.phase = Phase::Idle,
                    Heard::News => {}
                }
                What::Told(format!("{output:?}"))
            }
            Effect::Violation(what) => What::Object((*what).to_owned()),
        }
    }

    fn sent(&mut self, time: f64, from: NodeId, to: NodeId, message: &P::Message) -> usize {
        let at = self.scene.messages.len();
        let (kind, text) = (message.kind(), format!("{message:?}"));
        self.on_their_way.entry((from, to, text.clone())).or_default().push_back(at);
        self.scene.messages.push(Message { kind, text, from, to, sent: time, received: None, lost: None });
        self.scene.nodes = self.scene.nodes.max(to.index() + 1);
        at
    }

    /// Of equal messages the one that was sent first arrives first: nobody can tell the difference.
    fn received(&mut self, time: f64, from: NodeId, to: NodeId, message: &P::Message) -> usize {
        let equal = self.on_their_way.get_mut(&(from, to, format!("{message:?}")));
        // Whoever drives a run lets arrive only what was sent; if not, it is sent now.
        let at = equal.and_then(VecDeque::pop_front).unwrap_or_else(|| self.sent(time, from, to, message));
        self.scene.messages[at].received = Some(time);
        at
    }

    /// The simulator loses a message as it is sent; of equal ones that is then the last.
    fn lost(&mut self, time: f64, from: NodeId, to: NodeId, message: &P::Message) -> usize {
        let messages = &self.scene.messages;
        let equal = self.on_their_way.get_mut(&(from, to, format!("{message:?}")));
        let found = equal.and_then(|equal| match equal.back() {
            Some(last) if messages[*last].sent == time => equal.pop_back(),
            _ => equal.pop_front(),
        });
        let at = found.unwrap_or_else(|| self.sent(time, from, to, message));
        self.scene.messages[at].lost = Some(time);
        at
    }
}
