//! How code is found and replaced.

use vez_mutants::source::{FindError, differ, find};

const CODE: &str = "\
fn enter(&mut self) {
    // First come, first served.
    if self.queue.first() == Some(&me) {
        self.enter(
            me, // the smallest
            clock,
        );
    }
    self.count += 1;
}

/// A second one.
fn leave(&mut self) {
    self.count += 1; /* as above */
}
";

#[test]
fn whitespace_comments_and_trailing_commas_are_ignored() {
    for pattern in [
        "self.enter(me, clock);",
        "self.enter(me, clock,);",
        "self . enter ( me , /* the smallest */ clock ) ;",
        "if self.queue.first() == Some(&me) { self.enter(me, clock); }",
        "// a comment that is not in the code\n    self.enter(\n me,\n clock\n );",
    ] {
        let place = find(CODE, pattern).expect(pattern);
        assert!(CODE[place].ends_with("clock,\n        );") || pattern.starts_with("if"), "{pattern}");
    }
    let place = find(CODE, "fn leave(&mut self) { self.count += 1;").expect("it is there");
    assert_eq!(&CODE[place], "fn leave(&mut self) {\n    self.count += 1;");
}

#[test]
fn strings_and_names_are_not_torn_apart() {
    let code = "let a = \"x  y\"; let queue_first = 1;";
    assert!(find(code, "\"x  y\"").is_ok());
    assert!(find(code, "\"x y\"").is_err(), "whitespace within a string counts");
    assert!(find(code, "queue").is_err(), "a name is more than its beginning");
}

#[test]
fn code_that_is_there_more_than_once_is_ambiguous() {
    assert_eq!(find(CODE, "self.count += 1;"), Err(FindError::Ambiguous(vec![9, 14])));
    assert_eq!(find(CODE, "// only a comment"), Err(FindError::Empty));
}

#[test]
fn what_is_not_found_is_reported_where_it_almost_is() {
    let error = find(CODE, "self.queue.first() == Some(&you)").expect_err("it is not there");
    assert_eq!(error, FindError::Missing { line: 3, expected: "you".into(), found: "me".into() });
    let error = find(CODE, "fn leave(&mut self) { self.count += 1; } }").expect_err("the file ends before").to_string();
    assert_eq!(error, "no match; the closest is in line 15, where `}` is not found but `the end of the file`");
}

#[test]
fn code_differs_by_its_tokens() {
    assert!(!differ("a(b, c)", "a(\n b, // b\n c,\n)"));
    assert!(differ("a(b, c)", "a(b)"));
    assert!(differ("a(b)", "a(b, c)"));
    assert!(differ("a", ""));
}
