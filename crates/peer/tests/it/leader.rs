//! Five processes on a network that takes a hundredth of a second: what a leader does that has been cut off, and what the next one does.

use std::collections::VecDeque;

use vez_peer::{
    Peer,
    agreement::Disk,
    charter::Charter,
    frame::{Body, Frame, Membership},
    identity::{Address, ClusterId, Incarnation, MemberId},
    peer::{Effect, Identity, Input, Start},
    shard::Habits,
};

const MILLISECOND: u64 = 1_000_000;

struct Five {
    peers: Vec<Peer>,
    now: u64,
    flying: VecDeque<(usize, Box<Frame>)>,
    /// Those who can only reach each other.
    apart: Vec<usize>,
    /// Renewals that were answered: by whom, whose, and when they had been sent.
    renewed: Vec<(usize, usize, u64)>,
    /// Who is in which view, and since when.
    entered: Vec<(usize, u64, u64)>,
}

impl Five {
    /// All five are members, and one leads.
    fn new() -> Self {
        let (now, peers, flying) = (1000 * MILLISECOND, Vec::new(), VecDeque::new());
        let mut five = Self { peers, now, flying, apart: Vec::new(), renewed: Vec::new(), entered: Vec::new() };
        for number in 0..5 {
            let me =
                Identity { id: MemberId(number + 1), incarnation: Incarnation(1), address: address(number as usize) };
            let start = match number {
                0 => Start::Found { cluster: ClusterId(1), first_view: 100 },
                _ => Start::Join { disk: Box::new(Disk::empty()), seeds: vec![address(0)] },
            };
            let mut effects = Vec::new();
            let choose = &mut |n: u64| number * n / 5;
            let peer = Peer::start(me, Charter::new(1), Habits::default(), start, now, &mut effects, choose);
            five.peers.push(peer);
            five.carry_out(number as usize, effects);
        }
        five.pass(20_000);
        assert!(five.peers.iter().all(|peer| peer.is_settled()), "all have joined");
        five
    }

    fn leader(&self) -> usize {
        self.peers
            .iter()
            .position(|peer| {
                let status = peer.status();
                status.leader == Some(status.id)
            })
            .expect("somebody leads")
    }

    fn handle(&mut self, peer: usize, input: Input) {
        let mut effects = Vec::new();
        self.peers[peer].handle(self.now, input, &mut effects, &mut |n| peer as u64 * n / 5);
        self.carry_out(peer, effects);
    }

    fn carry_out(&mut self, peer: usize, effects: Vec<Effect>) {
        let mut written = false;
        for effect in effects {
            match effect {
                Effect::Send(to, frame) => {
                    let to: usize = to.as_str().parse().expect("a number");
                    if let Body::Membership(Membership::Renewed { sent, .. }) = &frame.body {
                        self.renewed.push((peer, to, *sent));
                    }
                    if self.apart.contains(&peer) == self.apart.contains(&to) {
                        self.flying.push_back((to, frame));
                    }
                }
                Effect::Persist(_) => written = true,
                Effect::Entered(view) => self.entered.push((peer, view, self.now)),
                _ => {}
            }
        }
        if written {
            self.handle(peer, Input::Written);
        }
    }

    fn pass(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds / 10 {
            self.now += 10 * MILLISECOND;
            for peer in 0..self.peers.len() {
                if self.peers[peer].deadline() <= self.now {
                    self.handle(peer, Input::Tick);
                }
            }
            for (to, frame) in std::mem::take(&mut self.flying) {
                self.handle(to, Input::Frame(frame));
            }
        }
    }
}

fn address(peer: usize) -> Address {
    Address::new(&peer.to_string())
}

#[test]
fn a_leader_that_no_majority_confirms_renews_nobody() {
    let mut five = Five::new();
    let leader = five.leader();
    let other = (leader + 1) % 5;
    five.apart = vec![leader, other];
    five.flying.clear();
    let cut = five.now;
    five.pass(9_000);
    let since: Vec<_> = five.renewed.iter().filter(|(by, _, sent)| *by == leader && *sent > cut).collect();
    assert!(since.is_empty(), "{since:?}");
    assert!(five.peers[leader].has_stopped() && five.peers[other].has_stopped(), "and their leases run out");
}

#[test]
fn a_new_leader_waits_until_all_older_leases_are_over() {
    let mut five = Five::new();
    let leader = five.leader();
    five.apart = vec![leader];
    let cut = five.now;
    five.pass(30_000);
    let next = five.leader();
    assert_ne!(next, leader);
    let charter = Charter::new(1);
    let (_, _, removed) = five.entered.iter().find(|(peer, _, at)| *peer == next && *at > cut).expect("it is removed");
    assert!(*removed >= cut + charter.lease_of_others(), "{} ms after the cut", (removed - cut) / MILLISECOND);
    assert!(five.peers[leader].has_stopped(), "by then it has stopped");
    assert_eq!(five.peers[next].status().view, Some(five.entered.iter().map(|(_, view, _)| *view).max().unwrap_or(0)));
}
