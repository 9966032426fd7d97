//! The lines of a trace, one at a time.

use std::{
    collections::VecDeque,
    io::{BufRead, Read},
};

use serde_json::Value;
use vez_algorithms::NodeId;

use super::{Trouble, Wrong};
use crate::trace::{Header, HeaderError};

/// A line longer than this is none of ours: the states of thousands of nodes do not fill it.
const LONGEST_LINE: u64 = 1 << 26;

/// So many lines are shown of what came before a difference, with the line itself.
const SHOWN: usize = 6;

/// So much of each.
const SHOWN_OF_A_LINE: usize = 160;

/// A line.
pub(super) struct Told {
    pub(super) time: f64,
    pub(super) node: NodeId,
    pub(super) kind: Kind,
    /// What chance answered.
    pub(super) choices: Vec<usize>,
    /// All fields but those.
    pub(super) fields: Value,
}

/// What a line tells of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Input(Happening),
    Effect,
    Lose,
    Double,
    Crash,
}

/// What happens to a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Happening {
    Start,
    Restart,
    Ask,
    Leave,
    Receive,
    Fire,
    Notice,
    Internal,
}

impl Kind {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "start" => Self::Input(Happening::Start),
            "restart" => Self::Input(Happening::Restart),
            "ask" => Self::Input(Happening::Ask),
            "leave" => Self::Input(Happening::Leave),
            "receive" => Self::Input(Happening::Receive),
            "fire" => Self::Input(Happening::Fire),
            "notice" => Self::Input(Happening::Notice),
            "internal" => Self::Input(Happening::Internal),
            "send" | "set" | "cancel" | "enter" | "output" | "object" => Self::Effect,
            "lose" => Self::Lose,
            "double" => Self::Double,
            "crash" => Self::Crash,
            _ => return None,
        })
    }
}

impl Told {
    /// Looks at a line of a system of so many nodes.
    fn of(mut fields: Value, nodes: usize) -> Result<Self, Wrong> {
        let lacks = |what: &str| Wrong::unreadable(format!("the line has no {what}; see docs/trace.md"));
        let kind = fields["kind"].as_str().ok_or_else(|| lacks("kind"))?;
        if kind == "system" {
            return Err(Wrong::unreadable("a second header; a trace is of one run, so cut the file here"));
        }
        let unknown = || Wrong::unreadable(format!("unknown kind \"{}\"; see docs/trace.md", shortened(kind)));
        let kind = Kind::of(kind).ok_or_else(unknown)?;
        let time = fields["time"].as_f64().ok_or_else(|| lacks("time"))?;
        let node = node_of(&fields["node"], nodes)?.ok_or_else(|| lacks("node"))?;
        let choices = match fields.as_object_mut().and_then(|fields| fields.shift_remove("choices")) {
            None => Vec::new(),
            Some(choices) => serde_json::from_value(choices)
                .map_err(|_| Wrong::unreadable("choices is no list of numbers; see docs/trace.md"))?,
        };
        Ok(Self { time, node, kind, choices, fields })
    }

    /// The other side of a message, or who has crashed.
    pub(super) fn peer(&self, nodes: usize) -> Result<NodeId, Wrong> {
        let lacks = || Wrong::unreadable("the line has no peer; see docs/trace.md");
        node_of(&self.fields["peer"], nodes)?.ok_or_else(lacks)
    }
}

/// The node of that number; nothing if there is no number.
fn node_of(value: &Value, nodes: usize) -> Result<Option<NodeId>, Wrong> {
    let Value::Number(number) = value else { return Ok(None) };
    let node = number.as_u64().and_then(|number| u32::try_from(number).ok()).map(NodeId);
    let node = node.filter(|node| node.index() < nodes);
    node.map(Some).ok_or_else(|| Wrong::unreadable(format!("there is no n{number} among {nodes} nodes")))
}

/// Reads a trace, and remembers the last lines.
pub(crate) struct Lines<'r> {
    from: &'r mut dyn BufRead,
    number: u64,
    recent: VecDeque<(u64, String)>,
    broken_off: Option<u64>,
}

impl<'r> Lines<'r> {
    pub(crate) fn new(from: &'r mut dyn BufRead) -> Self {
        Self { from, number: 0, recent: VecDeque::new(), broken_off: None }
    }

    /// How many lines have been read.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The line that breaks off, if the last one does.
    pub(super) fn broken_off(&self) -> Option<u64> {
        self.broken_off
    }

    /// The first line.
    pub(crate) fn header(&mut self) -> Result<Header, Trouble> {
        let first = self.text().map_err(|wrong| self.trouble(wrong))?;
        let text = first.map_or(String::new(), |(bytes, _)| String::from_utf8_lossy(&bytes).into_owned());
        Header::read(&text).map_err(|error| self.refuse(&error))
    }

    /// A header that is of no use.
    pub(crate) fn refuse(&mut self, error: &HeaderError) -> Trouble {
        self.number = self.number.max(1);
        self.trouble(Wrong::unreadable(error.to_string()))
    }

    /// The next line of a system of so many nodes.
    pub(super) fn next(&mut self, nodes: usize) -> Result<Option<Told>, Wrong> {
        let Some((bytes, ends)) = self.text()? else { return Ok(None) };
        match serde_json::from_slice(&bytes) {
            Ok(fields @ Value::Object(_)) => Told::of(fields, nodes).map(Some),
            Ok(_) => Err(Wrong::unreadable("no JSON object; a trace has one a line, see docs/trace.md")),
            Err(_) if !ends => {
                self.broken_off = Some(self.number);
                Ok(None)
            }
            Err(error) => {
                let column = error.column();
                Err(Wrong::unreadable(format!(
                    "no JSON, as column {column} shows; a trace has an object a line, see docs/trace.md"
                )))
            }
        }
    }

    /// What is wrong with the last line that was read.
    pub(super) fn trouble(&mut self, Wrong { cause, what }: Wrong) -> Trouble {
        Trouble { cause, line: self.number, what, before: self.recent.drain(..).collect() }
    }

    /// The next line that is not empty, and whether it has an end.
    fn text(&mut self) -> Result<Option<(Vec<u8>, bool)>, Wrong> {
        loop {
            let mut bytes = Vec::new();
            let read = self.from.take(LONGEST_LINE).read_until(b'\n', &mut bytes);
            self.number += u64::from(!bytes.is_empty());
            read.map_err(|error| Wrong::unreadable(format!("what comes next cannot be read: {error}")))?;
            let ends = bytes.ends_with(b"\n");
            if bytes.is_empty() {
                return Ok(None);
            }
            if !ends && bytes.len() as u64 == LONGEST_LINE {
                return Err(Wrong::unreadable(format!("longer than {LONGEST_LINE} bytes; no line of a trace is")));
            }
            if !bytes.trim_ascii().is_empty() {
                self.remember(&bytes);
                return Ok(Some((bytes, ends)));
            }
        }
    }

    fn remember(&mut self, bytes: &[u8]) {
        if self.recent.len() == SHOWN {
            self.recent.pop_front();
        }
        // A character has at most four bytes.
        let start = &bytes[..bytes.len().min(4 * (SHOWN_OF_A_LINE + 1))];
        self.recent.push_back((self.number, shortened(String::from_utf8_lossy(start).trim())));
    }
}

/// The beginning of a text that may be long.
pub(super) fn shortened(text: &str) -> String {
    // What stands in a file must not end the sentence, nor move the cursor.
    let text = text.replace(char::is_control, "\u{fffd}");
    match text.char_indices().nth(SHOWN_OF_A_LINE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
