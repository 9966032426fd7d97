//! A semaphore whose home keeps a ledger. Steps: docs/algorithms/ledger.md.
//!
//! One node is the home. It knows how many units there are, who is inside with how many, and who waits (`ledger.rs`). Whoever
//! wants in asks it, enters when it grants, and tells it on leaving. Anybody may change the number of units.
//!
//!   n1 → n0  Ask(weight)        n0 → n1  Grant   (at once, or when n1's turn comes)        n1 → n0  Release
//!   n1 → n0  Resize(units)      n0 → n1  Resized(units)
//!
//! Cost: 3 messages an entry, 2 a resize, none at the home itself. Assumes: no loss, no crash; FIFO not needed.
//! Departures: ours, grown out of the coordinator of [TS07]: weights, more than one inside, and a number of units that changes.

use alloc::{borrow::ToOwned, format, vec::Vec};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Output, Semaphore};
use crate::{
    Algorithm, Context, Invariant, Model, Never, NodeId, Protocol, Setting, Setup, SetupError, World, ledger::Ledger,
};

/// What clients and home say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// Let me in, with so many units.
    Ask(u32),
    /// It is your turn.
    Grant,
    /// I have left, and give my units back.
    Release,
    /// Let there be so many units.
    Resize(u32),
    /// There are so many units now.
    Resized(u32),
}

/// Where this node stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
enum Phase {
    Idle,
    Waiting,
    Inside,
    /// It has asked for another number of units.
    Resizing,
}

/// One node of a semaphore with a home.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct LedgerSemaphore {
    home: NodeId,
    phase: Phase,
    /// At the home only.
    ledger: Option<Ledger<NodeId, ()>>,
}

/// So many weights are offered to clients that take what they can get; one may ask for any other.
const WEIGHTS_OFFERED: u32 = 8;

impl Algorithm for LedgerSemaphore {
    const NAME: &'static str = "ledger";
    const COST: &'static str = "3(n−1)/n; 2(n−1)/n a resize";
    const PAPER: &'static str = "ours";
    const SETTINGS: &'static [Setting] = &[Setting::K];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let (home, units) = (setup.tree.root(), units(setup)?);
        let ledger = |node| (node == home).then(|| Ledger::new(units));
        Ok(setup.ids().map(|node| Self { home, phase: Phase::Idle, ledger: ledger(node) }).collect())
    }

    /// Some units of the k, and one unit more or as many as before. Fewer than k are not offered: whoever asks for all k would
    /// wait until somebody makes them more again, and nobody may.
    fn wants(setup: &Setup) -> Vec<Command> {
        let k = units(setup).unwrap_or(1);
        let acquire = (1..=k.min(WEIGHTS_OFFERED)).map(Command::Acquire);
        acquire.chain([Command::Resize(k.saturating_add(1)), Command::Resize(k)]).collect()
    }
}

/// k may be more than the number of nodes: one may ask for several units.
fn units(setup: &Setup) -> Result<u32, SetupError> {
    match u32::try_from(setup.k) {
        Ok(0) => Err(SetupError("k is 0 and nobody could enter; take at least 1, such as --k 2".to_owned())),
        Ok(units) => Ok(units),
        Err(_) => {
            Err(SetupError(format!("k is {}, more units than can be counted; take at most {}", setup.k, u32::MAX)))
        }
    }
}

impl Protocol for LedgerSemaphore {
    const MODEL: Model = Model::RELIABLE;
    const INVARIANT: Option<Invariant<Self>> = Some(whoever_is_inside_stands_in_the_ledger);
    type Message = Message;
    type Timer = Never;
    type Family = Semaphore;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Acquire(weight) => {
                self.ask(Phase::Waiting);
                cx.send(self.home, Message::Ask(weight)); // LEDGER:1
            }
            Command::Release => {
                assert_eq!(self.phase, Phase::Inside, "only who is inside may leave");
                self.phase = Phase::Idle;
                cx.send(self.home, Message::Release); // LEDGER:6
            }
            Command::Resize(units) => {
                self.ask(Phase::Resizing);
                cx.send(self.home, Message::Resize(units)); // LEDGER:7
            }
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Ask(weight) => self.at_home(cx, |ledger| ledger.ask(from, weight, ())),
            Message::Release => self.at_home(cx, |ledger| ledger.release(from)),
            Message::Resize(units) => {
                self.at_home(cx, |ledger| Ok(ledger.resize(units)));
                cx.send(from, Message::Resized(units));
            }
            Message::Grant if self.phase == Phase::Waiting => {
                self.phase = Phase::Inside;
                cx.output(Output::Entered);
            }
            Message::Resized(units) if self.phase == Phase::Resizing => {
                self.phase = Phase::Idle;
                cx.output(Output::Resized(units));
            }
            Message::Grant | Message::Resized(_) => cx.violation("an answer to what was not asked"),
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}

impl LedgerSemaphore {
    fn ask(&mut self, phase: Phase) {
        assert_eq!(self.phase, Phase::Idle, "one request at a time");
        self.phase = phase;
    }

    /// Changes the ledger, and grants whom it lets in now.
    fn at_home(
        &mut self,
        cx: &mut Context<'_, Self>,
        change: impl FnOnce(&mut Ledger<NodeId, ()>) -> Result<Vec<NodeId>, &'static str>,
    ) {
        let Some(ledger) = &mut self.ledger else { return cx.violation("asked for what only the home can do") };
        match change(ledger) {
            Ok(admitted) => cx.multicast(admitted, &Message::Grant),
            Err(what) => cx.violation(what),
        }
    }
}

fn whoever_is_inside_stands_in_the_ledger(world: &World<'_, LedgerSemaphore>) -> Result<(), &'static str> {
    let holds = |node| world.nodes.iter().filter_map(|home| home.ledger.as_ref()).any(|ledger| ledger.holds(node));
    let mut nodes = NodeId::all(world.nodes.len()).zip(world.nodes);
    if nodes.any(|(node, state)| state.phase == Phase::Inside && !holds(node)) {
        return Err("somebody is inside and does not stand in the ledger");
    }
    Ok(())
}
