//! What clients want.

use std::{fmt, str::FromStr};

use vez_peer::{
    fence::{Fence, NoFence},
    name::{Name, NoName},
};

use super::reply::Version;

/// What a client wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    /// To have a lock.
    Lock {
        name: Name,
        /// For so long without showing itself; as long as it is connected, if nothing is said.
        ttl_ms: Option<u64>,
        /// And so long it waits; as long as it is connected, if nothing is said.
        wait_ms: Option<u64>,
        /// It is told at once if the node is no member: it has others to ask.
        elsewhere: bool,
    },
    /// To give it back.
    Unlock {
        name: Name,
        fence: Fence,
    },
    /// To have it for at least so long.
    Extend {
        name: Name,
        fence: Fence,
        by_ms: u64,
    },
    /// To see which names are in use.
    List {
        prefix: Vec<u8>,
        count: usize,
    },
    /// To see who has a name, who waits for it and why.
    Show(Name),
    /// To see how the node is.
    Status,
    /// To take a lock from who has it.
    Revoke {
        name: Name,
        fence: Fence,
    },
    /// To see a node go.
    Evict(String),
    /// To see this node go, giving those who hold something so long.
    Leave {
        grace_ms: u64,
    },
    Hello(Hello),
    Auth {
        password: Vec<u8>,
    },
    Ping(Option<Vec<u8>>),
    Echo(Vec<u8>),
    Client(ClientCommand),
    /// What commands there are.
    Commands {
        count: bool,
    },
    Info,
    Select,
    Reset,
    Quit,
}

/// How a client introduces itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Hello {
    pub version: Option<Version>,
    pub password: Option<Vec<u8>>,
    pub name: Option<Vec<u8>>,
}

/// What clients say about themselves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ClientCommand {
    Id,
    GetName,
    SetName(Vec<u8>),
    Info,
    /// What does not matter here.
    Noted,
}

/// What is no command. The client is told, and goes on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum NoCommand {
    #[error(
        "ERR unknown command '{0}'; there are LOCK, UNLOCK, EXTEND, LS, SHOW, STATUS, REVOKE, EVICT, LEAVE, INFO and PING"
    )]
    Unknown(String),
    #[error("ERR wrong number of arguments for '{0}'; write {1}")]
    Arguments(&'static str, &'static str),
    #[error("ERR '{0}' is no number; write {1}")]
    Number(String, &'static str),
    #[error("ERR '{0}' is not known here; write {1}")]
    Option(String, &'static str),
    #[error("ERR there is one database, 0; leave SELECT out, or say SELECT 0")]
    Database,
    #[error("NOPROTO there are RESP2 and RESP3; write HELLO 2 or HELLO 3")]
    Version,
    #[error("ERR {0}")]
    Name(#[from] NoName),
    #[error("ERR {0}")]
    Fence(#[from] NoFence),
}

const LOCK: &str = "LOCK name [TTL milliseconds] [WAIT milliseconds] [ELSEWHERE]";
const UNLOCK: &str = "UNLOCK name fence";
const EXTEND: &str = "EXTEND name fence milliseconds";
const LS: &str = "LS [prefix] [COUNT number]";
const SHOW: &str = "SHOW name";
const REVOKE: &str = "REVOKE name fence";
const EVICT: &str = "EVICT node";
const LEAVE: &str = "LEAVE [GRACE milliseconds]";
const HELLO: &str = "HELLO [2|3] [AUTH user password] [SETNAME name]";
const AUTH: &str = "AUTH [user] password";
const CLIENT: &str = "CLIENT ID|INFO|GETNAME|SETNAME name|SETINFO name value";

/// So many names are listed, unless something else is said.
const DEFAULT_COUNT: usize = 1000;
/// More are never listed at once.
pub(crate) const MOST_COUNT: usize = 10_000;

impl Command {
    /// What the words of a request mean.
    pub(crate) fn new(words: &[&[u8]]) -> Result<Self, NoCommand> {
        let (command, rest) = words.split_first().expect("there is a word");
        let is = |name: &str| command.eq_ignore_ascii_case(name.as_bytes());
        if is("LOCK") {
            lock(rest)
        } else if is("UNLOCK") {
            let [name, fence] = rest else { return Err(NoCommand::Arguments("UNLOCK", UNLOCK)) };
            Ok(Self::Unlock { name: Name::new(name)?, fence: parse(fence)? })
        } else if is("EXTEND") {
            let [name, fence, by] = rest else { return Err(NoCommand::Arguments("EXTEND", EXTEND)) };
            Ok(Self::Extend { name: Name::new(name)?, fence: parse(fence)?, by_ms: number(by, EXTEND)? })
        } else if is("PING") {
            match rest {
                [] => Ok(Self::Ping(None)),
                [text] => Ok(Self::Ping(Some(text.to_vec()))),
                _ => Err(NoCommand::Arguments("PING", "PING [text]")),
            }
        } else if is("LS") {
            list(rest)
        } else if is("SHOW") {
            let [name] = rest else { return Err(NoCommand::Arguments("SHOW", SHOW)) };
            Ok(Self::Show(Name::new(name)?))
        } else if is("STATUS") {
            Ok(Self::Status)
        } else if is("REVOKE") {
            let [name, fence] = rest else { return Err(NoCommand::Arguments("REVOKE", REVOKE)) };
            Ok(Self::Revoke { name: Name::new(name)?, fence: parse(fence)? })
        } else if is("EVICT") {
            let [node] = rest else { return Err(NoCommand::Arguments("EVICT", EVICT)) };
            Ok(Self::Evict(text(node)))
        } else if is("LEAVE") {
            let mut options = Options::new(rest, LEAVE);
            let mut grace_ms = 0;
            while let Some(option) = options.next() {
                grace_ms = if option.is("GRACE") { options.number()? } else { return Err(options.unknown(option)) };
            }
            Ok(Self::Leave { grace_ms })
        } else {
            Self::greeting(command, rest)
        }
    }

    /// What every Redis client may say.
    fn greeting(command: &[u8], rest: &[&[u8]]) -> Result<Self, NoCommand> {
        let is = |name: &str| command.eq_ignore_ascii_case(name.as_bytes());
        if is("HELLO") {
            hello(rest)
        } else if is("AUTH") {
            let ([password] | [_, password]) = rest else { return Err(NoCommand::Arguments("AUTH", AUTH)) };
            Ok(Self::Auth { password: password.to_vec() })
        } else if is("CLIENT") {
            client(rest)
        } else if is("COMMAND") {
            let count = rest.first().is_some_and(|word| word.eq_ignore_ascii_case(b"COUNT"));
            Ok(Self::Commands { count })
        } else if is("INFO") {
            Ok(Self::Info)
        } else if is("ECHO") {
            let [text] = rest else { return Err(NoCommand::Arguments("ECHO", "ECHO text")) };
            Ok(Self::Echo(text.to_vec()))
        } else if is("SELECT") {
            match rest {
                [b"0"] => Ok(Self::Select),
                _ => Err(NoCommand::Database),
            }
        } else if is("RESET") {
            Ok(Self::Reset)
        } else if is("QUIT") {
            Ok(Self::Quit)
        } else {
            Err(NoCommand::Unknown(text(command)))
        }
    }

    /// Whether all members have to do with it.
    pub(crate) fn is_about_all(&self) -> bool {
        matches!(self, Self::List { .. } | Self::Show(_) | Self::Revoke { .. } | Self::Evict(_))
    }

    /// Whether it may be said before the password.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Hello(_) | Self::Auth { .. } | Self::Quit | Self::Reset)
    }
}

fn lock(rest: &[&[u8]]) -> Result<Command, NoCommand> {
    let Some((name, rest)) = rest.split_first() else { return Err(NoCommand::Arguments("LOCK", LOCK)) };
    let (mut ttl_ms, mut wait_ms, mut elsewhere) = (None, None, false);
    let mut options = Options::new(rest, LOCK);
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
    Ok(Command::Lock { name: Name::new(name)?, ttl_ms, wait_ms, elsewhere })
}

fn list(rest: &[&[u8]]) -> Result<Command, NoCommand> {
    let (mut prefix, mut count) = (None, DEFAULT_COUNT);
    let mut options = Options::new(rest, LS);
    while let Some(option) = options.next() {
        if option.is("COUNT") {
            count = usize::try_from(options.number()?).unwrap_or(MOST_COUNT).min(MOST_COUNT);
        } else if prefix.is_none() {
            if !option.0.is_empty() {
                Name::new(option.0)?; // No name begins with more than a name can have.
            }
            prefix = Some(option.0.to_vec());
        } else {
            return Err(options.unknown(option));
        }
    }
    Ok(Command::List { prefix: prefix.unwrap_or_default(), count })
}

fn hello(rest: &[&[u8]]) -> Result<Command, NoCommand> {
    let mut hello = Hello::default();
    let mut options = Options::new(rest, HELLO);
    if !rest.is_empty() {
        hello.version = match options.next().map(|option| option.0) {
            Some(b"2") => Some(Version::Two),
            Some(b"3") => Some(Version::Three),
            _ => return Err(NoCommand::Version),
        };
    }
    while let Some(option) = options.next() {
        if option.is("AUTH") {
            options.word()?;
            hello.password = Some(options.word()?.to_vec());
        } else if option.is("SETNAME") {
            hello.name = Some(options.word()?.to_vec());
        } else {
            return Err(options.unknown(option));
        }
    }
    Ok(Command::Hello(hello))
}

fn client(rest: &[&[u8]]) -> Result<Command, NoCommand> {
    let Some((what, rest)) = rest.split_first() else { return Err(NoCommand::Arguments("CLIENT", CLIENT)) };
    let is = |name: &str| what.eq_ignore_ascii_case(name.as_bytes());
    let command = match rest {
        [] if is("ID") => ClientCommand::Id,
        [] if is("INFO") => ClientCommand::Info,
        [] if is("GETNAME") => ClientCommand::GetName,
        [name] if is("SETNAME") => ClientCommand::SetName(name.to_vec()),
        [_, _] if is("SETINFO") => ClientCommand::Noted,
        [_] if is("NO-EVICT") || is("NO-TOUCH") => ClientCommand::Noted,
        _ => return Err(NoCommand::Option(text(what), CLIENT)),
    };
    Ok(Command::Client(command))
}

/// The words after those that have to be there.
struct Options<'a> {
    words: std::slice::Iter<'a, &'a [u8]>,
    usage: &'static str,
}

struct Word<'a>(&'a [u8]);

impl Word<'_> {
    fn is(&self, name: &str) -> bool {
        self.0.eq_ignore_ascii_case(name.as_bytes())
    }
}

impl<'a> Options<'a> {
    fn new(words: &'a [&'a [u8]], usage: &'static str) -> Self {
        Self { words: words.iter(), usage }
    }

    fn next(&mut self) -> Option<Word<'a>> {
        self.words.next().map(|word| Word(word))
    }

    fn word(&mut self) -> Result<&'a [u8], NoCommand> {
        let name = self.usage.split(' ').next().unwrap_or_default();
        self.words.next().copied().ok_or(NoCommand::Arguments(name, self.usage))
    }

    fn number(&mut self) -> Result<u64, NoCommand> {
        let word = self.word()?;
        number(word, self.usage)
    }

    fn unknown(&self, option: Word<'_>) -> NoCommand {
        NoCommand::Option(text(option.0), self.usage)
    }
}

fn number(word: &[u8], usage: &'static str) -> Result<u64, NoCommand> {
    let digits = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    let number = str::from_utf8(word).ok().filter(|_| digits).and_then(|word| word.parse().ok());
    number.ok_or_else(|| NoCommand::Number(text(word), usage))
}

fn parse<T: FromStr<Err = NoFence>>(word: &[u8]) -> Result<T, NoCommand> {
    Ok(text(word).parse()?)
}

/// Bytes of a client, as they can be shown: not too many.
fn text(bytes: &[u8]) -> String {
    struct Shown<'a>(&'a [u8]);
    impl fmt::Display for Shown<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{}", self.0.escape_ascii())
        }
    }
    Shown(&bytes[..bytes.len().min(64)]).to_string()
}
