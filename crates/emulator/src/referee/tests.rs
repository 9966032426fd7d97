//! A referee among nodes that do as a test says.

use std::{
    collections::BTreeMap,
    net::TcpStream,
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};

use vez_algorithms::{
    Algorithm,
    group::LedgerGroup,
    mutex::Central,
    semaphore::{Command, LedgerSemaphore, RaymondK},
};
use vez_lab::system::System;

use super::*;
use crate::{
    company::Performer,
    control::{self, Connection, Invitation},
    host::Deeds,
    settings::Crash,
    transport::Transport,
};

fn settings(nodes: usize, entries: u64) -> Settings {
    Settings {
        system: System { k: 2, patience: Duration::ZERO, ..System::of(nodes) },
        transport: Transport::Udp,
        entries,
        askers: None,
        hold: 0.0,
        think: 0.0,
        loss: 0.0,
        seed: 1,
        crashes: Vec::new(),
        trace: false,
    }
}

/// A node that says what it is told to, as soon as the run begins, and then waits for its end. In place of `Ready`, which it has
/// said before, it waits until another has crashed.
fn puppet(node: NodeId, invitation: Invitation, words: Vec<Word>, crashed: &OnceLock<()>) {
    let mut referee = Connection::new(TcpStream::connect(invitation.referee).expect("it listens"));
    let reader = referee.reader().expect("a connection");
    let mut say = |word: &Word| referee.say(word).expect("it hears");
    say(&Word::Hello { node, key: invitation.key });
    say(&Word::Listening(invitation.referee));
    say(&Word::Ready);
    control::listen(reader, |order| {
        match order {
            Order::Begin(_) => words.iter().for_each(|word| match word {
                Word::Ready => drop(crashed.wait()),
                word => say(word),
            }),
            Order::Stop => {
                say(&Word::Done(Box::new(account())));
                return false;
            }
            Order::Die => return false,
            Order::Addresses(_) | Order::Inside | Order::Outside => {}
        }
        true
    });
}

fn account() -> Account {
    Account { deeds: Deeds::default(), refused: BTreeMap::new(), stays: 0, inside: 0, requests: 0, late: 0 }
}

/// Set as soon as a node has crashed.
struct Crashed(Arc<OnceLock<()>>);

impl Watcher for Crashed {
    fn odd(&self, what: &str) {
        assert_eq!(what, "n0 crashes");
        self.0.set(()).expect("it crashes once");
    }
}

/// What a referee says of nodes that each say these words.
fn judged<A: Algorithm>(settings: &Settings, words: &[Vec<Word>]) -> Outcome {
    let crashed = Arc::new(OnceLock::new());
    let company = Company::gather(words.len(), |node, invitation| {
        let (words, crashed) = (words[node.index()].clone(), Arc::clone(&crashed));
        Ok(Performer::Thread(thread::spawn(move || {
            puppet(node, invitation, words, &crashed);
            Ok(())
        })))
    });
    let setup = settings.system.setup(1, 0).expect("a system");
    let system = SystemInfo { nodes: words.len(), clients: A::clients(&setup), wants: A::wants(&setup) };
    Referee::<A::Family>::new(&Entry::of::<A>(), settings, company.expect("all come"), system)
        .officiate(false, &Crashed(crashed))
}

fn goes_in(want: usize) -> Vec<Word> {
    let at = now();
    vec![Word::Asks { want, at }, Word::Enters { at }]
}

fn failure<A: Algorithm>(settings: &Settings, words: &[Vec<Word>]) -> (String, bool) {
    let failure = judged::<A>(settings, words).failure.expect("it goes wrong");
    (failure.what, failure.law_broken)
}

#[test]
fn two_inside_of_a_lock_are_one_too_many() {
    let (what, broken) = failure::<Central>(&settings(2, 2), &[goes_in(0), goes_in(0)]);
    assert!(["n0 and n1 are inside together", "n1 and n0 are inside together"].contains(&what.as_str()), "{what}");
    assert!(broken);
    assert_eq!(judged::<Central>(&settings(2, 1), &[goes_in(0), Vec::new()]).failure, None);
}

#[test]
fn k_may_be_inside_of_a_semaphore() {
    let words = [goes_in(0), goes_in(0), goes_in(0)];
    assert_eq!(judged::<RaymondK>(&settings(3, 2), &words[..2]).failure, None);
    let (what, broken) = failure::<RaymondK>(&settings(3, 3), &words);
    assert!(what.ends_with("are inside together with 3 of 2 units") && broken, "{what}");
}

#[test]
fn more_units_are_allowed_once_somebody_has_asked_for_them() {
    let setup = settings(2, 3).system.setup(1, 0).expect("a system");
    let wants = LedgerSemaphore::wants(&setup);
    let want = |command| wants.iter().position(|want| *want == command).expect("it is offered");
    let (one, two) = (want(Command::Acquire(1)), want(Command::Acquire(2)));
    let at = now();
    let three_units = vec![Word::Asks { want: want(Command::Resize(3)), at }, Word::Finishes { at }];
    // Whichever node is heard first, three units are in use only after the first one has had them made.
    let words = [[three_units, goes_in(two)].concat(), goes_in(one)];
    assert_eq!(judged::<LedgerSemaphore>(&settings(2, 3), &words).failure, None);
    let (what, broken) = failure::<LedgerSemaphore>(&settings(2, 2), &[goes_in(two), goes_in(one)]);
    assert!(what.ends_with("are inside together with 3 of 2 units") && broken, "{what}");
}

#[test]
fn one_session_at_a_time() {
    assert_eq!(judged::<LedgerGroup>(&settings(2, 2), &[goes_in(1), goes_in(1)]).failure, None);
    let (what, broken) = failure::<LedgerGroup>(&settings(2, 2), &[goes_in(1), goes_in(2)]);
    assert!(what.ends_with("are inside together, of two sessions") && broken, "{what}");
}

#[test]
fn what_makes_no_sense_is_told() {
    let at = now();
    let wrong = |words: Vec<Word>| failure::<Central>(&settings(2, 5), &[words, Vec::new()]).0;
    assert_eq!(wrong(vec![Word::Enters { at }]), "n0 enters without having asked");
    assert_eq!(wrong(vec![Word::Leaves { at }]), "n0 leaves without having been inside");
    assert_eq!(wrong(vec![Word::Asks { want: 0, at }, Word::Asks { want: 0, at }]), "n0 asks twice");
    assert_eq!(wrong(vec![Word::Finishes { at }]), "n0 is done with what it has not asked for");
    let key = 0;
    assert_eq!(wrong(vec![Word::Hello { node: NodeId(0), key }]), "n0 begins anew");
}

#[test]
fn the_dead_are_not_inside() {
    let crashes = vec![Crash { node: NodeId(0), at: 0.5 }];
    let settings = Settings { crashes, ..settings(2, 2) };
    let later = [vec![Word::Ready], goes_in(0)].concat();
    assert_eq!(judged::<Central>(&settings, &[goes_in(0), later]).failure, None, "the first one has died inside");
    let asks = vec![Word::Asks { want: 0, at: now() }];
    let (what, broken) = failure::<Central>(&settings, &[goes_in(0), asks]);
    let (who, why) = what.split_once(", for up to ").expect(&what);
    let (seconds, why) = why.split_once(" s: ").expect(&what);
    assert_eq!((who, broken), ("central is stuck after 1 entry: n1 waits", false));
    assert!(seconds.parse::<f64>().is_ok_and(|seconds| seconds >= 3.0), "it is not said before it is certain: {what}");
    assert!(why.starts_with("n0 crashed, and central takes for granted that nobody does"), "{what}");
}
