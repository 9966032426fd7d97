//! The Lua of such scripts, in a form that leaves out how it was written.
//!
//! Two scripts of one form do the same. What does not matter is gone: white space, comments, the kind of quotes, the case of
//! Redis' own words, `pcall` for `call`, `unlink` for `del`, semicolons, the brackets around a whole condition, and how local
//! variables are called. One that only stands for a key or an argument is replaced by it.
//!
//! Nothing is understood here but the words: what the form means, only the table knows. So this need not take all of Lua; what
//! no known script has (an escape in a string, a fraction) makes it an unknown one.

/// No known script has half as many words.
const MOST_WORDS: usize = 256;

const KEYWORDS: [&[u8]; 21] = [
    b"and",
    b"break",
    b"do",
    b"else",
    b"elseif",
    b"end",
    b"false",
    b"for",
    b"function",
    b"if",
    b"in",
    b"local",
    b"nil",
    b"not",
    b"or",
    b"repeat",
    b"return",
    b"then",
    b"true",
    b"until",
    b"while",
];

/// Those that begin a statement, or end one.
const BORDERS: [&[u8]; 7] = [b"if", b"local", b"return", b"for", b"end", b"else", b"elseif"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word<'a> {
    Keyword(&'a [u8]),
    Name(&'a [u8]),
    Number(&'a [u8]),
    Text(&'a [u8]),
    Sign(&'a [u8]),
}

impl Word<'_> {
    fn is(self, text: &str) -> bool {
        matches!(self, Self::Keyword(word) | Self::Name(word) | Self::Sign(word) if word == text.as_bytes())
    }

    /// Whether a statement may begin with it, or a block end.
    fn is_border(self) -> bool {
        matches!(self, Self::Name(_)) || matches!(self, Self::Keyword(word) if BORDERS.contains(&word))
    }

    /// Whether an expression may end with it.
    fn ends_value(self) -> bool {
        match self {
            Self::Name(_) | Self::Number(_) | Self::Text(_) => true,
            Self::Keyword(word) => [&b"end"[..], b"true", b"false", b"nil"].contains(&word),
            Self::Sign(sign) => [&b")"[..], b"]"].contains(&sign),
        }
    }
}

/// The form of a script; none if no known script is like that.
pub(super) fn form(script: &[u8]) -> Option<String> {
    let mut words = split(script)?;
    drop_semicolons(&mut words);
    drop_brackets(&mut words);
    Some(Writer::default().write(&words))
}

/// The words of a script, without comments.
fn split(mut rest: &[u8]) -> Option<Vec<Word<'_>>> {
    let mut words = Vec::new();
    loop {
        rest = rest.trim_ascii_start();
        let Some(first) = rest.first() else { return Some(words) };
        if words.len() >= MOST_WORDS {
            return None;
        }
        if let Some(comment) = rest.strip_prefix(b"--") {
            rest = after_comment(comment)?;
            continue;
        }
        let (word, length) = match first {
            b'"' | b'\'' => text(rest)?,
            b'0'..=b'9' => number(rest)?,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => name(rest),
            _ => sign(rest)?,
        };
        words.push(word);
        rest = &rest[length..];
    }
}

/// What follows a comment: the next line, or what is behind the brackets that end a long one.
fn after_comment(comment: &[u8]) -> Option<&[u8]> {
    let level = comment.iter().skip(1).take_while(|byte| **byte == b'=').count();
    if comment.first() != Some(&b'[') || comment.get(1 + level) != Some(&b'[') {
        let end = comment.iter().position(|byte| *byte == b'\n').unwrap_or(comment.len());
        return Some(&comment[end..]);
    }
    let mut rest = &comment[2 + level..];
    loop {
        let end = rest.iter().position(|byte| *byte == b']')?;
        rest = &rest[end + 1..];
        let same = rest.iter().take(level + 1).take_while(|byte| **byte == b'=').count();
        if same == level && rest.get(level) == Some(&b']') {
            return Some(&rest[level + 1..]);
        }
        // What was looked at are signs that end no comment.
        rest = &rest[same..];
    }
}

fn name(rest: &[u8]) -> (Word<'_>, usize) {
    let long = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    let name = &rest[..long];
    (if KEYWORDS.contains(&name) { Word::Keyword(name) } else { Word::Name(name) }, long)
}

fn number(rest: &[u8]) -> Option<(Word<'_>, usize)> {
    let long = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'.').count();
    let digits = &rest[..long];
    let plain = digits == b"0" || digits[0] != b'0' && digits.iter().all(u8::is_ascii_digit);
    plain.then_some((Word::Number(digits), long))
}

fn text(rest: &[u8]) -> Option<(Word<'_>, usize)> {
    let (quote, rest) = rest.split_first()?;
    let long = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    (rest.get(long) == Some(quote)).then_some((Word::Text(&rest[..long]), long + 2))
}

fn sign(rest: &[u8]) -> Option<(Word<'_>, usize)> {
    let long = match rest {
        [b'=' | b'~' | b'<' | b'>', b'=', ..] | [b'.', b'.', ..] => 2,
        [b'=' | b'<' | b'>' | b'(' | b')' | b'[' | b']' | b'{' | b'}', ..] => 1,
        [b',' | b';' | b'.' | b':' | b'+' | b'-' | b'*' | b'/' | b'%' | b'^' | b'#', ..] => 1,
        _ => return None,
    };
    Some((Word::Sign(&rest[..long]), long))
}

/// Between two statements, a semicolon says nothing. Elsewhere it is an error or part of one, and is kept.
fn drop_semicolons(words: &mut Vec<Word<'_>>) {
    let mut kept: Vec<Word<'_>> = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        let ended = kept.last().is_some_and(|before| before.ends_value());
        let begins = words.get(at + 1).is_none_or(|next| next.is_border());
        if !(word.is(";") && ended && begins) {
            kept.push(*word);
        }
    }
    *words = kept;
}

/// `if (…) then` is `if … then`.
fn drop_brackets(words: &mut Vec<Word<'_>>) {
    let mut open = Vec::new();
    let mut needless = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if word.is("(") {
            open.push(at);
        } else if word.is(")")
            && let Some(begin) = open.pop()
            && begin.checked_sub(1).is_some_and(|before| words[before].is("if") || words[before].is("elseif"))
            && words.get(at + 1).is_some_and(|next| next.is("then"))
        {
            needless.extend([begin, at]);
        }
    }
    let mut at = 0;
    words.retain(|_| {
        at += 1;
        !needless.contains(&(at - 1))
    });
}

/// What a name stands for.
enum Local<'a> {
    /// A variable: the first one, the second.
    Variable(usize),
    /// Always the same key or argument.
    Given(&'a [Word<'a>]),
}

/// Writes words down, each local name as what it stands for.
#[derive(Default)]
struct Writer<'a> {
    form: String,
    before: Option<Word<'a>>,
    /// The latest comes last, and hides one before that is called the same.
    locals: Vec<(&'a [u8], Local<'a>)>,
    variables: usize,
}

impl<'a> Writer<'a> {
    fn write(mut self, words: &'a [Word<'a>]) -> String {
        let mut at = 0;
        // Names for keys and arguments are given at the beginning: there they hold for all that follows.
        while let Some((name, given, next)) = given(words, at) {
            self.locals.push((name, Local::Given(given)));
            at = next;
        }
        while let Some(word) = words.get(at) {
            if let Word::Name(name) = word
                && self.before.is_some_and(|before| before.is("local") || before.is("for"))
            {
                at = self.declare(words, at, name);
            } else {
                self.put(*word);
                at += 1;
            }
        }
        self.form
    }

    /// A list of new names, separated by commas; where it ends.
    fn declare(&mut self, words: &'a [Word<'a>], mut at: usize, mut name: &'a [u8]) -> usize {
        loop {
            self.variables += 1;
            self.locals.push((name, Local::Variable(self.variables)));
            self.put(Word::Name(name));
            at += 1;
            match words.get(at..at + 2) {
                Some([comma, Word::Name(next)]) if comma.is(",") => {
                    self.put(*comma);
                    (name, at) = (next, at + 1);
                }
                _ => return at,
            }
        }
    }

    fn put(&mut self, word: Word<'a>) {
        let is_field = self.before.is_some_and(|before| before.is(".") || before.is(":"));
        // Known scripts give texts to Redis only: its own words, in which case does not matter.
        let is_argument = self.before.is_some_and(|before| before.is("(") || before.is(","));
        self.before = Some(word);
        match word {
            Word::Name(name) if !is_field => self.put_name(name),
            // They differ in what becomes of an error. Here the client hears of it in either case.
            Word::Name(b"pcall") => self.append(b"call"),
            Word::Text(text) if is_argument && text.eq_ignore_ascii_case(b"unlink") => self.quote(b"del"),
            Word::Text(text) if is_argument => self.quote(&text.to_ascii_lowercase()),
            word => self.raw(word),
        }
    }

    fn put_name(&mut self, name: &[u8]) {
        match self.locals.iter().rfind(|(local, _)| *local == name) {
            Some((_, Local::Variable(number))) => {
                let variable = format!("${number}");
                self.append(variable.as_bytes());
            }
            Some((_, Local::Given(given))) => given.iter().for_each(|word| self.raw(*word)),
            None => self.append(name),
        }
    }

    fn raw(&mut self, word: Word<'_>) {
        match word {
            Word::Text(text) => self.quote(text),
            Word::Keyword(word) | Word::Name(word) | Word::Number(word) | Word::Sign(word) => self.append(word),
        }
    }

    fn quote(&mut self, text: &[u8]) {
        self.append(b"\"");
        self.form.extend(text.iter().copied().map(char::from));
        self.form.push('"');
    }

    fn append(&mut self, text: &[u8]) {
        if !self.form.is_empty() {
            self.form.push(' ');
        }
        self.form.extend(text.iter().copied().map(char::from));
    }
}

/// `local name = KEYS[1]`, if that is all, and the name is given nothing else: the name, what it stands for, what follows.
fn given<'a>(words: &'a [Word<'a>], at: usize) -> Option<(&'a [u8], &'a [Word<'a>], usize)> {
    let [local, Word::Name(name), is, table, open, Word::Number(_), close] = words.get(at..at + 7)? else {
        return None;
    };
    let is_alike = local.is("local") && is.is("=") && open.is("[") && close.is("]");
    let is_whole = words.get(at + 7).is_none_or(|next| next.is_border());
    let is_same = |pair: &[Word<'_>]| pair[0] == words[at + 1] && pair[1].is("=");
    let is_fixed = words.windows(2).filter(|pair| is_same(pair)).count() == 1;
    // Nobody calls something else KEYS.
    let is_own = [&b"KEYS"[..], b"ARGV"].iter().any(|own| name == own);
    let is_known = table.is("KEYS") || table.is("ARGV");
    (is_alike && is_whole && is_fixed && is_known && !is_own).then_some((name, &words[at + 3..at + 7], at + 7))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, expected: &str) {
        assert_eq!(form(script.as_bytes()).as_deref(), Some(expected), "{script}");
    }

    #[test]
    fn how_it_was_written_is_left_out() {
        let expected = "if redis . call ( \"get\" , KEYS [ 1 ] ) == ARGV [ 1 ] then return 1 end return 0";
        check("if redis.call('get',KEYS[1])==ARGV[1] then return 1 end return 0", expected);
        check(
            "-- why\nif (redis.pcall(\"GET\" , KEYS[ 1 ]) == ARGV[1]) then\r\n\treturn 1;\nend;\nreturn 0;",
            expected,
        );
        check("--[==[ ]] ]=] ]==]if redis.call('Get', KEYS[1]) == ARGV[1] then return 1 end return 0 --", expected);
        check("local k = KEYS[1]; local v = ARGV[1] if redis.call('get', k) == v then return 1 end return 0", expected);
    }

    #[test]
    fn local_names_are_numbered_in_order() {
        check("local a = 1 local b, c = a, 2 local a = c", "local $1 = 1 local $2 , $3 = $1 , 2 local $4 = $3");
        check("for i, k in ipairs(KEYS) do t.i = k end", "for $1 , $2 in ipairs ( KEYS ) do t . i = $2 end");
        // One that is given something else later is a variable.
        check("local t = ARGV[2] t = t + 1 return t", "local $1 = ARGV [ 2 ] $1 = $1 + 1 return $1");
        // And so is one that holds for a part only.
        check("if a then local k = KEYS[1] end return k", "if a then local $1 = KEYS [ 1 ] end return $1");
        check("local k = KEYS[1] .. 'x' return k", "local $1 = KEYS [ 1 ] .. \"x\" return $1");
    }

    #[test]
    fn what_matters_is_kept() {
        check("return ARGV[3] == 'YES'", "return ARGV [ 3 ] == \"YES\"");
        check("if a then return; end", "if a then return ; end");
        check("if (a) == (b) then end", "if ( a ) == ( b ) then end");
        check("local x; = 1", "local $1 ; = 1");
        check("return pcall(f)", "return pcall ( f )");
    }

    #[test]
    fn what_no_known_script_has_makes_it_unknown() {
        for script in
            ["'a\\n'", "'open", "1.5", "0x10", "007", "#!lua", "[[text]] ?", "--[[ open", "\u{e9}", "$1", "'é'"]
        {
            assert_eq!(form(script.as_bytes()), None, "{script}");
        }
        assert_eq!(form("a ".repeat(MOST_WORDS + 1).as_bytes()), None);
        assert_eq!(form(b" \n").as_deref(), Some(""));
    }
}
