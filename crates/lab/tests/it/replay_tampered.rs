//! What was tampered with is found, at the right line, and said in the right words.

use crate::traces::{replayed, same, scripted, troubled};
use vez_lab::replay::Cause;

/// A run, and what somebody did to it; lines are counted from 1.
#[derive(Clone)]
struct Tape(Vec<String>);

impl Tape {
    /// n0 asks at line 5 and enters at 20, n1 asks at 8 and enters at 25.
    fn of_locks() -> Self {
        Self(scripted("ricart-agrawala", &[(1.0, 0), (1.05, 1)]))
    }

    /// n0 sets a timer at line 8 and cancels it at 23; that of n1, set at 12, fires at 29.
    fn of_timers() -> Self {
        Self(scripted("ricart-agrawala-robust", &[(1.0, 0), (1.05, 1)]))
    }

    fn replace(mut self, line: usize, what: &str, with: &str) -> Self {
        let text = &mut self.0[line - 1];
        assert!(text.contains(what), "line {line} is {text}");
        *text = text.replacen(what, with, 1);
        self
    }

    fn remove(mut self, line: usize) -> Self {
        self.0.remove(line - 1);
        self
    }

    /// So that this becomes that line.
    fn insert(mut self, line: usize, text: &str) -> Self {
        self.0.insert(line - 1, text.to_owned());
        self
    }

    /// The same once more, as that line.
    fn copy(self, from: usize, to: usize) -> Self {
        let text = self.0[from - 1].clone();
        self.insert(to, &text)
    }

    fn swap(mut self, one: usize, other: usize) -> Self {
        self.0.swap(one - 1, other - 1);
        self
    }

    fn parts(self, sentence: &str) {
        troubled(&self.0, Cause::Parted, sentence);
    }

    fn makes_no_sense(self, sentence: &str) {
        troubled(&self.0, Cause::Unreadable, sentence);
    }
}

#[test]
fn untouched() {
    let summary = same(&Tape::of_locks().0);
    assert_eq!((summary.lines, summary.inputs, summary.effects), (26, 15, 10));
    assert_eq!((summary.messages, summary.entries, summary.present), (8, 2, 3));
    assert!((summary.span - 1.32).abs() < 1e-9, "{summary:?}");
    same(&Tape::of_timers().0);
}

#[test]
fn a_state_that_was_changed() {
    let of = "\"clock\":1";
    Tape::of_locks().replace(13, of, "\"clock\":2").parts("line 13: state.clock of n2 is 2 there; the algorithm has 1");
    let waiting = "line 8: state.phase.Waiting.missing.1 of n1 is 1 there; the algorithm has 2";
    Tape::of_locks().replace(8, "[0,2]", "[0,1]").parts(waiting);
    let absent = "line 3: state.clock of n1 is absent there; the algorithm has 0";
    Tape::of_locks().replace(3, "\"clock\":0,", "").parts(absent);
    let added = "line 3: state.mood of n1 is \"good\" there; the algorithm has none";
    Tape::of_locks().replace(3, "\"me\"", "\"mood\":\"good\",\"me\"").parts(added);
    let header = "line 2: state.nodes of n0 is 3 there; the algorithm has 4";
    Tape::of_locks().replace(1, "\"nodes\":3", "\"nodes\":4").parts(header);
}

#[test]
fn an_effect_too_few() {
    let sentence = "line 12: n2 receives Request(1) from n0 there; in the algorithm n1 sends Reply to n0 before that";
    Tape::of_locks().remove(12).parts(sentence);
    Tape::of_locks().remove(20).parts("line 20: n0 leaves there; in the algorithm n0 enters before that");
    let dies = "{\"time\":1.0,\"node\":0,\"kind\":\"crash\"}";
    let sentence = "line 7: n0 crashes there; in the algorithm n0 sends Request(1) to n2 before that";
    Tape::of_locks().insert(7, dies).parts(sentence);
}

#[test]
fn an_effect_too_many() {
    Tape::of_locks().copy(12, 13).parts("line 13: n1 sends Reply to n0 there; the algorithm does nothing more");
    Tape::of_locks().copy(20, 21).parts("line 21: n0 enters there; the algorithm does nothing more");
}

#[test]
fn another_effect() {
    let swapped = "line 6: n0 sends Request(1) to n2 there; the algorithm sends Request(1) to n1";
    Tape::of_locks().swap(6, 7).parts(swapped);
    let wrong = "line 17: n2 sends Reply to n0 there; the algorithm sends Reply to n1";
    Tape::of_locks().replace(17, "\"peer\":1", "\"peer\":0").parts(wrong);
    let later = "line 8: n0 sets Again after [0.25,0.3] there; the algorithm sets Again after [0.25,0.25]";
    Tape::of_timers().replace(8, "0.25]", "0.3]").parts(later);
    let entered = "line 23: n0 enters there; the algorithm cancels Again";
    Tape::of_timers().swap(23, 24).parts(entered);
    let more = "line 20: why of n0 is 1 there; the algorithm has none";
    Tape::of_locks().replace(20, "\"enter\"", "\"enter\",\"why\":1").parts(more);
    let unknown = "line 6: n0 sends \"Hello\" to n1 there; the algorithm sends Request(1) to n1";
    Tape::of_locks().replace(6, "{\"Request\":1}", "\"Hello\"").parts(unknown);
}

#[test]
fn a_message_that_arrives_too_often_or_was_never_sent() {
    let twice = "line 19: n0 receives Reply from n1 there, but no such message is on its way from n1";
    Tape::of_locks().copy(18, 19).parts(twice);
    let another = "line 13: n2 receives Request(2) from n0 there, but no such message is on its way from n0";
    Tape::of_locks().replace(13, "{\"Request\":1}", "{\"Request\":2}").parts(another);
    let early = "line 8: n2 receives Request(1) from n1 there, but no such message is on its way from n1";
    Tape::of_locks().copy(16, 8).replace(8, "1.1500000000000001", "1.05").parts(early);
}

#[test]
fn what_the_network_does() {
    let lost = "{\"time\":1.0,\"node\":0,\"kind\":\"lose\",\"peer\":1,\"message\":{\"Request\":1}}";
    let sentence = "line 12: n1 receives Request(1) from n0 there, but no such message is on its way from n0";
    Tape::of_locks().insert(7, lost).parts(sentence);
    let sentence = "line 8: n0 loses Request(1) to n1 there, but no such message is on its way";
    Tape::of_locks().insert(7, lost).insert(7, lost).parts(sentence);
    let doubled = lost.replace("lose", "double");
    let twice = Tape::of_locks().insert(7, &doubled);
    same(&twice.0);
    same(&twice.insert(8, lost).0);
    let early = "line 6: n0 has Request(1) to n1 doubled there, but no such message is on its way";
    Tape::of_locks().insert(6, &doubled).parts(early);
}

#[test]
fn a_timer_that_must_not_fire() {
    let fires = "{\"time\":1.2000000000000002,\"node\":0,\"kind\":\"fire\",\"timer\":\"Again\",\"state\":{}}";
    let cancelled = "line 25: n0 is woken by Again there, but it has not set that, or has cancelled it";
    Tape::of_timers().insert(25, fires).parts(cancelled);
    let fires = fires.replace("\"node\":0", "\"node\":2");
    Tape::of_timers().insert(25, &fires).parts(&cancelled.replace("n0", "n2"));
    let at =
        |time: &str| (29..32).fold(Tape::of_timers(), |tape, line| tape.replace(line, "1.3,", &format!("{time},")));
    at("1.29").parts("line 29: n1 is woken by Again there, but at 1.29 that is too early: its range begins at 1.3");
    same(&at("1.305").0);
    same(&at("1.2999999999").0);
}

/// Of a node whose timer has fired, and that has not set it again.
#[test]
fn a_timer_that_fires_twice() {
    let lines = scripted("central-denying", &[(1.0, 0), (1.005, 1), (1.006, 2)]);
    let at = lines.iter().position(|line| line.contains("\"fire\"")).expect("n2 was turned away") + 1;
    let sentence = format!("line {}: n2 is woken by Retry there, but it has not set that, or has cancelled it", at + 2);
    Tape(lines).copy(at, at + 2).parts(&sentence);
}

#[test]
fn time_that_goes_back() {
    let back = "line 23: time goes back there, from 1.2100000000000002 to 1.2";
    Tape::of_locks().replace(23, "1.2500000000000002", "1.2").parts(back);
    let late = "line 20: n0 enters at 1.205 there; what that follows from has happened at 1.2000000000000002";
    Tape::of_locks().replace(20, "1.2000000000000002", "1.205").parts(late);
}

#[test]
fn the_dead_do_nothing() {
    let dies = "{\"time\":1.1,\"node\":1,\"kind\":\"crash\"}";
    let receives = "line 12: n1 receives Request(1) from n0 there, but it is dead";
    Tape::of_locks().insert(11, dies).parts(receives);
    let sends = "line 12: n1 sends Reply to n0 there, but it is dead";
    Tape::of_locks().insert(11, dies).remove(12).parts(sends);
    Tape::of_locks().insert(11, dies).insert(12, dies).parts("line 12: n1 crashes there, but it is dead already");
    let absent = "line 12: n2 receives Request(1) from n0 there, but it has not started";
    Tape::of_locks().remove(4).parts(absent);
    Tape::of_locks().copy(4, 5).parts("line 5: n2 starts there, but it has started before");
}

#[test]
fn whoever_is_back_knows_nothing() {
    let dies = "{\"time\":1.1,\"node\":1,\"kind\":\"crash\"}";
    let back = "{\"time\":1.1,\"node\":1,\"kind\":\"restart\",\"state\":{\"me\":1,\"nodes\":3,\"clock\":0,\"phase\":\"Idle\",\"deferred\":[]}}";
    for tape in [Tape::of_locks().insert(11, dies).insert(12, back), Tape::of_locks().insert(11, back)] {
        let line = tape.0.iter().position(|line| line == back).expect("it is back") + 2;
        tape.parts(&format!("line {line}: state.phase of n1 is {{\"Waiting\":{{\"clock\":1,\"missing\":[0,2]}}}} there; the algorithm has \"Idle\""));
    }
    let timer = "line 30: n1 is woken by Again there, but it has not set that, or has cancelled it";
    let back = Tape::of_timers().0[2].replace("\"start\"", "\"restart\"").replace("0.0", "1.28");
    Tape::of_timers().insert(29, &back).parts(timer);
}

#[test]
fn clients_take_turns() {
    Tape::of_locks()
        .copy(5, 8)
        .replace(8, "1.0", "1.0")
        .parts("line 8: n0 asks for Request there, but it has asked and still waits");
    Tape::of_locks().copy(21, 23).parts("line 23: n0 leaves there, but it is not inside");
    let inside = Tape::of_locks().copy(5, 21).replace(21, "1.0", "1.2000000000000002");
    inside.parts("line 21: n0 asks for Request there, but it is inside");
}

/// The coordinator is outside, and lets two in: each of them does what it should.
#[test]
fn two_inside() {
    let lines = scripted("central", &[(1.0, 0), (1.005, 1), (1.006, 2)]);
    let mut outside: Vec<String> = lines.into_iter().filter(|line| !line.contains("\"node\":0,")).collect();
    assert_eq!((same(&outside).present, same(&outside).entries), (2, 2));
    let leaves = outside.iter().position(|line| line.contains("\"node\":1,\"kind\":\"leave\"")).expect("n1 leaves");
    let late = outside[leaves + 2..leaves + 4].to_vec();
    outside.splice(leaves + 2..leaves + 4, []);
    for line in late.into_iter().rev() {
        outside.insert(leaves, line.replace("1.4150000000000003", "1.21"));
    }
    let sentence = format!("line {}: the law is broken: n1 and n2 are inside together", leaves + 2);
    troubled(&outside, Cause::LawBroken, &sentence);
    // A client that is dead is not inside.
    outside.insert(leaves, "{\"time\":1.21,\"node\":1,\"kind\":\"crash\"}".to_owned());
    let dead = "{\"time\":1.215,\"node\":1,\"kind\":\"leave\"";
    let sentence = format!("line {}: n1 leaves there, but it is dead", leaves + 4);
    assert!(outside[leaves + 3].starts_with(dead), "{outside:#?}");
    troubled(&outside, Cause::Parted, &sentence);
}

#[test]
fn what_comes_from_outside_may_not_have_started_later() {
    let tape = Tape::of_locks();
    let start = tape.0[1].replace("0.0", "1.32");
    let outside = Tape(tape.0.into_iter().filter(|line| !line.contains("\"node\":0,")).collect());
    let end = outside.0.len() + 1;
    let sentence = format!("line {end}: n0 starts there, but somebody has received from it before");
    outside.insert(end, &start.replace("1.32", "1.4")).parts(&sentence);
}

/// A clock that nobody reaches by counting.
#[test]
fn an_assertion_fails() {
    let outside = Tape(
        Tape::of_locks()
            .0
            .into_iter()
            .filter(|line| line.contains("null") || line.contains("\"node\":1,\"kind\":\"start\""))
            .collect(),
    );
    let receives = "{\"time\":1.0,\"node\":1,\"kind\":\"receive\",\"peer\":0,\"message\":{\"Request\":18446744073709551615},\"state\":{\"me\":1,\"nodes\":3,\"clock\":18446744073709551615,\"phase\":\"Idle\",\"deferred\":[]}}";
    let replies = "{\"time\":1.0,\"node\":1,\"kind\":\"send\",\"peer\":0,\"message\":\"Reply\"}";
    let tape = outside.insert(3, receives).insert(4, replies);
    same(&tape.0);
    let asks = "{\"time\":1.0,\"node\":1,\"kind\":\"ask\",\"what\":\"Request\",\"state\":{}}";
    let trouble = replayed(&(tape.insert(5, asks).0.join("\n") + "\n")).expect_err("it cannot count further");
    assert_eq!((trouble.cause, trouble.line), (Cause::Parted, 5));
    if cfg!(debug_assertions) {
        let sentence = "n1 asks for Request there; the algorithm fails an assertion: attempt to add with overflow";
        assert_eq!(trouble.what, sentence);
    }
}

#[test]
fn what_makes_no_sense() {
    let tape = Tape::of_locks;
    tape().replace(13, "receive", "deceive").makes_no_sense("line 13: unknown kind \"deceive\"; see docs/trace.md");
    tape().replace(13, "\"node\":2", "\"node\":3").makes_no_sense("line 13: there is no n3 among 3 nodes");
    tape().replace(13, "\"node\":2", "\"node\":-1").makes_no_sense("line 13: there is no n-1 among 3 nodes");
    tape()
        .replace(13, "\"peer\":0", "\"peer\":4294967296")
        .makes_no_sense("line 13: there is no n4294967296 among 3 nodes");
    tape().replace(13, "\"peer\":0,", "").makes_no_sense("line 13: the line has no peer; see docs/trace.md");
    tape().replace(13, "\"time\"", "\"tide\"").makes_no_sense("line 13: the line has no time; see docs/trace.md");
    tape().replace(13, "\"kind\"", "\"kin\"").makes_no_sense("line 13: the line has no kind; see docs/trace.md");
    tape()
        .replace(13, "\"node\":2", "\"node\":null")
        .makes_no_sense("line 13: the line has no node; see docs/trace.md");
    tape()
        .replace(13, "{\"Request\":1}", "{\"Order\":1}")
        .makes_no_sense("line 13: ricart-agrawala has no message {\"Order\":1}");
    tape().replace(13, "receive", "fire").makes_no_sense("line 13: ricart-agrawala has no timer null");
    let ask =
        "line 5: n0 asks for \"Order\", which ricart-agrawala has no word for; clients ask for Request, for instance";
    tape().replace(5, "\"Request\"", "\"Order\"").makes_no_sense(ask);
    tape().copy(1, 13).makes_no_sense("line 13: a second header; a trace is of one run, so cut the file here");
    tape()
        .replace(13, "{\"time\"", "\"time\"")
        .makes_no_sense("line 13: no JSON, as column 7 shows; a trace has an object a line, see docs/trace.md");
    tape().insert(13, "[]").makes_no_sense("line 13: no JSON object; a trace has one a line, see docs/trace.md");
    let choices = "line 13: choices is no list of numbers; see docs/trace.md";
    tape().replace(13, "\"state\"", "\"choices\":[-1],\"state\"").makes_no_sense(choices);
    let header = "line 1: no header, and so no trace; its first line is of kind \"system\", as vez lab trace writes it";
    tape().remove(1).makes_no_sense(header);
    let name = "line 1: unknown algorithm \"rikart-agrawala\"; did you mean ricart-agrawala?";
    tape().replace(1, "ricart", "rikart").makes_no_sense(name);
    let empty = replayed("").expect_err("nothing is there");
    assert_eq!((empty.cause, empty.to_string().as_str()), (Cause::Unreadable, header));
}
