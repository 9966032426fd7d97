//! A request goes to all others directly: what robust k-exclusion [RDA12] takes for granted of a network that can broadcast.
//! A layer only: nobody acknowledges anything, so nobody could say when it is done.
//! Steps: docs/algorithms/robust-k-direct.md.
//!
//!   n0 → n1, n2, …  Request { number, clock }
//!
//! Cost: n−1 messages. Assumes: no loss. A crash needs no care, since nobody passes anything on.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Broadcast, Command, Layer, Output};
use crate::{Clock, Context, Model, Never, NodeId, NodeSet, Protocol, Setup, SetupError};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, IntoStaticStr)]
pub enum Message {
    /// The sender says this to everybody.
    Request {
        /// The how manieth of its broadcasts this is.
        number: u64,
        /// The time of its claim.
        clock: Clock,
    },
}

/// One node of the direct broadcast.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Direct {
    me: NodeId,
    /// How many broadcasts it has begun.
    sent: u64,
    /// Everybody else who has not crashed.
    others: NodeSet,
}

impl Layer<Clock> for Direct {
    fn layers(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let nodes = setup.each_knows_all()?;
        let node = |me| Self { me, sent: 0, others: NodeSet::others(nodes, me) };
        Ok(setup.ids().map(node).collect())
    }

    /// Nobody compares the numbers.
    fn rewrite<'a>(
        nodes: impl Iterator<Item = &'a mut Self>,
        messages: impl Iterator<Item = &'a mut Message>,
        mut rewrite: impl FnMut(&mut Clock),
    ) {
        nodes.for_each(|node| node.sent = 0);
        for Message::Request { number, clock } in messages {
            *number = 0;
            rewrite(clock);
        }
    }
}

impl Protocol for Direct {
    const MODEL: Model = Model { detector: true, survives_crashes: true, ..Model::RELIABLE };
    type Message = Message;
    type Timer = Never;
    type Family = Broadcast<Clock>;

    fn on_command(&mut self, command: Command<Clock>, cx: &mut Context<'_, Self>) {
        let Command::Broadcast(clock) = command;
        self.sent += 1;
        let number = self.sent;
        cx.output(Output::Delivered { root: self.me, number, payload: clock });
        cx.multicast(self.others.iter(), &Message::Request { number, clock });
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        let Message::Request { number, clock } = message;
        cx.output(Output::Delivered { root: from, number, payload: clock });
    }

    fn on_timer(&mut self, timer: Never, _cx: &mut Context<'_, Self>) {
        match timer {}
    }

    fn on_crash(&mut self, node: NodeId, _cx: &mut Context<'_, Self>) {
        self.others.remove(node);
    }
}
