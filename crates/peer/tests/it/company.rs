//! Some processes on a network that takes a hundredth of a second: they crash, come back, and are cut off.
use std::collections::{BTreeMap, VecDeque};

use vez_peer::{
    Peer,
    agreement::Disk,
    ask::{Ask, Failure, Patience, RequestId, SessionId},
    charter::Charter,
    fence::Fence,
    frame::Frame,
    identity::{Address, ClusterId, Incarnation, MemberId},
    keep::{KEEPER, Set},
    name::Name,
    peer::{Call, Effect, Identity, Input, Start},
    shard::Habits,
};

pub(crate) const MILLISECOND: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1000 * MILLISECOND;

pub(crate) struct Company {
    pub(crate) now: u64,
    pub(crate) peers: BTreeMap<u64, Peer>,
    disks: BTreeMap<u64, Disk>,
    starts: BTreeMap<u64, u64>,
    flying: VecDeque<(u64, Box<Frame>)>,
    /// What processes have said to clients.
    pub(crate) said: Vec<(u64, Effect)>,
    /// What does not get through.
    pub(crate) lost: fn(&Frame) -> bool,
    pub(crate) requests: u64,
}

/// A lease of 3 s, and clocks that are wrong by a tenth.
pub(crate) fn charter() -> Charter {
    Charter { lease: 3 * SECOND, margin: SECOND / 10, rate_error: 100_000, ..Charter::new(2) }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).expect("short")
}

fn address(id: u64) -> Address {
    Address::new(&id.to_string())
}

impl Company {
    /// So many members of a settled view; the first leads.
    pub(crate) fn new(members: u64) -> Self {
        let mut company = Self {
            now: SECOND,
            peers: BTreeMap::new(),
            disks: BTreeMap::new(),
            starts: BTreeMap::new(),
            flying: VecDeque::new(),
            said: Vec::new(),
            lost: |_| false,
            requests: 0,
        };
        for id in 1..=members {
            company.start(id);
        }
        company.pass(15 * SECOND);
        assert!(company.peers.values().all(Peer::is_settled), "all have joined");
        assert_eq!(company.leader(), 1);
        company
    }

    pub(crate) fn start(&mut self, id: u64) {
        let incarnation = self.starts.entry(id).or_default();
        *incarnation += 1;
        let me = Identity { id: MemberId(id), incarnation: Incarnation(*incarnation), address: address(id) };
        let start = match (id, *incarnation) {
            (1, 1) => Start::Found { cluster: ClusterId(1), first_view: 100 },
            _ => {
                let disk = self.disks.entry(id).or_insert_with(Disk::empty).clone();
                Start::Join { disk: Box::new(disk), seeds: vec![address(1), address(2)] }
            }
        };
        let (habits, mut effects) = (Habits { keep: 20 * SECOND, ..Habits::default() }, Vec::new());
        let peer = Peer::start(me, charter(), habits, start, self.now, &mut effects, &mut |n| id * n / 8);
        self.peers.insert(id, peer);
        self.carry_out(id, effects);
    }

    /// A process ends, without a word.
    pub(crate) fn crash(&mut self, id: u64) {
        self.peers.remove(&id).expect("it runs");
    }

    pub(crate) fn leader(&self) -> u64 {
        let leads = |(id, peer): (&u64, &Peer)| (peer.status().leader == Some(MemberId(*id))).then_some(*id);
        self.peers.iter().find_map(leads).expect("somebody leads")
    }

    pub(crate) fn handle(&mut self, id: u64, input: Input) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let mut effects = Vec::new();
        peer.handle(self.now, input, &mut effects, &mut |n| id * n / 8);
        self.carry_out(id, effects);
    }

    fn carry_out(&mut self, id: u64, effects: Vec<Effect>) {
        let mut written = false;
        for effect in effects {
            match effect {
                Effect::Send(to, frame) if !(self.lost)(&frame) => {
                    self.flying.push_back((to.as_str().parse().expect("a number"), frame));
                }
                Effect::Send(..) => {}
                Effect::Persist(batch) => {
                    self.disks.entry(id).or_insert_with(Disk::empty).write(&batch);
                    written = true;
                }
                effect => self.said.push((id, effect)),
            }
        }
        if written {
            self.handle(id, Input::Written);
        }
    }

    pub(crate) fn pass(&mut self, time: u64) {
        for _ in 0..time / (10 * MILLISECOND) {
            self.now += 10 * MILLISECOND;
            for (to, frame) in std::mem::take(&mut self.flying) {
                self.handle(to, Input::Frame(frame));
            }
            for id in self.peers.keys().copied().collect::<Vec<_>>() {
                if self.peers[&id].deadline() <= self.now {
                    self.handle(id, Input::Tick);
                }
            }
        }
    }

    /// How long it takes until something is so.
    pub(crate) fn pass_until(&mut self, is_so: impl Fn(&Self) -> bool) -> u64 {
        let began = self.now;
        while !is_so(self) {
            self.pass(10 * MILLISECOND);
            assert!(self.now < began + 200 * SECOND, "it never is");
        }
        self.now - began
    }

    /// What a process says to a client at once.
    pub(crate) fn call(&mut self, id: u64, call: Call) -> Vec<Effect> {
        let before = self.said.len();
        self.handle(id, Input::Call(call));
        self.said[before..].iter().filter(|(by, _)| *by == id).map(|(_, effect)| effect.clone()).collect()
    }

    pub(crate) fn next_request(&mut self) -> RequestId {
        self.requests += 1;
        RequestId(self.requests)
    }

    /// A new session at a process holds a lock.
    pub(crate) fn lock(&mut self, id: u64, name: &Name) -> (SessionId, Fence) {
        let (session, request) = (SessionId(self.next_request().0), self.next_request());
        self.call(id, Call::Open { session, ttl: None });
        let (ask, patience) = (Ask::Lock, Patience::Endless);
        self.call(id, Call::Acquire { session, request, name: name.clone(), ask, patience });
        self.pass_until(|company| company.fence_of(request).is_some());
        (session, self.fence_of(request).expect("it was granted"))
    }

    pub(crate) fn fence_of(&self, granted: RequestId) -> Option<Fence> {
        self.said.iter().find_map(|(_, effect)| match effect {
            Effect::Granted { request, fence, .. } if *request == granted => Some(*fence),
            _ => None,
        })
    }

    /// Somebody wants a lock to be kept.
    pub(crate) fn set(&mut self, id: u64, name: &Name, value: &[u8], ttl: u64) -> RequestId {
        let request = self.next_request();
        self.call(
            id,
            Call::Set(Set { request, name: name.clone(), value: value.to_vec(), ttl, by: "somebody".into() }),
        );
        request
    }

    /// The same, until it is had. Whether it is kept, is told later.
    pub(crate) fn set_and_have(&mut self, id: u64, name: &Name, value: &[u8], ttl: u64) -> RequestId {
        let request = self.set(id, name, value, ttl);
        self.pass_until(|company| {
            company.peers[&id].why(name).holders.iter().any(|holder| holder.session == Some(KEEPER))
        });
        request
    }

    /// What a request says of what is kept: its fence, and until when.
    fn kept(&self, asked: RequestId) -> Option<(Fence, u64)> {
        self.said.iter().find_map(|(_, effect)| match effect {
            Effect::Kept { request, fence, deadline, .. } if *request == asked => Some((*fence, *deadline)),
            _ => None,
        })
    }

    /// Until when a request says that something is kept.
    pub(crate) fn kept_until(&self, asked: RequestId) -> Option<u64> {
        self.kept(asked).map(|(_, deadline)| deadline)
    }

    /// Why a request has failed.
    pub(crate) fn failed(&self, asked: RequestId) -> Option<Failure> {
        self.said.iter().find_map(|(_, effect)| match effect {
            Effect::Failed { request, failure, .. } if *request == asked => Some(failure.clone()),
            _ => None,
        })
    }

    /// A process locks something, and keeps it.
    pub(crate) fn keep(&mut self, id: u64, name: &Name, value: &[u8], ttl: u64) -> Fence {
        let request = self.set(id, name, value, ttl);
        self.pass_until(|company| company.kept(request).is_some());
        self.kept(request).expect("it is kept").0
    }

    /// How long it takes until the others go on without a process.
    pub(crate) fn until_removed(&mut self, id: u64, by: u64) -> u64 {
        self.pass_until(|company| {
            let view = company.peers[&by].view().expect("a member");
            view.process(MemberId(id), Incarnation(1)).is_none()
        })
    }
}
