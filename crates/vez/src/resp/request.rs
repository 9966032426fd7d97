//! What clients send: an array of strings, or a line that a person has typed.
//!
//! It is taken apart by hand, unlike what we send. A request is never nested, and a general decoder follows whatever nesting
//! it is sent, as deep as the stack.

use smallvec::SmallVec;

/// No request is longer.
pub(crate) const LONGEST: usize = 64 * 1024;
/// No request has more words.
const MOST_WORDS: usize = 1024;
/// A length or a number of words has no more digits.
const MOST_DIGITS: usize = 10;

/// The words of a request.
pub(crate) type Words<'a> = SmallVec<[&'a [u8]; 8]>;

/// Bytes that are no request. Where the next one begins is not known, and the connection is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum BadRequest {
    /// It is too long.
    #[error("a request has at most {LONGEST} bytes")]
    TooLong,
    /// It has too many words.
    #[error("a request has at most {MOST_WORDS} words")]
    TooManyWords,
    /// It has a length that is none.
    #[error("expected a length after '{}'", char::from(*.0))]
    NoLength(u8),
    /// It is no array of strings.
    #[error("expected '$', got '{}'", .0.escape_ascii())]
    NoString(u8),
    /// A string is longer than it said.
    #[error("a string does not end where it said")]
    NoEnd,
}

/// The words of the first request, and how many bytes it has; nothing, if it is not all there yet.
pub(crate) fn split(bytes: &[u8]) -> Result<Option<(Words<'_>, usize)>, BadRequest> {
    let split = match bytes.first() {
        None => Ok(None),
        Some(b'*') => array(bytes),
        Some(_) => Ok(line(bytes)),
    }?;
    if split.is_none() && bytes.len() >= LONGEST {
        return Err(BadRequest::TooLong);
    }
    Ok(split)
}

fn array(bytes: &[u8]) -> Result<Option<(Words<'_>, usize)>, BadRequest> {
    let Some((words, mut at)) = length(bytes, 0)? else { return Ok(None) };
    if words > MOST_WORDS {
        return Err(BadRequest::TooManyWords);
    }
    let mut all = Words::new();
    for _ in 0..words {
        match bytes.get(at) {
            None => return Ok(None),
            Some(b'$') => {}
            Some(other) => return Err(BadRequest::NoString(*other)),
        }
        let Some((long, begin)) = length(bytes, at)? else { return Ok(None) };
        if long > LONGEST {
            return Err(BadRequest::TooLong);
        }
        let end = begin + long;
        match bytes.get(end..end + 2) {
            None => return Ok(None),
            Some(b"\r\n") => {}
            Some(_) => return Err(BadRequest::NoEnd),
        }
        all.push(&bytes[begin..end]);
        at = end + 2;
    }
    Ok(Some((all, at)))
}

/// The number behind the sign at that place, and where what follows begins. A negative one is none.
fn length(bytes: &[u8], at: usize) -> Result<Option<(usize, usize)>, BadRequest> {
    let (sign, rest) = (bytes[at], &bytes[at + 1..]);
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits > MOST_DIGITS {
        return Err(BadRequest::NoLength(sign));
    }
    match &rest[digits..] {
        [] | [b'\r'] => Ok(None),
        [b'\r', b'\n', ..] if digits > 0 => {
            let number = rest[..digits].iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
            Ok(Some((number, at + 1 + digits + 2)))
        }
        _ => Err(BadRequest::NoLength(sign)),
    }
}

fn line(bytes: &[u8]) -> Option<(Words<'_>, usize)> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let words = bytes[..end].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    Some((words.take(MOST_WORDS).collect(), end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_text(text: &str) -> Result<Option<(Vec<String>, usize)>, BadRequest> {
        let text_of = |word: &&[u8]| String::from_utf8_lossy(word).into_owned();
        Ok(split(text.as_bytes())?.map(|(words, length)| (words.iter().map(text_of).collect(), length)))
    }

    #[test]
    fn a_request_is_an_array_of_strings_or_a_line() {
        let expected = Ok(Some((vec!["LOCK".to_owned(), "a b".to_owned()], 23)));
        assert_eq!(split_text("*2\r\n$4\r\nLOCK\r\n$3\r\na b\r\n*1\r\n"), expected);
        let expected = Ok(Some((vec!["LOCK".to_owned(), "a".to_owned()], 10)));
        assert_eq!(split_text(" LOCK  a\r\nPING\r\n"), expected);
        assert_eq!(split_text("*0\r\n"), Ok(Some((vec![], 4))));
        assert_eq!(split_text("\r\n"), Ok(Some((vec![], 2))));
    }

    #[test]
    fn any_beginning_of_a_request_waits_for_the_rest() {
        let whole = "*2\r\n$4\r\nLOCK\r\n$3\r\na b\r\n";
        for end in 0..whole.len() {
            assert_eq!(split_text(&whole[..end]), Ok(None), "{end}");
        }
    }

    #[test]
    fn what_is_no_request_is_told_by_what_is_wrong() {
        let bad = [
            ("*x\r\n", BadRequest::NoLength(b'*')),
            ("*-1\r\n", BadRequest::NoLength(b'*')),
            ("*1\n\r", BadRequest::NoLength(b'*')),
            ("*1\r\n$\r\n", BadRequest::NoLength(b'$')),
            ("*1\r\n$99999999999\r\n", BadRequest::NoLength(b'$')),
            ("*1\r\n$65537\r\n", BadRequest::TooLong),
            ("*1025\r\n", BadRequest::TooManyWords),
            ("*1\r\n*1\r\n", BadRequest::NoString(b'*')),
            ("*1\r\n:1\r\n", BadRequest::NoString(b':')),
            ("*1\r\n$1\r\nab\r\n", BadRequest::NoEnd),
        ];
        for (text, why) in bad {
            assert_eq!(split_text(text), Err(why), "{text}");
        }
        assert_eq!(split(&vec![b'a'; LONGEST]).map(|_| ()), Err(BadRequest::TooLong));
    }
}
