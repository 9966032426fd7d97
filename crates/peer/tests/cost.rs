//! What the common cases cost, in messages between members.

use std::collections::VecDeque;

use vez_algorithms::NodeId;
use vez_peer::{
    ask::{Ask, Patience, RequestId, SessionId},
    charter::Algorithms,
    fence::Fence,
    identity::{Address, Incarnation, MemberId},
    name::Name,
    shard::{Effect, Effects, Habits, Message, Shard, Waiter},
    view::{Member, View},
};

/// Three members of a settled view, whose messages arrive at once, and are counted.
struct Cluster {
    shards: Vec<Shard>,
    view: View,
    messages: usize,
    granted: Vec<(RequestId, Fence)>,
    requests: u64,
}

impl Cluster {
    fn new() -> Self {
        let member = |id| Member {
            id: MemberId(id),
            incarnation: Incarnation(1),
            address: Address::new("somewhere"),
            joined_in: 6,
            join_sent: 0,
        };
        let view = View { number: 7, members: (1..=3).map(member).collect() };
        let shards = vec![Shard::new(Habits::default(), Algorithms::default()); 3];
        let mut cluster = Self { shards, view, messages: 0, granted: Vec::new(), requests: 0 };
        let mut flying = VecDeque::new();
        for node in 0..3 {
            let (view, mut effects) = (cluster.view.clone(), Vec::new());
            cluster.shards[node].install(0, view, NodeId::from_index(node), &mut effects);
            cluster.sort(node, effects, &mut flying);
        }
        cluster.deliver(flying);
        assert!(cluster.shards.iter().all(Shard::is_settled));
        cluster.messages = 0;
        cluster
    }

    fn happen(&mut self, node: usize, happen: impl FnOnce(&mut Shard, &mut Effects)) {
        let mut effects = Vec::new();
        happen(&mut self.shards[node], &mut effects);
        let mut flying = VecDeque::new();
        self.sort(node, effects, &mut flying);
        self.deliver(flying);
    }

    fn deliver(&mut self, mut flying: VecDeque<(usize, NodeId, Message)>) {
        while let Some((to, from, message)) = flying.pop_front() {
            let mut effects = Vec::new();
            self.shards[to].message(0, from, message, &mut effects);
            self.sort(to, effects, &mut flying);
        }
    }

    fn sort(&mut self, node: usize, effects: Effects, flying: &mut VecDeque<(usize, NodeId, Message)>) {
        for effect in effects {
            match effect {
                Effect::Send(to, message) => {
                    self.messages += 1;
                    flying.push_back((to.index(), NodeId::from_index(node), message));
                }
                Effect::Granted { request, fence, .. } => self.granted.push((request, fence)),
                Effect::Settled => {}
                other => panic!("unexpected: {other:?}"),
            }
        }
    }

    fn home(&self, name: &Name) -> usize {
        self.view.home(name).index()
    }

    /// A client asks; whether it is inside at once, and under which fence.
    fn ask(&mut self, node: usize, name: &Name, ask: Ask) -> Option<Fence> {
        self.requests += 1;
        let request = RequestId(self.requests);
        let waiter = Waiter { session: session(node), request, ask, patience: Patience::Endless, since: 0 };
        self.happen(node, |shard, out| shard.acquire(0, name, waiter, out));
        self.fence_of(request)
    }

    fn fence_of(&self, request: RequestId) -> Option<Fence> {
        self.granted.iter().find(|(granted, _)| *granted == request).map(|(_, fence)| *fence)
    }

    fn leave(&mut self, node: usize, name: &Name, fence: Fence) {
        self.happen(node, |shard, out| shard.release(0, session(node), name, fence, out).expect("it is held"));
    }

    /// How many messages that took.
    fn cost(&mut self, run: impl FnOnce(&mut Self)) -> usize {
        let before = self.messages;
        run(self);
        self.messages - before
    }

    /// An entry and the way out.
    fn visit(&mut self, node: usize, name: &Name, ask: Ask) -> usize {
        self.cost(|cluster| {
            let fence = cluster.ask(node, name, ask).expect("nobody else is there");
            cluster.leave(node, name, fence);
        })
    }
}

fn session(node: usize) -> SessionId {
    SessionId(node as u64)
}

fn name() -> Name {
    Name::new(b"orders").expect("short")
}

#[test]
fn a_lock_that_was_used_here_last_costs_nothing() {
    let (mut cluster, name) = (Cluster::new(), name());
    let elsewhere = (cluster.home(&name) + 1) % 3;
    assert_eq!(cluster.visit(elsewhere, &name, Ask::Lock), 2, "a request to the home, and the token");
    for _ in 0..10 {
        assert_eq!(cluster.visit(elsewhere, &name, Ask::Lock), 0);
    }
}

#[test]
fn passing_a_lock_on_costs_one_message() {
    let (mut cluster, name) = (Cluster::new(), name());
    let (one, other) = ((cluster.home(&name) + 1) % 3, (cluster.home(&name) + 2) % 3);
    let fence = cluster.ask(one, &name, Ask::Lock).expect("nobody else is there");
    assert_eq!(cluster.ask(other, &name, Ask::Lock), None);
    let granted = cluster.granted.len();
    assert_eq!(cluster.cost(|cluster| cluster.leave(one, &name, fence)), 1);
    assert_eq!(cluster.granted.len(), granted + 1, "and the other is inside");
}

#[test]
fn clients_of_one_node_pass_a_lock_on_for_nothing() {
    let (mut cluster, name) = (Cluster::new(), name());
    let node = (cluster.home(&name) + 1) % 3;
    let fence = cluster.ask(node, &name, Ask::Lock).expect("nobody else is there");
    assert_eq!(cluster.cost(|cluster| assert_eq!(cluster.ask(node, &name, Ask::Lock), None)), 0);
    assert_eq!(cluster.cost(|cluster| cluster.leave(node, &name, fence)), 0);
    let (_, next) = cluster.granted[1];
    assert!(next > fence);
}

#[test]
fn what_has_a_ledger_costs_three_messages_or_none_at_home() {
    let asks = [
        Ask::Semaphore { units: 3, weight: 2 },
        Ask::Group { label: b"red".to_vec() },
        Ask::Read,
        Ask::Write,
        Ask::Elect { value: b"me".to_vec() },
    ];
    for ask in asks {
        let (mut cluster, name) = (Cluster::new(), name());
        let home = cluster.home(&name);
        assert_eq!(cluster.visit((home + 1) % 3, &name, ask.clone()), 3, "{ask:?}");
        assert_eq!(cluster.visit(home, &name, ask.clone()), 0, "{ask:?}");
    }
}
