//! A report about studies: a directory with a page, the plots and the data.

use std::{fmt::Write, fs, path::Path, process::ExitCode};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use vez_lab::study::{Findings, Heading, claim::Judged, page};

use crate::output::print;

/// Writes it, and says what is in it.
pub(crate) fn conclude(directory: &Path, heading: &Heading<'_>, all: &[Findings], json: bool) -> Result<ExitCode> {
    write(directory, heading, all)?;
    print(&if json { format!("{:#}\n", as_json(heading, all)) } else { in_words(all, directory) })?;
    let failed = all.iter().any(|findings| findings.failures().next().is_some());
    Ok(ExitCode::from(u8::from(failed)))
}

/// What stood in those files before is gone.
fn write(directory: &Path, heading: &Heading<'_>, all: &[Findings]) -> Result<()> {
    for findings in all {
        for table in &findings.tables {
            put(&directory.join("data").join(table.file(&findings.name)), &table.csv())?;
        }
        for figure in &findings.figures {
            put(&directory.join("plots").join(format!("{}.svg", figure.name)), &figure.svg)?;
        }
    }
    put(&directory.join("index.html"), &page(heading, all))
}

/// Writes a file whole or not at all.
pub(crate) fn put(path: &Path, text: &str) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).with_context(cannot)?;
    }
    let new = path.with_extension("new");
    fs::write(&new, text).and_then(|()| fs::rename(&new, path)).with_context(cannot)
}

/// What came out, for programs.
fn as_json(heading: &Heading<'_>, all: &[Findings]) -> Value {
    let experiment = |findings: &Findings| {
        let series = findings.figures.iter().flat_map(|figure| {
            figure.series.iter().map(|series| {
                let points =
                    series.points.iter().map(|point| json!({ "x": point.x, "y": point.y, "ci95": point.ci95 }));
                json!({ "plot": figure.title, "name": series.name, "points": points.collect::<Vec<_>>() })
            })
        });
        let series: Vec<Value> = series.collect();
        let failures = findings.failures().map(|(row, failure)| json!({ "failure": failure, "run": row }));
        let failures: Vec<Value> = failures.collect();
        json!({ "name": findings.name, "claims": findings.claims, "series": series, "failures": failures })
    };
    json!({ "made_by": heading.made_by, "experiments": all.iter().map(experiment).collect::<Vec<_>>() })
}

/// What came out, for a reader.
fn in_words(all: &[Findings], directory: &Path) -> String {
    let mut text = String::new();
    for findings in all {
        let _ = writeln!(text, "{}: {}", findings.name, findings.study.title);
        for claim in &findings.claims {
            say(&mut text, claim, "");
            claim.readings.iter().for_each(|reading| say(&mut text, reading, "↳ "));
        }
        for (row, failure) in findings.failures() {
            let _ = writeln!(text, "  went wrong: {failure}\n                 {row}");
        }
        text.push('\n');
    }
    let _ = writeln!(text, "written to {}", directory.join("index.html").display());
    text
}

fn say(text: &mut String, claim: &Judged, before: &str) {
    let _ = writeln!(text, "  {:13}  {before}{}", claim.verdict.to_string(), claim.text);
    let _ = writeln!(text, "                 {}", claim.detail);
}
