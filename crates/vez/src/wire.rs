//! What goes over the wire between nodes: letters, each with its length before it.
//!
//! ```text
//!   connection: the eight bytes of HELLO, then letters
//!   letter:     length (4 bytes, little endian, at most 64 KiB)  postcard of a Letter
//! ```
//!
//! A connection carries letters one way, from who opened it. Nothing depends on one of them arriving: what has to arrive is
//! numbered and sent again, in [`vez_peer`]; a question that is not answered was asked in vain.

use bytes::{Buf, BytesMut};
use serde::{Deserialize, Serialize};
use vez_peer::{
    frame::{Body, Frame, Item},
    identity::{Address, ClusterId},
};

use crate::inquiry::{Answer, Question};

/// No letter is longer.
pub(crate) const LONGEST: usize = 64 * 1024;
/// What a connection begins with: that it is one of ours, and the version of what follows.
pub(crate) const HELLO: [u8; 8] = *b"vez/1\r\n\0";
/// No address is longer: a name of 253 characters and a port.
const LONGEST_ADDRESS: usize = 260;
const PREFIX: usize = size_of::<u32>();

/// What one node sends to another.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Letter {
    /// From peer to peer.
    Frame(Box<Frame>),
    /// What somebody wants to know.
    Question {
        /// Whatever the asker knows it by.
        number: u64,
        /// Where the answer is to go.
        answer_to: Address,
        /// What it is.
        question: Question,
    },
    /// The answer to it.
    Answer {
        /// Whatever the asker knows the question by.
        number: u64,
        /// What it is.
        answer: Answer,
    },
    /// To one that takes the sender for a member of its own cluster.
    Stranger {
        /// Whose member it is.
        cluster: ClusterId,
        /// Where it is.
        address: Address,
    },
}

/// Bytes that are no letter.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Malformed {
    /// The connection does not begin as ours do.
    #[error("it does not begin as the connection of a node of this version; is that the port for clients?")]
    NoHello,
    /// A letter is too long.
    #[error("a letter of {0} bytes, and none has more than {LONGEST}")]
    TooLong(usize),
    /// What is in it makes no sense.
    #[error("a letter that makes no sense: {0}")]
    NoLetter(postcard::Error),
    /// It has an address that is none.
    #[error("a letter with an address of {0} bytes")]
    Address(usize),
}

/// Appends a letter. One of many messages that is too long is sent as several; another that is, not at all.
pub(crate) fn encode(letter: &Letter, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let begin = out.len();
    out.extend_from_slice(&[0; PREFIX]);
    // A Vec takes everything, and all our types have a form.
    *out = postcard::to_extend(letter, std::mem::take(out)).map_err(Malformed::NoLetter)?;
    let length = out.len() - begin - PREFIX;
    if length <= LONGEST {
        let prefix = u32::try_from(length).expect("it is short");
        out[begin..begin + PREFIX].copy_from_slice(&prefix.to_le_bytes());
        return Ok(());
    }
    out.truncate(begin);
    for part in halves(letter).ok_or(Malformed::TooLong(length))? {
        encode(&part, out)?;
    }
    Ok(())
}

/// The same in two letters, if it consists of many messages.
fn halves(letter: &Letter) -> Option<[Letter; 2]> {
    let Letter::Frame(whole) = letter else { return None };
    let Body::Shard { view, shard, items } = &whole.body else { return None };
    let part = |items: &[Item]| {
        let Frame { cluster, from, incarnation, address, to, .. } = &**whole;
        let body = Body::Shard { view: *view, shard: *shard, items: items.to_vec() };
        let (cluster, from, incarnation, address, to) = (*cluster, *from, *incarnation, address.clone(), *to);
        Letter::Frame(Box::new(Frame { cluster, from, incarnation, address, to, body }))
    };
    let (first, second) = items.split_at(items.len() / 2);
    (!first.is_empty()).then(|| [part(first), part(second)])
}

/// Takes the next letter out of what has arrived, if it is all there.
pub(crate) fn decode(bytes: &mut BytesMut) -> Result<Option<Letter>, Malformed> {
    let Some(prefix) = bytes.first_chunk::<PREFIX>() else { return Ok(None) };
    let length = u32::from_le_bytes(*prefix) as usize;
    if length > LONGEST {
        return Err(Malformed::TooLong(length));
    }
    if bytes.len() < PREFIX + length {
        return Ok(None);
    }
    bytes.advance(PREFIX);
    let letter = bytes.split_to(length);
    let letter = postcard::from_bytes(&letter).map_err(Malformed::NoLetter)?;
    let address = match &letter {
        Letter::Frame(frame) => Some(&frame.address),
        Letter::Question { answer_to: address, .. } | Letter::Stranger { address, .. } => Some(address),
        Letter::Answer { .. } => None,
    };
    match address.map_or(0, |address| address.as_str().len()) {
        0..=LONGEST_ADDRESS => Ok(Some(letter)),
        length => Err(Malformed::Address(length)),
    }
}

/// Takes the beginning of a connection out of what has arrived, if it is there.
pub(crate) fn greeted(bytes: &mut BytesMut) -> Result<bool, Malformed> {
    let known = bytes.len().min(HELLO.len());
    if bytes[..known] != HELLO[..known] {
        return Err(Malformed::NoHello);
    }
    if known < HELLO.len() {
        return Ok(false);
    }
    bytes.advance(known);
    Ok(true)
}

#[cfg(test)]
mod tests;
