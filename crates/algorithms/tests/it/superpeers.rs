//! Superpeers at a size that no checker reaches: tokens spread and come to rest, lookups take a logarithm of hops.

use std::{
    collections::{BTreeSet, VecDeque},
    ops::Range,
    time::Duration,
};

use vez_algorithms::{
    Algorithm, Effect, Input, NodeId, NodeSet, Setup, World,
    graph::Graph,
    quorum::Quorum,
    step,
    superpeers::{ByPrefix, ByRepulsion, Command, Output, Superpeers},
    tree::Tree,
};

type Place = [u16; 2];

fn setup(places: Vec<Place>) -> Setup {
    let second = Duration::from_secs(1);
    Setup {
        tree: Tree::line(places.len()),
        graph: Graph::OfTree,
        places,
        quorum: Quorum::Grid,
        k: 1,
        groups: 1,
        replicas: 1,
        majority: 1,
        bits: 16,
        prefix: 3,
        retry: Range { start: second, end: second },
        patience: second,
        period: second,
    }
}

/// A system whose messages arrive in the order of their sending, and whose timers all fire when nothing else is left to
/// do.
struct Play<A: Algorithm<Family = Superpeers>> {
    nodes: Vec<A>,
    flying: VecDeque<(NodeId, NodeId, A::Message)>,
    set: Vec<(NodeId, A::Timer)>,
    sent: usize,
    told: Vec<(NodeId, Output)>,
    /// Whose clients have asked and not found.
    waiting: NodeSet,
}

impl<A: Algorithm<Family = Superpeers>> Play<A> {
    fn new(setup: &Setup) -> Self {
        let nodes = A::system(setup).expect("such a system can be");
        let mut play = Self {
            nodes,
            flying: VecDeque::new(),
            set: Vec::new(),
            sent: 0,
            told: Vec::new(),
            waiting: NodeSet::new(),
        };
        for node in setup.ids() {
            play.step(node, Input::Start);
        }
        play
    }

    fn step(&mut self, me: NodeId, input: Input<A>) {
        if let Input::Command(Command::Lookup(_)) = input {
            self.waiting.insert(me);
        }
        let mut effects = Vec::new();
        step(me, &mut self.nodes[me.index()], input, &mut effects, &mut |_| 0);
        for effect in effects {
            match effect {
                Effect::Send(to, message) => {
                    self.sent += 1;
                    self.flying.push_back((me, to, message));
                }
                Effect::SetTimer(timer, _) => self.set.push((me, timer)),
                Effect::CancelTimer(timer) => self.set.retain(|set| *set != (me, timer)),
                Effect::Output(output) => {
                    if matches!(output, Output::Found { .. }) {
                        assert!(self.waiting.remove(me), "{me} found what it did not look for");
                    }
                    self.told.push((me, output));
                }
                Effect::Violation(what) => panic!("{me}: {what}"),
            }
        }
    }

    /// Until nothing is under way.
    fn settle(&mut self) {
        while let Some((from, to, message)) = self.flying.pop_front() {
            self.step(to, Input::Message { from, message });
        }
        self.keeps_invariant();
    }

    fn keeps_invariant(&self) {
        let nodes: Vec<&A> = self.nodes.iter().collect();
        let in_flight: Vec<_> = self.flying.iter().map(|(from, to, message)| (*from, *to, message)).collect();
        let world = World { nodes: &nodes, crashed: &NodeSet::new(), in_flight: &in_flight };
        A::INVARIANT.expect("there is one")(&world).expect("it holds");
    }

    fn rounds(&mut self, rounds: usize) {
        for _ in 0..rounds {
            for (node, timer) in std::mem::take(&mut self.set) {
                self.step(node, Input::Timer(timer));
            }
            self.settle();
        }
    }

    fn measure(&self, name: &str) -> f64 {
        let nodes: Vec<&A> = self.nodes.iter().collect();
        let measures = A::measures(&nodes);
        measures.iter().find(|(of, _)| *of == name).unwrap_or_else(|| panic!("no {name} in {measures:?}")).1
    }
}

/// A square of nodes in rows, the first row below, and its first nodes at the left.
fn square(width: u16) -> Vec<Place> {
    let along = |at: u16| at * (u16::MAX / width) + u16::MAX / width / 2;
    (0..width * width).map(|at| [along(at % width), along(at / width)]).collect()
}

/// The same, with those next to one corner first.
fn from_corner(width: u16) -> Vec<Place> {
    let mut places = square(width);
    places.sort_by_key(|[x, y]| u64::from(*x).pow(2) + u64::from(*y).pow(2));
    places
}

#[test]
fn tokens_spread_from_a_corner_and_come_to_rest() {
    const FAR: &str = "distance over that in a grid";
    const UNEVEN: &str = "unevenness of load";
    for (width, tokens) in [(8, 4), (16, 9), (16, 16), (16, 25)] {
        let setup = Setup { k: tokens, ..setup(from_corner(width)) };
        let mut play = Play::<ByRepulsion>::new(&setup);
        let (far, uneven) = (play.measure(FAR), play.measure(UNEVEN));
        play.rounds(150);
        let rest = play.told.clone();
        play.rounds(20);
        assert_eq!(play.told, rest, "{tokens} tokens still move");
        assert!(play.measure(FAR) < 1.2 && far > 2.5 * play.measure(FAR), "{far} to {}", play.measure(FAR));
        assert!(uneven > 4.0 * play.measure(UNEVEN), "{uneven} to {}", play.measure(UNEVEN));
    }
}

#[test]
fn no_token_is_lost_or_doubled_whatever_overtakes_whatever() {
    let setup = Setup { k: 8, ..setup(from_corner(4)) };
    let mut play = Play::<ByRepulsion>::new(&setup);
    let mut random = 1_u64;
    let mut below = |n: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % n
    };
    let mut lookups = 0;
    play.told.clear();
    for _ in 0..30_000 {
        let (flying, set) = (play.flying.len(), play.set.len());
        match below(flying * 3 + set + 1) {
            0 => {
                let node = NodeId::from_index(below(setup.nodes()));
                if !play.waiting.contains(node) {
                    play.step(node, Input::Command(Command::Lookup(0)));
                    lookups += 1;
                }
            }
            at if at <= set => {
                let (node, timer) = play.set.swap_remove(at - 1);
                play.step(node, Input::Timer(timer));
            }
            at => {
                let (from, to, message) = play.flying.swap_remove_back(at % flying).expect("it is there");
                play.step(to, Input::Message { from, message });
            }
        }
        play.keeps_invariant();
    }
    let found = play.told.iter().filter(|(_, output)| matches!(output, Output::Found { .. })).count();
    let moved = play.told.iter().filter(|(_, output)| matches!(output, Output::Role(Some(_)))).count();
    assert!(found > 100 && lookups - found == play.waiting.len(), "{found} of {lookups} found");
    assert!(moved > 8, "{moved} moves");
}

#[test]
fn whoever_looks_for_a_superpeer_finds_the_nearest_while_tokens_rest() {
    let setup = Setup { k: 9, ..setup(from_corner(12)) };
    let mut play = Play::<ByRepulsion>::new(&setup);
    play.rounds(100);
    play.told.clear();
    play.sent = 0;
    for node in setup.ids() {
        play.step(node, Input::Command(Command::Lookup(7)));
        play.settle();
    }
    let square = |one: NodeId, other: NodeId| {
        let [one, other] = [one, other].map(|node| setup.places[node.index()].map(i64::from));
        (one[0] - other[0]).pow(2) + (one[1] - other[1]).pow(2)
    };
    let superpeers: BTreeSet<NodeId> = play.told.iter().map(|(_, output)| found(output)).collect();
    assert_eq!(superpeers.len(), 9);
    for (node, output) in &play.told {
        let nearest = superpeers.iter().map(|other| square(*node, *other)).min();
        assert_eq!(nearest, Some(square(*node, found(output))), "{node}");
    }
    assert_eq!((play.told.len(), play.sent), (144, 2 * (144 - 9)));
}

fn found(output: &Output) -> NodeId {
    match output {
        Output::Found { superpeer, .. } => *superpeer,
        Output::Role(_) => panic!("no token moves"),
    }
}

#[test]
fn a_lookup_takes_a_logarithm_of_hops() {
    for log in [4_u32, 8, 12] {
        let setup = Setup { bits: 32, prefix: 4, ..setup(vec![[0, 0]; 1 << log]) };
        let mut play = Play::<ByPrefix>::new(&setup);
        play.told.clear();
        let mut most = 0;
        let wants = ByPrefix::wants(&setup);
        for node in setup.ids() {
            for want in &wants {
                let before = play.sent;
                play.step(node, Input::Command(*want));
                play.settle();
                most = most.max(play.sent - before);
            }
        }
        let lookups = setup.nodes() * wants.len();
        let mean = play.sent as f64 / lookups as f64;
        assert_eq!(play.told.len(), lookups);
        assert!((mean - (f64::from(log) / 2.0 + 2.0)).abs() < 0.5, "{mean} messages a lookup of 2^{log} nodes");
        assert!(most <= log as usize + 3, "{most} messages for a lookup of 2^{log} nodes");
    }
}

#[test]
fn the_first_node_under_each_prefix_is_a_superpeer() {
    // Identifiers 152, 32, 184, 109, 183, 87, 147, 118; first bits 100, 001, 101, 011, 101, 010, 100, 011.
    let setup = Setup { bits: 8, prefix: 3, ..setup(vec![[0, 0]; 8]) };
    let mut play = Play::<ByPrefix>::new(&setup);
    let offices = play.told.iter().map(|(_, output)| match output {
        Output::Role(office) => *office,
        Output::Found { .. } => panic!("nobody has asked"),
    });
    assert_eq!(offices.collect::<Vec<_>>(), [None, Some(1), None, Some(3), Some(5), Some(2), Some(4), None]);
    assert_eq!(play.measure("superpeers a node"), 5.0 / 8.0);
    play.told.clear();
    // Nobody's identifier begins with 110, 111 or 000: their keys go to the next superpeer on the ring, 32.
    for key in [0b110_11111, 0b000_00001, 0b001_11111, 0b101_10111, 0b011_01110] {
        play.step(NodeId(0), Input::Command(Command::Lookup(key)));
        play.settle();
    }
    assert_eq!(play.told.iter().map(|(_, output)| found(output).0).collect::<Vec<_>>(), [1, 1, 1, 4, 3]);
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let refused = |setup: Setup| ByPrefix::system(&setup).expect_err("it cannot be").to_string();
    let nodes = || setup(square(3));
    let told = [
        refused(Setup { bits: 0, ..nodes() }),
        refused(Setup { bits: 65, ..nodes() }),
        refused(Setup { bits: 3, ..nodes() }),
        refused(Setup { bits: 4, prefix: 5, ..nodes() }),
    ];
    assert_eq!(
        told,
        [
            "identifiers of 0 bits cannot be; take from 1 to 64, such as --bits 16",
            "identifiers of 65 bits cannot be; take from 1 to 64, such as --bits 16",
            "3 bits are too few to tell 9 nodes apart; take at least --bits 4",
            "the first 5 bits of 4 cannot be reserved; take --prefix 4 or less",
        ]
    );
    assert!(ByPrefix::system(&Setup { bits: 4, prefix: 4, ..nodes() }).is_ok());
    let places = ByRepulsion::system(&Setup { places: square(2), ..nodes() }).expect_err("too few").to_string();
    assert_eq!(places, "4 places for 9 nodes; give each node a place");
    assert!(ByRepulsion::system(&Setup { k: 10, ..nodes() }).is_err());
}
