//! What is measured in a run.

use std::{borrow::Cow, collections::VecDeque, time::Duration};

use hdrhistogram::Histogram;
use vez_algorithms::NodeId;

/// Waiting times are counted in billionths of the unit of time.
pub(super) const TICKS: f64 = 1e9;

/// What came out of one run.
pub struct Measured {
    pub(super) entries: u64,
    /// How many messages there were, by their kind.
    pub messages: Vec<(Cow<'static, str>, u64)>,
    /// In `TICKS`.
    pub(super) waits: Histogram<u64>,
    pub(super) mean_wait: f64,
    /// Who was waiting for the longest time at the end, and for how long.
    pub(super) waiting: Option<(NodeId, f64)>,
    pub(super) hand_over: Option<f64>,
    pub(super) bypasses: f64,
    pub(super) most_bypasses: u64,
    pub(super) fairness: f64,
    pub(super) mean_waiting: f64,
    pub(super) throughput: f64,
    /// The share of all messages that went to the node that received most of them.
    pub busiest: Option<f64>,
    /// Messages delivered.
    pub deliveries: u64,
    /// Messages lost on the way.
    pub losses: u64,
    pub(super) doubles: u64,
    pub(super) crashes: u64,
    pub(super) restarts: u64,
    /// From a crash to the moment at which a living node knows of it.
    pub(super) detection: Option<f64>,
    pub(super) worst_detection: f64,
    pub(super) violations: u64,
    pub(super) measures: Vec<(&'static str, f64)>,
    pub(super) elapsed: Duration,
}

impl Measured {
    pub(super) fn messages_per_entry(&self) -> f64 {
        self.messages.iter().map(|(_, count)| count).sum::<u64>() as f64 / self.entries.max(1) as f64
    }
}

/// The last request of a node's client.
#[derive(Clone, Default)]
struct Request {
    asked_at: f64,
    /// Its number among all requests.
    number: u64,
    /// How many requests were waiting then, and how many entries there had been.
    ahead: u64,
    entries_before: u64,
}

/// Watches a run and adds up, in whatever unit of time. Entries during the warm-up move it along but do not count.
pub struct Metrics {
    warmup: u64,
    entries: u64,
    messages: Vec<(&'static str, u64)>,
    waits: Histogram<u64>,
    total_wait: f64,
    /// When somebody left, until the next entry.
    left_at: Option<f64>,
    hand_overs: u64,
    total_hand_over: f64,
    /// The numbers of the requests that wait, in ascending order.
    waiting: VecDeque<u64>,
    requests: u64,
    last_request: Vec<Request>,
    /// Who waits at the end, and for how long.
    unserved: Option<(NodeId, f64)>,
    bypasses: u64,
    most_bypasses: u64,
    entries_of: Vec<u64>,
    /// When the warm-up was over.
    began: f64,
    /// How many clients wait, those included that wait behind others at their node; since when; and the integral of that.
    present: u64,
    changed: f64,
    waited: f64,
    /// How many messages each node has received since then.
    received_by: Vec<u64>,
    deliveries: u64,
    pub(super) losses: u64,
    pub(super) doubles: u64,
    /// How many nodes have crashed.
    pub crashes: u64,
    pub(super) restarts: u64,
    detections: u64,
    total_detection: f64,
    worst_detection: f64,
    pub(super) violations: u64,
    pub(super) measures: Vec<(&'static str, f64)>,
}

impl Metrics {
    /// Nothing has happened yet. Of the nodes, the first so many have clients.
    #[must_use]
    pub fn new(nodes: usize, clients: usize, warmup: u64) -> Self {
        Self {
            warmup,
            entries: 0,
            messages: Vec::new(),
            waits: Histogram::new(3).expect("three digits can be had"),
            total_wait: 0.0,
            left_at: None,
            hand_overs: 0,
            total_hand_over: 0.0,
            waiting: VecDeque::new(),
            requests: 0,
            last_request: vec![Request::default(); nodes],
            unserved: None,
            bypasses: 0,
            most_bypasses: 0,
            entries_of: vec![0; clients],
            began: 0.0,
            present: 0,
            changed: 0.0,
            waited: 0.0,
            received_by: vec![0; nodes],
            deliveries: 0,
            losses: 0,
            doubles: 0,
            crashes: 0,
            restarts: 0,
            detections: 0,
            total_detection: 0.0,
            worst_detection: 0.0,
            violations: 0,
            measures: Vec::new(),
        }
    }

    /// All entries so far, those of the warm-up included.
    /// How many entries there have been, those of the warm-up included.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }

    pub(super) fn somebody_waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    #[inline]
    fn counts(&self) -> bool {
        self.entries >= self.warmup
    }

    #[inline]
    pub(super) fn sent(&mut self, kind: &'static str) {
        if !self.counts() {
            return;
        }
        // A handful of kinds, and their names are constants: comparing pointers finds most of them at once.
        match self.messages.iter_mut().find(|(known, _)| std::ptr::eq(*known, kind) || *known == kind) {
            Some((_, count)) => *count += 1,
            None => self.messages.push((kind, 1)),
        }
    }

    /// So many clients more wait, and so many fewer.
    pub fn crowd(&mut self, now: f64, more: u64, fewer: u64) {
        if self.counts() {
            self.waited += self.present as f64 * (now - self.changed.max(self.began));
        }
        self.changed = now;
        self.present = (self.present + more).saturating_sub(fewer);
    }

    pub(super) fn received(&mut self, node: NodeId) {
        self.deliveries += 1;
        if self.counts() {
            self.received_by[node.index()] += 1;
        }
    }

    /// The client of a node asks, or asked so long ago.
    #[inline]
    pub fn asked(&mut self, node: NodeId, at: f64) {
        self.requests += 1;
        self.last_request[node.index()] = Request {
            asked_at: at,
            number: self.requests,
            ahead: self.waiting.len() as u64,
            entries_before: self.entries,
        };
        self.waiting.push_back(self.requests);
    }

    /// The client of a node enters, or what it asked for is done.
    ///
    /// # Panics
    /// If it had not asked.
    #[inline]
    pub fn entered(&mut self, node: NodeId, now: f64) {
        let asked_at = self.last_request[node.index()].asked_at;
        let place = self.place(node).expect("whoever enters was waiting");
        self.waiting.remove(place);
        // Whoever asked only after the other had left was not waited for.
        let left_at = self.left_at.take().filter(|left_at| asked_at < *left_at);
        let hand_over = left_at.map(|left_at| now - left_at);
        if self.counts() {
            let wait = now - asked_at;
            self.total_wait += wait;
            self.waits.record((wait * TICKS) as u64).expect("the histogram grows");
            if let Some(time) = hand_over {
                self.hand_overs += 1;
                self.total_hand_over += time;
            }
            let bypasses = self.passed(node, place);
            self.bypasses += bypasses;
            self.most_bypasses = self.most_bypasses.max(bypasses);
            self.entries_of[node.index()] += 1;
        }
        self.crowd(now, 0, 1);
        self.entries += 1;
        if self.entries == self.warmup {
            self.began = now;
        }
    }

    /// Where the last request of a node stands among those that wait, if it does.
    #[inline]
    fn place(&self, node: NodeId) -> Option<usize> {
        self.waiting.binary_search(&self.last_request[node.index()].number).ok()
    }

    /// How often a request that waits, or has just waited, in this place was passed. Of the entries during the wait, those that
    /// had asked earlier were no bypasses: of the requests that were ahead, `place` still are. After a crash this counts too
    /// few: the dead did not enter.
    #[inline]
    fn passed(&self, node: NodeId, place: usize) -> u64 {
        let request = &self.last_request[node.index()];
        let gone = request.ahead - place as u64;
        (self.entries - request.entries_before).saturating_sub(gone)
    }

    /// The client of a node is still waiting when the run ends.
    pub fn still_waits(&mut self, node: NodeId, now: f64) {
        if let Some(place) = self.place(node) {
            self.most_bypasses = self.most_bypasses.max(self.passed(node, place));
        }
        let waited = now - self.last_request[node.index()].asked_at;
        self.unserved = self.unserved.filter(|(_, longest)| *longest >= waited).or(Some((node, waited)));
    }

    /// Somebody leaves.
    pub fn left(&mut self, now: f64) {
        self.left_at = Some(now);
    }

    /// A node learns of a crash, so long after it.
    pub(super) fn detected(&mut self, after: f64) {
        self.detections += 1;
        self.total_detection += after;
        self.worst_detection = self.worst_detection.max(after);
    }

    /// A request that will never be served, because its node died.
    pub fn gave_up(&mut self, node: NodeId) {
        if let Some(place) = self.place(node) {
            self.waiting.remove(place);
        }
    }

    /// What came out, the run having ended now.
    #[must_use]
    pub fn measured(mut self, now: f64, elapsed: Duration) -> Measured {
        self.crowd(now, 0, 0);
        let entries = self.entries.saturating_sub(self.warmup);
        let mean = |total: f64, count: u64| if count == 0 { 0.0 } else { total / count as f64 };
        let squares: f64 = self.entries_of.iter().map(|&x| (x as f64).powi(2)).sum();
        let fairness =
            if entries == 0 { 1.0 } else { (entries as f64).powi(2) / (self.entries_of.len() as f64 * squares) };
        let span = now - self.began;
        let a_time = |total: f64| if span > 0.0 { total / span } else { 0.0 };
        let received: u64 = self.received_by.iter().sum();
        let most = self.received_by.iter().max().copied().unwrap_or(0);
        Measured {
            entries,
            messages: self.messages.into_iter().map(|(kind, count)| (kind.into(), count)).collect(),
            mean_wait: mean(self.total_wait, entries),
            waiting: self.unserved,
            hand_over: (self.hand_overs > 0).then(|| mean(self.total_hand_over, self.hand_overs)),
            bypasses: mean(self.bypasses as f64, entries),
            most_bypasses: self.most_bypasses,
            fairness,
            mean_waiting: a_time(self.waited),
            throughput: a_time(entries as f64),
            busiest: (received > 0).then(|| most as f64 / received as f64),
            waits: self.waits,
            deliveries: self.deliveries,
            losses: self.losses,
            doubles: self.doubles,
            crashes: self.crashes,
            restarts: self.restarts,
            detection: (self.detections > 0).then(|| mean(self.total_detection, self.detections)),
            worst_detection: self.worst_detection,
            violations: self.violations,
            measures: self.measures,
            elapsed,
        }
    }
}
