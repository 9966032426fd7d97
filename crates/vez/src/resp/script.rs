//! Scripts, by what they mean.
//!
//! Libraries that lock by Redis compare and delete in one step by a script. Such scripts are few, and nearly all are one of
//! those that the documentation of Redis shows, in other words. So there is no interpreter here: what a client sends is brought
//! into a form that leaves out how it was written, and is looked up among those that are known.
//!
//!   SCRIPT LOAD text     → its SHA-1        EVAL text 1 name value     → what the script would have answered
//!   SCRIPT EXISTS sha…   → 1 or 0 each      EVALSHA sha 1 name value   → the same, or NOSCRIPT

mod known;
mod lua;

use std::collections::{BTreeMap, VecDeque};

use sha1::{Digest, Sha1};

use super::reply::Reply;

/// So many scripts are remembered by their SHA-1; the oldest is forgotten first, and a client sends it again.
const MOST_SCRIPTS: usize = 1024;

/// What a script means. Wherever a value is compared, it is `ARGV[1]`, unless a database comes before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    /// `KEYS[1]` is deleted, if it has that value.
    Release(Answers),
    /// It has a time to live of `ARGV[2]`, if it has that value.
    Expire { by: By, answers: Answers },
    /// The same, by redis-py: if `ARGV[3]` is 0, what is left is added. One that has no time to live does not get one. The
    /// answer is 1 if it was done, and 0 if not.
    Prolong,
    /// How many milliseconds are left is answered, if it has that value.
    Left {
        /// The answer if it has that value, and no time to live.
        endless: i64,
        /// The answer if it has another, or none.
        not_ours: i64,
    },
    /// It gets that value if it has none, and in either case a time to live of `ARGV[2]`.
    Take {
        /// It gets one only if `ARGV[3]` is "yes".
        asked: bool,
        answers: Answers,
    },
    /// If none of the keys has a value, all get that one, and a time to live of `ARGV[2]`. The answer is how many keys were named,
    /// or 0.
    AcquireAll { database: bool },
    /// If all of the keys have that value, they get a time to live of `ARGV[2]`. The answer is how many keys were named, or 0.
    ExtendAll { database: bool },
    /// Those of the keys that have that value are deleted. The answer is how many they were.
    ReleaseAll { database: bool },
}

/// How a time to live is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// `PEXPIRE`. If it is not more than 0, the key is deleted, and that is done as well.
    Milliseconds,
    /// `EXPIRE`, likewise.
    Seconds,
    /// `SET … PX`, which has to be more than 0.
    Set,
}

/// What a script answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answers {
    /// It had that value.
    pub done: Answer,
    /// It has another.
    pub not_ours: Answer,
    /// It had none.
    pub free: Answer,
}

/// What is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Integer(i64),
    Ok,
    Nil,
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Integer(number) => Self::Integer(number),
            Answer::Ok => Self::OK,
            Answer::Nil => Self::Nil,
        }
    }
}

/// What a script is given, apart from keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Given<'a> {
    pub value: &'a [u8],
    /// 0 where the script wants none.
    pub ttl_ms: i64,
    /// [`Meaning::Prolong`]: the time is added to what is left. [`Meaning::Take`]: it may be taken anew.
    pub more: bool,
}

/// Why a script is not run. The client is told, and goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum NoScript {
    #[error(
        "ERR this script is not known here: those of lock libraries are, by what they mean, and no other is run; compare and delete \
         as the documentation of SET does, or take LOCK and UNLOCK"
    )]
    Unknown,
    #[error("NOSCRIPT No matching script. Please use EVAL.")]
    NoMatch,
    #[error("ERR this script wants {keys} and {arguments} arguments or more")]
    Arguments { keys: &'static str, arguments: usize },
    #[error("ERR value is not an integer or out of range")]
    Number,
    #[error("ERR invalid expire time in 'set' command")]
    Time,
    #[error("ERR there is one database, 0; leave the other out")]
    Database,
}

impl Meaning {
    /// What a script means.
    pub(crate) fn of(script: &[u8]) -> Result<Self, NoScript> {
        lua::form(script).and_then(|form| known::KNOWN.get(&form).copied()).ok_or(NoScript::Unknown)
    }

    /// What it makes of its arguments, with so many keys.
    pub(crate) fn given<'a, T: AsRef<[u8]>>(self, keys: usize, arguments: &'a [T]) -> Result<Given<'a>, NoScript> {
        let skipped = usize::from(self.has_database());
        let wanted = skipped + self.arguments();
        if keys == 0 || arguments.len() < wanted {
            let keys = if self.is_about_several() { "a key or more" } else { "a key" };
            return Err(NoScript::Arguments { keys, arguments: wanted });
        }
        if self.has_database() && arguments[0].as_ref() != b"0" {
            return Err(NoScript::Database);
        }
        let arguments = &arguments[skipped..];
        let at = |at: usize| arguments.get(at).map_or(&b""[..], AsRef::as_ref);
        let ttl_ms = if self.arguments() > 1 { self.ttl_ms(at(1))? } else { 0 };
        let more = match self {
            Self::Prolong => at(2) == b"0",
            Self::Take { asked, .. } => !asked || at(2) == b"yes",
            _ => false,
        };
        Ok(Given { value: at(0), ttl_ms, more })
    }

    /// Whether it is about all the keys that it is given, not only the first.
    pub(crate) fn is_about_several(self) -> bool {
        matches!(self, Self::AcquireAll { .. } | Self::ExtendAll { .. } | Self::ReleaseAll { .. })
    }

    fn has_database(self) -> bool {
        let (Self::AcquireAll { database } | Self::ExtendAll { database } | Self::ReleaseAll { database }) = self
        else {
            return false;
        };
        database
    }

    /// How many arguments it cannot do without.
    fn arguments(self) -> usize {
        match self {
            Self::Release(_) | Self::Left { .. } | Self::ReleaseAll { .. } => 1,
            Self::Expire { .. } | Self::AcquireAll { .. } | Self::ExtendAll { .. } => 2,
            Self::Take { asked: false, .. } => 2,
            Self::Take { asked: true, .. } | Self::Prolong => 3,
        }
    }

    fn ttl_ms(self, word: &[u8]) -> Result<i64, NoScript> {
        let number: i64 = str::from_utf8(word).ok().and_then(|word| word.parse().ok()).ok_or(NoScript::Number)?;
        match self {
            Self::Expire { by: By::Seconds, .. } => number.checked_mul(1000).ok_or(NoScript::Number),
            Self::Expire { by: By::Milliseconds, .. } | Self::Prolong => Ok(number),
            _ if number <= 0 => Err(NoScript::Time),
            _ => Ok(number),
        }
    }
}

/// The SHA-1 of a script.
pub(crate) type Sum = [u8; 20];

/// Scripts that were sent, by their SHA-1.
#[derive(Default, Debug)]
pub(crate) struct Scripts {
    known: BTreeMap<Sum, Meaning>,
    /// The oldest first.
    order: VecDeque<Sum>,
}

impl Scripts {
    /// Remembers a script, if it is known; its SHA-1 in hexadecimal digits, and what it means.
    pub(crate) fn load(&mut self, script: &[u8]) -> Result<(String, Meaning), NoScript> {
        let meaning = Meaning::of(script)?;
        let sum: Sum = Sha1::digest(script).into();
        if self.known.insert(sum, meaning).is_none() {
            self.order.push_back(sum);
        }
        if self.order.len() > MOST_SCRIPTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        let digits = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((digits, meaning))
    }

    /// What a script that was sent before means.
    pub(crate) fn find(&self, sum: Option<Sum>) -> Result<Meaning, NoScript> {
        sum.and_then(|sum| self.known.get(&sum).copied()).ok_or(NoScript::NoMatch)
    }

    /// Forgets them all.
    pub(crate) fn flush(&mut self) {
        *self = Self::default();
    }
}

/// The SHA-1 that stands there in hexadecimal digits, if one does.
pub(crate) fn parse_sum(digits: &[u8]) -> Option<Sum> {
    let mut sum = Sum::default();
    if digits.len() != 2 * sum.len() {
        return None;
    }
    for (byte, digits) in sum.iter_mut().zip(digits.chunks(2)) {
        let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        *byte = value(digits[0])? << 4 | value(digits[1])?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests;
