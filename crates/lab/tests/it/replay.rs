//! What was simulated replays without a difference; what breaks off is told from what differs; nothing panics.

use crate::{
    load,
    traces::{replayed, same, scripted, trace},
};
use proptest::prelude::*;
use vez_algorithms::{
    NodeId,
    catalog::{self, Entry},
};
use vez_lab::{
    named::{self, Detector},
    replay::Cause,
    sim::{Arrivals, CannotReport, Config, Fault, Faults},
};

const DETECTORS: [Detector; 2] = [Detector::HiAdsd, Detector::Oracle];

/// A load, and what goes wrong besides.
fn config(entry: &Entry, seed: u64, faults: Vec<(f64, Fault)>) -> Config {
    let nodes = 2 + seed as usize % 7;
    let arrivals = if seed.is_multiple_of(3) { Arrivals::Saturated } else { Arrivals::Closed { rate: 0.5 } };
    let order = entry.assumptions.order;
    let (entries, until, faults) = (60, Some(100.0), Faults::new(faults));
    Config { order, faults, entries, until, warmup: 0, seed, ..load::config(nodes, arrivals) }
}

#[test]
fn every_algorithm_does_the_same_again() {
    for (entry, detector) in catalog::ALL.iter().flat_map(|entry| DETECTORS.map(|detector| (entry, detector))) {
        for seed in 0..8 {
            let (text, result) = trace(entry.name, detector, &config(entry, seed, Vec::new()), 0);
            result.unwrap_or_else(|error| panic!("{}: {error}", entry.name));
            let summary = replayed(&text).unwrap_or_else(|trouble| panic!("{}, seed {seed}: {trouble}", entry.name));
            assert_eq!((summary.algorithm.as_str(), summary.lines), (entry.name, text.lines().count() as u64));
            assert_eq!((summary.present, summary.objections, summary.ends_within), (summary.nodes, 0, None));
            let sent = text.matches("\"kind\":\"send\"").count() as u64;
            assert_eq!((summary.messages, summary.lines), (sent, 1 + summary.inputs + summary.effects));
            assert!(summary.entries > 0, "{}: {summary:?}", entry.name);
        }
    }
}

#[test]
fn what_survives_an_ordeal_does_the_same_again() {
    for (entry, detector) in catalog::ALL.iter().flat_map(|entry| DETECTORS.map(|detector| (entry, detector))) {
        for number in 0..10 {
            let config = named::draw(entry.name, detector, 1, number).expect("it is in the catalog");
            let (text, result) = trace(entry.name, detector, &config, number);
            result.unwrap_or_else(|error| panic!("{}: {error}", entry.name));
            replayed(&text).unwrap_or_else(|trouble| panic!("{}, ordeal {number}: {trouble}", entry.name));
        }
    }
}

/// Messages are lost and doubled and nodes crash and return, whether or not that can be survived: replay and simulator agree
/// on who breaks the law, and when.
#[test]
fn what_goes_wrong_goes_wrong_again() {
    let (mut broken, mut objections) = (0, 0);
    for (entry, seed) in catalog::ALL.iter().flat_map(|entry| (0..12).map(move |seed| (entry, seed))) {
        let victim = NodeId(seed as u32 % 2);
        let faults = vec![
            (5.0, Fault::Duplicate(0.1)),
            (10.0, Fault::CrashSending(victim)),
            (15.0, Fault::Restart(victim)),
            (20.0, Fault::Loss(0.1)),
            (25.0, Fault::Crash(victim)),
            (30.0, Fault::Restart(victim)),
        ];
        let (text, result) = trace(entry.name, DETECTORS[seed as usize % 2], &config(entry, seed, faults), 0);
        let replay = replayed(&text);
        let of = format!("{}, seed {seed}: {result:?}, {replay:?}", entry.name);
        match result {
            Err(CannotReport::Failure(failure)) if failure.what.contains(" objects: ") => {
                objections += 1;
                assert_eq!(replay.expect(&of).objections, 1, "{of}");
            }
            Err(CannotReport::Failure(failure)) if failure.law_broken && !failure.what.starts_with("an assertion") => {
                broken += 1;
                let trouble = replay.expect_err(&of);
                let last = text.lines().count() as u64;
                assert_eq!((trouble.cause, trouble.line, trouble.what), (Cause::LawBroken, last, failure.what), "{of}");
            }
            Ok(()) | Err(CannotReport::Failure(_)) => assert_eq!(replay.expect(&of).objections, 0, "{of}"),
            Err(CannotReport::Config(error)) => panic!("{error}"),
        }
    }
    assert!(broken >= 5 && objections >= 100, "{broken} broke the law, {objections} objected");
}

/// A partition has no line, and the law of elections knows that who cannot be reached is led by others.
#[test]
fn two_sides_may_have_a_leader_each() {
    let sides = vec![vec![NodeId(0), NodeId(1)], vec![NodeId(2), NodeId(3)]];
    let faults = vec![(5.0, Fault::Partition(sides)), (40.0, Fault::Heal)];
    for entry in catalog::ALL.iter().filter(|entry| entry.family == "election") {
        for seed in [2, 16, 23, 37] {
            let (text, result) = trace(entry.name, Detector::HiAdsd, &config(entry, seed, faults.clone()), 0);
            assert!(text.contains("\"kind\":\"lose\""), "{}", entry.name);
            let replay = replayed(&text);
            assert_eq!(result.is_err(), replay.is_err(), "{}: {result:?}, {replay:?}", entry.name);
        }
    }
}

#[test]
fn a_trace_of_some_of_the_nodes() {
    for (entry, detector) in catalog::ALL.iter().flat_map(|entry| DETECTORS.map(|detector| (entry, detector))) {
        let (text, _) = trace(entry.name, detector, &config(entry, 5, Vec::new()), 0);
        for node in 0..7 {
            let theirs = [format!("\"node\":{node},"), "\"node\":null,".to_owned()];
            let lines: Vec<_> = text.lines().filter(|line| theirs.iter().any(|node| line.contains(node))).collect();
            let summary =
                replayed(&(lines.join("\n") + "\n")).unwrap_or_else(|error| panic!("{}: {error}", entry.name));
            assert_eq!((summary.present, summary.lines), (1, lines.len() as u64), "{}", entry.name);
        }
    }
}

/// Wherever a trace is cut off, that is no difference.
#[test]
fn a_trace_that_breaks_off() {
    let lines = scripted("ricart-agrawala-robust", &[(1.0, 0), (1.05, 1)]);
    let text = lines.join("\n") + "\n";
    let header = lines[0].len();
    for end in 0..=text.len() {
        let replay = replayed(&text[..end]);
        if end < header {
            assert_eq!(replay.expect_err("the header breaks off").cause, Cause::Unreadable);
            continue;
        }
        let summary = replay.unwrap_or_else(|trouble| panic!("{end}: {trouble}"));
        let whole = text[..end].ends_with('\n') || text[end..].starts_with('\n');
        // Some inputs lead to nothing: after them nothing is missing.
        assert!(whole || summary.ends_within.is_some(), "{end}: {summary:?}");
    }
    assert_eq!(same(&lines).ends_within, None);
    assert_eq!(same(&lines[..6]).ends_within, Some(5), "one of two requests was told");
    assert_eq!(same(&lines[..8]).ends_within, None);
    let torn = lines[..8].join("\n") + "\n" + &lines[8][..20];
    assert_eq!(replayed(&torn).expect("a line that breaks off is none").ends_within, Some(9));
    let torn = lines[..6].join("\n") + "\n" + &lines[6][..20];
    assert_eq!(replayed(&torn).expect("a line that breaks off is none").ends_within, Some(5));
}

#[test]
fn a_usual_program_between_makes_no_difference() {
    let lines = scripted("ricart-agrawala-robust", &[(1.0, 0), (1.05, 1)]);
    // As jq writes numbers; and with lines that are empty.
    let text = lines.join("\r\n\n").replace("1.0,", "1,").replace("0.0,", "0,") + "\n\n";
    assert_eq!(replayed(&text).map(|summary| summary.inputs), Ok(same(&lines).inputs));
}

/// A set with such a node in it would fill the memory.
#[test]
fn a_node_that_no_system_has() {
    let entry = catalog::find("hi-adsd").expect("it is in the catalog");
    let (text, _) = trace(entry.name, Detector::HiAdsd, &config(entry, 2, Vec::new()), 0);
    let theirs =
        text.lines().filter(|line| ["null,", "0,"].iter().any(|node| line.contains(&format!("\"node\":{node}"))));
    let (before, after) = ("\"IAmAlive\":{\"suspects\":[]", "\"IAmAlive\":{\"suspects\":[4294967295]");
    let tampered = |line: &str| if line.contains("receive") { line.replace(before, after) } else { line.to_owned() };
    let lines: Vec<String> = theirs.map(tampered).collect();
    let trouble = replayed(&lines.join("\n")).expect_err("there is no such node");
    let what = "hi-adsd has no message {\"IAmAlive\":{\"suspects\":[4294967295]}}";
    assert_eq!((trouble.cause, trouble.what.as_str()), (Cause::Unreadable, what));
}

/// What somebody might find in a file.
fn anything() -> impl Strategy<Value = String> {
    let words = [
        "-1",
        "1e308",
        "18446744073709551615",
        "4294967295",
        "null",
        "true",
        "[]",
        "{}",
        "\"\"",
        "[[[[",
        "\u{0}",
        "é",
        "\n",
        "\"node\":9,",
        "\"Request\":18446744073709551615",
        "[18446744073709551615]",
        "\"kind\":\"restart\"",
        ",",
    ];
    prop_oneof![prop::sample::select(words.to_vec()).prop_map(str::to_owned), "[ -~]{0,8}"]
}

/// Found by chance: what a client is told may be any text in a file.
#[test]
fn a_sentence_has_no_end_of_line_in_it() {
    let entry = catalog::find("hi-adsd").expect("it is in the catalog");
    let (text, _) = trace(entry.name, DETECTORS[0], &Config { entries: 3, ..config(entry, 2, Vec::new()) }, 0);
    let other = text.replacen("\"RoundBegan\"", "\"Round\\nBegan\"", 1);
    assert_ne!(text, other);
    let trouble = replayed(&other).expect_err("it says something else");
    assert!(trouble.what.contains("Round\u{fffd}Began") && !trouble.what.contains('\n'), "{trouble}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_stands_in_a_file_is_a_panic(
        at in 0_usize..31, edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..12, anything()), 1..4)
    ) {
        let entry = &catalog::ALL[at % catalog::ALL.len()];
        let (mut text, _) = trace(entry.name, DETECTORS[at % 2], &Config { entries: 3, ..config(entry, 2, Vec::new()) }, 0);
        for (place, length, with) in edits {
            let start = place.index(text.len());
            let end = (start + length).min(text.len());
            if text.is_char_boundary(start) && text.is_char_boundary(end) {
                text.replace_range(start..end, &with);
            }
        }
        if let Err(trouble) = replayed(&text) {
            prop_assert!(trouble.line > 0 && !trouble.what.is_empty() && !trouble.what.contains('\n'), "{}", trouble);
        }
    }

    #[test]
    fn nor_is_anything_else(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(named::replay(&mut &bytes[..]).expect_err("no trace").cause, Cause::Unreadable);
    }
}
