//! What a process says: to its terminal, and to the resource.

use std::io::Write;

use vez_algorithms::{Algorithm, Effect, Family, Heard, Input, NodeId, OutputOf, link::Nanos};
use vez_lab::{
    sim::{Event, Watch},
    trace::Trace,
};

use super::{
    PeerError,
    process::{Peer, Visit},
};
use crate::{
    host::{Breach, Delivery},
    resource::Call,
};

/// Whoever does not answer for so long is asked after.
const SILENCE: Nanos = 3_000_000_000;
/// More than so many different things are not said once each.
const MOST_SAID: usize = 50;
/// What a process says to the resource.
const GREETING: &str = "Olá =)";

/// Sees what the algorithm sends, and keeps the trace.
pub(super) struct Witness {
    pub(super) sends: Vec<(NodeId, String)>,
    pub(super) trace: Option<Vec<u8>>,
}

impl<P: Algorithm> Watch<P> for Witness {
    fn see(&mut self, time: f64, node: NodeId, event: Event<'_, P>) {
        if let Event::Effect(Effect::Send(to, message)) = &event {
            self.sends.push((*to, format!("{message:?}")));
        }
        if let Some(lines) = &mut self.trace {
            Trace::lines(lines).see(time, node, event);
        }
    }
}

impl<A: Algorithm> Peer<'_, A> {
    pub(super) fn deliver(&mut self, time: Nanos, delivery: Delivery<A>) -> Result<(), PeerError> {
        let what = format!("← {}  {:?}{}", delivery.from().0 + 1, delivery.message(), self.standing());
        let host = self.host.as_mut().expect("the run has begun");
        let outputs = host.deliver(time, delivery, &mut self.udp);
        self.tell(&what, outputs)
    }

    pub(super) fn happen(&mut self, time: Nanos, input: Input<A>) -> Result<(), PeerError> {
        let what = match &input {
            Input::Start | Input::Restart | Input::Message { .. } | Input::Crash(_) => String::new(),
            Input::Command(command) if Some(*command) == A::Family::LEAVE => "leaves".to_owned(),
            Input::Command(_) => "asks".to_owned(),
            Input::Timer(timer) => format!("{timer:?} is due"),
            Input::Internal => "internal event".to_owned(),
        };
        let asks = matches!(&input, Input::Command(command) if Some(*command) != A::Family::LEAVE);
        let host = self.host.as_mut().expect("the run has begun");
        let outputs = host.happen(time, input, &mut self.udp);
        if asks {
            self.visit = Visit::Waiting { asked: self.host().clock() };
        }
        self.tell(&what, outputs)
    }

    /// What happened, what was sent, and what our client was told, each in a line.
    fn tell(&mut self, what: &str, outputs: Result<Vec<OutputOf<A>>, Breach>) -> Result<(), PeerError> {
        let clock = self.host().clock();
        if !what.is_empty() {
            self.print(&format!("clock {clock:>3}  {what}"))?;
        }
        let witness = self.host().watch();
        let lines = witness.trace.as_mut().map(std::mem::take);
        let sends = std::mem::take(&mut witness.sends);
        if let (Some(lines), Some(trace)) = (lines, &mut self.out.trace) {
            trace.write_all(&lines)?;
            trace.flush()?;
        }
        let outputs = outputs.map_err(|breach| PeerError::Broken(in_the_exercise(&breach)))?;
        for group in sends.chunk_by(|one, other| one.1 == other.1) {
            let to: Vec<String> = group.iter().map(|(to, _)| (to.0 + 1).to_string()).collect();
            self.print(&format!("clock {clock:>3}    → {}  {}", to.join(", "), group[0].1))?;
        }
        for output in outputs {
            let heard = A::Family::hear(&mut <A::Family as Family>::News::default(), &output);
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
