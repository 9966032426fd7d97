//! Reads rules and expressions.

use super::expression::{Comparison, Expression, Function, Relation, named};

/// A rule or an expression that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cannot read \"{text}\" at {}: {what}", if rest.is_empty() { "its end".to_owned() } else { format!("\"{rest}\"") })]
pub struct Unreadable {
    text: String,
    rest: String,
    what: &'static str,
}

/// Reads an expression.
///
/// # Errors
/// If it is none.
pub fn expression(text: &str) -> Result<Expression, Unreadable> {
    let mut reader = Reader { text, rest: text.trim_start(), depth: 0, terms: 0 };
    let expression = reader.sum()?;
    if reader.rest.is_empty() { Ok(expression) } else { Err(reader.fail("there should be nothing more here")) }
}

/// Reads a rule: comparisons that must all be true.
///
/// # Errors
/// If it is none.
pub fn rule(text: &str) -> Result<Vec<Comparison>, Unreadable> {
    let mut reader = Reader { text, rest: text.trim_start(), depth: 0, terms: 0 };
    let mut rule = vec![comparison(&mut reader)?];
    while reader.takes("and ") {
        rule.push(comparison(&mut reader)?);
    }
    if reader.rest.is_empty() { Ok(rule) } else { Err(reader.fail("there should be nothing more here, or and")) }
}

fn comparison(reader: &mut Reader<'_>) -> Result<Comparison, Unreadable> {
    let start = reader.rest;
    let left = reader.sum()?;
    let first = start[..start.len() - reader.rest.len()].trim().to_owned();
    let relations = [
        ("<=", Relation::AtMost),
        (">=", Relation::AtLeast),
        ("<", Relation::Less),
        (">", Relation::More),
        ("=", Relation::Equal),
        ("~", Relation::Near),
    ];
    let found = relations.into_iter().find(|(sign, _)| reader.takes(sign));
    let (_, relation) = found.ok_or_else(|| reader.fail("there should be one of < <= > >= = ~ here"))?;
    let start = reader.rest;
    let right = reader.sum()?;
    let second = start[..start.len() - reader.rest.len()].trim().to_owned();
    Ok(Comparison { left, relation, right, words: [first, second] })
}

/// Deeper brackets than this nobody writes, nor more terms.
const DEEPEST: usize = 64;
const MOST_TERMS: usize = 1000;

struct Reader<'t> {
    text: &'t str,
    rest: &'t str,
    depth: usize,
    terms: usize,
}

impl Reader<'_> {
    fn fail(&self, what: &'static str) -> Unreadable {
        Unreadable { text: self.text.to_owned(), rest: self.rest.to_owned(), what }
    }

    /// Goes past a sign, if it is there.
    fn takes(&mut self, sign: &str) -> bool {
        let after = self.rest.strip_prefix(sign);
        if let Some(after) = after {
            self.rest = after.trim_start();
        }
        after.is_some()
    }

    fn expect(&mut self, sign: &str, what: &'static str) -> Result<(), Unreadable> {
        if self.takes(sign) { Ok(()) } else { Err(self.fail(what)) }
    }

    fn sum(&mut self) -> Result<Expression, Unreadable> {
        let mut left = self.product()?;
        loop {
            let function = match () {
                () if self.takes("+") => Function::Add,
                () if self.takes("-") => Function::Subtract,
                () => return Ok(left),
            };
            left = Expression::Call(function, vec![left, self.product()?]);
        }
    }

    fn product(&mut self) -> Result<Expression, Unreadable> {
        let mut left = self.factor()?;
        loop {
            let function = match () {
                () if self.takes("*") => Function::Multiply,
                () if self.takes("/") => Function::Divide,
                () => return Ok(left),
            };
            left = Expression::Call(function, vec![left, self.factor()?]);
        }
    }

    fn factor(&mut self) -> Result<Expression, Unreadable> {
        if self.depth == DEEPEST {
            return Err(self.fail("too many brackets"));
        }
        if self.terms == MOST_TERMS {
            return Err(self.fail("too many terms"));
        }
        self.terms += 1;
        self.depth += 1;
        let factor = self.unguarded_factor();
        self.depth -= 1;
        factor
    }

    fn unguarded_factor(&mut self) -> Result<Expression, Unreadable> {
        if self.takes("(") {
            let inner = self.sum()?;
            return self.expect(")", "a bracket should end here").map(|()| inner);
        }
        if self.takes("-") {
            return Ok(Expression::Call(Function::Subtract, vec![self.factor()?]));
        }
        if let Some(after) = self.rest.strip_prefix('"') {
            let end = after.find('"').ok_or_else(|| self.fail("a text should end with a quotation mark"))?;
            self.rest = after[end + 1..].trim_start();
            return Ok(Expression::Text(after[..end].to_owned()));
        }
        let word = self.word();
        if word.is_empty() {
            return Err(self.fail("there should be a number, a column or a function here"));
        }
        if let Ok(number) = word.parse::<f64>() {
            return Ok(Expression::Number(number));
        }
        if self.takes("(") {
            return self.call(&word);
        }
        if self.takes("[") {
            let end = self.rest.find(']').ok_or_else(|| self.fail("a series should end with ]"))?;
            let series = self.rest[..end].trim().to_owned();
            self.rest = self.rest[end + 1..].trim_start();
            return Ok(Expression::Column(word, Some(series)));
        }
        Ok(Expression::Column(word, None))
    }

    fn call(&mut self, name: &str) -> Result<Expression, Unreadable> {
        let function = named(name)
            .ok_or_else(|| self.fail("unknown function; there are min max abs sqrt log2 exp ceil harmonic"))?;
        let mut parts = vec![self.sum()?];
        while self.takes(",") {
            parts.push(self.sum()?);
        }
        self.expect(")", "the brackets of a function should end here")?;
        if function.takes(parts.len()) {
            Ok(Expression::Call(function, parts))
        } else {
            Err(self.fail("only min and max take more than one value"))
        }
    }

    /// A number or a name: `0.5`, `1e-9`, `sent.Token`.
    fn word(&mut self) -> String {
        let is_number = self.rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let mut before = ' ';
        let mut ends = |(at, c): (usize, char)| {
            let sign_of_an_exponent = is_number && matches!(before, 'e' | 'E') && matches!(c, '+' | '-');
            let joins = |after: &str| after.starts_with(char::is_alphabetic);
            let hyphen = !is_number && c == '-' && before.is_alphanumeric() && joins(&self.rest[at + 1..]);
            before = c;
            !(c.is_alphanumeric() || matches!(c, '.' | '_') || sign_of_an_exponent || hyphen)
        };
        let end = self.rest.char_indices().find(|at| ends(*at)).map_or(self.rest.len(), |(at, _)| at);
        let word = self.rest[..end].to_owned();
        self.rest = self.rest[end..].trim_start();
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of an expression without columns.
    fn value(text: &str) -> f64 {
        fn of(expression: &Expression) -> f64 {
            match expression {
                Expression::Number(number) => *number,
                Expression::Call(function, parts) => function.of(&parts.iter().map(of).collect::<Vec<_>>()),
                Expression::Text(_) | Expression::Column(..) => panic!("no number"),
            }
        }
        of(&expression(text).expect(text))
    }

    #[test]
    fn arithmetic() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("10 - 4 - 3", 3.0),
            ("8 / 4 / 2", 1.0),
            ("-2 * -3", 6.0),
            ("1e-3 * 1000", 1.0),
            ("harmonic(4)", 1.0 + 0.5 + 1.0 / 3.0 + 0.25),
            ("min(3, 1, 2) + max(3, 1, 2)", 4.0),
            ("abs(1 - 4) + sqrt(16) + log2(8) + ceil(0.2)", 11.0),
        ] {
            assert!((value(text) - expected).abs() < 1e-12, "{text} is {}", value(text));
        }
    }

    #[test]
    fn columns_and_series() {
        let parts = rule("sent.Token[naimi-trehel] <= 2 * wait and 1 < delay-law").expect("a rule");
        let [Comparison { left, relation, right, words }, second] = &parts[..] else { panic!("two parts: {parts:?}") };
        assert_eq!(second.right, Expression::Column("delay-law".into(), None));
        assert_eq!(*words, ["sent.Token[naimi-trehel]", "2 * wait"]);
        assert_eq!(*left, Expression::Column("sent.Token".into(), Some("naimi-trehel".into())));
        assert_eq!(*relation, Relation::AtMost);
        let wait = Expression::Column("wait".into(), None);
        assert_eq!(*right, Expression::Call(Function::Multiply, vec![Expression::Number(2.0), wait]));
        assert_eq!(rule("members = \"4 6 7 5\"").expect("a rule")[0].right, Expression::Text("4 6 7 5".into()));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, what) in [
            ("wait <", "cannot read \"wait <\" at its end: there should be a number, a column or a function here"),
            ("wait", "cannot read \"wait\" at its end: there should be one of < <= > >= = ~ here"),
            ("wait < 3 4", "cannot read \"wait < 3 4\" at \"4\": there should be nothing more here, or and"),
            ("avg(wait) < 3", "unknown function"),
            ("sqrt(1, 2) < 3", "only min and max take more than one value"),
            ("wait[nxr < 3", "a series should end with ]"),
        ] {
            let error = rule(text).expect_err(text).to_string();
            assert!(error.contains(what), "{error}");
        }
        assert!(expression(&"(".repeat(100_000)).is_err());
        assert!(expression(&"1+".repeat(100_000)).is_err());
    }
}
