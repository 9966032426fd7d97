//! What becomes of a claim, and of a sweep that is cut into shares.

use std::collections::BTreeMap;

use vez_lab::study::{
    Study,
    claim::{Claim, Judged, Verdict},
    sweep::Options,
    table::{RUN, Row, Table, Value},
};

/// Runs of algorithms at rates: (algorithm, rate, the values of its runs).
fn table(cells: &[(&str, f64, &[f64])]) -> Table {
    let mut rows = Vec::new();
    for (algorithm, rate, values) in cells {
        for (run, value) in values.iter().enumerate() {
            let mut row = Row::default();
            row.set("algorithm", *algorithm);
            row.set("rate", *rate);
            row.set(RUN, run);
            row.set("wait", *value);
            rows.push(row);
        }
    }
    Table { name: String::new(), keys: vec!["algorithm".into(), "rate".into()], rows }
}

fn judge(claim: &str, table: &Table) -> Judged {
    let claim: Claim = toml::from_str(&format!("text = \"a claim\"\n{claim}")).expect("a claim");
    claim.judge(std::slice::from_ref(table)).expect("it can be judged")
}

fn verdict(rule: &str, table: &Table) -> Verdict {
    judge(&format!("rule = \"{rule}\""), table).verdict
}

#[test]
fn a_difference_counts_if_all_runs_show_it() {
    // The runs vary far more than the algorithms differ, but each run of b is above the same run of a.
    let paired = table(&[("a", 1.0, &[1.0, 5.0, 9.0]), ("b", 1.0, &[1.1, 5.12, 9.08])]);
    assert_eq!(verdict("wait[a] < wait[b]", &paired), Verdict::Holds);
    assert_eq!(verdict("wait[b] < wait[a]", &paired), Verdict::DoesNot);
    assert_eq!(verdict("wait[b] <= wait[a]", &paired), Verdict::DoesNot);
    assert_eq!(verdict("wait[a] = wait[b]", &paired), Verdict::DoesNot);
    assert_eq!(verdict("wait[a] ~ wait[b]", &paired), Verdict::Holds, "within 5 %");
}

#[test]
fn what_chance_may_have_made_is_not_clear() {
    let unclear = table(&[("a", 1.0, &[1.0, 2.0, 3.0]), ("b", 1.0, &[1.2, 1.9, 3.2])]);
    assert_eq!(verdict("wait[a] < wait[b]", &unclear), Verdict::DoesNot);
    assert_eq!(verdict("wait[a] > wait[b]", &unclear), Verdict::DoesNot);
    assert_eq!(verdict("wait[a] <= wait[b]", &unclear), Verdict::Holds);
    assert_eq!(verdict("wait[a] >= wait[b]", &unclear), Verdict::Holds);
    assert_eq!(verdict("wait[a] = wait[b]", &unclear), Verdict::Holds);
}

#[test]
fn the_more_points_the_surer_a_difference_must_be() {
    // By itself this difference is clear: 0.1125 ± 0.0762.
    let (a, b): (&[f64], &[f64]) = (&[1.0, 1.0, 1.0, 1.0], &[1.1, 1.05, 1.15, 1.15]);
    let alone = table(&[("a", 0.0, a), ("b", 0.0, b)]);
    assert_eq!(verdict("wait[a] < wait[b]", &alone), Verdict::Holds);
    let same: &[f64] = &[1.0, 1.0, 1.0, 1.0];
    let mut cells = vec![("a", 0.0, a), ("b", 0.0, b)];
    for point in 1..20 {
        cells.extend([("a", f64::from(point), same), ("b", f64::from(point), same)]);
    }
    assert_eq!(verdict("wait[b] <= wait[a]", &table(&cells)), Verdict::Holds, "one of twenty is to be expected");
}

#[test]
fn without_chance_equal_is_equal() {
    let exact = table(&[("a", 1.0, &[3.0]), ("b", 1.0, &[3.0000001])]);
    assert_eq!(verdict("wait[a] = 3", &exact), Verdict::Holds);
    assert_eq!(verdict("wait[b] = 3", &exact), Verdict::DoesNot);
    assert_eq!(verdict("wait[a] = 1 + 2 * rate", &exact), Verdict::Holds);
    assert_eq!(verdict("wait[a] < wait[b]", &exact), Verdict::Holds);
}

#[test]
fn where_it_holds_is_told_as_a_range() {
    let crossing = table(&[
        ("a", 0.1, &[1.0]),
        ("b", 0.1, &[2.0]),
        ("a", 0.2, &[1.5]),
        ("b", 0.2, &[2.0]),
        ("a", 0.4, &[2.5]),
        ("b", 0.4, &[2.0]),
        ("a", 0.8, &[1.0]),
        ("b", 0.8, &[2.0]),
    ]);
    let judged = judge("rule = \"wait[a] < wait[b]\"", &crossing);
    assert_eq!(judged.verdict, Verdict::OnlyIf);
    assert_eq!(
        judged.detail,
        "At 3 of 4 points. It holds for rate from 0.1 to 0.2 and rate 0.8. Fails most: 2.500 against 2 at rate 0.4."
    );
    let low = judge("rule = \"wait[a] < wait[b]\"\nat = \"rate <= 0.2\"", &crossing);
    assert_eq!(low.verdict, Verdict::Holds, "of what it speaks of");
    assert!(low.detail.contains("Looking beyond what it speaks of, it holds for rate from 0.1 to 0.2 and rate 0.8."));
    let filtered = judge("rule = \"wait[a] < wait[b]\"\nwhere = { rate = [0.1, 0.8] }", &crossing);
    assert_eq!((filtered.verdict, filtered.detail.contains("At all 2 points.")), (Verdict::Holds, true));
}

#[test]
fn a_claim_can_be_read_in_other_ways() {
    let both = table(&[("a", 0.1, &[1.0]), ("b", 0.1, &[2.0]), ("a", 0.9, &[3.0]), ("b", 0.9, &[2.0])]);
    let claim = "rule = \"wait[a] < wait[b]\"\nwhere = { rate = 0.1 }\n\
                 readings = [{ text = \"late\", where = { rate = 0.9 } }, { text = \"turned\", rule = \"wait[b] < wait[a]\" }]";
    let judged = judge(claim, &both);
    let verdicts: Vec<Verdict> = judged.readings.iter().map(|reading| reading.verdict).collect();
    assert_eq!((judged.verdict, &verdicts[..]), (Verdict::Holds, &[Verdict::DoesNot, Verdict::DoesNot][..]));
}

#[test]
fn what_is_missing_does_not_hold() {
    let gap = table(&[("a", 0.1, &[1.0]), ("b", 0.1, &[2.0]), ("a", 0.9, &[1.0])]);
    let judged = judge("rule = \"wait[a] < wait[b]\"", &gap);
    assert_eq!(judged.verdict, Verdict::OnlyIf);
    assert!(judged.detail.ends_with("At 1 of 2 points there is nothing to compare."), "{}", judged.detail);
}

#[test]
fn texts_are_compared_as_texts() {
    let mut row = Row::default();
    row.set("i", 0.0);
    row.set("members", "4 6 7 5");
    let clusters = Table { name: "clusters".into(), keys: vec!["i".into()], rows: vec![row] };
    assert_eq!(verdict("members = \\\"4 6 7 5\\\"", &clusters), Verdict::Holds);
    assert_eq!(verdict("members = \\\"4 6 5 7\\\"", &clusters), Verdict::DoesNot);
}

const SWEEP: &str = r#"
title = "a sweep"
[[sweep]]
algorithm = ["fila", "nxr"]
nodes = [3, 5]
rate = 0.5
entries = 200
warmup = 0
runs = 3
quick = { runs = 2 }
"#;

fn study(text: &str) -> Study {
    Study::parse(text).expect("a study")
}

#[test]
fn shares_are_the_whole() {
    let work = study(SWEEP).work(Options::default()).expect("it can be run");
    let whole = work.run(&BTreeMap::new(), &|_| {}, &|_| {});
    assert_eq!(whole.rows.len(), 2 * 2 * 3);
    for n in [1, 2, 5, 12, 20] {
        let mut done = BTreeMap::new();
        for i in 1..=n {
            let share = work.shard((i, n)).run(&BTreeMap::new(), &|_| {}, &|_| {});
            for row in share.rows {
                assert_eq!(done.insert(work.name(&row), row), None, "no run is in two shares");
            }
        }
        assert_eq!(work.entries(&done), 0, "nothing is left to do");
        assert_eq!(work.run(&done, &|_| panic!("nothing is run again"), &|_| {}).csv(), whole.csv());
    }
}

#[test]
fn a_row_that_was_read_from_a_file_is_known_again() {
    let work = study(SWEEP).work(Options::default()).expect("it can be run");
    let whole = work.run(&BTreeMap::new(), &|_| {}, &|_| {});
    let read = Table::rows_of(&whole.csv()).expect("a table");
    let done: BTreeMap<String, Row> = read.into_iter().map(|row| (work.name(&row), row)).collect();
    assert_eq!(work.run(&done, &|_| panic!("nothing is run again"), &|_| {}).csv(), whole.csv());
    let more = SWEEP.replace("runs = 3", "runs = 4").replace("[3, 5]", "[3, 5, 7]");
    let more = study(&more).work(Options::default()).expect("it can be run");
    assert_eq!(more.entries(&done), 200 * (2 * 3 * 4 - 12), "what is new is run");
}

#[test]
fn rows_say_what_was_run_and_the_same_seed_gives_the_same() {
    let work = |options| study(SWEEP).work(options).expect("it can be run").run(&BTreeMap::new(), &|_| {}, &|_| {});
    let (one, again) = (work(Options::default()), work(Options::default()));
    assert_eq!(one.csv(), again.csv());
    assert_ne!(one.csv(), work(Options { seed: Some(2), quick: false }).csv());
    assert_eq!(work(Options { quick: true, seed: None }).rows.len(), 2 * 2 * 2);
    let row = &one.rows[0];
    let told = ["algorithm", "nodes", "rate", "entries", "seed", RUN].map(|column| row.get(column).to_string());
    assert_eq!(told, ["fila", "3", "0.5", "200", "1", "0"]);
    assert_eq!(row.get("messages").number().map(|messages| messages > 0.0), Some(true));
    assert_eq!(row.get("hot"), &Value::Missing);
}

#[test]
fn a_run_that_goes_wrong_is_a_row_too() {
    let text = SWEEP.replace("rate = 0.5", "rate = 0.5\nfaults = \"1 crash n0\"");
    let rows = study(&text).work(Options::default()).expect("it can be run").run(&BTreeMap::new(), &|_| {}, &|_| {});
    let failed = rows.rows.iter().filter(|row| row.get("failure").to_string().contains("stuck"));
    assert!(failed.count() > 0, "nobody survives the loss of the token");
}

#[test]
fn mistakes_are_named_before_anything_is_run() {
    let plot = |plot: &str| format!("{SWEEP}\n[[plot]]\ntitle = \"p\"\n{plot}");
    let claim = |claim: &str| format!("{SWEEP}\n[[claim]]\ntext = \"c\"\n{claim}");
    for (text, message) in [
        (SWEEP.replace("\"nxr\"", "\"nrx\""), "sweep 1: unknown algorithm \"nrx\"; see vez lab list"),
        (SWEEP.replace("nodes", "notes"), "sweep 1: unknown field `notes`"),
        (SWEEP.replace("[3, 5]", "[]"), "sweep 1: nodes has no value; give at least one"),
        (SWEEP.replace("rate = 0.5", "rate = -1"), "sweep 1: fila: rate is -1"),
        (SWEEP.replace("rate = 0.5", "k = 3"), "fila has no setting k; these have: raymond-k"),
        (SWEEP.replace("rate = 0.5", "seed = 3"), "a seed is for the whole study"),
        (
            plot("x = \"rate\"\ny = \"mesages\""),
            "the plot \"p\": there is no column \"mesages\"; there are algorithm, nodes",
        ),
        (plot("x = \"rate\"\ny = \"messages +\""), "the plot \"p\": cannot read \"messages +\""),
        (claim("rule = \"messages[fila] < \""), "the claim \"c\": cannot read"),
        (claim("rule = \"mesages[fila] < 3\""), "the claim \"c\": there is no column \"mesages\""),
        (claim("rule = \"wait < 3\"\nwhere = { nodes = 4 }"), "the claim \"c\": no row is meant by it"),
    ] {
        let error = study(&text).work(Options::default()).expect_err(message).to_string();
        assert!(error.contains(message), "{error}\n{message}");
    }
    let error = Study::parse("titel = \"a\"").expect_err("no study").to_string();
    assert!(error.contains("unknown field `titel`"), "{error}");
}
