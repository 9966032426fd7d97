//! Taking something and giving it back: each primitive in its own words.

use vez_peer::{ask::Ask, name::Name};

use super::{Command, NoCommand, Options, number, parse};

/// What is to be had, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Take {
    pub wanted: Wanted,
    /// For so long without showing itself; as long as it is connected, if nothing is said.
    pub ttl_ms: Option<u64>,
    /// And so long it waits; as long as it is connected, if nothing is said.
    pub wait_ms: Option<u64>,
    /// It is told at once if the node is no member: it has others to ask.
    pub elsewhere: bool,
}

/// What is to be had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    One(Name, Ask),
    /// All of these locks, or none. The answer has their fences in this order.
    All(Vec<Name>),
}

const LOCK: &str = "LOCK name [TTL milliseconds] [WAIT milliseconds] [ELSEWHERE]";
const LOCKALL: &str = "LOCKALL count name… [TTL milliseconds] [WAIT milliseconds] [ELSEWHERE]";
const SEM: &str =
    "SEM name units [TAKE units] [TTL milliseconds] [WAIT milliseconds] [ELSEWHERE], or SEM name RESIZE units";
const ENTER: &str = "ENTER name session [TTL milliseconds] [WAIT milliseconds] [ELSEWHERE]";
const READ: &str = "READ name [TTL milliseconds] [WAIT milliseconds] [ELSEWHERE]";
const WRITE: &str = "WRITE name [TTL milliseconds] [WAIT milliseconds] [ELSEWHERE]";
const CAMPAIGN: &str = "CAMPAIGN name value [TTL milliseconds] [WAIT milliseconds] [ELSEWHERE]";
const UNLOCK: &str = "UNLOCK name fence";
const LEAVE: &str = "LEAVE name fence";
const RESIGN: &str = "RESIGN name fence";
const LEADER: &str = "LEADER name";
const OBSERVE: &str = "OBSERVE name";
const UNOBSERVE: &str = "UNOBSERVE name";

/// What the words mean, if they are about taking something or giving it back.
pub(super) fn command(command: &[u8], rest: &[&[u8]]) -> Option<Result<Command, NoCommand>> {
    let is = |name: &str| command.eq_ignore_ascii_case(name.as_bytes());
    Some(if is("LOCK") {
        one("LOCK", LOCK, rest, |name| Ok(Wanted::One(name, Ask::Lock)))
    } else if is("UNLOCK") {
        release("UNLOCK", UNLOCK, rest)
    } else if is("SEM") {
        semaphore(rest)
    } else if is("READ") {
        one("READ", READ, rest, |name| Ok(Wanted::One(name, Ask::Read)))
    } else if is("WRITE") {
        one("WRITE", WRITE, rest, |name| Ok(Wanted::One(name, Ask::Write)))
    } else if is("ENTER") {
        labelled("ENTER", ENTER, rest, |label| Ask::Group { label })
    } else if is("CAMPAIGN") {
        labelled("CAMPAIGN", CAMPAIGN, rest, |value| Ask::Elect { value })
    } else if is("LOCKALL") {
        all(rest)
    } else if is("LEAVE") {
        release("LEAVE", LEAVE, rest)
    } else if is("RESIGN") {
        release("RESIGN", RESIGN, rest)
    } else if is("LEADER") {
        named("LEADER", LEADER, rest, Command::Leader)
    } else if is("OBSERVE") {
        named("OBSERVE", OBSERVE, rest, Command::Observe)
    } else if is("UNOBSERVE") {
        named("UNOBSERVE", UNOBSERVE, rest, Command::Unobserve)
    } else {
        return None;
    })
}

/// Something that has a name and nothing else.
fn one(
    word: &'static str,
    usage: &'static str,
    rest: &[&[u8]],
    wanted: impl FnOnce(Name) -> Result<Wanted, NoCommand>,
) -> Result<Command, NoCommand> {
    let Some((name, rest)) = rest.split_first() else { return Err(NoCommand::Arguments(word, usage)) };
    take(wanted(Name::new(name)?)?, Options::new(rest, usage))
}

/// Something that has a name, and a label or a value.
fn labelled(
    word: &'static str,
    usage: &'static str,
    rest: &[&[u8]],
    ask: impl FnOnce(Vec<u8>) -> Ask,
) -> Result<Command, NoCommand> {
    let [name, label, rest @ ..] = rest else { return Err(NoCommand::Arguments(word, usage)) };
    take(Wanted::One(Name::new(name)?, ask(label.to_vec())), Options::new(rest, usage))
}

fn semaphore(rest: &[&[u8]]) -> Result<Command, NoCommand> {
    let [name, what, rest @ ..] = rest else { return Err(NoCommand::Arguments("SEM", SEM)) };
    let name = Name::new(name)?;
    if what.eq_ignore_ascii_case(b"RESIZE") {
        let [units] = rest else { return Err(NoCommand::Arguments("SEM", SEM)) };
        return Ok(Command::Resize { name, units: count(units)? });
    }
    let (units, mut weight, mut rest) = (count(what)?, 1, rest);
    if let [take, taken, more @ ..] = rest
        && take.eq_ignore_ascii_case(b"TAKE")
    {
        (weight, rest) = (count(taken)?, more);
    }
    take(Wanted::One(name, Ask::Semaphore { units, weight }), Options::new(rest, SEM))
}

fn count(word: &[u8]) -> Result<u32, NoCommand> {
    let number = number(word, SEM)?;
    u32::try_from(number).map_err(|_| NoCommand::TooMany(number, SEM))
}

fn all(rest: &[&[u8]]) -> Result<Command, NoCommand> {
    let Some((count, rest)) = rest.split_first() else { return Err(NoCommand::Arguments("LOCKALL", LOCKALL)) };
    let count = usize::try_from(number(count, LOCKALL)?).unwrap_or(usize::MAX);
    let Some((names, rest)) = rest.split_at_checked(count).filter(|_| count > 0) else {
        return Err(NoCommand::Arguments("LOCKALL", LOCKALL));
    };
    let names: Result<Vec<Name>, _> = names.iter().map(|name| Name::new(name)).collect();
    take(Wanted::All(names?), Options::new(rest, LOCKALL))
}

fn release(word: &'static str, usage: &'static str, rest: &[&[u8]]) -> Result<Command, NoCommand> {
    let [name, fence] = rest else { return Err(NoCommand::Arguments(word, usage)) };
    Ok(Command::Release { name: Name::new(name)?, fence: parse(fence)? })
}

fn named(
    word: &'static str,
    usage: &'static str,
    rest: &[&[u8]],
    command: impl FnOnce(Name) -> Command,
) -> Result<Command, NoCommand> {
    let [name] = rest else { return Err(NoCommand::Arguments(word, usage)) };
    Ok(command(Name::new(name)?))
}

fn take(wanted: Wanted, mut options: Options<'_>) -> Result<Command, NoCommand> {
    let (mut ttl_ms, mut wait_ms, mut elsewhere) = (None, None, false);
    while let Some(option) = options.next() {
        if option.is("TTL") {
            ttl_ms = Some(options.number()?);
        } else if option.is("WAIT") {
            wait_ms = Some(options.number()?);
        } else if option.is("ELSEWHERE") {
            elsewhere = true;
        } else {
            return Err(options.unknown(option));
        }
    }
    Ok(Command::Take(Take { wanted, ttl_ms, wait_ms, elsewhere }))
}
