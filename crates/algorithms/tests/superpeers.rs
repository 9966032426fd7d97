//! Superpeers at a size that no checker reaches: tokens spread and come to rest, lookups take a logarithm of hops.

use std::{collections::VecDeque, ops::Range, time::Duration};

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

/// A system whose messages arrive in the order of their sending, and whose timers all fire when nothing else is left to do.
struct Play<A: Algorithm<Family = Superpeers>> {
    nodes: Vec<A>,
    flying: VecDeque<(NodeId, NodeId, A::Message)>,
    set: Vec<(NodeId, A::Timer)>,
    sent: usize,
    told: Vec<(NodeId, Output)>,
}

impl<A: Algorithm<Family = Superpeers>> Play<A> {
    fn new(setup: &Setup) -> Self {
        let nodes = A::system(setup).expect("such a system can be");
        let mut play = Self { nodes, flying: VecDeque::new(), set: Vec::new(), sent: 0, told: Vec::new() };
        for node in setup.ids() {
            play.step(node, Input::Start);
        }
        play
    }

    fn step(&mut self, me: NodeId, input: Input<A>) {
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
                Effect::Output(output) => self.told.push((me, output)),
                Effect::Violation(what) => panic!("{me}: {what}"),
            }
        }
    }

    /// Until nothing is under way.
    fn settle(&mut self) {
        while let Some((from, to, message)) = self.flying.pop_front() {
            self.step(to, Input::Message { from, message });
        }
        let in_flight = &[];
        let nodes: Vec<&A> = self.nodes.iter().collect();
        A::INVARIANT.expect("there is one")(&World { nodes: &nodes, crashed: &NodeSet::new(), in_flight })
            .expect("it holds");
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
fn tokens_spread_from_a_corner() {
    for (width, tokens) in [(4, 1), (8, 4), (16, 16), (16, 25), (24, 9), (32, 64)] {
        let setup = Setup { k: tokens, ..setup(from_corner(width)) };
        let mut play = Play::<ByRepulsion>::new(&setup);
        let before = ["distance over that in a grid", "unevenness of load", "largest load over mean"].map(|n| play.measure(n));
        play.rounds(200);
        let after = ["distance over that in a grid", "unevenness of load", "largest load over mean"].map(|n| play.measure(n));
        let told = play.told.len();
        play.rounds(100);
        println!("{width} {tokens}: {before:.2?} {after:.2?} moves {} {}", (told - setup.nodes()) / 2, (play.told.len() - setup.nodes()) / 2);
    }
}
