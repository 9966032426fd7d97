//! Hi-ADSD below an algorithm that needs a failure detector.
//!
//! The algorithm above is told of a crash when its node's detector finds out. So what took a detector for granted now takes
//! bounded delays for granted, and pays for the tests.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    Algorithm, CommandOf, Context, Model, NodeId, Protocol, Setting, Setup, SetupError, Timing,
    detector::{self, HiAdsd, HiAdsdMessage, HiAdsdTimer},
};

/// What nodes say to each other: the detectors, or the algorithm above.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message<M> {
    /// The detectors.
    Detector(HiAdsdMessage),
    /// The algorithm above.
    Above(M),
}

impl<M: crate::Message> From<&Message<M>> for &'static str {
    fn from(message: &Message<M>) -> Self {
        match message {
            Message::Detector(message) => message.into(),
            Message::Above(message) => message.kind(),
        }
    }
}

/// Each is written as it writes itself.
impl<M: fmt::Debug> fmt::Debug for Message<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Detector(message) => message.fmt(f),
            Self::Above(message) => message.fmt(f),
        }
    }
}

/// What a node wants to be woken for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer<T> {
    /// By the detector.
    Detector(HiAdsdTimer),
    /// By the algorithm above.
    Above(T),
}

/// One node of an algorithm with its own failure detector.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Monitored<P> {
    detector: HiAdsd,
    above: P,
}

impl<P: Algorithm> Algorithm for Monitored<P> {
    const NAME: &'static str = P::NAME;
    const COST: &'static str = P::COST;
    const PAPER: &'static str = P::PAPER;
    const SETTINGS: &'static [Setting] = P::SETTINGS;

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let nodes = HiAdsd::system(setup)?.into_iter().zip(P::system(setup)?);
        Ok(nodes.map(|(detector, above)| Self { detector, above }).collect())
    }

    fn clients(setup: &Setup) -> usize {
        P::clients(setup)
    }

    fn wants(setup: &Setup) -> Vec<CommandOf<Self>> {
        P::wants(setup)
    }
}

impl<P: Protocol> Protocol for Monitored<P> {
    const MODEL: Model = Model { detector: false, timing: Timing::Bounded, ..P::MODEL };
    type Message = Message<P::Message>;
    type Timer = Timer<P::Timer>;
    type Family = P::Family;

    fn on_start(&mut self, cx: &mut Context<'_, Self>) {
        self.above(cx, P::on_start);
        self.detector(cx, HiAdsd::on_start);
    }

    fn on_restart(&mut self, cx: &mut Context<'_, Self>) {
        self.above(cx, P::on_restart);
        self.detector(cx, HiAdsd::on_restart);
    }

    fn on_command(&mut self, command: CommandOf<Self>, cx: &mut Context<'_, Self>) {
        self.above(cx, |above, cx| above.on_command(command, cx));
    }

    fn on_message(&mut self, from: NodeId, message: Message<P::Message>, cx: &mut Context<'_, Self>) {
        match message {
            Message::Detector(message) => self.detector(cx, |detector, cx| detector.on_message(from, message, cx)),
            Message::Above(message) => self.above(cx, |above, cx| above.on_message(from, message, cx)),
        }
    }

    fn on_timer(&mut self, timer: Timer<P::Timer>, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Detector(timer) => self.detector(cx, |detector, cx| detector.on_timer(timer, cx)),
            Timer::Above(timer) => self.above(cx, |above, cx| above.on_timer(timer, cx)),
        }
    }

    fn on_internal_event(&mut self) {
        self.above.on_internal_event();
    }
}

impl<P: Protocol> Monitored<P> {
    fn above(&mut self, cx: &mut Context<'_, Self>, run: impl FnOnce(&mut P, &mut Context<'_, P>)) {
        for output in cx.inner(Message::Above, Timer::Above, |cx| run(&mut self.above, cx)) {
            cx.output(output);
        }
    }

    /// A suspicion is news for the algorithm above. Nobody else wants to know of the rounds.
    fn detector(&mut self, cx: &mut Context<'_, Self>, run: impl FnOnce(&mut HiAdsd, &mut Context<'_, HiAdsd>)) {
        for output in cx.inner(Message::Detector, Timer::Detector, |cx| run(&mut self.detector, cx)) {
            match output {
                detector::Output::Suspect(node) => self.above(cx, |above, cx| above.on_crash(node, cx)),
                detector::Output::RoundBegan | detector::Output::RoundEnded => {}
            }
        }
    }
}
