//! What a process says: to its terminal, and to the resource.

use std::io::Write;

use vez_algorithms::{Heard, NodeId, link::Nanos};

use super::{
    PeerError,
    process::{Peer, Visit},
};
use crate::{
    host::{Breach, Delivery},
    node::Input,
    resource::Call,
};

/// Whoever does not answer for so long is asked after.
const SILENCE: Nanos = 3_000_000_000;
/// More than so many different things are not said once each.
const MOST_SAID: usize = 50;
/// What a process says to the resource.
const GREETING: &str = "Olá =)";

impl Peer<'_> {
    pub(super) fn deliver(&mut self, time: Nanos, delivery: Delivery) -> Result<(), PeerError> {
        let from = delivery.from.0 + 1;
        let host = self.host.as_mut().expect("the run has begun");
        let heard = host.deliver(time, delivery, &mut self.udp);
        let words = host.event_log().words();
        let what = format!("← {from}  {}{}", words.cause, self.standing());
        self.tell(&what, &words.sent, heard)
    }

    pub(super) fn happen(&mut self, time: Nanos, input: Input) -> Result<(), PeerError> {
        let what = match &input {
            Input::Start | Input::Message { .. } => Some(""),
            Input::Leave => Some("leaves"),
            Input::Ask(_) => Some("asks"),
            Input::Internal => Some("internal event"),
            Input::Timer(_) => None,
        };
        let asks = matches!(input, Input::Ask(_));
        let host = self.host.as_mut().expect("the run has begun");
        let heard = host.happen(time, input, &mut self.udp);
        let words = host.event_log().words();
        if asks {
            self.visit = Visit::Waiting { asked: self.host().clock() };
        }
        let what = what.map_or_else(|| format!("{} is due", words.cause), str::to_owned);
        self.tell(&what, &words.sent, heard)
    }

    /// What happened, what was sent, and what our client was told, each in a line.
    fn tell(
        &mut self,
        what: &str,
        sent: &[(NodeId, String)],
        heard: Result<Vec<Heard>, Breach>,
    ) -> Result<(), PeerError> {
        let clock = self.host().clock();
        if !what.is_empty() {
            self.print(&format!("clock {clock:>3}  {what}"))?;
        }
        let lines = self.host().event_log().lines();
        if let (Some(lines), Some(trace)) = (lines, &mut self.out.trace) {
            trace.write_all(lines.as_bytes())?;
            trace.flush()?;
        }
        let heard = heard.map_err(|breach| PeerError::Broken(in_the_exercise(&breach)))?;
        for group in sent.chunk_by(|one, other| one.1 == other.1) {
            let to: Vec<String> = group.iter().map(|(to, _)| (to.0 + 1).to_string()).collect();
            self.print(&format!("clock {clock:>3}    → {}  {}", to.join(", "), group[0].1))?;
        }
        for heard in heard {
            if let (Heard::Entered, Visit::Waiting { asked }) = (heard, self.visit) {
                self.print(&format!("clock {clock:>3}  is inside"))?;
                self.visit = Visit::Entering { asked, call: self.call(Call::Enter(GREETING.to_owned())) };
            }
        }
        Ok(())
    }

    /// Where we stand, for whoever wonders why an answer has to wait.
    fn standing(&self) -> String {
        match self.visit {
            Visit::Outside => String::new(),
            Visit::Waiting { asked } => format!("  (waiting, asked at {asked})"),
            Visit::Entering { asked, .. } | Visit::Inside { asked, .. } | Visit::Leaving { asked, .. } => {
                format!("  (inside, asked at {asked})")
            }
        }
    }

    /// Says once who does not answer.
    pub(super) fn ask_after_the_silent(&mut self, time: Nanos) -> Result<(), PeerError> {
        let then = time.saturating_sub(SILENCE);
        let host = self.host.as_ref().expect("the run has begun");
        let mut silent: Vec<String> = host.silent_since(then).map(|node| format!("process {}", node.0 + 1)).collect();
        if self.desk.unanswered_since().is_some_and(|since| since <= then) {
            silent.push("the resource".to_owned());
        }
        let news: Vec<String> = silent.iter().filter(|who| !self.silent.contains(who)).cloned().collect();
        self.silent = silent;
        news.iter().try_for_each(|who| self.print(&format!("{who} has not answered for 3 s; is it still running?")))
    }

    /// Prints what has not been printed before.
    pub(super) fn print_once(&mut self, line: String) -> Result<(), PeerError> {
        if self.said.len() == MOST_SAID || self.said.contains(&line) {
            return Ok(());
        }
        self.print(&line)?;
        self.said.push(line);
        Ok(())
    }

    pub(super) fn print(&mut self, line: &str) -> Result<(), PeerError> {
        writeln!(self.out.terminal, "{line}")?;
        Ok(self.out.terminal.flush()?)
    }
}

/// Processes count from 1.
fn in_the_exercise(breach: &Breach) -> String {
    let process = |node: &NodeId| format!("process {}", node.0 + 1);
    match breach {
        Breach::Objection(me, what) => format!("{} objects to what another one said: {what}", process(me)),
        Breach::Assertion(me, what) => format!("an assertion failed at {}: {what}", process(me)),
        Breach::Nobody(me, to) => format!("{} sends to {}, which is not there", process(me), process(to)),
    }
}
