//! Three members of a settled view, whose messages arrive at once, and are counted.
use std::collections::VecDeque;

use vez_algorithms::NodeId;
use vez_peer::{
    ask::{Ask, Failure, Leader, Patience, RequestId, SessionId, Size},
    charter::Algorithms,
    fence::Fence,
    identity::{Address, Incarnation, MemberId},
    name::Name,
    shard::{Effect, Effects, Habits, Message, Shard, Waiter},
    view::{Member, View},
};

/// Three members of a settled view.
pub(crate) struct Cluster {
    pub(crate) shards: Vec<Shard>,
    pub(crate) view: View,
    pub(crate) messages: usize,
    pub(crate) granted: Vec<(RequestId, Fence)>,
    pub(crate) failed: Vec<(RequestId, Failure)>,
    pub(crate) forgotten: Vec<Name>,
    pub(crate) observed: Vec<(RequestId, Option<Leader>)>,
    pub(crate) resized: Vec<(RequestId, Size)>,
    /// What never arrives.
    pub(crate) lost: fn(&Message) -> bool,
    pub(crate) wants_view: bool,
    pub(crate) now: u64,
    requests: u64,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        let member = |id| Member {
            id: MemberId(id),
            incarnation: Incarnation(1),
            address: Address::new("somewhere"),
            joined_in: 6,
            join_sent: 0,
        };
        let view = View { number: 7, members: (1..=3).map(member).collect() };
        let shards = vec![Shard::new(Habits::default(), Algorithms::default()); 3];
        let mut cluster = Self {
            shards,
            view,
            messages: 0,
            granted: Vec::new(),
            failed: Vec::new(),
            forgotten: Vec::new(),
            observed: Vec::new(),
            resized: Vec::new(),
            lost: |_| false,
            wants_view: false,
            now: 0,
            requests: 0,
        };
        cluster.install();
        cluster.messages = 0;
        cluster
    }

    /// All know a view, and settle in it.
    fn install(&mut self) {
        let mut flying = VecDeque::new();
        for node in 0..3 {
            let (view, mut effects) = (self.view.clone(), Vec::new());
            self.shards[node].install(self.now, view, NodeId::from_index(node), &mut effects);
            self.sort(node, effects, &mut flying);
        }
        self.deliver(flying);
        assert!(self.shards.iter().all(Shard::is_settled));
    }

    /// A new view of the same members: what they knew of names is gone.
    pub(crate) fn next_view(&mut self) {
        self.view.number += 1;
        self.install();
    }

    pub(crate) fn happen(&mut self, node: usize, happen: impl FnOnce(&mut Shard, &mut Effects)) {
        let mut effects = Vec::new();
        happen(&mut self.shards[node], &mut effects);
        let mut flying = VecDeque::new();
        self.sort(node, effects, &mut flying);
        self.deliver(flying);
    }

    pub(crate) fn deliver(&mut self, mut flying: VecDeque<(usize, NodeId, Message)>) {
        while let Some((to, from, message)) = flying.pop_front() {
            let mut effects = Vec::new();
            self.shards[to].message(self.now, from, message, &mut effects);
            self.sort(to, effects, &mut flying);
        }
    }

    pub(crate) fn sort(&mut self, node: usize, effects: Effects, flying: &mut VecDeque<(usize, NodeId, Message)>) {
        for effect in effects {
            match effect {
                Effect::Send(to, message) => {
                    self.messages += 1;
                    if (self.lost)(&message) {
                        continue;
                    }
                    flying.push_back((to.index(), NodeId::from_index(node), message));
                }
                Effect::Granted { request, fence, .. } => self.granted.push((request, fence)),
                Effect::Failed { request, failure, .. } => self.failed.push((request, failure)),
                Effect::Observed { request, leader, .. } => self.observed.push((request, leader)),
                Effect::Resized { request, size, .. } => self.resized.push((request, size)),
                Effect::Forgotten(name) => self.forgotten.push(name),
                Effect::NewViewWanted => self.wants_view = true,
                Effect::Settled => {}
                Effect::Violation(..) => panic!("{effect:?}"),
            }
        }
    }

    pub(crate) fn home(&self, name: &Name) -> usize {
        self.view.home(name).index()
    }

    /// A client asks; whether it is inside at once, and under which fence.
    pub(crate) fn ask(&mut self, node: usize, name: &Name, ask: Ask) -> Option<Fence> {
        let request = self.ask_for(node, name, ask, Patience::Endless);
        self.fence_of(request)
    }

    /// A client asks, and waits as long as it says.
    pub(crate) fn ask_for(&mut self, node: usize, name: &Name, ask: Ask, patience: Patience) -> RequestId {
        self.requests += 1;
        let (request, now) = (RequestId(self.requests), self.now);
        let waiter = Waiter { session: session(node), request, ask, patience, since: now };
        self.happen(node, |shard, out| shard.acquire(now, name, waiter, out));
        request
    }

    /// A client wants to see who leads.
    pub(crate) fn observe(&mut self, node: usize, name: &Name) -> RequestId {
        self.requests += 1;
        let (request, now) = (RequestId(self.requests), self.now);
        self.happen(node, |shard, out| shard.observe(now, name, session(node), request, out));
        request
    }

    /// A client wants another number of units.
    pub(crate) fn resize(&mut self, node: usize, name: &Name, units: u32) -> RequestId {
        self.requests += 1;
        let (request, now) = (RequestId(self.requests), self.now);
        self.happen(node, |shard, out| shard.resize(now, name, session(node), request, units, out));
        request
    }

    /// Why a request was turned down, if it was.
    pub(crate) fn failure_of(&self, request: RequestId) -> Option<&Failure> {
        self.failed.iter().find(|(failed, _)| *failed == request).map(|(_, failure)| failure)
    }

    /// Time passes for all.
    pub(crate) fn pass(&mut self, time: u64) {
        self.now += time;
        let now = self.now;
        for node in 0..self.shards.len() {
            self.happen(node, |shard, out| shard.tick(now, out));
        }
    }

    pub(crate) fn fence_of(&self, request: RequestId) -> Option<Fence> {
        self.granted.iter().find(|(granted, _)| *granted == request).map(|(_, fence)| *fence)
    }

    pub(crate) fn leave(&mut self, node: usize, name: &Name, fence: Fence) {
        let now = self.now;
        self.happen(node, |shard, out| shard.release(now, session(node), name, fence, out).expect("it is held"));
    }
}

pub(crate) fn session(node: usize) -> SessionId {
    SessionId(1 + node as u64) // 0 is the keeper's.
}

pub(crate) fn name() -> Name {
    Name::new(b"orders").expect("short")
}
