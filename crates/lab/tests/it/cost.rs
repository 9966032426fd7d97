//! What the algorithms cost, beside their formulas.

use crate::{
    load::{config, measure, scripted},
    sized,
};
use vez_algorithms::{
    Algorithm, Input, NodeId,
    mutex::{
        Central, Fila, FilaForest, Lamport, NaimiTrehel, Nxr, Raymond, RicartAgrawala, RicartAgrawalaClock,
        SuzukiKasami, TokenRing,
    },
    semaphore::{RaymondK, RobustKDirect},
};
use vez_lab::{
    sim::{self, Arrivals, Config, Event, Watch},
    stats::Interval,
    system::System,
};

/// One request at a time: whoever asks, nobody else does until it has left.
const SELDOM: Arrivals = Arrivals::Closed { rate: 0.0001 };

fn sizes() -> &'static [usize] {
    sized(&[7, 31], &[7, 31, 127])
}

/// One 95 % interval in twenty misses. Of those of four seeds at least three must contain the formula.
fn assert_seldom<A: Algorithm>(nodes: usize, formula: f64) {
    let measure = |seed| measure::<A>(&Config { entries: 10_000, seed, ..config(nodes, SELDOM) }).messages_per_entry;
    let intervals: Vec<Interval> = (1..=4).map(measure).collect();
    let hits = intervals.iter().filter(|interval| interval.contains(formula)).count();
    assert!(hits >= 3, "{} n={nodes}: only {hits} of {intervals:?} contain {formula:.4}", A::NAME);
}

/// H(n−1) = 1 + 1/2 + … + 1/(n−1)
fn harmonic(n: usize) -> f64 {
    (1..n).map(|k| 1.0 / k as f64).sum()
}

/// The entries and the messages of one run.
fn exactly<A: Algorithm>(config: &Config) -> (u64, u64) {
    let report = measure::<A>(&Config { runs: 0..1, ..config.clone() });
    (report.entries, report.messages_by_type.values().sum())
}

#[test]
fn permissions_cost_the_same_every_time() {
    // Everybody asks at once, twice, and all that is sent belongs to these requests.
    for nodes in [2, 3, 10, 40] {
        let n = nodes as u64;
        let script = scripted(0.0, (0..2 * nodes).map(|i| NodeId::from_index(i % nodes)));
        let config = config(nodes, script);
        assert_eq!(exactly::<RicartAgrawala>(&config), (2 * n, 2 * n * 2 * (n - 1)));
        assert_eq!(exactly::<RicartAgrawalaClock>(&config), (2 * n, 2 * n * 2 * (n - 1)));
        assert_eq!(exactly::<Lamport>(&config), (2 * n, 2 * n * 3 * (n - 1)));
        // 3(n−1)/n an entry: the coordinator's own entries are free.
        assert_eq!(exactly::<Central>(&config), (2 * n, 2 * 3 * (n - 1)));
    }
}

#[test]
fn k_exclusion_stays_within_its_bounds() {
    for (nodes, k) in [(4, 1), (4, 3), (8, 2), (8, 5)] {
        let (least, most) = ((2 * nodes - k - 1) as f64, (2 * (nodes - 1)) as f64);
        let cost = |arrivals, hold| {
            let mut config = Config { hold, ..config(nodes, arrivals) };
            config.system.k = k;
            [measure::<RaymondK>(&config), measure::<RobustKDirect>(&config)]
                .map(|report| report.messages_per_entry.mean)
        };
        for seldom in cost(SELDOM, 0.01) {
            assert!((seldom - most).abs() < 0.01, "n={nodes} k={k}: {seldom}");
        }
        for busy in cost(Arrivals::Saturated, 1.0) {
            // A request of which replies are still under way at the end is counted for what it has cost so far.
            assert!((least - 0.05..=most + 0.05).contains(&busy), "n={nodes} k={k}: {busy}");
        }
    }
}

#[test]
fn a_broadcast_and_a_token() {
    for nodes in sizes().iter().copied() {
        let n = nodes as f64;
        // The token is at node 0: nothing. Then node 1 fetches it: n − 1 requests and the token.
        let script = scripted(10.0, [0, 0, 1, 1, 0].map(NodeId));
        assert_eq!(exactly::<SuzukiKasami>(&config(nodes, script)), (5, 2 * nodes as u64));
        // Whoever asks seldom has the token from last time in one case of n.
        assert_seldom::<SuzukiKasami>(nodes, n - 1.0);
    }
}

#[test]
fn path_reversal_costs_a_harmonic_number_at_low_load() {
    for nodes in sizes().iter().copied() {
        assert_seldom::<NaimiTrehel>(nodes, harmonic(nodes));
        assert_seldom::<Nxr>(nodes, harmonic(nodes));
        assert_seldom::<FilaForest>(nodes, harmonic(nodes));
    }
}

#[test]
fn a_static_tree_costs_twice_the_distance_at_low_load() {
    for nodes in sizes().iter().copied() {
        let tree = System::of(nodes).setup(1, 0).expect("a tree").tree;
        assert_seldom::<Raymond>(nodes, 2.0 * tree.mean_distance());
    }
}

#[test]
fn a_home_costs_at_most_three_at_low_load() {
    for nodes in sizes().iter().copied() {
        let n = nodes as f64;
        let formula = (4.0 * (n - 1.0) + 3.0 * (n - 1.0) * (n - 2.0)) / (n * n);
        assert_seldom::<Fila>(nodes, formula);
    }
}

#[test]
fn saturated_the_queue_on_the_token_costs_two_messages_and_one_hop() {
    for nodes in sizes().iter().copied() {
        let config = Config { entries: 20_000, ..config(nodes, Arrivals::Saturated) };
        for report in [measure::<Fila>(&config), measure::<FilaForest>(&config)] {
            let cost = report.messages_per_entry.mean;
            assert!((cost - 2.0).abs() <= 0.01, "{}: {cost}", report.algorithm);
            let entries = report.entries as f64 * report.runs as f64;
            let hops = report.messages_by_type["Token"] as f64 / entries;
            assert!((hops - 1.0).abs() <= 0.005, "{}: {hops} hops", report.algorithm);
            // A hop takes T/2 on average, and nobody waits longer between two entries.
            let hand_over = report.synchronisation_delay.expect("there are always others waiting");
            assert!((hand_over.mean - 0.05).abs() < 0.001, "{}: {hand_over}", report.algorithm);
        }
        let ring = measure::<TokenRing>(&config);
        assert_eq!(ring.messages_per_entry.mean, 1.0, "all want in, so no hop is for nothing");
    }
}

/// How many messages arrive at node 0, and how many in all.
#[derive(Default)]
struct Receipts {
    home: u32,
    all: u32,
}

impl<A: Algorithm> Watch<A> for Receipts {
    fn see(&mut self, _: f64, node: NodeId, event: Event<'_, A>) {
        if let Event::Input(Input::Message { .. }, ..) = event {
            self.all += 1;
            self.home += u32::from(node == NodeId(0));
        }
    }
}

#[test]
fn the_home_of_fila_receives_a_third_of_the_messages_and_half_when_saturated() {
    for (arrivals, share) in [(SELDOM, 1.0 / 3.0), (Arrivals::Saturated, 0.5)] {
        let mut receipts = Receipts::default();
        sim::watch::<Fila>(&config(31, arrivals), 0, &mut receipts).expect("nothing goes wrong");
        let found = f64::from(receipts.home) / f64::from(receipts.all);
        assert!((found - share).abs() < 0.02, "{found} of the messages go to the home");
    }
}

#[test]
fn fila_sends_less_than_nxr_and_waits_no_longer_than_naimi_trehel() {
    for rate in [0.01, 0.1, 1.0] {
        let config = Config { entries: 50_000, ..config(31, Arrivals::Closed { rate }) };
        let (fila, nxr, naimi) = (measure::<Fila>(&config), measure::<Nxr>(&config), measure::<NaimiTrehel>(&config));
        let (ours, theirs) = (fila.messages_per_entry, nxr.messages_per_entry);
        let margin = |interval: Interval| interval.ci95.unwrap_or(0.0);
        assert!(ours.mean + margin(ours) < theirs.mean - margin(theirs), "λ={rate}: fila {ours}, nxr {theirs}");
        let slack = fila.wait.ci95.unwrap_or(0.0) + naimi.wait.ci95.unwrap_or(0.0);
        let (ours, theirs) = (fila.wait.mean, naimi.wait.mean);
        assert!(ours <= theirs + slack, "λ={rate}: fila waits {ours}, naimi-trehel {theirs}");
    }
}
