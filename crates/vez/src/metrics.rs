//! What is counted, in the words of Prometheus. No label is ever the name of a lock: there may be millions.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::{
    encoding::text,
    metrics::{
        counter::Counter,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};
use vez_peer::peer::{Counts, Standings, Status};

use crate::clock::Nanos;

type Count = Counter<u64, AtomicU64>;

/// What a node counts.
pub(crate) struct Metrics {
    registry: Registry,
    grants: Count,
    local_hits: Count,
    waits: Histogram,
    holds: Histogram,
    views: Count,
    lost: Count,
    forgotten: Count,
    violations: Count,
    pub connections: Gauge,
    pub refused_connections: Count,
    pub commands: Count,
    shown: Shown,
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
        // From a microsecond to a minute and more.
        let histogram = || Histogram::new(exponential_buckets(1e-6, 4.0, 14));
        let mut metrics = Self {
            registry: Registry::with_prefix("vez"),
            grants: Counter::default(),
            local_hits: Counter::default(),
            waits: histogram(),
            holds: histogram(),
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
        registry.register("grants", "Locks granted to clients of this node", self.grants.clone());
        registry.register("local_hits", "Grants without a message, since the token was here", self.local_hits.clone());
        let waits = "How long those waited who had to wait";
        registry.register_with_unit("wait", waits, Unit::Seconds, self.waits.clone());
        registry.register_with_unit("hold", "How long locks were held", Unit::Seconds, self.holds.clone());
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

    pub(crate) fn granted(&self) {
        self.grants.inc();
    }

    pub(crate) fn granted_at_once(&self) {
        self.local_hits.inc();
    }

    pub(crate) fn waited(&self, time: Nanos) {
        self.waits.observe(seconds(time));
    }

    pub(crate) fn held(&self, time: Nanos) {
        self.holds.observe(seconds(time));
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
