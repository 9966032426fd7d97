//! What clients want.

mod keeping;
mod options;
mod taking;

use vez_peer::{
    fence::{Fence, NoFence},
    name::{Name, NoName},
};

use self::options::{Options, number, parse, text};
pub(crate) use self::{
    keeping::{Keeping, Script},
    taking::{Take, Wanted},
};
use super::reply::Version;

/// What a client wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    /// To have something.
    Take(Take),
    /// To give it back.
    Release {
        name: Name,
        fence: Fence,
    },
    /// What lock libraries that were written for Redis want.
    Keeping(Keeping),
    /// To have it for at least so long.
    Extend {
        name: Name,
        fence: Fence,
        by_ms: u64,
    },
    /// A semaphore is to have so many units.
    Resize {
        name: Name,
        units: u32,
    },
    /// To see who leads.
    Leader(Name),
    /// To see who leads, now and from now on; and not any more.
    Observe(Name),
    Unobserve(Name),
    /// To see which names are in use.
    List {
        prefix: Vec<u8>,
        count: usize,
    },
    /// To see who has a name, who waits for it and why.
    Show(Name),
    /// To see how the node is.
    Status,
    /// To see how all nodes are.
    Nodes,
    /// To take a lock from who has it.
    Revoke {
        name: Name,
        fence: Fence,
    },
    /// To see a node go.
    Evict(String),
    /// To see this node go, giving those who hold something so long.
    Shutdown {
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
        "ERR unknown command '{0}'; there are LOCK, LOCKALL and UNLOCK, SEM, ENTER, READ, WRITE and LEAVE, CAMPAIGN, RESIGN, LEADER, OBSERVE \
         and UNOBSERVE, EXTEND, LS, SHOW, STATUS, NODES, REVOKE, EVICT, SHUTDOWN, INFO and PING; and for \
         lock libraries SET, GET, DEL, EXISTS, EXPIRE, PEXPIRE, TTL, PTTL, EVAL, EVALSHA and SCRIPT"
    )]
    Unknown(String),
    #[error("ERR wrong number of arguments for '{0}'; write {1}")]
    Arguments(&'static str, &'static str),
    #[error("ERR '{0}' is no number; write {1}")]
    Number(String, &'static str),
    #[error("ERR {0} is too many; write {1}")]
    TooMany(u64, &'static str),
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
    #[error(
        "ERR SET is for locks here, and takes those that nobody has; write SET name value NX [PX milliseconds], or EX seconds"
    )]
    Set,
    #[error("ERR invalid expire time in 'set' command")]
    ExpireTime,
}

const EXTEND: &str = "EXTEND name fence milliseconds";
const LS: &str = "LS [prefix] [COUNT number]";
const SHOW: &str = "SHOW name";
const REVOKE: &str = "REVOKE name fence";
const EVICT: &str = "EVICT node";
const SHUTDOWN: &str = "SHUTDOWN [GRACE milliseconds]";
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
        if let Some(taking) = taking::command(command, rest) {
            taking
        } else if let Some(keeping) = keeping::command(command, rest) {
            keeping
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
        } else if is("NODES") {
            Ok(Self::Nodes)
        } else if is("REVOKE") {
            let [name, fence] = rest else { return Err(NoCommand::Arguments("REVOKE", REVOKE)) };
            Ok(Self::Revoke { name: Name::new(name)?, fence: parse(fence)? })
        } else if is("EVICT") {
            let [node] = rest else { return Err(NoCommand::Arguments("EVICT", EVICT)) };
            Ok(Self::Evict(text(node)))
        } else if is("SHUTDOWN") {
            let mut options = Options::new(rest, SHUTDOWN);
            let mut grace_ms = 0;
            while let Some(option) = options.next() {
                grace_ms = if option.is("GRACE") { options.number()? } else { return Err(options.unknown(option)) };
            }
            Ok(Self::Shutdown { grace_ms })
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
        matches!(
            self,
            Self::List { .. } | Self::Nodes | Self::Leader(_) | Self::Show(_) | Self::Revoke { .. } | Self::Evict(_)
        )
    }

    /// Whether a client that observes may say it in RESP2, in which answers and sights look the same.
    pub(crate) fn is_beside_sights(&self) -> bool {
        matches!(self, Self::Observe(_) | Self::Unobserve(_) | Self::Ping(_) | Self::Quit | Self::Reset)
    }

    /// Whether it may be said before the password.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Hello(_) | Self::Auth { .. } | Self::Quit | Self::Reset)
    }
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
