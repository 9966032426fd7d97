//! The experiments, quickly: what is random must come out within its interval, what is not exactly, and so must every
//! verdict. `VEZ_THOROUGH=1 UPDATE_GOLDENFILES=1` writes what came out to `tests/pinned`; then read the diff.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use crate::thorough;

use vez_lab::{
    experiments,
    stats::Interval,
    study::{
        Findings, Study,
        claim::{Judged, Verdict},
        point::{Filter, points},
        reader::expression,
        sweep::Options,
        table::{Row, Table},
    },
};

const QUICK: Options = Options { quick: true, seed: Some(1) };

/// What is pinned of a sweep.
const MEASURES: [&str; 7] = ["messages", "wait", "sync_delay", "waiting", "bypasses", "fairness", "busiest"];

fn run(name: &str) -> Findings {
    let study = experiments::find(name).expect("it is there").unwrap_or_else(|error| panic!("{name}: {error}"));
    let prepared = study.prepare(name, QUICK).unwrap_or_else(|error| panic!("{name}: {error}"));
    let swept = prepared.work.run(&BTreeMap::new(), &|_| Ok(()), &|_| {}).expect("nothing is kept");
    study.find(name, prepared, swept).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// More entries than this take too long without `VEZ_THOROUGH`.
const MAX_QUICK_ENTRIES: u64 = 500_000;

fn takes_long(name: &str) -> bool {
    let study = experiments::find(name).expect("it is there").expect("it can be read");
    let prepared = study.prepare(name, QUICK).expect("it can be run");
    prepared.work.entries(&BTreeMap::new()) > MAX_QUICK_ENTRIES
}

#[test]
fn quick_experiments_come_out_as_pinned() {
    let names = experiments::names();
    assert_eq!(names.len(), 14, "one for each row of the list in the README");
    let (mut verdicts, mut rows) = (String::new(), Vec::new());
    for name in names {
        if !thorough() && takes_long(name) {
            continue;
        }
        let findings = run(name);
        for table in &findings.tables {
            assert!(table.rows.iter().all(|row| !row.0.contains_key("failure")), "{name}: {:?}", table.rows);
            let file = table.file(name);
            if table.name.is_empty() {
                compare_within_intervals(&file, &summary(table));
            } else {
                compare(&file, &table.csv());
            }
        }
        rows.push(row(&findings));
        let _ = writeln!(verdicts, "{name}");
        for claim in &findings.claims {
            let told = |judged: &Judged| format!("{:13} {}", judged.verdict.to_string(), judged.text);
            let _ = writeln!(verdicts, "  {}", told(claim));
            claim.readings.iter().for_each(|reading| {
                let _ = writeln!(verdicts, "      {}", told(reading));
            });
        }
    }
    if thorough() {
        compare("verdicts", &verdicts);
        compare_with_readme(&format!("{HEADING}{}", rows.concat()));
        return;
    }
    let pinned = pinned("verdicts", &verdicts).unwrap_or_default();
    let readme = fs::read_to_string(README).expect("there is a README");
    for (known, row) in [(&pinned, &verdicts), (&readme, &rows.concat())]
        .into_iter()
        .flat_map(|(known, found)| found.lines().map(move |line| (known, line)))
    {
        assert!(known.lines().any(|line| line == row), "this is new: {row}");
    }
}

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
const HEADING: &str = "| experiment | of | holds | holds only if | does not hold |\n|---|---|---:|---:|---:|\n";

fn row(findings: &Findings) -> String {
    let count = |verdict| findings.claims.iter().filter(|claim| claim.verdict == verdict).count();
    let [holds, only_if, does_not] = [Verdict::Holds, Verdict::OnlyIf, Verdict::DoesNot].map(count);
    assert_eq!(count(Verdict::Untold), 0, "{}: a few more runs are needed", findings.name);
    let name = &findings.name;
    format!("| [`{name}`](experiments/{name}.toml) | {} | {holds} | {only_if} | {does_not} |\n", findings.study.of)
}

/// What stands in the README between two marks.
fn compare_with_readme(found: &str) {
    let path = Path::new(README);
    let readme = fs::read_to_string(path).expect("there is a README");
    let (begin, end) = ("<!-- experiments -->\n", "<!-- /experiments -->");
    let start = readme.find(begin).expect("the mark") + begin.len();
    let stop = readme.find(end).expect("the end mark");
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        fs::write(path, format!("{}{found}{}", &readme[..start], &readme[stop..])).expect("it can be written");
    } else {
        assert!(readme[start..stop] == *found, "the table has changed; found:\n{found}");
    }
}

/// The means of all runs of each point, with their intervals.
fn summary(table: &Table) -> Table {
    let mut rows = Vec::new();
    for point in points(table, &Filter::default(), None) {
        let mut row = Row::default();
        point.key.iter().for_each(|(key, value)| row.set(*key, (*value).clone()));
        for measure in MEASURES {
            let sample = point.sample(&expression(measure).expect("a column"));
            if let Some(Interval { mean, ci95 }) = sample.and_then(|sample| sample.interval()) {
                row.set(measure, mean);
                row.set(format!("{measure} ±"), ci95);
            }
        }
        rows.push(row);
    }
    Table { name: String::new(), keys: table.keys.clone(), rows }
}

/// Two means are the same if their intervals meet.
fn compare_within_intervals(file: &str, found: &Table) {
    let Some(pinned) = pinned(file, &found.csv()) else { return };
    let pinned = Table::rows_of(&pinned).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert_eq!(pinned.len(), found.rows.len(), "{file} has other points");
    for (pinned, found_row) in pinned.iter().zip(&found.rows) {
        for key in &found.keys {
            assert_eq!(pinned.get(key), found_row.get(key), "{file} has other points");
        }
        for measure in MEASURES {
            let interval = |row: &Row| {
                let half = row.get(&format!("{measure} ±")).number().unwrap_or(0.0);
                row.get(measure).number().map(|mean| (mean, half))
            };
            match (interval(pinned), interval(found_row)) {
                (Some((was, a)), Some((is, b))) => {
                    let near = (was - is).abs() <= a + b + 1e-9 * was.abs();
                    assert!(near, "{file}: {measure} was {was} ± {a}, is {is} ± {b} at {found_row:?}");
                }
                (None, None) => {}
                (was, is) => panic!("{file}: {measure} was {was:?}, is {is:?} at {found_row:?}"),
            }
        }
    }
}

fn compare(file: &str, found: &str) {
    if let Some(pinned) = pinned(file, found) {
        assert!(pinned == found, "{file} has changed; found:\n{found}\n(UPDATE_GOLDENFILES=1 writes it)");
    }
}

/// What is pinned, or nothing if it was written anew.
fn pinned(file: &str, found: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/pinned").join(file);
    if thorough() && std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        fs::write(&path, found).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return None;
    }
    Some(fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

#[test]
fn a_quick_experiment_is_quicker_if_it_is_random_and_the_same_if_not() {
    let full = Options { quick: false, ..QUICK };
    for name in experiments::names() {
        let study = experiments::find(name).expect("it is there").expect("it can be read");
        let [full, quick] = [full, QUICK].map(|options| study.prepare(name, options).expect("it can be run"));
        let entries = [&full, &quick].map(|prepared| prepared.work.entries(&BTreeMap::new()));
        assert!(entries[0] >= 3 * entries[1], "{name}: {entries:?}");
        assert!(full.tables == quick.tables && full.figures == quick.figures, "{name}");
    }
}

#[test]
fn the_page_about_studies_has_a_study() {
    let page = include_str!("../../../../docs/studies.md");
    let example = page.split("```").nth(1).and_then(|block| block.strip_prefix("toml\n")).expect("an example");
    let study = Study::parse(example).expect("a study");
    let prepared = study.prepare("locks", Options::default()).expect("it can be run");
    assert_eq!(prepared.work.len(), 2 * 2 * 3 * 5);
}
