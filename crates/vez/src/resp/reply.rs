//! What clients are told.

use redis_protocol::{resp2, resp3};
use serde_json::{Value, json};

/// What a client is told, in either version of the protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    /// It was done.
    Simple(&'static str),
    /// Some bytes.
    Bytes(Vec<u8>),
    Integer(i64),
    Nil,
    /// It was not done; the first word says of what kind that is.
    Error(String),
    Array(Vec<Self>),
    /// In RESP2 an array of names and values.
    Map(Vec<(&'static str, Self)>),
    /// Something that nobody has asked for. RESP2 has no such thing.
    Push(Vec<Self>),
}

/// The version of the protocol that a client speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Version {
    #[default]
    Two,
    Three,
}

impl Reply {
    pub(crate) const OK: Self = Self::Simple("OK");

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Bytes(text.into().into_bytes())
    }

    pub(crate) fn integer(number: impl TryInto<i64>) -> Self {
        Self::Integer(number.try_into().unwrap_or(i64::MAX))
    }

    /// Appends it, as a client of that version reads it.
    pub(crate) fn encode(self, version: Version, out: &mut Vec<u8>) {
        let begin = out.len();
        match version {
            Version::Two => {
                let frame = self.into_two();
                out.resize(begin + resp2::types::Resp2Frame::encode_len(&frame, false), 0);
                resp2::encode::encode(&mut out[begin..], &frame, false).expect("there is room");
            }
            Version::Three => {
                let frame = self.into_three();
                out.resize(begin + resp3::types::Resp3Frame::encode_len(&frame, false), 0);
                resp3::encode::complete::encode(&mut out[begin..], &frame, false).expect("there is room");
            }
        }
    }

    /// The same, as others read it: bytes that are no text are lost on the way.
    pub(crate) fn into_json(self) -> Value {
        match self {
            Self::Simple(text) => text.into(),
            Self::Bytes(bytes) => String::from_utf8_lossy(&bytes).into(),
            Self::Integer(number) => number.into(),
            Self::Nil => Value::Null,
            Self::Error(text) => json!({ "error": text }),
            Self::Array(all) | Self::Push(all) => all.into_iter().map(Self::into_json).collect(),
            Self::Map(pairs) => {
                let pair = |(name, value): (&'static str, Self)| (name.to_owned(), value.into_json());
                Value::Object(pairs.into_iter().map(pair).collect())
            }
        }
    }

    fn into_two(self) -> resp2::types::OwnedFrame {
        use resp2::types::OwnedFrame as Frame;
        match self {
            Self::Simple(text) => Frame::SimpleString(text.into()),
            Self::Bytes(bytes) => Frame::BulkString(bytes),
            Self::Integer(number) => Frame::Integer(number),
            Self::Nil => Frame::Null,
            Self::Error(text) => Frame::Error(one_line(text)),
            Self::Array(all) | Self::Push(all) => Frame::Array(all.into_iter().map(Self::into_two).collect()),
            Self::Map(pairs) => {
                let flat = pairs.into_iter().flat_map(|(name, value)| [Self::text(name), value]);
                Frame::Array(flat.map(Self::into_two).collect())
            }
        }
    }

    fn into_three(self) -> resp3::types::OwnedFrame {
        use resp3::types::OwnedFrame as Frame;
        let attributes = None;
        match self {
            Self::Simple(text) => Frame::SimpleString { data: text.into(), attributes },
            Self::Bytes(data) => Frame::BlobString { data, attributes },
            Self::Integer(data) => Frame::Number { data, attributes },
            Self::Nil => Frame::Null,
            Self::Error(text) => Frame::SimpleError { data: one_line(text), attributes },
            Self::Array(all) => Frame::Array { data: all.into_iter().map(Self::into_three).collect(), attributes },
            Self::Push(all) => Frame::Push { data: all.into_iter().map(Self::into_three).collect(), attributes },
            Self::Map(pairs) => {
                let pair = |(name, value): (&'static str, Self)| (Self::text(name).into_three(), value.into_three());
                Frame::Map { data: pairs.into_iter().map(pair).collect(), attributes }
            }
        }
    }
}

/// An error is a line: what a client has sent does not end it.
fn one_line(text: String) -> String {
    if text.contains(['\r', '\n']) { text.replace(['\r', '\n'], " ") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reply: Reply, two: &str, three: &str) {
        for (version, expected) in [(Version::Two, two), (Version::Three, three)] {
            let mut out = Vec::new();
            reply.clone().encode(version, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn both_versions_are_spoken() {
        check(Reply::OK, "+OK\r\n", "+OK\r\n");
        check(Reply::text("ab"), "$2\r\nab\r\n", "$2\r\nab\r\n");
        check(Reply::Nil, "$-1\r\n", "_\r\n");
        check(Reply::Integer(-3), ":-3\r\n", ":-3\r\n");
        check(Reply::Error("ERR no\r\n+OK".into()), "-ERR no  +OK\r\n", "-ERR no  +OK\r\n");
        let map = Reply::Map(vec![("b", Reply::Integer(1)), ("a", Reply::Array(vec![Reply::Nil]))]);
        check(map, "*4\r\n$1\r\nb\r\n:1\r\n$1\r\na\r\n*1\r\n$-1\r\n", "%2\r\n$1\r\nb\r\n:1\r\n$1\r\na\r\n*1\r\n_\r\n");
        check(Reply::Push(vec![Reply::text("lost")]), "*1\r\n$4\r\nlost\r\n", ">1\r\n$4\r\nlost\r\n");
    }
}
