//! What clients are told.

use std::{borrow::Cow, fmt, io::Write};

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
    pub(crate) fn encode(&self, version: Version, out: &mut Vec<u8>) {
        match self {
            Self::Simple(text) => line(b'+', text, out),
            Self::Bytes(bytes) => string(bytes, out),
            Self::Integer(number) => line(b':', number, out),
            Self::Nil if version == Version::Two => line(b'$', -1, out),
            Self::Nil => line(b'_', "", out),
            Self::Error(text) => line(b'-', one_line(text), out),
            Self::Push(all) if version == Version::Three => several(b'>', all, version, out),
            Self::Array(all) | Self::Push(all) => several(b'*', all, version, out),
            Self::Map(pairs) => {
                match version {
                    Version::Two => line(b'*', 2 * pairs.len(), out),
                    Version::Three => line(b'%', pairs.len(), out),
                }
                for (name, value) in pairs {
                    string(name.as_bytes(), out);
                    value.encode(version, out);
                }
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
}

fn line(kind: u8, content: impl fmt::Display, out: &mut Vec<u8>) {
    out.push(kind);
    write!(out, "{content}\r\n").expect("a vector takes everything");
}

fn string(bytes: &[u8], out: &mut Vec<u8>) {
    line(b'$', bytes.len(), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn several(kind: u8, all: &[Reply], version: Version, out: &mut Vec<u8>) {
    line(kind, all.len(), out);
    for reply in all {
        reply.encode(version, out);
    }
}

/// An error is a line: what a client has sent does not end it.
fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(['\r', '\n']) { text.replace(['\r', '\n'], " ").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reply: Reply, two: &str, three: &str) {
        for (version, expected) in [(Version::Two, two), (Version::Three, three)] {
            let mut out = Vec::new();
            reply.encode(version, &mut out);
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
