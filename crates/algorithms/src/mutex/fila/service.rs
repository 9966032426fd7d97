//! Fila in a lock service: try, give up, pull. Steps: docs/algorithms/fila.md.
//!
//! A client may try, and not wait; it may give up; and the home may pull the idle token back, so that all others can forget
//! the lock. None of these takes a name out of the line: what nobody waits for any more goes on for nobody, and the token
//! that comes for nobody moves on at once.
//!
//!   n1 → n0  Try(n1, 7)        n0 → n2  Try(n1, 7)   (n2 is inside)        n2 → n1  Busy(7)        later  n2 → n1  Token([])
//!   n1 → n0  Try(n1, 8)        n0 → n1  Refused(8)   (n0 waits or is inside itself; n1 is not in line)

use super::{Fila, Message, Standing};
use crate::{Context, NodeId, Phase, mutex::Output};

/// What a lock service asks; call it by [`act`](crate::act).
impl Fila {
    /// A client wants in if that does not take long: it is told [`Output::Entered`] or [`Output::Busy`]. No other try or
    /// pull of this node has ever had that number. A home that pulls may be asked too: the pull becomes the client's try.
    ///
    /// # Panics
    /// If the node waits, but for a pull, or is inside.
    pub fn attempt(&mut self, number: u64, cx: &mut Context<'_, Self>) {
        if let Standing::Pulling { number, silent } = self.phase {
            self.no_longer_silent(silent, cx); // FILA:22
            self.phase = Standing::Trying(number);
        } else {
            self.ask(Standing::Trying(number), Message::Try { asker: self.me, number }, cx); // FILA:12
        }
    }

    /// The home asks for the token without a client. It learns whether the one who has it is inside: then it waits on for
    /// nobody, and no longer pulls. No other try or pull of this node has ever had that number.
    ///
    /// # Panics
    /// If this is not the home, or it wants or has the token.
    pub fn pull(&mut self, number: u64, cx: &mut Context<'_, Self>) {
        assert!(self.me == self.home && self.token.is_none(), "only a home without the token pulls");
        self.ask(Standing::Pulling { number, silent: None }, Message::Try { asker: self.me, number }, cx); // FILA:20
    }

    /// The client that the node waits for gives up.
    ///
    /// # Panics
    /// If the node does not wait for a client.
    pub fn forsake(&mut self) {
        // FILA:17 The request goes on, for a name cannot be taken out of the line.
        self.phase = match self.phase {
            Standing::Waiting => Standing::Forsaken(None),
            Standing::Trying(number) | Standing::Adopted(number) => Standing::Forsaken(Some(number)),
            Standing::Idle | Standing::Forsaken(_) | Standing::Pulling { .. } | Standing::Inside => {
                panic!("only a client that waits can give up")
            }
        };
    }

    /// A client that is ready to wait takes over a request that goes on for nobody, or a pull.
    ///
    /// # Panics
    /// If there is no such request.
    pub fn adopt(&mut self, cx: &mut Context<'_, Self>) {
        // FILA:19
        self.phase = match self.phase {
            Standing::Forsaken(None) => Standing::Waiting,
            Standing::Forsaken(Some(number)) => Standing::Adopted(number),
            Standing::Pulling { silent, .. } => {
                self.no_longer_silent(silent, cx); // FILA:22
                Standing::Waiting
            }
            Standing::Idle | Standing::Waiting | Standing::Trying(_) | Standing::Adopted(_) | Standing::Inside => {
                panic!("only what nobody waits for can be taken over")
            }
        };
    }

    /// The node that requests go through.
    #[must_use]
    pub const fn home(&self) -> NodeId {
        self.home
    }

    /// Whether the node wants the token, for whatever reason, or is inside.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        match self.phase {
            Standing::Idle => Phase::Idle,
            Standing::Waiting
            | Standing::Trying(_)
            | Standing::Adopted(_)
            | Standing::Forsaken(_)
            | Standing::Pulling { .. } => Phase::Waiting,
            Standing::Inside => Phase::Inside,
        }
    }

    /// Whether the token is here.
    #[must_use]
    pub const fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Whether the node waits, but no client does; a pull is something else.
    #[must_use]
    pub const fn is_for_nobody(&self) -> bool {
        matches!(self.phase, Standing::Forsaken(_))
    }

    /// Whether the node pulls, and does not know yet whether the token is in use.
    #[must_use]
    pub const fn is_pulling(&self) -> bool {
        matches!(self.phase, Standing::Pulling { .. })
    }

    /// Whether it is as good as a new one, and may be dropped.
    #[must_use]
    pub fn knows_nothing(&self) -> bool {
        self.me != self.home && self.phase == Standing::Idle && self.token.is_none()
    }

    /// Who is known here to come next, in order.
    pub fn line(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.token.iter().flatten().chain(&self.waiting).copied()
    }

    /// Whether somebody is known here to come next.
    #[must_use]
    pub fn others_wait(&self) -> bool {
        self.line().next().is_some()
    }

    /// At the home, while it neither waits nor has the token: who is last in line.
    #[must_use]
    pub const fn last(&self) -> NodeId {
        self.last
    }
}

impl Fila {
    pub(super) fn on_busy(&mut self, number: u64, cx: &mut Context<'_, Self>) {
        match self.phase {
            Standing::Trying(tried) if tried == number => {
                self.phase = Standing::Forsaken(None); // FILA:15
                cx.output(Output::Busy);
            }
            Standing::Adopted(tried) if tried == number => self.phase = Standing::Waiting,
            Standing::Forsaken(Some(tried)) if tried == number => self.phase = Standing::Forsaken(None),
            Standing::Pulling { number: tried, silent } if tried == number => {
                self.no_longer_silent(silent, cx); // FILA:22
                self.phase = Standing::Forsaken(None);
            }
            // The token was faster, or a client has taken the pull over: the answer is no news any more.
            Standing::Idle
            | Standing::Waiting
            | Standing::Trying(_)
            | Standing::Adopted(_)
            | Standing::Forsaken(_)
            | Standing::Pulling { .. }
            | Standing::Inside => {}
        }
    }

    pub(super) fn on_refused(&mut self, number: u64, cx: &mut Context<'_, Self>) {
        match self.phase {
            Standing::Trying(tried) if tried == number => {
                self.phase = Standing::Idle; // FILA:16
                cx.output(Output::Busy);
            }
            Standing::Forsaken(Some(tried)) if tried == number => self.phase = Standing::Idle, // FILA:16
            Standing::Adopted(tried) if tried == number => {
                self.phase = Standing::Waiting; // FILA:19 this client is ready to wait, but does not stand in line yet
                cx.send(self.home, Message::Request(self.me));
            }
            Standing::Idle
            | Standing::Waiting
            | Standing::Trying(_)
            | Standing::Adopted(_)
            | Standing::Forsaken(_)
            | Standing::Pulling { .. }
            | Standing::Inside => cx.violation("a Refused for a try that was not made"),
        }
    }

    /// The first of `waiting` has been left without an answer, and should have one now.
    fn no_longer_silent(&self, silent: Option<u64>, cx: &mut Context<'_, Self>) {
        if let Some(number) = silent {
            let first = self.waiting.front().expect("whose try has no answer stands in line");
            cx.send(*first, Message::Busy(number));
        }
    }
}
