//! Three processes: how long is one that is gone waited for, if it kept something for whoever knows a value?

use crate::company::{Company, MILLISECOND, SECOND, charter, name};
use vez_peer::{
    frame::{Body, Membership},
    identity::{Incarnation, MemberId},
    peer::{Call, Effect, Input, Standings, Stopped},
};

/// How long a leader waits for one that may keep something for so long.
fn waits(pledge: u64) -> u64 {
    charter().of_others(charter().lease + pledge)
}

/// Whether it took as long as that, counted from a renewal that was answered up to a heartbeat before.
fn took(time: u64, waits: u64) -> bool {
    let early = charter().lease / 9 + 20 * MILLISECOND;
    (waits - early..waits + 2 * SECOND).contains(&time)
}

#[test]
fn one_that_kept_something_is_waited_for_and_another_is_not() {
    for (kept, pledge) in [(None, 0), (Some(5 * SECOND), 6 * SECOND), (Some(SECOND), 3 * SECOND)] {
        let mut company = Company::new(3);
        if let Some(ttl) = kept {
            company.keep(3, &name("orders"), b"mine", ttl);
        }
        company.crash(3);
        let time = company.until_removed(3, 1);
        assert!(took(time, waits(pledge)), "{kept:?}: {} ms", time / MILLISECOND);
    }
}

#[test]
fn a_leader_that_kept_something_is_waited_for_by_the_next() {
    let mut company = Company::new(3);
    company.keep(1, &name("orders"), b"mine", 9 * SECOND);
    company.crash(1);
    let time = company.until_removed(1, 2);
    // The next leader does not know when the last renewal was answered, and counts from its own beginning.
    assert!((waits(9 * SECOND)..waits(9 * SECOND) + 3 * SECOND).contains(&time), "{} ms", time / MILLISECOND);
}

#[test]
fn one_that_kept_something_is_waited_for_though_the_leader_goes_with_it() {
    let mut company = Company::new(5);
    company.keep(5, &name("orders"), b"mine", 9 * SECOND);
    company.crash(5);
    company.crash(1);
    let time = company.until_removed(5, 2);
    assert!((waits(9 * SECOND)..waits(9 * SECOND) + 3 * SECOND).contains(&time), "{} ms", time / MILLISECOND);
}

#[test]
fn the_next_process_of_a_disk_waits_for_what_the_last_one_kept() {
    for (kept, pledge) in [(false, 0), (true, 6 * SECOND)] {
        let mut company = Company::new(3);
        if kept {
            company.keep(3, &name("orders"), b"mine", 6 * SECOND);
        }
        company.crash(3);
        company.start(3);
        let time = company.pass_until(|company| {
            company.peers[&1].view().expect("a member").process(MemberId(3), Incarnation(2)).is_some()
        });
        assert!(took(time, waits(pledge)), "{kept}: {} ms", time / MILLISECOND);
    }
}

#[test]
fn all_come_back_at_once_and_wait_for_what_any_of_them_kept() {
    let mut company = Company::new(3);
    company.keep(2, &name("orders"), b"mine", 6 * SECOND);
    for id in 1..=3 {
        company.crash(id);
    }
    for id in 1..=3 {
        company.start(id);
    }
    company.pass(SECOND);
    let until = company.now - SECOND + waits(6 * SECOND);
    let standing = company.peers[&company.leader()].status().standing;
    let told = match standing {
        Standings::OldLeases { until } => until,
        standing => panic!("{standing:?}"),
    };
    assert!((until..until + SECOND).contains(&told), "it says so: {} ms", (told - until) / MILLISECOND);
    let view = |company: &Company| company.peers[&1].status().view.expect("it was a member");
    let before = view(&company);
    company.pass_until(|company| company.peers[&1].view().is_some());
    assert!((told..told + SECOND).contains(&company.now), "{} ms later", (company.now - told) / MILLISECOND);
    company.pass(SECOND);
    assert!(company.peers.values().all(|peer| peer.is_settled()), "all are there");
    assert_eq!(view(&company), before + 1, "by one view");
}

#[test]
fn while_one_that_kept_something_is_waited_for_the_others_go_on() {
    let mut company = Company::new(5);
    company.keep(5, &name("books"), b"mine", 9 * SECOND);
    company.crash(5);
    company.pass(charter().lease / 2);
    // A view with the dead in it could not be settled.
    company.crash(4);
    company.start(4);
    let view = company.peers[&1].status().view;
    company.pass(waits(6 * SECOND));
    assert_eq!(company.peers[&1].status().view, view, "whoever comes back waits");
    assert!((1..=3).all(|id| company.peers[&id].is_settled()));
    company.pass(2 * waits(0));
    let ids = company.peers[&1].view().expect("a member").members.iter().map(|member| member.id.0).collect::<Vec<_>>();
    assert_eq!(ids, [1, 2, 3, 4]);
}

#[test]
fn nothing_is_kept_before_the_pledge_for_it_is_agreed_on() {
    let mut company = Company::new(3);
    // Its heartbeats get lost, and with them what it wants to pledge.
    company.lost =
        |frame| frame.from == MemberId(3) && matches!(frame.body, Body::Membership(Membership::Heartbeat { .. }));
    let request = company.set_and_have(3, &name("orders"), b"mine", SECOND);
    company.pass(SECOND);
    assert_eq!(company.kept_until(request), None);
    assert_eq!(company.peers[&1].status().pledge, None);
    company.lost = |_| false;
    company.pass(SECOND);
    let until = company.kept_until(request).expect("now it is");
    assert!((company.now..company.now + SECOND).contains(&until), "it counts from then");
    assert_eq!(company.peers[&3].status().pledge, Some(3 * SECOND));
    assert_eq!(company.peers[&3].status().kept, 1);
}

#[test]
fn what_the_log_elsewhere_says_is_not_enough() {
    let mut company = Company::new(3);
    // All others know that it has pledged something, but it does not hear of it.
    company.lost = |frame| frame.to == Some(MemberId(3)) && matches!(frame.body, Body::Agreement(_));
    let request = company.set_and_have(3, &name("orders"), b"mine", SECOND);
    company.pass(SECOND);
    assert_eq!(company.kept_until(request), None);
    company.crash(3);
    company.lost = |_| false;
    let time = company.until_removed(3, 1);
    assert!(time > waits(0) + SECOND, "it might have heard: {} ms", time / MILLISECOND);
}

#[test]
fn what_is_not_needed_any_more_is_not_pledged_any_more() {
    let mut company = Company::new(3);
    company.keep(3, &name("orders"), b"mine", 9 * SECOND);
    company.keep(3, &name("books"), b"mine", 2 * SECOND);
    assert_eq!(company.peers[&3].status().pledge, Some(9 * SECOND));
    company.pass_until(|company| company.peers[&3].status().kept == 0);
    let time = company.pass_until(|company| company.peers[&3].status().pledge.is_none());
    assert!(time < 4 * charter().lease, "{} ms after the last end", time / MILLISECOND);
    company.crash(3);
    let time = company.until_removed(3, 1);
    assert!(took(time, waits(0)), "{} ms", time / MILLISECOND);
}

#[test]
fn a_second_lock_of_the_same_length_waits_for_nothing() {
    let mut company = Company::new(3);
    company.keep(3, &name("orders"), b"mine", 5 * SECOND);
    for ttl in [6 * SECOND, SECOND] {
        let books = name(&format!("books/{ttl}"));
        let (session, fence) = company.lock(3, &books); // Now its token is there.
        company.call(3, Call::Release { session, name: books.clone(), fence });
        let request = company.set(3, &books, b"mine", ttl);
        assert_eq!(company.kept_until(request), Some(company.now + ttl), "at once");
    }
    let request = company.set_and_have(3, &name("more"), b"mine", 7 * SECOND);
    assert_eq!(company.kept_until(request), None, "for this one more has to be pledged");
    company.pass(SECOND);
    assert!(company.kept_until(request).is_some());
    assert_eq!(company.peers[&3].status().pledge, Some(9 * SECOND));
}

#[test]
fn who_leaves_stays_until_what_it_keeps_is_over() {
    let mut company = Company::new(3);
    company.keep(3, &name("orders"), b"mine", 5 * SECOND);
    company.handle(3, Input::Leave);
    let time = company.pass_until(|company| company.peers[&3].has_stopped());
    let stays = charter().of_others(5 * SECOND);
    assert!((stays - 20 * MILLISECOND..stays + SECOND).contains(&time), "{} ms", time / MILLISECOND);
    let left = company.said.iter().any(|(id, said)| *id == 3 && *said == Effect::Stopped(Stopped::Left));
    assert!(left, "and then it goes at once, whatever it has pledged");
}

#[test]
fn who_waits_for_the_dead_is_not_taken_for_one_of_them() {
    let mut company = Company::new(5);
    let mut next = company.peers[&1].view().expect("a member").clone();
    next.number += 1;
    next.members.retain(|member| member.id != MemberId(4));
    let is_at_fifth = |name: &_| next.member(next.home(name)).id == MemberId(5);
    let at_fifth = (0..100).map(|number| name(&format!("orders/{number}"))).find(is_at_fifth).expect("one of four");
    let (_, fence) = company.lock(2, &at_fifth);
    company.keep(5, &name("books"), b"mine", 20 * SECOND);
    // One that kept something goes a moment before the view in which another is gone. Nothing of which it is the home can be
    // entered again there.
    company.crash(4);
    company.pass(waits(0) - SECOND / 2);
    company.crash(5);
    company.until_removed(4, 1);
    let time = company.until_removed(5, 1);
    assert!(time > 4 * charter().lease, "{} ms", time / MILLISECOND);
    company.pass(SECOND);
    assert!((1..=3).all(|id| company.peers[&id].is_settled()), "all others are there still");
    let holder = &company.peers[&2].why(&at_fifth).holders[0];
    assert_eq!(holder.fence, Some(fence));
}
