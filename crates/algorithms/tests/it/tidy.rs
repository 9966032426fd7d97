//! The repository keeps its own rules: code and pages cite each other, every key has a reference, files stay small.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use vez_algorithms::catalog;

const LINES_A_FILE: usize = 400;
// Put together here, so that this file keeps the rule that it tests.
const UNFINISHED: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

/// Something that stands in a line of a text: a tag, a key, a name.
type Found = (usize, String);

#[test]
fn every_tag_has_a_step_on_the_page_of_its_algorithm() {
    let faults = sources().into_iter().flat_map(|(path, text)| {
        let tags = tags(&text);
        let faults = pages_named(&text).into_iter().flat_map(move |name| {
            let page = fs::read_to_string(page_of(&name)).unwrap_or_default();
            missing(&path, &tags, &names(steps(&page)), &format!("has no step in docs/algorithms/{name}.md"))
        });
        faults.collect::<Vec<_>>()
    });
    no_faults(faults);
}

#[test]
fn every_source_names_its_page() {
    let nameless = sources().into_iter().filter(|(_, text)| pages_named(text).is_empty());
    no_faults(nameless.map(|(path, _)| format!("{path}:1: names no page docs/algorithms/<name>.md")));
}

#[test]
fn every_step_is_cited_by_code() {
    let sources = sources();
    let faults = pages().into_iter().flat_map(|(name, page)| {
        let cited = sources.iter().filter(|(_, text)| pages_named(text).contains(&name));
        let cited = names(cited.flat_map(|(_, text)| tags(text)));
        missing(&format!("docs/algorithms/{name}.md"), &steps(&page), &cited, "is cited by no code")
    });
    no_faults(faults);
}

#[test]
fn every_key_has_a_reference() {
    let known = reference_keys(&read("docs/references.md"));
    let mut faults = Vec::new();
    let mut look_up = |path: &str, keys: Vec<Found>| {
        faults.extend(missing(path, &keys, &known, "is no key of docs/references.md"));
    };
    for (path, text) in sources() {
        look_up(&path, tags(&text).into_iter().map(|(line, tag)| (line, key_of(&tag))).collect());
        look_up(&path, bracketed_keys(&module_doc(&text)));
    }
    for (name, page) in pages() {
        look_up(&format!("docs/algorithms/{name}.md"), bracketed_keys(&page));
    }
    for entry in catalog::ALL {
        look_up(&format!("PAPER of {}", entry.name), vec![(1, entry.paper.into())]);
    }
    no_faults(faults);
}

#[test]
fn the_pages_are_those_of_the_catalog() {
    let listed: BTreeSet<String> = catalog::ALL.iter().map(|entry| entry.name.into()).collect();
    let written = pages().into_iter().map(|(name, _)| name).collect();
    let without_page = listed.difference(&written).map(|name| format!("{name}: no page docs/algorithms/{name}.md"));
    let unlisted = written.difference(&listed).map(|name| format!("docs/algorithms/{name}.md:1: not in the catalog"));
    no_faults(without_page.chain(unlisted));
}

#[test]
fn every_algorithm_has_a_transcript() {
    let directories = catalog::ALL.iter().map(|entry| format!("transcripts/{}/{}", entry.family, entry.name));
    let without = directories.filter(|directory| files(&root().join(directory)).is_empty());
    no_faults(without.map(|directory| format!("{directory}: no transcript")));
}

#[test]
fn files_stay_small() {
    let too_long = rust_files("crates").into_iter().filter_map(|(path, text)| {
        let lines = text.lines().count();
        (lines > LINES_A_FILE).then(|| format!("{path}:{lines}: more than {LINES_A_FILE} lines"))
    });
    no_faults(too_long);
}

#[test]
fn algorithms_match_without_wildcards() {
    let faults = rust_files("crates/algorithms/src").into_iter().flat_map(|(path, text)| {
        let at = |line: usize| format!("{path}:{line}: a wildcard arm; name the cases");
        wildcards(&text).into_iter().map(at).collect::<Vec<_>>()
    });
    no_faults(faults);
}

#[test]
fn nothing_is_left_unfinished() {
    let faults = texts("crates").into_iter().chain(texts("docs")).flat_map(|(path, text)| {
        let at = |(line, word)| format!("{path}:{line}: {word}");
        unfinished(&text).into_iter().map(at).collect::<Vec<_>>()
    });
    no_faults(faults);
}

/// The tags in the comments of a source: `RA81:5` cites step 5 of the page.
fn tags(source: &str) -> Vec<Found> {
    let comments = source.lines().enumerate().filter_map(|(i, line)| Some((i + 1, line.split_once("//")?.1)));
    let words = comments.flat_map(|(line, comment)| {
        comment.split(|c: char| !c.is_alphanumeric() && c != ':').map(move |word| (line, word))
    });
    words.filter(|(_, word)| is_tag(word)).map(|(line, word)| (line, word.to_owned())).collect()
}

/// The steps of a page: its list items that begin with a tag in bold.
fn steps(page: &str) -> Vec<Found> {
    let step = |line: &str| Some(line.strip_prefix("- **")?.split_once("**")?.0.to_owned());
    page.lines().enumerate().filter_map(|(i, line)| Some((i + 1, step(line)?))).filter(|(_, tag)| is_tag(tag)).collect()
}

/// A key and a step: a number, perhaps with a letter before it.
fn is_tag(word: &str) -> bool {
    let Some((key, step)) = word.split_once(':') else { return false };
    let number = step.strip_prefix(|c: char| c.is_ascii_lowercase()).unwrap_or(step);
    is_key(key) && is_number(number) && !number.is_empty()
}

/// Capitals, and perhaps a number after them.
fn is_key(word: &str) -> bool {
    let number = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    number.len() < word.len() && is_number(number)
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit())
}

fn key_of(tag: &str) -> String {
    tag.split(':').next().unwrap_or_default().to_owned()
}

/// The keys that stand in brackets: `[RA81]`.
fn bracketed_keys(text: &str) -> Vec<Found> {
    let in_line = |line: &str| -> Vec<String> {
        let inside = line.split('[').skip(1).filter_map(|rest| Some(rest.split_once(']')?.0));
        inside.filter(|word| is_key(word)).map(str::to_owned).collect()
    };
    text.lines().enumerate().flat_map(|(i, line)| in_line(line).into_iter().map(move |key| (i + 1, key))).collect()
}

/// The first cells of a table.
fn reference_keys(references: &str) -> BTreeSet<String> {
    let first_cell = |line: &str| Some(line.strip_prefix("| ")?.split_once(" |")?.0.to_owned());
    references.lines().filter_map(first_cell).collect()
}

/// The lines of a source up to the first that is not part of its essay.
fn module_doc(source: &str) -> String {
    source.lines().take_while(|line| line.starts_with("//!")).collect::<Vec<_>>().join("\n")
}

/// The names of the pages that a source's essay says its steps are on.
fn pages_named(source: &str) -> BTreeSet<String> {
    let doc = module_doc(source);
    let rests = doc.split("docs/algorithms/").skip(1);
    rests.filter_map(|rest| Some(rest.split_once(".md")?.0.to_owned())).collect()
}

/// The lines with an arm that takes whatever is left.
fn wildcards(source: &str) -> Vec<usize> {
    let is_wildcard = |line: &str| {
        let words: Vec<&str> = line.split("//").next().unwrap_or_default().split_whitespace().collect();
        words.windows(2).any(|pair| pair == ["_", "=>"])
    };
    source.lines().enumerate().filter(|(_, line)| is_wildcard(line)).map(|(i, _)| i + 1).collect()
}

fn unfinished(text: &str) -> Vec<Found> {
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(i, line)| Some((i + 1, (*UNFINISHED.iter().find(|word| line.contains(**word))?).into())))
        .collect()
}

/// What of the found is not known, as messages that name file and line.
fn missing(path: &str, found: &[Found], known: &BTreeSet<String>, complaint: &str) -> Vec<String> {
    let unknown = found.iter().filter(|(_, name)| !known.contains(name));
    unknown.map(|(line, name)| format!("{path}:{line}: {name} {complaint}")).collect()
}

fn names(found: impl IntoIterator<Item = Found>) -> BTreeSet<String> {
    found.into_iter().map(|(_, name)| name).collect()
}

fn no_faults(faults: impl IntoIterator<Item = String>) {
    let faults: Vec<String> = faults.into_iter().collect();
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn page_of(name: &str) -> PathBuf {
    root().join(format!("docs/algorithms/{name}.md"))
}

/// All pages: the name of each algorithm and what is said of it.
fn pages() -> Vec<(String, String)> {
    let name = |path: &str| Some(path.strip_prefix("docs/algorithms/")?.strip_suffix(".md")?.to_owned());
    texts("docs/algorithms").into_iter().filter_map(|(path, text)| Some((name(&path)?, text))).collect()
}

/// The sources of all algorithms: those of the families, and whatever else has its steps on a page.
fn sources() -> Vec<(String, String)> {
    let families: BTreeSet<&str> = catalog::ALL.iter().map(|entry| entry.family).collect();
    let of_family = |path: &str| families.iter().any(|family| path.contains(&format!("algorithms/src/{family}/")));
    let mut sources = rust_files("crates/algorithms/src");
    sources.retain(|(path, text)| of_family(path) || !pages_named(text).is_empty());
    sources
}

fn rust_files(directory: &str) -> Vec<(String, String)> {
    texts(directory).into_iter().filter(|(path, _)| path.ends_with(".rs")).collect()
}

/// Every text file below a directory, with its path from the root of the repository.
fn texts(directory: &str) -> Vec<(String, String)> {
    let from_root = |path: &Path| path.strip_prefix(root()).expect("below the root").display().to_string();
    let files = files(&root().join(directory));
    files.into_iter().filter_map(|path| Some((from_root(&path), fs::read_to_string(&path).ok()?))).collect()
}

/// Every file below a directory, but those whose name begins with a dot.
fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("a readable directory").path());
    let visible = paths.filter(|path| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')));
    let mut found: Vec<PathBuf> =
        visible.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect();
    found.sort();
    found
}

mod spoiled {
    //! Each rule finds its fault in a small text that has it.

    use super::*;

    const SOURCE: &str = "\
//! Spoiled [RA81], [`step`], [no key]. Steps: docs/algorithms/one.md, docs/algorithms/two-b.md.
//! Cost: 3; FIFO: no.

fn f(x: Option<u8>) { // RA81:1, PO05:c3 but not X81: or Ra81:1
    a::B2::c(\"RA81:7\");
    match x { Some(_) => {} _ => {} } // ours, _ => in a comment is none
}
";
    const PAGE: &str =
        "# One\n- **RA81:1** yes\n  - **RA81:2** not a step\n- **bold** [SK85](../references.md) \n- **S87:1**";

    fn found(names: &[(usize, &str)]) -> Vec<Found> {
        names.iter().map(|(line, name)| (*line, (*name).into())).collect()
    }

    #[test]
    fn a_tag_without_a_step_and_a_step_without_a_tag() {
        assert_eq!(tags(SOURCE), found(&[(4, "RA81:1"), (4, "PO05:c3")]));
        assert_eq!(steps(PAGE), found(&[(2, "RA81:1"), (5, "S87:1")]));
        assert_eq!(pages_named(SOURCE), ["one", "two-b"].map(String::from).into());
        assert_eq!(missing("a.rs", &tags(SOURCE), &names(steps(PAGE)), "no"), ["a.rs:4: PO05:c3 no"]);
        assert_eq!(missing("a.md", &steps(PAGE), &names(tags(SOURCE)), "no"), ["a.md:5: S87:1 no"]);
    }

    #[test]
    fn a_key_without_a_reference() {
        let known = reference_keys("# R\n\n| key | reference |\n|---|---|\n| RA81 | R. |\n| ours | we |\n");
        assert_eq!(known, ["RA81", "key", "ours"].map(String::from).into());
        assert_eq!(bracketed_keys(&module_doc(SOURCE)), found(&[(1, "RA81")]));
        assert_eq!(missing("a.md", &bracketed_keys(PAGE), &known, "no"), ["a.md:4: SK85 no"]);
        assert_eq!(key_of("PO05:c3"), "PO05");
    }

    #[test]
    fn a_wildcard_and_something_unfinished() {
        assert_eq!(wildcards(SOURCE), [6]);
        assert_eq!(wildcards("(_, x) => 1,\nFoo(_) => 2,\nx_ => 3,\nlet _ = 4;\nA | _ => 5,"), [5]);
        assert_eq!(unfinished(&format!("fine\n// {}: later", UNFINISHED[0])), found(&[(2, UNFINISHED[0])]));
    }

    #[test]
    #[should_panic(expected = "a.rs:1: a fault")]
    fn a_fault_fails_the_test() {
        no_faults(["a.rs:1: a fault".to_owned()]);
    }
}
