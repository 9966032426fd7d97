//! What is counted, in the words of Prometheus. No label is ever a name: there may be millions.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};
use vez_peer::{
    ask::Kind,
    peer::{Counts, Standings, Status},
};

use crate::clock::Nanos;

type Count = Counter<u64, AtomicU64>;

/// What a node counts.
pub(crate) struct Metrics {
    registry: Registry,
    grants: Each<Count>,
    local_hits: Each<Count>,
    waits: Each<Histogram>,
    holds: Each<Histogram>,
    views: Count,
    lost: Count,
    forgotten: Count,
    violations: Count,
    pub connections: Gauge,
    pub refused_connections: Count,
    pub commands: Count,
    shown: Shown,
}

/// One for each primitive. They are looked up once: it happens with every grant.
struct Each<T>([T; KINDS.len()]);

const KINDS: [&str; 5] = ["lock", "semaphore", "group", "rw", "election"];

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Labels {
    kind: &'static str,
}

impl<T> Each<T> {
    fn of(&self, kind: Kind) -> &T {
        let [lock, semaphore, group, rw, election] = &self.0;
        match kind {
            Kind::Lock => lock,
            Kind::Semaphore { .. } => semaphore,
            Kind::Group => group,
            Kind::ReadWrite => rw,
            Kind::Election => election,
        }
    }
}

fn counters(registry: &mut Registry, name: &str, help: &str) -> Each<Count> {
    let family = Family::<Labels, Count>::default();
    registry.register(name, help, family.clone());
    Each(KINDS.map(|kind| family.get_or_create_owned(&Labels { kind })))
}

fn histograms(registry: &mut Registry, name: &str, help: &str) -> Each<Histogram> {
    // From a microsecond to a minute and more.
    let new = || Histogram::new(exponential_buckets(1e-6, 4.0, 14));
    let family = Family::<Labels, Histogram, fn() -> Histogram>::new_with_constructor(new);
    registry.register_with_unit(name, help, Unit::Seconds, family.clone());
    Each(KINDS.map(|kind| family.get_or_create_owned(&Labels { kind })))
}

/// What is looked up when somebody asks.
#[derive(Default)]
struct Shown {
    view: Gauge,
    ready: Gauge,
    members: Gauge,
    sessions: Gauge,
    names: Gauge,
    used_names: Gauge,
    unacknowledged: Gauge,
    handovers: Count,
    strangers: Count,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("vez");
        let mut metrics = Self {
            grants: counters(&mut registry, "grants", "What was granted to clients of this node"),
            local_hits: counters(&mut registry, "local_hits", "Grants that nobody had to be asked for"),
            waits: histograms(&mut registry, "wait", "How long those waited who had to wait"),
            holds: histograms(&mut registry, "hold", "How long it was held"),
            registry,
            views: Counter::default(),
            lost: Counter::default(),
            forgotten: Counter::default(),
            violations: Counter::default(),
            connections: Gauge::default(),
            refused_connections: Counter::default(),
            commands: Counter::default(),
            shown: Shown::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("views", "Views that this node was a member of", self.views.clone());
        registry.register("memberships_lost", "How often this node ceased to be a member", self.lost.clone());
        registry.register("names_forgotten", "Idle names forgotten by their home", self.forgotten.clone());
        registry.register("violations", "What a member did and cannot do", self.violations.clone());
        registry.register("connections", "Clients that are connected", self.connections.clone());
        let refused = "Connections refused, since there were too many";
        registry.register("refused_connections", refused, self.refused_connections.clone());
        registry.register("commands", "Commands of clients", self.commands.clone());
        let shown = &self.shown;
        registry.register("view", "The view that this node knows", shown.view.clone());
        registry.register("ready", "Whether this node serves everything: 1 or 0", shown.ready.clone());
        registry.register("members", "Members of the view", shown.members.clone());
        registry.register("sessions", "Sessions of clients", shown.sessions.clone());
        registry.register("names", "Names that something is known of here", shown.names.clone());
        registry.register("used_names", "Names that clients hold or wait for here", shown.used_names.clone());
        let unacknowledged = "Messages that other members have not acknowledged";
        registry.register("unacknowledged", unacknowledged, shown.unacknowledged.clone());
        let handovers = "Tokens passed to other members by the present process";
        registry.register("handovers", handovers, shown.handovers.clone());
        registry.register("strange_frames", "Frames that were not for this process", shown.strangers.clone());
    }

    pub(crate) fn granted(&self, kind: Kind) {
        self.grants.of(kind).inc();
    }

    pub(crate) fn granted_at_once(&self, kind: Kind) {
        self.granted(kind);
        self.local_hits.of(kind).inc();
    }

    pub(crate) fn waited(&self, kind: Kind, time: Nanos) {
        self.waits.of(kind).observe(seconds(time));
    }

    pub(crate) fn held(&self, kind: Kind, time: Nanos) {
        self.holds.of(kind).observe(seconds(time));
    }

    /// How much was granted so far, and how much of it at once.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let all = |each: &Each<Count>| each.0.iter().map(Counter::get).sum();
        (all(&self.grants), all(&self.local_hits))
    }

    pub(crate) fn entered(&self) {
        self.views.inc();
    }

    pub(crate) fn stopped(&self) {
        self.lost.inc();
    }

    pub(crate) fn forgotten(&self) {
        self.forgotten.inc();
    }

    pub(crate) fn violation(&self) {
        self.violations.inc();
    }

    /// As Prometheus reads it.
    pub(crate) fn text(&self, status: Option<&Status>, counts: Counts) -> String {
        let shown = &self.shown;
        let ready = status.is_some_and(|status| matches!(status.standing, Standings::Settled { .. }));
        let number = |of: fn(&Status) -> usize| status.map_or(0, |status| of(status) as i64);
        shown.view.set(status.and_then(|status| status.view).map_or(0, u64::cast_signed));
        shown.ready.set(ready.into());
        shown.members.set(number(|status| status.members.len()));
        shown.sessions.set(number(|status| status.sessions));
        shown.names.set(number(|status| status.names));
        shown.used_names.set(number(|status| status.used_names));
        shown.unacknowledged.set(number(|status| status.unacknowledged));
        shown.handovers.inner().store(counts.handovers, Ordering::Relaxed);
        shown.strangers.inner().store(counts.strangers, Ordering::Relaxed);
        let mut out = String::new();
        text::encode(&mut out, &self.registry).expect("a String takes everything");
        out
    }
}

fn seconds(time: Nanos) -> f64 {
    time as f64 / 1e9
}
