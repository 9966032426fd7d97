//! The words of a command, one after the other.

use std::{fmt, str::FromStr};

use vez_peer::fence::NoFence;

use super::NoCommand;

/// The words after those that have to be there.
pub(super) struct Options<'a> {
    words: std::slice::Iter<'a, &'a [u8]>,
    usage: &'static str,
}

pub(super) struct Word<'a>(pub &'a [u8]);

impl Word<'_> {
    pub(super) fn is(&self, name: &str) -> bool {
        self.0.eq_ignore_ascii_case(name.as_bytes())
    }
}

impl<'a> Options<'a> {
    pub(super) fn new(words: &'a [&'a [u8]], usage: &'static str) -> Self {
        Self { words: words.iter(), usage }
    }

    pub(super) fn next(&mut self) -> Option<Word<'a>> {
        self.words.next().map(|word| Word(word))
    }

    pub(super) fn word(&mut self) -> Result<&'a [u8], NoCommand> {
        self.words.next().copied().ok_or_else(|| {
            let name = self.usage.split(' ').next().unwrap_or_default();
            NoCommand::Arguments(name, self.usage)
        })
    }

    pub(super) fn number(&mut self) -> Result<u64, NoCommand> {
        let word = self.word()?;
        number(word, self.usage)
    }

    pub(super) fn unknown(&self, option: Word<'_>) -> NoCommand {
        NoCommand::Option(text(option.0), self.usage)
    }
}

pub(super) fn number(word: &[u8], usage: &'static str) -> Result<u64, NoCommand> {
    let digit = |number: u64, digit: &u8| {
        let digit = char::from(*digit).to_digit(10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    };
    let number = if word.is_empty() { None } else { word.iter().try_fold(0, digit) };
    number.ok_or_else(|| NoCommand::Number(text(word), usage))
}

pub(super) fn parse<T: FromStr<Err = NoFence>>(word: &[u8]) -> Result<T, NoCommand> {
    Ok(text(word).parse()?)
}

/// Bytes of a client, as they can be shown: not too many.
pub(super) fn text(bytes: &[u8]) -> String {
    struct Shown<'a>(&'a [u8]);
    impl fmt::Display for Shown<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{}", self.0.escape_ascii())
        }
    }
    Shown(&bytes[..bytes.len().min(64)]).to_string()
}
