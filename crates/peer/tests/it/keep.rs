//! Two processes: what is kept for whoever knows a value, and what those can do who do.

use crate::company::{Company, SECOND, charter, name};
use vez_peer::{
    ask::{Ask, Failure, LONGEST_LABEL, Patience, RequestId, SessionId},
    fence::Fence,
    frame::{Body, Membership},
    identity::MemberId,
    keep::{KEEPER, Kept, Wish},
    peer::{Call, Effect, Input},
};

impl Company {
    /// Somebody who knows a value wants something, and is told at once.
    fn wish(&mut self, id: u64, value: Option<&[u8]>, wish: Wish) -> Result<Option<Kept>, Failure> {
        let asked = self.wish_later(id, value, wish);
        self.answer(asked).expect("it is told at once")
    }

    /// Somebody who knows a value wants something.
    fn wish_later(&mut self, id: u64, value: Option<&[u8]>, wish: Wish) -> RequestId {
        let request = self.next_request();
        self.call(id, Call::ByValue { request, name: name("orders"), value: value.map(<[u8]>::to_vec), wish });
        request
    }

    fn answer(&self, asked: RequestId) -> Option<Result<Option<Kept>, Failure>> {
        self.said.iter().find_map(|(_, effect)| match effect {
            Effect::ByValue { request, result } if *request == asked => Some(result.clone()),
            _ => None,
        })
    }

    /// Whether another can have it now, at the other process.
    fn is_free(&mut self) -> bool {
        self.pass(SECOND / 10); // What an earlier try has left behind is over by then.
        let (session, request) = (SessionId(self.next_request().0), self.next_request());
        self.call(1, Call::Open { session, ttl: None });
        let (name, ask, patience) = (name("orders"), Ask::Lock, Patience::Try);
        self.call(1, Call::Acquire { session, request, name, ask, patience });
        self.pass(SECOND / 10);
        let free = self.fence_of(request).is_some();
        self.call(1, Call::End(session));
        self.pass(SECOND / 10);
        free
    }
}

/// Something is kept by the second of two, for 5 s.
fn kept() -> (Company, Fence, u64) {
    let mut company = Company::new(2);
    let fence = company.keep(2, &name("orders"), b"mine", 5 * SECOND);
    let kept = company.wish(2, None, Wish::Look).expect("a member").expect("it is kept");
    (company, fence, kept.deadline)
}

#[test]
fn whoever_knows_the_value_sees_it_and_gives_it_back() {
    let (mut company, fence, deadline) = kept();
    let it = Some(Kept { value: b"mine".to_vec(), fence, deadline });
    assert!(!company.is_free());
    assert_eq!(company.wish(1, Some(b"mine"), Wish::Look), Ok(None), "it is not kept there");
    for wish in [Wish::Look, Wish::Release, Wish::Expire { ttl: 0 }, Wish::Expire { ttl: SECOND }] {
        assert_eq!(company.wish(2, Some(b"yours"), wish), Ok(None));
    }
    assert_eq!(company.wish(2, Some(b"mine"), Wish::Look), Ok(it.clone()));
    assert_eq!(company.wish(2, None, Wish::Look), Ok(it.clone()));
    assert_eq!(company.wish(2, Some(b"mine"), Wish::Release), Ok(it));
    assert_eq!(company.wish(2, Some(b"mine"), Wish::Release), Ok(None), "once");
    assert!(company.is_free());
    assert_eq!(company.peers[&2].status().kept, 0);
}

#[test]
fn it_ends_by_itself_and_no_earlier_than_on_the_slowest_clock() {
    let (mut company, _, deadline) = kept();
    let began = deadline - 5 * SECOND;
    company.pass_until(|company| company.now >= deadline);
    assert!(!company.is_free(), "the clock of whom it is kept for may be slow");
    company.pass_until(|company| company.peers[&2].status().kept == 0);
    assert!(company.now - began >= charter().of_others(5 * SECOND));
    assert!(company.is_free());
}

#[test]
fn it_belongs_to_no_session() {
    let (mut company, fence, deadline) = kept();
    for call in [Call::Renew(KEEPER), Call::Extend { session: KEEPER, by: 90 * SECOND }, Call::End(KEEPER)] {
        company.call(2, call);
        let kept = company.wish(2, None, Wish::Look).expect("a member").expect("it is kept");
        assert_eq!((kept.fence, kept.deadline), (fence, deadline));
    }
    let failure = Failure::NoSession;
    let told = company.call(2, Call::Open { session: KEEPER, ttl: None });
    assert_eq!(told, [Effect::NotOpened { session: KEEPER, failure }], "it is nobody's");
    assert_eq!(company.peers[&2].status().sessions, 0);
    assert_eq!(company.peers[&2].setter(&name("orders")).as_deref(), Some("somebody"));
    assert!(!company.is_free());
}

#[test]
fn who_is_not_told_of_it_any_more_does_not_have_it() {
    let mut company = Company::new(2);
    company.keep(2, &name("books"), b"mine", 5 * SECOND); // So much is pledged now.
    let request = company.set_and_have(2, &name("orders"), b"mine", 5 * SECOND);
    assert!(company.kept_until(request).is_some());
    company.call(2, Call::Cancel { request: RequestId(request.0 - 1), name: name("orders") });
    assert!(!company.is_free(), "that was another");
    company.call(2, Call::Cancel { request, name: name("orders") });
    assert_eq!((company.peers[&2].status().kept, company.failed(request)), (1, None), "it was answered");
    assert!(company.is_free());
}

#[test]
fn a_lock_that_another_has_is_not_set() {
    for at in [1, 2] {
        let (mut company, ..) = kept();
        let request = company.set(at, &name("orders"), b"yours", SECOND);
        company.pass(SECOND / 10);
        assert_eq!(company.failed(request), Some(Failure::Busy(name("orders"))));
        company.wish(2, Some(b"mine"), Wish::Release).expect("a member").expect("it is kept");
        company.pass(SECOND / 10);
        let (session, _) = company.lock(at, &name("orders"));
        let request = company.set(2, &name("orders"), b"yours", SECOND);
        company.pass(SECOND / 10);
        assert_eq!(company.failed(request), Some(Failure::Busy(name("orders"))));
        company.call(at, Call::End(session));
        company.pass(SECOND / 10);
        company.keep(2, &name("orders"), b"mine", SECOND);
    }
}

#[test]
fn it_ends_sooner_or_later_if_somebody_wants_that() {
    let (mut company, fence, deadline) = kept();
    let until = |company: &mut Company, wish| {
        let kept = company.wish(2, Some(b"mine"), wish).expect("short").expect("it is kept");
        assert_eq!((kept.value, kept.fence), (b"mine".to_vec(), fence));
        kept.deadline
    };
    assert_eq!(until(&mut company, Wish::Prolong { by: SECOND / 2 }), deadline + SECOND / 2);
    assert_eq!(until(&mut company, Wish::Expire { ttl: 6 * SECOND }), company.now + 6 * SECOND, "6 s are pledged");
    assert_eq!(until(&mut company, Wish::Expire { ttl: SECOND }), company.now + SECOND);
    assert_eq!(until(&mut company, Wish::Prolong { by: SECOND }), company.now + 2 * SECOND);
    company.pass(charter().of_others(2 * SECOND) + SECOND / 10);
    assert_eq!(company.wish(2, None, Wish::Prolong { by: SECOND }), Ok(None), "what is over is not revived");
    assert!(company.is_free());
}

#[test]
fn a_wish_for_which_more_has_to_be_pledged_is_granted_later() {
    let (mut company, ..) = kept();
    company.lost =
        |frame| frame.from == MemberId(2) && matches!(frame.body, Body::Membership(Membership::Heartbeat { .. }));
    let longer = company.wish_later(2, Some(b"mine"), Wish::Expire { ttl: 8 * SECOND });
    let longest = company.wish_later(2, Some(b"mine"), Wish::Prolong { by: 9 * SECOND });
    let too_long = company.wish(2, Some(b"mine"), Wish::Prolong { by: 19 * SECOND });
    assert!(matches!(too_long, Err(Failure::KeptTooLong { .. })), "{too_long:?}");
    company.pass(SECOND / 2);
    assert_eq!((company.answer(longer), company.answer(longest)), (None, None));
    assert_eq!(company.wish(2, Some(b"mine"), Wish::Look).map(|kept| kept.is_some()), Ok(true), "this needs no pledge");
    company.lost = |_| false;
    company.pass(SECOND);
    let until = |asked| company.answer(asked).expect("told").expect("short").expect("kept").deadline;
    let (longer, longest) = (until(longer), until(longest));
    assert!((company.now + 7 * SECOND..company.now + 8 * SECOND).contains(&longer), "it counts from then");
    assert_eq!(longest, longer + 9 * SECOND, "the older wish comes first");
}

#[test]
fn a_wish_for_what_is_gone_meanwhile_is_in_vain() {
    for released in [true, false] {
        let (mut company, ..) = kept();
        company.lost =
            |frame| frame.from == MemberId(2) && matches!(frame.body, Body::Membership(Membership::Heartbeat { .. }));
        let short = company.wish(2, None, Wish::Expire { ttl: SECOND / 2 });
        assert!(short.is_ok_and(|kept| kept.is_some()), "a shorter time needs no pledge");
        let longer = company.wish_later(2, Some(b"mine"), Wish::Expire { ttl: 8 * SECOND });
        assert_eq!(company.answer(longer), None);
        if released {
            company.wish(2, Some(b"mine"), Wish::Release).expect("a member").expect("it is kept");
        } else {
            company.pass(SECOND);
        }
        assert_eq!(company.answer(longer), Some(Ok(None)));
        company.lost = |_| false;
        company.pass(SECOND);
        assert!(company.is_free(), "nothing is revived");
    }
}

#[test]
fn what_cannot_be_kept_is_refused_in_words() {
    let mut company = Company::new(2);
    let mut told = |value: &[u8], ttl| {
        let request = company.set(2, &name("orders"), value, ttl);
        company.failed(request).map(|no| no.to_string())
    };
    let long = "a label, a value, or what a leader wants to be seen, has at most 1024 bytes, this one has 1025";
    assert_eq!(told(&[7; LONGEST_LABEL + 1], SECOND), Some(long.into()));
    let nothing = "orders cannot be kept for 0 ms; take at least 1, or do not lock it";
    assert_eq!(told(b"mine", 0), Some(nothing.into()));
    let words = "a lock by SET is kept for at most 20000 ms here, not 20001; take less, or start the nodes with a longer \
                 --compat-ttl";
    assert_eq!(told(b"mine", 20 * SECOND + 1), Some(words.into()));
    assert_eq!(told(&[7; LONGEST_LABEL], 20 * SECOND), None);
    let busy = "orders is in use";
    assert_eq!(told(b"mine", 20 * SECOND + 1).as_deref(), Some(busy), "that comes first");
    company.pass(SECOND);
    assert_eq!(company.wish(2, None, Wish::Look).map(|kept| kept.is_some()), Ok(true));
}

#[test]
fn what_is_given_back_before_it_could_be_kept_is_not() {
    for force in [true, false] {
        let mut company = Company::new(2);
        company.lost =
            |frame| frame.from == MemberId(2) && matches!(frame.body, Body::Membership(Membership::Heartbeat { .. }));
        let request = company.set_and_have(2, &name("orders"), b"mine", SECOND);
        let fence = company.peers[&2].why(&name("orders")).holders[0].fence.expect("it is had here");
        let (call, failure) = if force {
            let call = Call::Release { session: KEEPER, name: name("orders"), fence };
            (call, Failure::NotYours(name("orders")))
        } else {
            (Call::Cancel { request, name: name("orders") }, Failure::Cancelled(name("orders")))
        };
        company.call(2, call);
        assert_eq!(company.failed(request), Some(failure));
        company.lost = |_| false;
        company.pass(SECOND);
        assert_eq!((company.kept_until(request), company.peers[&2].status().kept), (None, 0));
        assert!(company.is_free());
    }
}

#[test]
fn what_is_kept_can_be_given_back_by_force_too() {
    let (mut company, fence, _) = kept();
    let told = company.call(2, Call::Release { session: KEEPER, name: name("orders"), fence });
    let released = Effect::Released { session: KEEPER, name: name("orders"), fence, result: Ok(()) };
    assert!(told.contains(&released), "{told:?}");
    assert_eq!(company.wish(2, None, Wish::Look), Ok(None));
    assert!(company.is_free());
}

#[test]
fn what_waits_to_be_kept_is_not_kept_by_a_node_that_leaves() {
    let mut company = Company::new(2);
    company.lost =
        |frame| frame.from == MemberId(2) && matches!(frame.body, Body::Membership(Membership::Heartbeat { .. }));
    let request = company.set_and_have(2, &name("orders"), b"mine", SECOND);
    company.handle(2, Input::Leave);
    assert_eq!(company.failed(request), Some(Failure::Leaving), "at once");
    company.lost = |_| false;
    company.pass(SECOND);
    assert_eq!(company.kept_until(request), None);
}

#[test]
fn a_node_that_leaves_keeps_nothing_for_longer_and_one_outside_knows_nothing() {
    let (mut company, ..) = kept();
    company.handle(2, Input::Leave);
    // It would never get away.
    for longer in [Wish::Expire { ttl: 30 * SECOND }, Wish::Prolong { by: 1 }] {
        assert_eq!(company.wish(2, Some(b"mine"), longer), Err(Failure::Leaving));
    }
    let told = |company: &mut Company, name| {
        let request = company.set(2, &name, b"yours", SECOND);
        company.failed(request)
    };
    assert_eq!(told(&mut company, name("orders")), Some(Failure::Busy(name("orders"))), "somebody has it, that is all");
    assert_eq!(told(&mut company, name("books")), Some(Failure::Leaving));
    assert!(company.wish(2, Some(b"mine"), Wish::Expire { ttl: SECOND / 2 }).is_ok_and(|kept| kept.is_some()));
    assert!(company.wish(2, Some(b"mine"), Wish::Release).is_ok_and(|kept| kept.is_some()));
    company.crash(1);
    company.start(1);
    assert_eq!(company.wish(1, None, Wish::Look), Err(Failure::NoMember));
}
