use proptest::prelude::*;
use vez_peer::{
    frame::Membership,
    identity::{ClusterId, Incarnation, MemberId},
    name::Name,
    shard::Message,
};

use super::*;

fn frame(body: Body) -> Letter {
    Letter::Frame(Box::new(Frame {
        cluster: Some(ClusterId(7)),
        from: MemberId(1),
        incarnation: Incarnation(3),
        address: Address::new("127.0.0.1:7402"),
        to: None,
        body,
    }))
}

fn letters(items: usize) -> Letter {
    let name = Name::new(&[b'n'; 255]).unwrap();
    let item = |number| Item::Message(number, Message::Idle { name: name.clone() });
    frame(Body::Shard { view: 9, shard: 2, items: (0..items as u64).map(item).collect() })
}

fn decoded(bytes: &[u8]) -> Result<Vec<Letter>, Malformed> {
    let (mut bytes, mut letters) = (BytesMut::from(bytes), Vec::new());
    while let Some(letter) = decode(&mut bytes)? {
        letters.push(letter);
    }
    Ok(letters)
}

fn items(letter: &Letter) -> &[Item] {
    match letter {
        Letter::Frame(frame) => match &frame.body {
            Body::Shard { items, .. } => items,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn letters_there_and_back() {
    let mut out = Vec::new();
    let both = [frame(Body::Membership(Membership::Wait)), letters(3)];
    for letter in &both {
        encode(letter, &mut out).unwrap();
    }
    assert_eq!(decoded(&out).unwrap(), both);
    for end in 0..out.len() {
        assert!(decoded(&out[..end]).unwrap().len() < 2, "the rest is waited for");
    }
}

#[test]
fn what_is_too_long_is_sent_in_parts_and_nothing_is_missing() {
    let (whole, mut out) = (letters(1000), Vec::new());
    encode(&whole, &mut out).unwrap();
    let parts = decoded(&out).unwrap();
    assert!(parts.len() > 1 && out.len() > LONGEST);
    let put_together: Vec<Item> = parts.iter().flat_map(items).cloned().collect();
    assert_eq!(put_together, items(&whole));
}

#[test]
fn what_cannot_be_sent_in_parts_leaves_nothing_behind() {
    let unheard = (0..20_000).map(|id| MemberId(u64::MAX - id)).collect();
    let heartbeat = Membership::Heartbeat { sent: 0, view: 1, unheard, wants_view: false };
    let mut out = b"before".to_vec();
    assert!(matches!(encode(&frame(Body::Membership(heartbeat)), &mut out), Err(Malformed::TooLong(_))));
    assert_eq!(out, b"before");
}

#[test]
fn strangers_are_known_by_how_they_begin() {
    assert_eq!(greeted(&mut BytesMut::from(&b"GET / HTTP/1.1\r\n"[..])), Err(Malformed::NoHello));
    assert_eq!(greeted(&mut BytesMut::from(&HELLO[..3])), Ok(false));
    let mut hello = BytesMut::from(&HELLO[..]);
    assert_eq!(greeted(&mut hello), Ok(true));
    assert!(hello.is_empty());
}

proptest! {
    /// Whatever comes, it is a letter, or waited for, or refused; and no more is kept than came.
    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        let _ = decoded(&bytes);
    }

    /// The same for bytes that are nearly a letter.
    #[test]
    fn any_letter_with_a_wrong_byte_is_taken(at in 0..100_usize, byte in any::<u8>()) {
        let mut out = Vec::new();
        encode(&letters(2), &mut out).unwrap();
        let at = at % out.len();
        out[at] = byte;
        let _ = decoded(&out);
    }
}
