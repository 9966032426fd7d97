//! What nodes answer, as a picture: their counters as rates, and all that is known of each name.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use serde::Serialize;
use serde_json::Value;

use super::tell::list;

/// So many rates of a node are kept: no terminal has room for more.
const LONGEST_TREND: usize = 128;
/// A name that is granted less often, and that nobody holds or waits for, is not busy.
const LEAST_RATE: f64 = 0.05;
/// A name that is not in use any more stays for so many pictures: it may soon be.
const MOST_MISSED: u32 = 5;
/// So much of what is steady comes from the newest picture.
const NEWEST: f64 = 0.3;

/// What was answered, and when it was asked.
pub struct Answers {
    /// Since anything that does not change.
    pub at: Duration,
    /// The statistics of each node.
    pub nodes: Value,
    /// The busiest names, with holders and waiters.
    pub names: Value,
    /// The status of the node that was asked.
    pub status: Value,
}

/// What is seen at one moment.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Picture {
    /// The identity of the cluster.
    pub cluster: Option<String>,
    /// The current view.
    pub view: Option<u64>,
    /// The node that leads the agreement on views.
    pub leader: Option<u64>,
    /// The node that was asked.
    pub asked: Option<u64>,
    /// The state of the node that was asked.
    pub state: String,
    /// Why it is in this state.
    pub because: String,
    /// All members.
    pub nodes: Vec<Node>,
    /// The busiest names.
    pub names: Vec<Name>,
    /// Whether there are more names in use than were told of.
    pub more: bool,
}

/// A member.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Node {
    /// Its number.
    pub node: u64,
    /// The identity of its process.
    pub id: String,
    /// Where other nodes reach it.
    pub address: String,
    /// In a word; of one that does not answer, `silent`.
    pub state: String,
    /// Whether it has a vote on views.
    pub votes: bool,
    /// Whether it leads the agreement on views.
    pub leads: bool,
    /// Connected clients.
    pub connections: Option<u64>,
    /// Names that are held or waited for.
    pub used_names: Option<u64>,
    /// Grants per second.
    pub grants_per_second: Option<f64>,
    /// Which part of the grants took no other node.
    pub at_once: Option<f64>,
    /// Tokens passed on to other nodes, per second.
    pub handovers_per_second: Option<f64>,
    /// Grants a second, the newest last.
    #[serde(skip)]
    pub trend: Vec<f64>,
}

/// A busy name.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Name {
    /// The name.
    pub name: String,
    /// What it is: a lock, a semaphore, …
    pub kind: Option<String>,
    /// Grants per second.
    pub grants_per_second: Option<f64>,
    /// Nothing, if nobody told.
    pub holders: Option<Vec<Holder>>,
    /// Waiting requests.
    pub waiters: Option<u64>,
    /// How long the first of them has waited, in milliseconds.
    pub longest_wait_ms: Option<u64>,
    /// How many wait for it, over some time.
    #[serde(skip)]
    pub pressure: f64,
    /// So often it was not told of since it was.
    #[serde(skip)]
    pub missed: u32,
}

/// A client that holds a name, or a part of it.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Holder {
    /// The node that granted it.
    pub node: Option<u64>,
    /// The client, as its node describes it.
    pub client: String,
    /// What it holds of the name, if that can be shared.
    pub part: Option<String>,
    /// For how long, in milliseconds.
    pub held_ms: u64,
}

/// What has to be known of before, to tell rates.
#[derive(Default)]
pub struct Watch {
    nodes: BTreeMap<String, Seen>,
    /// A busy name is not in use at most moments, and stands for the same all the time.
    kinds: BTreeMap<String, String>,
}

/// What a node told last.
struct Seen {
    counts: Counts,
    trend: VecDeque<f64>,
}

#[derive(Clone, Copy)]
struct Counts {
    at: Duration,
    grants: u64,
    at_once: u64,
    handovers: u64,
}

struct Rates {
    grants: f64,
    at_once: Option<f64>,
    handovers: f64,
}

impl Watch {
    /// What is seen now.
    pub fn look(&mut self, answers: &Answers) -> Picture {
        let status = &answers.status;
        let nodes = self.nodes(answers);
        let names = self.names(answers, &nodes);
        let word = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
        Picture {
            cluster: status["cluster"].as_str().map(str::to_owned),
            view: status["view"].as_u64(),
            leader: status["leader"].as_u64(),
            asked: status["node"].as_u64(),
            state: word("state"),
            because: word("because"),
            nodes,
            names,
            more: answers.names["more"] == 1,
        }
    }

    fn nodes(&mut self, answers: &Answers) -> Vec<Node> {
        let mut nodes: BTreeMap<(u64, String), Node> = BTreeMap::new();
        let node = |value: &Value| -> Node {
            let (number, id) = (value["node"].as_u64().unwrap_or(0), value["id"].as_str().unwrap_or_default());
            Node { node: number, id: id.to_owned(), ..Node::default() }
        };
        for member in list(&answers.status, "members") {
            let known = Node {
                address: member["address"].as_str().unwrap_or_default().to_owned(),
                state: "silent".into(),
                votes: member["votes"] == 1,
                leads: member["id"] == answers.status["leader_id"],
                ..node(member)
            };
            nodes.insert((known.node, known.id.clone()), known);
        }
        for vitals in list(&answers.nodes, "nodes") {
            let new = node(vitals);
            // The members may have changed between the two answers.
            let known = nodes.entry((new.node, new.id.clone())).or_insert(new);
            known.state = vitals["state"].as_str().unwrap_or_default().to_owned();
            known.connections = vitals["connections"].as_u64();
            known.used_names = vitals["used_names"].as_u64();
            self.rate(known, Counts::new(answers.at, vitals));
        }
        for silent in list(&answers.nodes, "silent").iter().filter_map(Value::as_u64) {
            if !nodes.keys().any(|(number, _)| *number == silent) {
                let unknown = Node { node: silent, state: "silent".into(), ..Node::default() };
                nodes.insert((silent, String::new()), unknown);
            }
        }
        self.nodes.retain(|id, _| nodes.keys().any(|(_, known)| known == id));
        nodes.into_values().collect()
    }

    /// What a node did since it told something last.
    fn rate(&mut self, node: &mut Node, counts: Counts) {
        let new = || Seen { counts, trend: VecDeque::new() };
        let seen = self.nodes.entry(node.id.clone()).or_insert_with(new);
        let rates = counts.since(seen.counts);
        seen.counts = counts;
        if let Some(rates) = rates {
            node.grants_per_second = Some(rates.grants);
            node.at_once = rates.at_once;
            node.handovers_per_second = Some(rates.handovers);
            seen.trend.push_back(rates.grants);
            if seen.trend.len() > LONGEST_TREND {
                seen.trend.pop_front();
            }
        }
        node.trend = seen.trend.iter().copied().collect();
    }

    fn names(&mut self, answers: &Answers, nodes: &[Node]) -> Vec<Name> {
        let nobody_told = answers.names["more"] == 1 || !list(&answers.names, "silent").is_empty();
        let mut names: BTreeMap<String, Name> = BTreeMap::new();
        for told in list(&answers.names, "names") {
            let name = Name::new(told);
            names.insert(name.name.clone(), name);
        }
        for vitals in list(&answers.nodes, "nodes") {
            let id = vitals["id"].as_str().unwrap_or_default();
            let Some(rate) = nodes.iter().find(|node| node.id == id).and_then(|node| node.grants_per_second) else {
                continue;
            };
            for busy in list(vitals, "busiest") {
                let share = busy["millionths"].as_u64().unwrap_or(0) as f64 / 1e6;
                let name = busy["name"].as_str().unwrap_or_default();
                let known = names.entry(name.to_owned()).or_insert_with(|| Name::not_in_use(name, nobody_told));
                known.grants_per_second = Some(rounded(known.grants_per_second.unwrap_or(0.0) + share * rate));
            }
        }
        names.retain(|_, name| name.is_in_use() || name.grants_per_second.unwrap_or(0.0) >= LEAST_RATE);
        for name in names.values_mut() {
            name.kind = name.kind.take().or_else(|| self.kinds.get(&name.name).cloned());
        }
        let kind = |name: &Name| Some((name.name.clone(), name.kind.clone()?));
        self.kinds = names.values().filter_map(kind).collect();
        names.into_values().collect()
    }
}

impl Counts {
    fn new(at: Duration, vitals: &Value) -> Self {
        let count = |key: &str| vitals[key].as_u64().unwrap_or(0);
        Self { at, grants: count("grants"), at_once: count("local_hits"), handovers: count("handovers") }
    }

    /// A counter that has fallen is that of a node that began anew: how much of it is new, and since when, is not known.
    fn since(self, before: Self) -> Option<Rates> {
        let seconds = self.at.checked_sub(before.at).filter(|time| !time.is_zero())?.as_secs_f64();
        let grants = self.grants.checked_sub(before.grants)?;
        let at_once = self.at_once.checked_sub(before.at_once)?;
        let handovers = self.handovers.checked_sub(before.handovers)?;
        Some(Rates {
            grants: rounded(grants as f64 / seconds),
            // They are not counted at the same instant.
            at_once: (grants > 0).then(|| rounded((at_once as f64 / grants as f64).min(1.0))),
            handovers: rounded(handovers as f64 / seconds),
        })
    }
}

impl Name {
    fn new(told: &Value) -> Self {
        let holder = |holder: &Value| Holder {
            node: holder["node"].as_u64(),
            client: holder["client"].as_str().unwrap_or_default().to_owned(),
            part: holder["part"].as_str().map(str::to_owned),
            held_ms: holder["held_ms"].as_u64().unwrap_or(0),
        };
        let waiters = told["waiters"].as_u64().unwrap_or(0);
        Self {
            name: told["name"].as_str().unwrap_or_default().to_owned(),
            kind: told["kind"].as_str().map(str::to_owned),
            grants_per_second: None,
            holders: Some(list(told, "holders").iter().map(holder).collect()),
            waiters: Some(waiters),
            longest_wait_ms: list(told, "waiting").iter().filter_map(|waiting| waiting["waited_ms"].as_u64()).max(),
            pressure: waiters as f64,
            missed: 0,
        }
    }

    /// One that was not told of: it is not in use, unless not all were.
    fn not_in_use(name: &str, nobody_told: bool) -> Self {
        let (holders, waiters) = if nobody_told { (None, None) } else { (Some(Vec::new()), Some(0)) };
        Self { name: name.to_owned(), holders, waiters, ..Self::default() }
    }

    fn is_in_use(&self) -> bool {
        self.waiters > Some(0) || self.holders.as_ref().is_some_and(|holders| !holders.is_empty())
    }

    /// How long it has been held, by who has held it longest.
    pub fn held_ms(&self) -> Option<u64> {
        self.holders.iter().flatten().map(|holder| holder.held_ms).max()
    }
}

/// More digits are noise.
fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

/// What all nodes together do.
pub struct Totals {
    /// Grants per second.
    pub grants_per_second: Option<f64>,
    /// The share of them that cost no message.
    pub at_once: Option<f64>,
    /// Tokens passed on to other nodes, per second.
    pub handovers_per_second: Option<f64>,
    /// Connected clients.
    pub connections: u64,
    /// Waiting requests.
    pub waiters: u64,
}

impl Picture {
    /// Makes it follow another without jumps: of what changes from moment to moment, an average is taken over some of them.
    pub fn steady(&mut self, before: Self) {
        let mut before: BTreeMap<String, Name> =
            before.names.into_iter().map(|name| (name.name.clone(), name)).collect();
        let average = |old: f64, new: f64| old + (new - old) * NEWEST;
        for name in &mut self.names {
            let Some(old) = before.remove(&name.name) else { continue };
            name.pressure = average(old.pressure, name.pressure);
            let rates = name.grants_per_second.zip(old.grants_per_second);
            name.grants_per_second = rates.map(|(new, old)| average(old, new)).or(name.grants_per_second);
        }
        let gone = before.into_values().filter(|name| name.missed < MOST_MISSED).map(|name| Name {
            grants_per_second: None,
            holders: Some(Vec::new()),
            waiters: Some(0),
            longest_wait_ms: None,
            pressure: average(name.pressure, 0.0),
            missed: name.missed + 1,
            ..name
        });
        self.names.extend(gone);
    }

    /// Leaves out all names but those that begin so.
    pub fn keep(&mut self, prefix: &str) {
        self.names.retain(|name| name.name.starts_with(prefix));
    }

    /// The sums over all nodes.
    pub fn totals(&self) -> Totals {
        let sum = |of: fn(&Node) -> Option<f64>| self.nodes.iter().filter_map(of).reduce(|sum, one| sum + one);
        let grants = sum(|node| node.grants_per_second);
        let at_once = sum(|node| Some(node.at_once? * node.grants_per_second?));
        Totals {
            grants_per_second: grants,
            at_once: at_once.zip(grants).and_then(|(part, all)| (all > 0.0).then(|| part / all)),
            handovers_per_second: sum(|node| node.handovers_per_second),
            connections: self.nodes.iter().filter_map(|node| node.connections).sum(),
            waiters: self.names.iter().filter_map(|name| name.waiters).sum(),
        }
    }
}
