//! One page about studies that were run. It needs nothing beside it: it can be opened from a disk, or sent.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    Findings,
    claim::{Judged, Verdict},
    table::Table,
};

/// What stands above everything.
pub struct Heading<'a> {
    /// In large letters.
    pub title: &'a str,
    /// How it came about.
    pub made_by: &'a str,
}

/// The page, as HTML.
#[must_use]
pub fn page(heading: &Heading<'_>, all: &[Findings]) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (heading.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (heading.title) }
                    p.made { (heading.made_by) }
                }
                main {
                    (contents(all))
                    @for findings in all { (section(findings)) }
                }
            }
        }
    };
    markup.into_string()
}

fn contents(all: &[Findings]) -> Markup {
    let verdicts = [Verdict::Holds, Verdict::OnlyIf, Verdict::DoesNot, Verdict::Untold];
    html! {
        @if all.len() > 1 {
            nav {
                table {
                    thead { tr { th { "study" } th { "of" } @for verdict in verdicts { th.number { (verdict) } } } }
                    tbody {
                        @for findings in all {
                            tr {
                                td { a href={ "#" (findings.name) } { (findings.name) } }
                                td { (findings.study.of) }
                                @for verdict in verdicts {
                                    @let count = findings.claims.iter().filter(|claim| claim.verdict == verdict).count();
                                    td.number { @if count > 0 { (count) } @else { "–" } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn section(findings: &Findings) -> Markup {
    let study = &findings.study;
    html! {
        section id=(findings.name) {
            h2 { (study.title) }
            p.of { code { (findings.name) } @if !study.of.is_empty() { " · " (study.of) } }
            @for citation in citations(&study.of) { p.of { (citation) } }
            @for paragraph in study.setting.split("\n\n").filter(|text| !text.trim().is_empty()) { p { (paragraph) } }
            @if !study.assumed.is_empty() {
                p.label { "Not stated there, and assumed here:" }
                ul { @for assumption in &study.assumed { li { (assumption) } } }
            }
            (claims(&findings.claims))
            @if !findings.figures.is_empty() {
                div.figures {
                    @for figure in &findings.figures {
                        // A plot has its title in it, a drawing below it.
                        @if figure.series.is_empty() {
                            figure.drawing { (PreEscaped(&figure.svg)) figcaption { (figure.title) } }
                        } @else {
                            figure { (PreEscaped(&figure.svg)) }
                        }
                    }
                }
            }
            @for table in findings.tables.iter().filter(|table| is_short(table)) { (rows(table)) }
            @for (title, text) in &findings.texts {
                details { summary { (title) } pre { (text) } }
            }
            @if findings.failures().next().is_some() {
                p.label { "Runs that went wrong, and are left out:" }
                ul { @for (row, what) in findings.failures().take(20) { li { (what) " – " (row) } } }
            }
            p.data {
                "Data: "
                @for (at, table) in findings.tables.iter().enumerate() {
                    @if at > 0 { ", " }
                    @let file = table.file(&findings.name);
                    a href={ "data/" (encoded(&file)) } { (file) }
                    " (" (table.rows.len()) " rows)"
                }
                "."
            }
        }
    }
}

/// A table that one can read on a page, and that is not the many runs of a sweep.
fn is_short(table: &Table) -> bool {
    !table.name.is_empty() && table.rows.len() <= 200 && table.columns().len() <= 12
}

fn rows(table: &Table) -> Markup {
    let columns = table.columns();
    html! {
        details {
            summary { "Table: " (table.name) }
            div.wide {
                table {
                    thead { tr { @for column in &columns { th { (column) } } } }
                    tbody {
                        @for row in &table.rows { tr { @for column in &columns { td { (row.get(column)) } } } }
                    }
                }
            }
        }
    }
}

/// What the keys in a text stand for: `[PO05]` for a paper.
fn citations(text: &str) -> Vec<String> {
    let rows = include_str!("../../../../docs/references.md").lines().filter_map(|line| {
        let (key, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
        Some((key, rest.trim_end_matches('|').trim()))
    });
    let cited = rows.filter(|(key, _)| text.contains(&format!("[{key}]")));
    cited.map(|(key, rest)| format!("[{key}] {}", rest.replace(['*', '<', '>'], ""))).collect()
}

/// The name of a file in an address.
fn encoded(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn claims(claims: &[Judged]) -> Markup {
    html! {
        @if !claims.is_empty() {
            table.claims {
                thead { tr { th { "claim" } th { "verdict" } th { "what came out" } } }
                tbody {
                    @for claim in claims {
                        (row(claim, false))
                        @for reading in &claim.readings { (row(reading, true)) }
                    }
                }
            }
        }
    }
}

fn row(claim: &Judged, is_reading: bool) -> Markup {
    html! {
        tr.reading[is_reading] {
            td { @if is_reading { "↳ " } (claim.text) }
            td { span class={ "verdict " (class(claim.verdict)) } { (claim.verdict) } }
            td { (claim.detail) div.rule { code { (claim.rule) } } }
        }
    }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "yes",
        Verdict::OnlyIf => "part",
        Verdict::DoesNot => "no",
        Verdict::Untold => "untold",
    }
}

const STYLE: &str = "
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #1a1a1a; font: 16px/1.5 system-ui, sans-serif; }
header, main { max-width: 76rem; margin: 0 auto; padding: 0 1.5rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 2rem 0 .25rem; }
h2 { font-size: 1.35rem; line-height: 1.25; margin: 0 0 .25rem; }
p, ul { max-width: 48rem; }
.made, .of, .data { color: #555; font-size: .9rem; }
.label { margin-bottom: 0; font-weight: 600; }
ul { margin-top: .25rem; }
section { border-top: 1px solid #ccc; margin-top: 3rem; padding-top: 1.5rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #ddd; }
th { font-size: .85rem; color: #555; font-weight: 600; }
td.number, th.number { text-align: right; }
table.claims { width: 100%; }
table.claims td:nth-child(1) { width: 38%; }
table.claims td:nth-child(2) { white-space: nowrap; }
tr.reading td { color: #444; font-size: .92rem; }
tr.reading td:first-child { padding-left: 1.2rem; }
.rule { margin-top: .2rem; }
code { font: .85em ui-monospace, monospace; color: #444; }
.verdict { display: inline-block; padding: .05rem .55rem; border-radius: 1rem; font-size: .85rem; font-weight: 600; border: 2px solid; }
.verdict.yes { color: #05603a; border-color: #05603a; background: #e9f7ef; }
.verdict.part { color: #7a4b00; border-color: #b87900; border-style: dashed; background: #fff7e6; }
.verdict.no { color: #8f1d1d; border-color: #8f1d1d; border-style: dotted; background: #fdeeee; }
.verdict.untold { color: #444; border-color: #777; background: #f3f3f3; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(32rem, 100%), 1fr)); gap: 1.5rem; margin: 1.5rem 0; }
figure { margin: 0; overflow-x: auto; }
figure svg { max-width: 100%; height: auto; }
figure.drawing { grid-column: 1 / -1; }
figure.drawing svg { max-width: none; }
figcaption { color: #444; font-size: .9rem; margin-top: .3rem; }
details { margin: .6rem 0; }
summary { cursor: pointer; color: #333; }
.wide { overflow-x: auto; }
pre { overflow-x: auto; font: .82rem/1.45 ui-monospace, monospace; background: #f6f6f6; padding: 1rem; }
@media print { section { break-inside: avoid-page; } }
";
