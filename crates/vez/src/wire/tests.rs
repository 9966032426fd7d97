use std::cell::Cell;

use proptest::{prelude::*, test_runner::TestRunner};
use vez_peer::{
    frame::Membership,
    identity::{ClusterId, Incarnation, MemberId},
    name::Name,
    shard::Message,
    views::Pledge,
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
    let heartbeat = Membership::Heartbeat { sent: 0, view: 1, unheard, wants_view: false, pledge: Pledge::default() };
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

/// One of each kind.
fn kinds() -> Vec<Letter> {
    let (name, address) = (Name::new(b"orders/42").unwrap(), Address::new("127.0.0.1:7402"));
    let heartbeat = Membership::Heartbeat {
        sent: 1,
        view: 2,
        unheard: [MemberId(3)].into(),
        wants_view: true,
        pledge: Pledge::default(),
    };
    let question = |question| Letter::Question { number: 5, answer_to: address.clone(), question };
    let fence = "00503808322474868753".parse().unwrap();
    vec![
        frame(Body::Membership(heartbeat)),
        letters(2),
        question(Question::Show(name.clone())),
        question(Question::List { prefix: b"orders/".to_vec(), after: Some(name.clone()) }),
        question(Question::Release { name, fence }),
        Letter::Answer { number: 5, answer: Answer::Released(true) },
        Letter::Answer { number: 5, answer: Answer::Listed(Vec::new(), true) },
        Letter::Stranger { cluster: ClusterId(9), address },
    ]
}

fn with_length(body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len()).unwrap().to_le_bytes(), body].concat()
}

/// How many of the cases were letters: if none ever were, nothing would be shown.
fn check_taken(cases: impl Strategy<Value = Vec<u8>>) -> usize {
    let found = Cell::new(0);
    let config = ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() };
    let ran = TestRunner::new(config).run(&cases, |bytes| {
        // Whatever comes, it is letters that can be sent again, or waited for, or refused.
        for letter in decoded(&bytes).unwrap_or_default() {
            found.set(found.get() + 1);
            prop_assert!(encode(&letter, &mut Vec::new()).is_ok(), "{letter:?}");
        }
        Ok(())
    });
    ran.unwrap();
    found.get()
}

#[test]
fn any_bytes_are_taken() {
    let body = || prop::collection::vec(prop_oneof![0..8_u8, any::<u8>()], 0..512);
    check_taken(body());
    assert!(check_taken(body().prop_map(|body| with_length(&body))) > 0);
}

#[test]
fn letters_with_wrong_bytes_are_taken() {
    let wrong = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5);
    let cases = (prop::sample::select(kinds()), wrong, any::<bool>(), any::<prop::sample::Index>());
    let cases = cases.prop_map(|(letter, wrong, whole, end)| {
        let mut body = Vec::new();
        encode(&letter, &mut body).unwrap();
        body.drain(..PREFIX);
        for (at, byte) in wrong {
            let at = at.index(body.len());
            body[at] = byte;
        }
        if !whole {
            body.truncate(end.index(body.len()));
        }
        with_length(&body)
    });
    assert!(check_taken(cases) > 0);
}
