//! Group exclusion whose home keeps a ledger. Steps: docs/algorithms/ledger-group.md.
//!
//! One node is the home. It knows which session is inside, with whom, and who waits (`ledger.rs`). Whoever wants in asks it,
//! enters when it grants, and tells it on leaving.
//!
//!   n1 → n0  Ask(session)        n0 → n1  Grant   (at once, or when its turn comes)        n1 → n0  Release
//!
//! Cost: 3 messages an entry, none at the home itself. Assumes: no loss, no crash; FIFO not needed.
//! Departures: ours, grown out of the coordinator of [TS07]. Who may join past others who wait: the leader rule of Cenci and
//! Ardenghi, and a bound.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Command, Group, Session};
use crate::{
    Algorithm, Context, Invariant, Model, Never, NodeId, Phase, Protocol, Setting, Setup, SetupError, World,
    ledger::Ledger,
};

/// What clients and home say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// Let me in, together with others of this session.
    Ask(Session),
    /// It is your turn.
    Grant,
    /// I have left.
    Release,
}

/// One node of group exclusion with a home.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct LedgerGroup {
    home: NodeId,
    phase: Phase,
    /// At the home only.
    ledger: Option<Ledger<NodeId, Session>>,
}

impl Algorithm for LedgerGroup {
    const NAME: &'static str = "ledger-group";
    const COST: &'static str = "3(n−1)/n";
    const PAPER: &'static str = "ours";
    const SETTINGS: &'static [Setting] = &[Setting::Groups];

    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        setup.some_groups()?;
        let home = setup.tree.root();
        // Everybody takes one unit, and there are more than nodes: only the labels matter.
        let ledger = |node| (node == home).then(|| Ledger::new(u32::MAX));
        Ok(setup.ids().map(|node| Self { home, phase: Phase::Idle, ledger: ledger(node) }).collect())
    }
}

impl Protocol for LedgerGroup {
    const MODEL: Model = Model::RELIABLE;
    const INVARIANT: Option<Invariant<Self>> = Some(whoever_is_inside_stands_in_the_ledger);
    type Message = Message;
    type Timer = Never;
    type Family = Group;

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Enter(session) => {
                self.phase.ask();
                cx.send(self.home, Message::Ask(session)); // LEDGER:g1
            }
            Command::Leave => {
                self.phase.leave();
                cx.send(self.home, Message::Release); // LEDGER:g5
            }
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Ask(session) => self.at_home(cx, |ledger| ledger.ask(from, 1, session)), // LEDGER:g3
            Message::Release => self.at_home(cx, |ledger| ledger.release(from)),              // LEDGER:g6
            Message::Grant if self.phase == Phase::Waiting => self.phase.enter(cx),
            Message::Grant => cx.violation("Grant with no request pending"),
        }
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }
}

impl LedgerGroup {
    /// Changes the ledger, and grants whom it lets in now.
    fn at_home(
        &mut self,
        cx: &mut Context<'_, Self>,
        change: impl FnOnce(&mut Ledger<NodeId, Session>) -> Result<Vec<NodeId>, &'static str>,
    ) {
        let Some(ledger) = &mut self.ledger else { return cx.violation("asked for what only the home can do") };
        match change(ledger) {
            Ok(admitted) => cx.multicast(admitted, &Message::Grant),
            Err(what) => cx.violation(what),
        }
    }
}

fn whoever_is_inside_stands_in_the_ledger(world: &World<'_, LedgerGroup>) -> Result<(), &'static str> {
    let holds = |node| world.nodes.iter().filter_map(|home| home.ledger.as_ref()).any(|ledger| ledger.holds(node));
    let mut nodes = NodeId::all(world.nodes.len()).zip(world.nodes);
    if nodes.any(|(node, state)| state.phase == Phase::Inside && !holds(node)) {
        return Err("somebody is inside and does not stand in the ledger");
    }
    Ok(())
}
