//! What goes over the wire: one JSON object a frame, which a person can read in a packet dump.
//!
//! ```json
//! {"algorithm":"ricart-agrawala-clock","life":7,"from":0,"message":{"number":0,"clock":2,"says":{"Request":2}}}
//! {"algorithm":"ricart-agrawala-clock","life":9,"from":1,"ack":0}
//! ```
//!
//! Whatever is not such a frame, or not one of this run, is [`Malformed`]: it is counted, the first of each kind is
//! reported, and nothing else comes of it.

use std::{collections::BTreeMap, net::SocketAddr};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use vez_algorithms::{Clock, Message, NodeId, link::Nanos};

/// No frame is longer: it has to fit into a datagram.
pub(crate) const MAX_FRAME: usize = 65_000;

/// No counter of ours gets that far, and adding to it cannot overflow.
const MAX_NUMBER: u64 = 1 << 53;

/// A frame.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Frame {
    /// Which algorithm the sender runs.
    pub algorithm: String,
    /// A number that the sender drew when it started: one that was started anew is another one.
    pub life: u64,
    /// Who sent it.
    pub from: NodeId,
    /// What it is for.
    #[serde(flatten)]
    pub body: Body,
}

/// What a frame is for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// Something that one node says to another.
    Message {
        /// Its number on this link.
        number: u64,
        /// The logical clock of the sender when it sent this.
        clock: Clock,
        /// When that was, on the machine's clock, if anybody wants to know how long it took.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Nanos>,
        /// What it says.
        says: Value,
    },
    /// The message of this number has arrived.
    Ack(u64),
    /// A terminal introduces itself; so does a connection.
    Hello(Hello),
    /// The answer to that, with the life of whoever is welcome.
    Welcome(u64),
    /// No, for this reason.
    Refuse(String),
}

/// What those who introduce themselves have to agree on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Hello {
    /// How many there are.
    pub processes: usize,
    /// What the algorithm was told, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub settings: String,
}

impl Frame {
    /// As it goes over the wire.
    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a frame has a text")
    }

    /// From the wire.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() > MAX_FRAME {
            return Err(Malformed::TooLong(bytes.len()));
        }
        serde_json::from_slice(bytes).map_err(|error| Malformed::NoFrame(error.to_string()))
    }
}

/// A message, as an algorithm understands it.
pub(crate) fn message<M: Message>(says: &Value) -> Result<M, Malformed> {
    if !is_sane(says) {
        return Err(Malformed::NoMessage(format!("a number above {MAX_NUMBER}")));
    }
    M::deserialize(says).map_err(|error| Malformed::NoMessage(error.to_string()))
}

/// Whether a clock can be moved beyond all numbers in it.
fn is_sane(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number.as_u64().is_some_and(|number| number < MAX_NUMBER),
        Value::Array(items) => items.iter().all(is_sane),
        Value::Object(fields) => fields.values().all(is_sane),
    }
}

/// Whether a number of a frame itself is one that we could have come to.
pub(crate) fn is_possible(number: u64) -> Result<u64, Malformed> {
    if number < MAX_NUMBER { Ok(number) } else { Err(Malformed::NoFrame(format!("the number {number} is too large"))) }
}

/// Something arrived that is none of ours.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// Too long to be a frame.
    #[error("{0} bytes are too long for a frame")]
    TooLong(usize),
    /// No frame.
    #[error("no frame: {0}")]
    NoFrame(String),
    /// A frame of another algorithm.
    #[error("a frame of {theirs}, and this is {ours}")]
    OtherAlgorithm {
        /// What the frame says.
        theirs: String,
        /// What we run.
        ours: &'static str,
    },
    /// From somebody who does not take part, or who is not where it ought to be.
    #[error("\"from\":{} does not speak from that address", .0.0)]
    UnknownSender(NodeId),
    /// From somebody who took part in another run.
    #[error("a frame of another life of \"from\":{}", .0.0)]
    OtherLife(NodeId),
    /// What it says is nothing that the algorithm says.
    #[error("nothing that the algorithm says: {0}")]
    NoMessage(String),
}

impl Malformed {
    /// Its kind, in a word or two.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TooLong(_) => "too long",
            Self::NoFrame(_) => "no frame",
            Self::OtherAlgorithm { .. } => "other algorithm",
            Self::UnknownSender(_) => "unknown sender",
            Self::OtherLife(_) => "other run",
            Self::NoMessage(_) => "no message",
        }
    }
}

/// What was refused so far: how much of each kind.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Refused {
    /// By kind.
    pub counts: BTreeMap<&'static str, u64>,
}

impl Refused {
    /// Counts it. What is the first of its kind comes back as a sentence.
    pub fn note(&mut self, from: Option<SocketAddr>, malformed: &Malformed) -> Option<String> {
        let count = self.counts.entry(malformed.kind()).or_default();
        *count += 1;
        let from = from.map_or(String::new(), |from| format!(" from {from}"));
        (*count == 1).then(|| format!("ignored what came{from}, and all more of the kind: {malformed}"))
    }

    /// So much came faster than it could be read.
    pub(crate) fn overflowed(&mut self, count: u64) {
        if count > 0 {
            self.counts.insert("too fast", count);
        }
    }

    /// How much of each kind, if anything was refused.
    #[must_use]
    pub fn in_words(&self) -> Option<String> {
        let kinds: Vec<String> = self.counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        (!kinds.is_empty()).then(|| format!("refused: {}", kinds.join(", ")))
    }
}

/// So much of what somebody else said, so that it can be printed.
pub(crate) fn readable(text: &str, most: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(most).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What `suzuki-kasami` might say, and what nobody would.
    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
    enum Saying {
        Token { last: Vec<u64>, queue: Vec<NodeId> },
        Request(u64),
    }

    impl From<&Saying> for &'static str {
        fn from(_: &Saying) -> Self {
            "Saying"
        }
    }

    #[test]
    fn a_frame_is_one_line_that_a_person_can_read() {
        let says = serde_json::to_value(Saying::Request(2)).expect("JSON");
        let body = Body::Message { number: 0, clock: 2, at: None, says };
        let frame = Frame { algorithm: "lamport".to_owned(), life: 7, from: NodeId(1), body };
        let text = r#"{"algorithm":"lamport","life":7,"from":1,"message":{"number":0,"clock":2,"says":{"Request":2}}}"#;
        assert_eq!(String::from_utf8(frame.encode()).expect("text"), text);
        assert_eq!(Frame::decode(text.as_bytes()), Ok(frame));
        let ack = r#"{"algorithm":"lamport","life":7,"from":1,"ack":0}"#;
        assert_eq!(Frame::decode(ack.as_bytes()).expect("a frame").body, Body::Ack(0));
    }

    #[test]
    fn every_prefix_of_a_frame_is_refused() {
        let text = br#"{"algorithm":"lamport","life":7,"from":1,"message":{"number":0,"clock":2,"says":"Reply"}}"#;
        for length in 0..text.len() {
            assert!(matches!(Frame::decode(&text[..length]), Err(Malformed::NoFrame(_))), "{length} bytes");
        }
    }

    #[test]
    fn numbers_that_could_overflow_are_refused_wherever_they_stand() {
        let read = |says: Value| message::<Saying>(&says);
        let last = MAX_NUMBER - 1;
        assert_eq!(read(json!({ "Request": last })), Ok(Saying::Request(last)));
        let token = |last: Value, node: Value| json!({ "Token": { "last": [0, last], "queue": [node] } });
        assert!(read(token(json!(3), json!(1))).is_ok());
        for absurd in [json!(u64::MAX), json!(MAX_NUMBER), json!(-1), json!(1e300), json!(0.5)] {
            for says in [json!({ "Request": absurd }), token(absurd.clone(), json!(1)), token(json!(3), absurd.clone())]
            {
                assert!(matches!(read(says.clone()), Err(Malformed::NoMessage(_))), "{says}");
            }
            assert!(absurd.as_u64().is_none_or(|number| is_possible(number).is_err()));
        }
        assert!(matches!(read(token(json!(3), json!(1 << 30))), Err(Malformed::NoMessage(_))), "no such node");
        assert!(matches!(read(json!("Fire")), Err(Malformed::NoMessage(_))));
    }

    #[test]
    fn the_first_of_a_kind_is_reported() {
        let mut refused = Refused::default();
        let long = Malformed::TooLong(70_000);
        let said = refused.note(None, &long).expect("the first");
        assert_eq!(said, "ignored what came, and all more of the kind: 70000 bytes are too long for a frame");
        assert_eq!(refused.note(None, &long), None);
        assert!(refused.note(None, &Malformed::UnknownSender(NodeId(3))).is_some());
        assert_eq!(refused.counts, BTreeMap::from([("too long", 2), ("unknown sender", 1)]));
    }
}
