use alloc::{string::ToString, vec};

use super::*;
use crate::charter::Charter;

const SECOND: Nanos = 1_000_000_000;
const NOTHING: Pledge = Pledge { number: 0, ttl: 0 };

/// A lease of 3 s, and clocks that are wrong by a tenth: what takes 9 s elsewhere may take 11 here.
fn charter() -> Charter {
    Charter { lease: 3 * SECOND, margin: SECOND / 10, rate_error: 100_000, ..Charter::new(1) }
}

fn moment(charter: &Charter, now: Nanos, in_force: Pledge) -> Moment<'_> {
    Moment { now, charter, in_force }
}

fn name() -> Name {
    Name::new(b"orders").expect("short")
}

fn fence() -> Fence {
    Fence::new(101, 1).expect("small")
}

/// Somebody wants a lock, and gets it.
fn set(keeping: &mut Keeping, moment: &Moment<'_>, name: &Name, ttl: Nanos) -> Had {
    let set = Set { request: RequestId(1), name: name.clone(), value: vec![7], ttl, by: "somebody".into() };
    keeping.set(set).expect("it can be kept");
    keeping.had(moment, name, fence())
}

/// One thing is kept for 9 s from 10 s on, by the pledge 1.
fn kept(charter: &Charter) -> Keeping {
    let mut keeping = Keeping::new(60 * SECOND);
    assert_eq!(set(&mut keeping, &moment(charter, 10 * SECOND, NOTHING), &name(), 9 * SECOND), Had::Waits);
    assert_eq!(keeping.tell(), Pledge { number: 1, ttl: 9 * SECOND });
    assert_eq!(keeping.take_unpledged(), BTreeSet::from([name()]), "it waits for its pledge");
    let at = moment(charter, 10 * SECOND, keeping.issued());
    assert_eq!(keeping.had(&at, &name(), fence()), Had::Kept(RequestId(1), 19 * SECOND));
    assert_eq!(keeping.next_end(), Some(21 * SECOND), "and others' clocks are slower");
    keeping
}

#[test]
fn what_grows_little_by_little_is_pledged_in_steps() {
    let (charter, mut keeping) = (charter(), Keeping::new(10 * SECOND));
    let mut issued = |ttl: Nanos| {
        let other = Name::new(&ttl.to_be_bytes()).expect("short");
        set(&mut keeping, &moment(&charter, 0, NOTHING), &other, ttl);
        keeping.issued()
    };
    for (ttl, number, pledged) in [(1, 1, 3), (3, 1, 3), (4, 2, 6), (5, 2, 6), (2, 2, 6), (9, 3, 9), (10, 4, 10)] {
        assert_eq!(issued(ttl * SECOND), Pledge { number, ttl: pledged * SECOND }, "for {ttl} s");
    }
}

#[test]
fn less_is_pledged_when_less_has_been_enough_for_two_leases() {
    let charter = charter();
    let mut keeping = kept(&charter);
    let mut at = |second: u64, in_force: Pledge| {
        keeping.look_back(&moment(&charter, second * SECOND, in_force));
        (keeping.issued().number, keeping.issued().ttl / SECOND)
    };
    let first = Pledge { number: 1, ttl: 9 * SECOND };
    assert_eq!(at(15, first), (1, 9), "it is too early to say");
    assert_eq!(at(16, first), (1, 9), "so much was needed a moment ago");
    assert_eq!(at(18, first), (1, 9), "that was looked at just now");
    assert_eq!(at(22, first), (2, 0), "nothing was kept since then that is not over");
    assert_eq!(at(30, first), (2, 0), "nothing more is issued before that is in force");
}

#[test]
fn what_is_left_of_something_is_pledged_still() {
    let charter = charter();
    let mut keeping = kept(&charter);
    let first = keeping.issued();
    keeping.look_back(&moment(&charter, 16 * SECOND, first));
    // Prolonged by a moment, it would have to be kept for 2.5 s more than is left.
    let longer = Wish::Expire { ttl: 4 * SECOND };
    let kept = keeping.change(&moment(&charter, 17 * SECOND, first), RequestId(2), &name(), longer);
    assert_eq!(kept.expect("it is short").map(|kept| kept.deadline), Some(21 * SECOND));
    keeping.look_back(&moment(&charter, 22 * SECOND, first));
    assert_eq!(keeping.issued(), Pledge { number: 2, ttl: 6 * SECOND }, "4 s were needed since, in steps of 3");
}

#[test]
fn who_has_asked_for_less_cannot_use_what_it_had() {
    let charter = charter();
    let mut keeping = kept(&charter);
    let first = keeping.issued();
    for second in [16, 22] {
        keeping.look_back(&moment(&charter, second * SECOND, first));
    }
    assert_eq!(keeping.issued().number, 2);
    keeping.end(&name()).expect("it was kept");
    for ttl in [1, SECOND, 9 * SECOND] {
        assert_eq!(set(&mut keeping, &moment(&charter, 22 * SECOND, first), &name(), ttl), Had::Waits);
        assert_eq!(keeping.end(&name()), Err(RequestId(1)), "it only wanted to");
    }
}

#[test]
fn a_wish_that_makes_it_shorter_waits_for_nothing() {
    let charter = charter();
    let mut keeping = kept(&charter);
    let shorter = Wish::Expire { ttl: SECOND };
    let changed = keeping.change(&moment(&charter, 11 * SECOND, NOTHING), RequestId(2), &name(), shorter);
    assert_eq!(changed.expect("it is short").map(|kept| kept.deadline), Some(12 * SECOND), "at once");
    assert_eq!(keeping.next_end(), Some(11 * SECOND + charter.of_others(SECOND)));
}

#[test]
fn nothing_is_prolonged_beyond_the_most_that_is_kept() {
    let charter = charter();
    let mut keeping = kept(&charter);
    let at = moment(&charter, 11 * SECOND, keeping.issued());
    // Counted on another's clock, and from 10 s on, what ends 60 s after that may end later than 60 s after 11.
    for (by, most) in [(51 * SECOND, true), (54 * SECOND, false), (Nanos::MAX, false)] {
        let result = keeping.clone().change(&at, RequestId(2), &name(), Wish::Prolong { by });
        assert_eq!(result.is_ok(), most, "{by}: {result:?}");
    }
    let result = keeping.change(&at, RequestId(2), &name(), Wish::Expire { ttl: 90 * SECOND });
    let words = "a lock by SET is kept for at most 60000 ms here, not 90000; take less, or start the nodes with a longer \
                 --compat-ttl";
    assert_eq!(result.map_err(|failure| failure.to_string()), Err(words.into()));
}
