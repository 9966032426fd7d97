//! Finds a piece of Rust code in a source file by its tokens, and replaces it.

use std::ops::Range;

use ra_ap_rustc_lexer::{FrontmatterAllowed, TokenKind, tokenize};

/// A token and where it stands, in bytes.
struct Token<'a> {
    text: &'a str,
    span: Range<usize>,
}

/// The tokens of a text without whitespace and comments.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut start = 0;
    for token in tokenize(text, FrontmatterAllowed::No) {
        let end = start + token.len as usize;
        let ignored = matches!(
            token.kind,
            TokenKind::Whitespace | TokenKind::LineComment { .. } | TokenKind::BlockComment { .. }
        );
        if !ignored {
            tokens.push(Token { text: &text[start..end], span: start..end });
        }
        start = end;
    }
    tokens
}

/// Whether the token at this place is a comma before a closing bracket, which rustfmt adds and removes.
fn is_trailing_comma(tokens: &[Token<'_>], at: usize) -> bool {
    let closes = |token: &Token<'_>| matches!(token.text, ")" | "]" | "}");
    tokens[at].text == "," && tokens.get(at + 1).is_some_and(closes)
}

/// How many tokens of the pattern match the code from a place on, and how many tokens of the code these are.
fn matching(code: &[Token<'_>], from: usize, pattern: &[Token<'_>]) -> (usize, usize) {
    let (mut at, mut matched) = (from, 0);
    while matched < pattern.len() && at < code.len() {
        if code[at].text == pattern[matched].text {
            (at, matched) = (at + 1, matched + 1);
        } else if at > from && is_trailing_comma(code, at) {
            at += 1;
        } else if is_trailing_comma(pattern, matched) {
            matched += 1;
        } else {
            break;
        }
    }
    (matched, at - from)
}

/// Why a pattern does not say which code is meant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FindError {
    /// The pattern has no token.
    #[error("the code to find is empty")]
    Empty,
    /// The code does not contain the pattern.
    #[error("no match; the closest is in line {line}, where `{expected}` is not found but `{found}`")]
    Missing {
        /// The line in which the longest partial match ends, from 1.
        line: usize,
        /// The token of the pattern that does not match there.
        expected: String,
        /// The token of the code at that place.
        found: String,
    },
    /// The code contains the pattern more than once.
    #[error("matches in several places, in lines {0:?}")]
    Ambiguous(Vec<usize>),
}

/// Finds the only place at which the code contains the pattern, ignoring whitespace, comments and trailing commas.
///
/// # Errors
/// If there is no such place, or more than one.
pub fn find(code: &str, pattern: &str) -> Result<Range<usize>, FindError> {
    let (tokens, wanted) = (tokens(code), tokens(pattern));
    if wanted.is_empty() {
        return Err(FindError::Empty);
    }
    let line = |at: usize| code[..at].lines().count().max(1);
    let mut places = Vec::new();
    let mut closest = (0, 0);
    for from in 0..tokens.len() {
        let (matched, length) = matching(&tokens, from, &wanted);
        if matched == wanted.len() {
            places.push(tokens[from].span.start..tokens[from + length - 1].span.end);
        }
        if matched > closest.0 {
            closest = (matched, from + length);
        }
    }
    match &places[..] {
        [place] => Ok(place.clone()),
        [] => {
            let (matched, at) = closest;
            let found = tokens.get(at);
            Err(FindError::Missing {
                line: line(found.map_or(code.len(), |token| token.span.end)),
                expected: wanted[matched].text.to_owned(),
                found: found.map_or("the end of the file", |token| token.text).to_owned(),
            })
        }
        several => Err(FindError::Ambiguous(several.iter().map(|place| line(place.start + 1)).collect())),
    }
}

/// Whether two pieces of code differ in more than whitespace, comments and trailing commas.
#[must_use]
pub fn differ(one: &str, other: &str) -> bool {
    let (one, other) = (tokens(one), tokens(other));
    matching(&one, 0, &other) != (other.len(), one.len())
}
