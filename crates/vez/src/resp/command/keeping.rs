//! What lock libraries that were written for Redis say.

use vez_peer::name::Name;

use super::{Command, NoCommand, Options, number, text};
use crate::resp::script::{Sum, parse_sum};

/// What such a library wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Keeping {
    /// The lock, if nobody has it: it is had by whoever knows the value.
    Set {
        name: Name,
        value: Vec<u8>,
        /// For so long; for as long as may be, if nothing is said.
        ttl_ms: Option<u64>,
    },
    Get(Name),
    /// To give these back, whatever their values.
    Delete(Vec<Name>),
    Exists(Vec<Name>),
    /// It is to end so long from now; at once, if that is not in the future.
    Expire {
        name: Name,
        ttl_ms: i64,
    },
    /// How long it is had.
    Left {
        name: Name,
        /// Not in milliseconds.
        seconds: bool,
    },
    Eval {
        script: Script,
        keys: Vec<Name>,
        arguments: Vec<Vec<u8>>,
    },
    Load(Vec<u8>),
    /// Whether these are known, by their SHA-1, where it is one.
    Known(Vec<Option<Sum>>),
    Flush,
}

/// Which script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Script {
    Text(Vec<u8>),
    /// By its SHA-1, if it is one.
    Sum(Option<Sum>),
}

const GET: &str = "GET name";
const DEL: &str = "DEL name…";
const EXISTS: &str = "EXISTS name…";
const EXPIRE: &str = "EXPIRE name seconds";
const PEXPIRE: &str = "PEXPIRE name milliseconds";
const TTL: &str = "TTL name";
const PTTL: &str = "PTTL name";
const EVAL: &str = "EVAL script count name… argument…";
const EVALSHA: &str = "EVALSHA sha1 count name… argument…";
const SCRIPT: &str = "SCRIPT LOAD script|EXISTS sha1…|FLUSH";

/// What the words mean, if they are of that kind.
pub(super) fn command(command: &[u8], rest: &[&[u8]]) -> Option<Result<Command, NoCommand>> {
    let is = |name: &str| command.eq_ignore_ascii_case(name.as_bytes());
    let keeping = if is("SET") {
        set(rest)
    } else if is("EVALSHA") {
        eval("EVALSHA", EVALSHA, rest, |digits| Script::Sum(parse_sum(digits)))
    } else if is("EVAL") {
        eval("EVAL", EVAL, rest, |text| Script::Text(text.to_vec()))
    } else if is("GET") {
        one("GET", GET, rest).map(Keeping::Get)
    } else if is("DEL") {
        several("DEL", DEL, rest).map(Keeping::Delete)
    } else if is("EXISTS") {
        several("EXISTS", EXISTS, rest).map(Keeping::Exists)
    } else if is("EXPIRE") {
        expire("EXPIRE", EXPIRE, rest, 1000)
    } else if is("PEXPIRE") {
        expire("PEXPIRE", PEXPIRE, rest, 1)
    } else if is("TTL") {
        one("TTL", TTL, rest).map(|name| Keeping::Left { name, seconds: true })
    } else if is("PTTL") {
        one("PTTL", PTTL, rest).map(|name| Keeping::Left { name, seconds: false })
    } else if is("SCRIPT") {
        script(rest)
    } else {
        return None;
    };
    Some(keeping.map(Command::Keeping))
}

fn set(rest: &[&[u8]]) -> Result<Keeping, NoCommand> {
    let [name, value, rest @ ..] = rest else { return Err(NoCommand::Set) };
    let (mut is_new, mut ttl_ms) = (false, None);
    let mut options = Options::new(rest, "SET name value NX [PX milliseconds]");
    while let Some(option) = options.next() {
        if option.is("NX") {
            is_new = true;
        } else if option.is("PX") {
            ttl_ms = Some(options.number()?);
        } else if option.is("EX") {
            ttl_ms = Some(options.number()?.saturating_mul(1000));
        } else {
            return Err(NoCommand::Set);
        }
    }
    match (is_new, ttl_ms) {
        (false, _) => Err(NoCommand::Set),
        (true, Some(0)) => Err(NoCommand::ExpireTime),
        (true, _) => Ok(Keeping::Set { name: Name::new(name)?, value: value.to_vec(), ttl_ms }),
    }
}

fn eval(
    word: &'static str,
    usage: &'static str,
    rest: &[&[u8]],
    which: impl FnOnce(&[u8]) -> Script,
) -> Result<Keeping, NoCommand> {
    let [script, count, rest @ ..] = rest else { return Err(NoCommand::Arguments(word, usage)) };
    let count = usize::try_from(number(count, usage)?).unwrap_or(usize::MAX);
    let Some((keys, arguments)) = rest.split_at_checked(count) else { return Err(NoCommand::Arguments(word, usage)) };
    let arguments = arguments.iter().map(|argument| argument.to_vec()).collect();
    Ok(Keeping::Eval { script: which(script), keys: names(keys)?, arguments })
}

fn script(rest: &[&[u8]]) -> Result<Keeping, NoCommand> {
    let Some((what, rest)) = rest.split_first() else { return Err(NoCommand::Arguments("SCRIPT", SCRIPT)) };
    let is = |name: &str| what.eq_ignore_ascii_case(name.as_bytes());
    match rest {
        [script] if is("LOAD") => Ok(Keeping::Load(script.to_vec())),
        [_, ..] if is("EXISTS") => Ok(Keeping::Known(rest.iter().map(|digits| parse_sum(digits)).collect())),
        // It may be said how soon.
        [] | [_] if is("FLUSH") => Ok(Keeping::Flush),
        _ => Err(NoCommand::Option(text(what), SCRIPT)),
    }
}

fn expire(word: &'static str, usage: &'static str, rest: &[&[u8]], times: i64) -> Result<Keeping, NoCommand> {
    let [name, time] = rest else { return Err(NoCommand::Arguments(word, usage)) };
    let ttl: Option<i64> = str::from_utf8(time).ok().and_then(|time| time.parse().ok());
    let ttl_ms = ttl.ok_or_else(|| NoCommand::Number(text(time), usage))?.saturating_mul(times);
    Ok(Keeping::Expire { name: Name::new(name)?, ttl_ms })
}

fn one(word: &'static str, usage: &'static str, rest: &[&[u8]]) -> Result<Name, NoCommand> {
    let [name] = rest else { return Err(NoCommand::Arguments(word, usage)) };
    Ok(Name::new(name)?)
}

fn several(word: &'static str, usage: &'static str, rest: &[&[u8]]) -> Result<Vec<Name>, NoCommand> {
    if rest.is_empty() { Err(NoCommand::Arguments(word, usage)) } else { names(rest) }
}

fn names(words: &[&[u8]]) -> Result<Vec<Name>, NoCommand> {
    words.iter().map(|word| Name::new(word).map_err(NoCommand::from)).collect()
}
