//! What nodes ask each other on behalf of those who want to know, or to interfere: a question goes to every member, and
//! whoever does not answer in time is named.

use serde::{Deserialize, Serialize};
use vez_peer::{
    ask::{Ask, Failure, Kind, Label, SessionId},
    fence::Fence,
    identity::MemberId,
    keep::Wish,
    name::Name,
    shard::{Reason, Why},
    view::ViewNumber,
};

use crate::{clock::Nanos, keeping::Found, wire};

/// So many clients of a name are told of by each node.
const MOST_CLIENTS: usize = 16;
/// So much is shown of a label or a value.
const LONGEST_SHOWN: usize = 64;
/// So many names are told of at once, and so many bytes: they fit into a letter, with all that is told of one more.
pub(crate) const MOST_NAMES: usize = 256;
pub(crate) const MOST_SIZE: usize = wire::LONGEST / 2;

/// What one wants to know of a node, or wants it to do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    /// What it knows of a name.
    Show(Name),
    /// The names that begin so and come after that one, and that its clients hold or wait for.
    List {
        /// How they begin.
        prefix: Vec<u8>,
        /// What they come after.
        after: Option<Name>,
    },
    /// How it is.
    Vitals,
    /// Do this with what is kept there under a name and a value.
    ByValue {
        /// Which.
        name: Name,
        /// Under this value, or whichever it is.
        value: Option<Vec<u8>>,
        /// What.
        wish: Wish,
    },
    /// Take this from whoever holds it, if that is a client of the node.
    Release {
        /// Which.
        name: Name,
        /// Which acquisition.
        fence: Fence,
    },
}

/// What a node says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// That it knows.
    Shown(Box<Report>),
    /// These, and whether there are more.
    Listed(Vec<Report>, bool),
    /// So it is.
    Vitals(Box<Vitals>),
    /// What is kept there, if anything is.
    ByValue(Result<Option<Found>, Failure>),
    /// Whether it was held there.
    Released(bool),
}

/// How a node is, and what it has done so far.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Vitals {
    /// The node.
    pub member: MemberId,
    /// Whether it is a member, in a word: `ready`, `settling`, `leaving` …
    pub state: String,
    /// The view that it is in.
    pub view: Option<ViewNumber>,
    /// Clients that are connected.
    pub connections: u64,
    /// Names that its clients hold or wait for.
    pub used_names: usize,
    /// What was granted to its clients since it began.
    pub grants: u64,
    /// And how much of that at once.
    pub local_hits: u64,
    /// Tokens that it has passed on.
    pub handovers: u64,
    /// The names that are granted most here, each with its share of all grants in millionths.
    pub busiest: Vec<(Name, u32)>,
}

/// What a node knows of a name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The node.
    pub member: MemberId,
    /// The name.
    pub name: Name,
    /// What it stands for, if it is in use.
    pub kind: Option<Kind>,
    /// The view that this is said in.
    pub view: Option<ViewNumber>,
    /// The member that requests go through.
    pub home: Option<MemberId>,
    /// Clients of this node that hold it, the first of them.
    pub holders: Vec<Held>,
    /// Clients of this node that wait for it, the first of them.
    pub waiting: Vec<Waiting>,
    /// How many of its clients wait.
    pub waiters: usize,
    /// Members that come next, as far as this one knows.
    pub line: Vec<MemberId>,
    /// Why somebody has to wait for it on this node.
    pub because: String,
}

/// A client that holds a name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Held {
    /// The number of its grant.
    pub fence: Option<Fence>,
    /// Who it is.
    pub client: String,
    /// What it has of it, if that is not all: some units, a place among others.
    pub part: Option<String>,
    /// For how long, in milliseconds.
    pub held_ms: u64,
}

/// A client that waits for a name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waiting {
    /// Who it is.
    pub client: String,
    /// What it wants of it, if that is not all.
    pub part: Option<String>,
    /// For how long, in milliseconds.
    pub waited_ms: u64,
}

impl Report {
    /// What a peer says about a name, in the words of its node; `label` knows its clients.
    pub(crate) fn new(member: MemberId, name: Name, why: Why, now: Nanos, label: impl Fn(SessionId) -> String) -> Self {
        let ago = |since: Nanos| now.saturating_sub(since) / 1_000_000;
        let held = |holder: &vez_peer::shard::Holder| {
            let session = holder.session?;
            let held_ms = holder.since.map_or(0, ago);
            let part = holder.ask.as_ref().and_then(part);
            Some(Held { fence: holder.fence, client: label(session), part, held_ms })
        };
        let waiting = why.waiting.iter().take(MOST_CLIENTS);
        Self {
            member,
            name,
            kind: why.kind,
            view: why.view,
            home: why.home,
            holders: why.holders.iter().filter_map(held).take(MOST_CLIENTS).collect(),
            waiting: waiting
                .map(|waiting| Waiting {
                    client: label(waiting.session),
                    part: part(&waiting.ask),
                    waited_ms: ago(waiting.since),
                })
                .collect(),
            waiters: why.waiting.len(),
            line: why.line.iter().take(MOST_CLIENTS).copied().collect(),
            because: in_words(&why.reason, why.kind, now),
        }
    }

    /// How long it is in a letter.
    pub(crate) fn size(&self) -> usize {
        postcard::experimental::serialized_size(self).unwrap_or(usize::MAX)
    }
}

/// What somebody has of a name, or wants of it, if it is not all.
fn part(ask: &Ask) -> Option<String> {
    Some(match ask {
        Ask::Lock => return None,
        Ask::Semaphore { units, weight } => format!("{weight} of {units}"),
        Ask::Group { label } => format!("session {}", shown(label)),
        Ask::Read => "to read".into(),
        Ask::Write => "to write".into(),
        Ask::Elect { value } => format!("as {}", shown(value)),
    })
}

/// Bytes of a client, as they can be shown: not too many.
fn shown(bytes: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(bytes).chars().take(LONGEST_SHOWN).collect();
    if text.len() < bytes.len() { format!("{text}…") } else { text }
}

fn in_words(reason: &Reason, kind: Option<Kind>, now: Nanos) -> String {
    let ago = |since: &Nanos| format!("{} ms", now.saturating_sub(*since) / 1_000_000);
    let members = |members: &[MemberId]| {
        members.iter().map(|member| crate::identity::words(*member)).collect::<Vec<_>>().join(", ")
    };
    let one = |member: &MemberId| crate::identity::words(*member);
    match reason {
        Reason::Nothing => "nobody has to wait for it here".into(),
        Reason::HomeKnows(home) => format!("nothing is known of it here; its home, {}, knows", one(home)),
        Reason::HeldHere => "a client of this node holds it".into(),
        Reason::Inside { count, label, taken, waiting } => {
            let line = match waiting {
                0 => String::new(),
                _ => format!("; {waiting} in line, the first to come first"),
            };
            let units = if let Some(Kind::Semaphore { units }) = kind { units } else { 0 };
            format!("{}{line}", inside(label, *count, *taken, units))
        }
        Reason::TokenAt(member) => {
            format!("{} was the last to ask for it: its token is there, or on its way there", one(member))
        }
        Reason::TokenAway => "its token is at another node".into(),
        Reason::AskedHome(home) => {
            format!("it was asked for at its home, {}, which knows who has the token", one(home))
        }
        Reason::InLineAt(home) => format!("it stands in line at its home, {}", one(home)),
        Reason::Reentering { since, names } => {
            format!("this node re-enters {} names that it holds in a new view, since {}", names.len(), ago(since))
        }
        Reason::Settling { since, missing } => {
            format!("{} has not settled in the new view, since {}", members(missing), ago(since))
        }
        Reason::NoMember => "this node is not a member of the cluster now".into(),
    }
}

/// Who is inside, in the words of the home.
fn inside(label: &Label, count: usize, taken: u64, units: u32) -> String {
    match label {
        Label::Anybody => {
            let left = u64::from(units).saturating_sub(taken);
            format!("{taken} of {units} units are taken, {left} left")
        }
        Label::Group(label) => format!("{count} of the session {} inside", shown(label)),
        Label::Readers => format!("{count} reading"),
        Label::Writer(_) => "somebody writes".into(),
        Label::Leader(value) => format!("{} leads", shown(value)),
    }
}
