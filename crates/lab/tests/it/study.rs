//! What becomes of a claim, and of a sweep that is cut into shares.

use std::collections::BTreeMap;

use vez_lab::experiments;
use vez_lab::study::{
    Study, Work,
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

/// The same without chance: no runs.
fn exact(cells: &[(&str, f64, f64)]) -> Table {
    let mut table =
        table(&cells.iter().map(|(name, rate, value)| (*name, *rate, std::slice::from_ref(value))).collect::<Vec<_>>());
    table.rows.iter_mut().for_each(|row| {
        row.0.shift_remove(RUN);
    });
    table
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
    assert_eq!(verdict("wait[a] <= wait[b] and wait[a] < wait[b]", &paired), Verdict::Holds);
    assert_eq!(verdict("wait[a] <= wait[b] and wait[a] > wait[b]", &paired), Verdict::DoesNot);
}

#[test]
fn what_chance_may_have_made_cannot_be_told() {
    let unclear = table(&[("a", 1.0, &[1.0, 2.0, 3.0]), ("b", 1.0, &[1.2, 1.9, 3.2])]);
    for relation in ["<", ">", "<=", ">=", "=", "~"] {
        assert_eq!(verdict(&format!("wait[a] {relation} wait[b]"), &unclear), Verdict::Untold, "{relation}");
    }
    let single = table(&[("a", 1.0, &[1.0]), ("b", 1.0, &[2.0])]);
    assert_eq!(verdict("wait[a] < wait[b]", &single), Verdict::Untold, "one run tells nothing");
    let in_part = table(&[
        ("a", 1.0, &[1.0, 2.0, 3.0]),
        ("b", 1.0, &[1.2, 1.9, 3.2]),
        ("a", 2.0, &[1.0, 2.0]),
        ("b", 2.0, &[2.0, 3.0]),
    ]);
    let judged = judge("rule = \"wait[a] < wait[b]\"", &in_part);
    assert_eq!(judged.verdict, Verdict::OnlyIf);
    assert!(
        judged.detail.contains("At 1 the runs do not tell: they are too few, or differ too much."),
        "{}",
        judged.detail
    );
}

#[test]
fn at_most_allows_for_a_little_more() {
    let more = |by: f64| table(&[("a", 1.0, &[by, by]), ("b", 1.0, &[1.0, 1.0])]);
    assert_eq!(verdict("wait[a] <= wait[b]", &more(1.005)), Verdict::Holds, "within 1 %");
    assert_eq!(verdict("wait[a] <= wait[b]", &more(1.02)), Verdict::DoesNot);
    assert_eq!(judge("rule = \"wait[a] <= wait[b]\"\nwithin = 0.05", &more(1.02)).verdict, Verdict::Holds);
    assert_eq!(verdict("wait[a] >= wait[b]", &more(0.995)), Verdict::Holds);
    assert_eq!(verdict("wait[a] < wait[b]", &more(1.0)), Verdict::DoesNot, "the same is not less");
}

#[test]
fn the_more_points_the_surer_a_difference_must_be() {
    // By itself this difference is clear: 0.1125 ± 0.0762.
    let (a, b): (&[f64], &[f64]) = (&[1.0, 1.0, 1.0, 1.0], &[1.1, 1.05, 1.15, 1.15]);
    let alone = table(&[("a", 0.0, a), ("b", 0.0, b)]);
    assert_eq!(verdict("wait[a] < wait[b]", &alone), Verdict::Holds);
    let mut cells = Vec::new();
    for point in 0..20 {
        cells.extend([("a", f64::from(point), a), ("b", f64::from(point), b)]);
    }
    assert_eq!(verdict("wait[a] < wait[b]", &table(&cells)), Verdict::Untold, "one of twenty is to be expected");
}

#[test]
fn a_run_that_went_wrong_is_left_out_for_all() {
    let mut odd = table(&[("a", 1.0, &[1.0, 2.0, 9.0]), ("b", 1.0, &[1.5, 2.5, 3.0])]);
    odd.rows[2].0.shift_remove("wait");
    odd.rows[2].set("failure", "stuck");
    let judged = judge("rule = \"wait[a] < wait[b]\"", &odd);
    assert_eq!(judged.verdict, Verdict::Holds, "{}", judged.detail);
    assert!(judged.detail.ends_with("2 runs that went wrong are left out."), "{}", judged.detail);
}

#[test]
fn without_chance_equal_is_equal() {
    let exact = exact(&[("a", 1.0, 3.0), ("b", 1.0, 3.000_000_1)]);
    assert_eq!(verdict("wait[a] = 3", &exact), Verdict::Holds);
    assert_eq!(verdict("wait[b] = 3", &exact), Verdict::DoesNot);
    assert_eq!(verdict("wait[a] = 1 + 2 * rate", &exact), Verdict::Holds);
    assert_eq!(verdict("wait[a] < wait[b]", &exact), Verdict::Holds);
}

#[test]
fn where_it_holds_is_told_as_a_range() {
    let crossing = exact(&[
        ("a", 0.1, 1.0),
        ("b", 0.1, 2.0),
        ("a", 0.2, 1.5),
        ("b", 0.2, 2.0),
        ("a", 0.4, 2.5),
        ("b", 0.4, 2.0),
        ("a", 0.8, 1.0),
        ("b", 0.8, 2.0),
    ]);
    let judged = judge("rule = \"wait[a] < wait[b]\"", &crossing);
    assert_eq!(judged.verdict, Verdict::OnlyIf);
    assert_eq!(
        judged.detail,
        "At 3 of 4 points: rate from 0.1 to 0.2 and rate 0.8. Fails most: wait[a] is 2.500, wait[b] is 2 at rate 0.4."
    );
    let low = judge("rule = \"wait[a] < wait[b]\"\nat = \"rate <= 0.2\"", &crossing);
    assert_eq!(low.verdict, Verdict::Holds, "of what it speaks of");
    assert!(low.detail.contains("At both points. Outside of what it speaks of it holds for rate 0.8."));
    let filtered = judge("rule = \"wait[a] < wait[b]\"\nwhere = { rate = [0.1, 0.8] }", &crossing);
    assert_eq!((filtered.verdict, filtered.detail.starts_with("At both points.")), (Verdict::Holds, true));
}

#[test]
fn a_claim_can_be_read_in_other_ways() {
    let both = exact(&[("a", 0.1, 1.0), ("b", 0.1, 2.0), ("a", 0.9, 3.0), ("b", 0.9, 2.0)]);
    let claim = "rule = \"wait[a] < wait[b]\"\nwhere = { rate = 0.1 }\n\
                 readings = [{ text = \"late\", where = { rate = 0.9 } }, { text = \"turned\", rule = \"wait[b] < wait[a]\" }]";
    let judged = judge(claim, &both);
    let verdicts: Vec<Verdict> = judged.readings.iter().map(|reading| reading.verdict).collect();
    assert_eq!((judged.verdict, &verdicts[..]), (Verdict::Holds, &[Verdict::DoesNot, Verdict::DoesNot][..]));
}

#[test]
fn what_is_missing_cannot_be_told() {
    let gap = exact(&[("a", 0.1, 1.0), ("b", 0.1, 2.0), ("a", 0.9, 1.0)]);
    let judged = judge("rule = \"wait[a] < wait[b]\"", &gap);
    assert_eq!(judged.verdict, Verdict::OnlyIf);
    let detail = "At 1 of 2 points: rate 0.1. At 1 there is nothing to compare.";
    assert!(judged.detail.starts_with(detail), "{}", judged.detail);
    assert_eq!(verdict("wait[a] / 0 < 3", &gap), Verdict::Untold);
    let claim: Claim = toml::from_str("text = \"a\"\nrule = \"wait[c] < 3\"").expect("a claim");
    let error = claim.judge(std::slice::from_ref(&gap)).expect_err("a slip").to_string();
    assert!(error.contains("no row has the algorithm \"c\""), "{error}");
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

fn prepared(text: &str, options: Options) -> Work {
    Study::parse(text).expect("a study").prepare("a", options).expect("it can be run").work
}

fn whole(work: &Work) -> Table {
    work.run(&BTreeMap::new(), &|_| Ok(()), &|_| {}).expect("nothing is kept")
}

#[test]
fn shares_are_the_whole() {
    let work = prepared(SWEEP, Options::default());
    let whole_table = whole(&work);
    assert_eq!(whole_table.rows.len(), 2 * 2 * 3);
    for n in [1, 2, 5, 12, 20] {
        let mut done = BTreeMap::new();
        for i in 1..=n {
            let share = whole(&work.shard((i, n)));
            for row in share.rows {
                assert_eq!(done.insert(work.name(&row), row), None, "no run is in two shares");
            }
        }
        assert_eq!(work.entries(&done), 0, "nothing is left to do");
        assert_eq!(
            work.run(&done, &|_| panic!("nothing is run again"), &|_| {}).expect("nothing is kept").csv(),
            whole_table.csv()
        );
    }
}

#[test]
fn a_row_that_was_read_from_a_file_is_known_again() {
    let work = prepared(SWEEP, Options::default());
    let whole_table = whole(&work);
    let read = Table::rows_of(&whole_table.csv()).expect("a table");
    let done: BTreeMap<String, Row> = read.into_iter().map(|row| (work.name(&row), row)).collect();
    assert_eq!(
        work.run(&done, &|_| panic!("nothing is run again"), &|_| {}).expect("nothing is kept").csv(),
        whole_table.csv()
    );
    let more = SWEEP.replace("runs = 3", "runs = 4").replace("[3, 5]", "[3, 5, 7]");
    let more = prepared(&more, Options::default());
    assert_eq!(more.entries(&done), 200 * (2 * 3 * 4 - 12), "what is new is run");
}

#[test]
fn rows_say_what_was_run_and_the_same_seed_gives_the_same() {
    let work = |options| whole(&prepared(SWEEP, options));
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
    let rows = whole(&prepared(&text, Options::default()));
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
            "the plot \"p\": there is no column \"mesages\"; there are version, algorithm, nodes",
        ),
        (plot("x = \"rate\"\ny = \"messages +\""), "the plot \"p\": cannot read \"messages +\""),
        (claim("rule = \"messages[fila] < \""), "the claim \"c\": cannot read"),
        (claim("rule = \"mesages[fila] < 3\""), "the claim \"c\": there is no column \"mesages\""),
        (
            claim("rule = \"wait < 3\"\nwhere = { nodes = 4 }"),
            "the claim \"c\": no row has what its `where` asks for: nodes is 4",
        ),
        (claim("rule = \"wait < 3\"\nat = \"rate > 7\""), "the claim \"c\": no row is meant by it"),
        (claim("rule = \"wait < 3\"\nat = \"rate > low\""), "the claim \"c\": there is no column \"low\""),
        (claim("rule = \"wait < 3\"\nwhere = { topo = 4 }"), "the claim \"c\": there is no column \"topo\""),
        (claim("rule = \"wait < 3\"\nover = \"rat\""), "over is \"rat\"; take one of version"),
        (claim("rule = \"wait[nrx] < 3\""), "the claim \"c\": no row has the algorithm \"nrx\""),
        (claim("rule = \"wait < 3\"\nwithin = -1"), "within is a part of the right side"),
        (claim("rule = \"wait < 3\"\ntable = \"none\""), "there is no such table"),
        (plot("x = \"rate\"\ny = \"messages\""), "fila has several points at rate 0.5; take one of them with `where`"),
        (plot("x = \"topology\"\ny = \"messages\""), "x is \"binary\", which is no number"),
        (plot("x = \"wait\"\ny = \"messages\""), "x is \"wait\"; take one of version, algorithm"),
        (plot("x = \"nodes\"\ny = \"messages[nxr]\""), "leave the brackets out"),
        (SWEEP.replace("runs = 3", "runs = [2, 3]"), "runs is one number"),
        (SWEEP.replace("runs = 2", "nonsense = 2"), "sweep 1: unknown field `nonsense`"),
    ] {
        let study = Study::parse(&text).expect("a study");
        let error = study.prepare("a", Options::default()).expect_err(message).to_string();
        assert!(error.contains(message), "{error}\n{message}");
    }
    let error = Study::parse("titel = \"a\"").expect_err("no study").to_string();
    assert!(error.contains("unknown field `titel`"), "{error}");
}

#[test]
fn the_same_is_not_simulated_twice() {
    let text = SWEEP.replace("rate = 0.5", "rate = [0.5, 0.5, 0.9]\narrivals = [\"closed\", \"saturated\"]");
    assert_eq!(prepared(&text, Options::default()).len(), 2 * 2 * 3 * (2 + 1), "two rates, and saturated has none");
    let twice = format!("{SWEEP}{}", SWEEP.replace("title = \"a sweep\"", ""));
    assert_eq!(prepared(&twice, Options::default()).len(), 2 * 2 * 3);
}

/// A kind of message that nobody sends is a slip, if others are sent.
#[test]
fn a_kind_of_message_that_is_not_there_is_named() {
    let mut kinds = exact(&[("a", 1.0, 1.0), ("b", 1.0, 2.0)]);
    kinds.rows[0].set("sent.Token", 1.0);
    assert_eq!(verdict("sent.Token[b] = 0 and sent.Token[a] = 1", &kinds), Verdict::Holds, "b has sent none");
    let claim: Claim = toml::from_str("text = \"a\"\nrule = \"sent.Tokn[a] = 0\"").expect("a claim");
    let error = claim.judge(std::slice::from_ref(&kinds)).expect_err("a slip").to_string();
    assert!(error.contains("there is no column \"sent.Tokn\""), "{error}");
}

#[test]
fn what_was_printed_stands_beside_what_happens() {
    let study = experiments::find("ricart-agrawala-transcripts").expect("it is there").expect("a study");
    let prepared = study.prepare("a", Options::default()).expect("it can be played");
    let lines = prepared.tables.iter().find(|table| table.name == "lines").expect("lines are compared");
    assert_eq!(lines.rows.len(), 31 + 13 + 31 + 3 + 2 + 3);
    for row in &lines.rows {
        assert_eq!(row.get("ours"), row.get("printed"), "{row:?}");
    }
}

#[test]
fn a_seed_that_cannot_be_written_down_is_refused() {
    let study = Study::parse(SWEEP).expect("a study");
    let error = study.prepare("a", Options { quick: false, seed: Some((1 << 53) + 1) }).expect_err("too large");
    assert!(error.to_string().contains("take one up to 9007199254740992"), "{error}");
}
