//! One member by itself: what it holds back while it writes, and what it does with messages that nobody should send.

use std::collections::BTreeSet;

use proptest::prelude::*;
use vez_peer::{
    agreement::{
        Agreement, Append, Ballot, Batch, Config, Cx, Disk, Entry, Event, MOST_WAITING, Message, Nanos, Position,
        Snapshot,
    },
    charter::Charter,
    identity::{ClusterId, MemberId},
    views::{Command, Views},
};

use super::world::{ELECTION, PACE, first_views, members};

const ME: MemberId = MemberId(1);
const OTHER: MemberId = MemberId(2);

fn at(term: u64, index: u64) -> Position {
    Position { term, index }
}

fn config(voters: &[u64]) -> Config {
    Config { voters: members(voters.iter().copied()), ..Config::default() }
}

/// A voter of three, with a snapshot at (1, 1) and the entries of term 1 up to index 3.
fn disk() -> Disk {
    let snapshot = Snapshot { position: at(1, 1), config: config(&[1, 2, 3]), views: Some(first_views()) };
    let command = Entry::Command(Command { view: 100, term: 2, changes: Vec::new() });
    Disk { ballot: Ballot { term: 2, vote: None }, snapshot, entries: vec![Entry::Term(2), command] }
}

/// A call, and what it asks for. Every timeout is the shortest.
fn told<T>(call: impl FnOnce(&mut Cx<'_>) -> T) -> (T, Vec<Event>) {
    let mut events = Vec::new();
    let answer = call(&mut Cx { events: &mut events, choose: &mut |_| 0 });
    (answer, events)
}

fn resumed(disk: &Disk) -> Agreement {
    told(|cx| Agreement::resume(ME, disk, PACE, 0, cx)).0
}

fn says(process: &mut Agreement, now: Nanos, from: MemberId, message: Message) -> Vec<Event> {
    told(|cx| process.on_message(now, from, message, cx)).1
}

fn heartbeat(term: u64, after: Position, commit: u64) -> Message {
    Message::Append { term, commit, append: Append { after, entries: Vec::new() }, round: 5 }
}

#[test]
fn a_vote_is_on_disk_before_it_is_given() {
    let mut process = resumed(&disk());
    let events = says(&mut process, 1, OTHER, Message::Vote { term: 3, last: at(2, 3) });
    let ballot = Some(Ballot { term: 3, vote: Some(OTHER) });
    assert_eq!(events, [Event::Persist(Batch { ballot, ..Batch::default() })]);
    // Another candidate, and far more messages than there is room for, wait until then.
    for _ in 0..2 * MOST_WAITING {
        let events = says(&mut process, 2, MemberId(3), Message::Vote { term: 3, last: at(2, 3) });
        assert_eq!(events, []);
    }
    assert_eq!(process.deadline(), Nanos::MAX, "and so does time");
    assert_eq!(told(|cx| process.on_tick(100 * ELECTION, cx)).1, []);
    let (_, events) = told(|cx| process.on_written(3, cx));
    assert_eq!(events, [Event::Send(OTHER, Message::VoteAnswer { term: 3, granted: true })], "the other gets none");
}

#[test]
fn an_answer_repeats_the_round_and_waits_for_the_disk() {
    let mut process = resumed(&disk());
    let append = Append { after: at(2, 3), entries: vec![Entry::Config(config(&[1, 2]))] };
    let call = Message::Append { term: 2, commit: 3, append: append.clone(), round: 9 };
    let events = says(&mut process, 1, OTHER, call);
    let ballot = Some(Ballot { term: 2, vote: Some(OTHER) });
    assert_eq!(events, [Event::Persist(Batch { ballot, snapshot: None, append: Some(append) })]);
    assert_eq!(process.views().map(Views::number), Some(100), "nothing is applied yet");
    let (_, events) = told(|cx| process.on_written(2, cx));
    let answer = Message::AppendAnswer { term: 2, last: at(2, 4), round: 9 };
    assert!(
        matches!(&events[..], [Event::Viewed(view), Event::Send(OTHER, said)] if view.number == 101 && *said == answer)
    );
}

#[test]
fn nothing_happens_before_the_deadline() {
    let mut process = resumed(&disk());
    assert_eq!(process.deadline(), ELECTION);
    assert_eq!(told(|cx| process.on_tick(ELECTION - 1, cx)).1, []);
    let asked = told(|cx| process.on_tick(ELECTION, cx)).1;
    let question = Message::PreVote { term: 3, last: at(2, 3) };
    assert_eq!(asked, [Event::Send(OTHER, question.clone()), Event::Send(MemberId(3), question)]);
    assert_eq!(process.deadline(), 2 * ELECTION);
}

#[test]
fn who_hears_a_leader_would_vote_for_nobody() {
    let mut process = resumed(&disk());
    let question = Message::PreVote { term: 9, last: at(8, 8) };
    let answer = |term, granted| Event::Send(MemberId(3), Message::PreVoteAnswer { term, granted });
    assert_eq!(says(&mut process, 1, MemberId(3), question.clone()), [answer(9, true)]);
    says(&mut process, 2, OTHER, heartbeat(2, at(2, 3), 1));
    told(|cx| process.on_written(2, cx));
    assert_eq!(process.leader(), Some(OTHER));
    assert_eq!(says(&mut process, ELECTION, MemberId(3), question.clone()), [answer(2, false)]);
    assert_eq!(says(&mut process, 2 + ELECTION, MemberId(3), question), [answer(9, true)]);
    let behind = Message::PreVote { term: 9, last: at(2, 2) };
    assert_eq!(says(&mut process, 2 + ELECTION, MemberId(3), behind), [answer(2, false)]);
}

#[test]
fn only_what_is_granted_for_this_term_makes_it_stand() {
    let mut process = resumed(&disk());
    told(|cx| process.on_tick(ELECTION, cx));
    let granted = |term| Message::PreVoteAnswer { term, granted: true };
    assert_eq!(says(&mut process, ELECTION + 1, OTHER, granted(2)), []);
    assert_eq!(says(&mut process, ELECTION + 1, OTHER, granted(9)), []);
    assert_eq!(process.term(), 2);
    let ballot = Some(Ballot { term: 3, vote: Some(ME) });
    let persist = Event::Persist(Batch { ballot, ..Batch::default() });
    assert_eq!(says(&mut process, ELECTION + 1, OTHER, granted(3)), [persist]);
    // However long that takes to write, it then waits for the votes.
    let (_, asked) = told(|cx| process.on_written(10 * ELECTION, cx));
    let vote = Message::Vote { term: 3, last: at(2, 3) };
    assert_eq!(asked, [Event::Send(OTHER, vote.clone()), Event::Send(MemberId(3), vote)]);
    assert_eq!(process.deadline(), 11 * ELECTION);
}

/// Perhaps only the one who asks has a log that can win.
#[test]
fn a_refusal_teaches_the_term() {
    let mut process = resumed(&disk());
    told(|cx| process.on_tick(ELECTION, cx));
    says(&mut process, ELECTION + 1, OTHER, Message::PreVoteAnswer { term: 7, granted: false });
    told(|cx| process.on_written(ELECTION + 2, cx));
    assert_eq!(process.term(), 7);
    let asked = told(|cx| process.on_tick(2 * ELECTION, cx)).1;
    assert_eq!(asked[0], Event::Send(OTHER, Message::PreVote { term: 8, last: at(2, 3) }));
}

#[test]
fn a_new_term_has_no_leader_yet() {
    let mut process = resumed(&disk());
    says(&mut process, 1, OTHER, heartbeat(2, at(2, 3), 1));
    told(|cx| process.on_written(1, cx));
    assert_eq!(process.leader(), Some(OTHER));
    says(&mut process, 2, MemberId(3), Message::Vote { term: 3, last: at(1, 1) });
    assert_eq!(process.leader(), None);
}

#[test]
fn who_knows_no_views_takes_no_entries() {
    let mut process = resumed(&Disk::empty());
    let append = Append { after: Position::ZERO, entries: vec![Entry::Term(2), Entry::Config(config(&[1, 2]))] };
    says(&mut process, 1, OTHER, Message::Append { term: 2, commit: 2, append, round: 5 });
    let (_, events) = told(|cx| process.on_written(2, cx));
    assert_eq!(events, [Event::Send(OTHER, Message::AppendAnswer { term: 2, last: Position::ZERO, round: 5 })]);
}

#[test]
fn a_leader_that_contradicts_what_is_agreed_on_breaks_it() {
    for wrong in [heartbeat(9, at(9, 1), 1), heartbeat(9, at(8, 3), 1)] {
        let mut process = resumed(&disk());
        says(&mut process, 1, OTHER, heartbeat(2, at(2, 3), 3));
        told(|cx| process.on_written(2, cx));
        assert_eq!(process.applied(), 3);
        let events = says(&mut process, 3, OTHER, wrong);
        assert!(matches!(events[..], [Event::Broken(_)]), "{events:?}");
        assert_eq!(says(&mut process, 4, OTHER, heartbeat(9, at(2, 3), 3)), [], "it does nothing more");
        assert_eq!(process.deadline(), Nanos::MAX);
    }
}

#[test]
fn an_old_leader_may_have_written_something_else() {
    let mut process = resumed(&disk());
    says(&mut process, 1, OTHER, heartbeat(2, at(2, 3), 3));
    told(|cx| process.on_written(2, cx));
    // The answer is in a term in which the same member may be leading again, from another process: it is not about its rounds.
    let answer = Message::AppendAnswer { term: 2, last: at(2, 3), round: 0 };
    assert_eq!(says(&mut process, 3, OTHER, heartbeat(1, at(1, 3), 3)), [Event::Send(OTHER, answer)]);
}

#[test]
fn who_lost_its_vote_unheard_goes_back_on_disk_unless_it_follows_another() {
    let joint = Config { new_voters: members([2, 3, 4]), ..config(&[1, 2, 3]) };
    let entries = vec![Entry::Term(2), Entry::Config(joint), Entry::Config(config(&[2, 3, 4]))];
    let removed = |vote| Disk { ballot: Ballot { term: 2, vote }, entries: entries.clone(), ..disk() };
    let mut process = resumed(&removed(Some(ME)));
    let append = Some(Append { after: at(2, 3), entries: Vec::new() });
    let back = Event::Persist(Batch { append, ..Batch::default() });
    assert_eq!(told(|cx| process.on_tick(ELECTION, cx)).1, [back]);
    assert_eq!(told(|cx| process.on_written(ELECTION, cx)).1, []);
    assert!(process.config().is_voter(ME));
    let asked = told(|cx| process.on_tick(2 * ELECTION, cx)).1;
    assert_eq!(asked[0], Event::Send(OTHER, Message::PreVote { term: 3, last: at(2, 3) }));
    let mut process = resumed(&removed(Some(OTHER)));
    assert_eq!(told(|cx| process.on_tick(ELECTION, cx)).1, []);
    assert_eq!(process.last(), at(2, 4));
}

#[test]
fn what_a_batch_means() {
    let mut disk = disk();
    let append = |after, entries: &[Entry]| Batch {
        append: Some(Append { after, entries: entries.to_vec() }),
        ..Batch::default()
    };
    disk.write(&append(at(2, 2), &[Entry::Term(5), Entry::Term(6)]));
    assert_eq!(disk.entries, [Entry::Term(2), Entry::Term(5), Entry::Term(6)], "what stood there is replaced");
    let mut shorter = disk.clone();
    shorter.write(&append(at(1, 1), &[Entry::Term(7)]));
    assert_eq!(shorter.entries, [Entry::Term(7)], "all of it");
    let snapshot = |position| Snapshot { position, ..disk.snapshot.clone() };
    let (inside, elsewhere) = (snapshot(at(5, 3)), snapshot(at(4, 4)));
    disk.write(&Batch { snapshot: Some(inside), ..Batch::default() });
    assert_eq!(disk.entries, [Entry::Term(6)], "the rest of the same log stays");
    disk.write(&Batch { snapshot: Some(elsewhere), ..Batch::default() });
    assert_eq!(disk.entries, [], "another log does not");
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![9 => 0..6_u64, 1 => prop_oneof![Just(u64::MAX), Just(1 << 62), Just((1 << 62) + 1)]]
}

fn position() -> impl Strategy<Value = Position> {
    (number(), number()).prop_map(|(term, index)| at(term, index))
}

fn ids() -> impl Strategy<Value = BTreeSet<MemberId>> {
    prop::collection::btree_set((1..5_u64).prop_map(MemberId), 0..4)
}

fn configs() -> impl Strategy<Value = Config> {
    (ids(), prop_oneof![Just(BTreeSet::new()), ids()], prop_oneof![Just(BTreeSet::new()), ids()])
        .prop_map(|(voters, new_voters, non_voters)| Config { voters, new_voters, non_voters })
}

fn entry() -> impl Strategy<Value = Entry> {
    let command =
        (number(), number()).prop_map(|(view, term)| Command { view: 100 + view % 6, term, changes: Vec::new() });
    prop_oneof![number().prop_map(Entry::Term), configs().prop_map(Entry::Config), command.prop_map(Entry::Command)]
}

fn snapshot() -> impl Strategy<Value = Snapshot> {
    let views =
        (6..8_u64, 99..103_u64).prop_map(|(cluster, number)| Views::new(ClusterId(cluster), Charter::new(8), number));
    (position(), configs(), prop::option::of(views)).prop_map(|(position, config, views)| Snapshot {
        position,
        config,
        views,
    })
}

fn message() -> impl Strategy<Value = Message> {
    let entries = prop::collection::vec(entry(), 0..5);
    prop_oneof![
        1 => (number(), position()).prop_map(|(term, last)| Message::PreVote { term, last }),
        1 => (number(), any::<bool>()).prop_map(|(term, granted)| Message::PreVoteAnswer { term, granted }),
        1 => (number(), position()).prop_map(|(term, last)| Message::Vote { term, last }),
        1 => (number(), any::<bool>()).prop_map(|(term, granted)| Message::VoteAnswer { term, granted }),
        4 => (number(), number(), position(), entries, number()).prop_map(|(term, commit, after, entries, round)| {
            Message::Append { term, commit, append: Append { after, entries }, round }
        }),
        2 => (number(), position(), number()).prop_map(|(term, last, round)| Message::AppendAnswer { term, last, round }),
        1 => (number(), snapshot(), number()).prop_map(|(term, snapshot, round)| Message::Snapshot { term, snapshot, round }),
    ]
}

/// What happens to the member: somebody says something, or time passes. Batches are written at once, or some time later.
fn happenings() -> impl Strategy<Value = Vec<(u64, Option<Message>, bool)>> {
    prop::collection::vec((1..5_u64, prop::option::weighted(0.8, message()), prop::bool::weighted(0.7)), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::sized(500, 3000)))]

    /// Whatever anybody says, a member does not panic, and its disk takes every batch and can be started from.
    #[test]
    fn no_message_is_a_crash(is_founder: bool, is_empty: bool, happenings in happenings()) {
        let mut disk = if is_empty || is_founder { Disk::empty() } else { disk() };
        let (mut process, mut events) = told(|cx| {
            if is_founder { Agreement::found(ME, first_views(), PACE, 0, cx) } else { Agreement::resume(ME, &disk, PACE, 0, cx) }
        });
        let mut writing = None;
        for (now, (from, message, is_written)) in (1..).map(|i| i * ELECTION / 3).zip(happenings) {
            events.extend(told(|cx| match message {
                Some(message) => process.on_message(now, MemberId(from), message, cx),
                None => process.on_tick(now, cx),
            }).1);
            events.extend(told(|cx| process.confirm(now, cx)).1);
            events.extend(told(|cx| process.propose(now, Vec::new(), cx)).1);
            events.extend(told(|cx| process.reconfigure(now, &members([1, from]), &members([]), cx)).1);
            loop {
                for event in events.drain(..) {
                    if let Event::Persist(batch) = event {
                        prop_assert!(writing.replace(batch).is_none());
                    }
                }
                let Some(batch) = writing.take_if(|_| is_written) else { break };
                disk.write(&batch);
                events = told(|cx| process.on_written(now, cx)).1;
            }
        }
        resumed(&disk);
    }
}
