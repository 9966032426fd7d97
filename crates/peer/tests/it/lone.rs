//! One process that was let in by a leader, which is made up.
use vez_peer::{
    Peer,
    agreement::{Config, Disk, Message as Agreement, Position, Snapshot},
    ask::SessionId,
    charter::Charter,
    frame::{Body, Frame, Membership},
    identity::{Address, ClusterId, Incarnation, MemberId},
    peer::{Call, Effect, Identity, Input, Start},
    shard::Habits,
    views::{Change, Command, Views},
};

pub(crate) const CLUSTER: ClusterId = ClusterId(7);
pub(crate) const LEADER: MemberId = MemberId(1);
pub(crate) const ME: MemberId = MemberId(2);
/// When our Join was sent, by our own clock.
pub(crate) const JOINED: u64 = 1_000_000_000;

/// A process that was let in by a leader, which is made up, and learns it at some moment.
pub(crate) struct Lone {
    pub(crate) peer: Peer,
    pub(crate) charter: Charter,
}

impl Lone {
    /// What it says when it learns that it is a member.
    pub(crate) fn learns(now: u64) -> (Self, Vec<Effect>) {
        let charter = Charter::new(2);
        let me = Identity { id: ME, incarnation: Incarnation(3), address: Address::new("me") };
        let start = Start::Join { disk: Box::new(Disk::empty()), seeds: vec![Address::new("leader")] };
        let mut effects = Vec::new();
        let peer = Peer::start(me, charter.clone(), Habits::default(), start, JOINED, &mut effects, &mut |_| 0);
        let mut lone = Self { peer, charter };
        lone.hear(JOINED, Body::Membership(Membership::Wait));
        let snapshot = Snapshot {
            position: Position { term: 1, index: 9 },
            config: Config { voters: [LEADER].into(), non_voters: [ME].into(), ..Config::default() },
            views: Some(lone.views()),
        };
        let effects = lone.hear(now, Body::Agreement(Agreement::Snapshot { term: 1, snapshot, round: 1 }));
        assert!(effects.iter().any(|effect| matches!(effect, Effect::Persist(_))), "first it is written");
        let effects = lone.handle(now, Input::Written);
        (lone, effects)
    }

    /// A view of the leader and us.
    pub(crate) fn views(&self) -> Views {
        let mut views = Views::new(CLUSTER, self.charter.clone(), 100);
        let admit = |id, incarnation, join_sent| Change::Admit {
            id,
            incarnation: Incarnation(incarnation),
            address: Address::new("somewhere"),
            join_sent,
            replaces: None,
            pledge: 0,
        };
        for (view, change) in [(100, admit(LEADER, 1, 0)), (101, admit(ME, 3, JOINED))] {
            views.apply(1, &Command { view, term: 1, changes: vec![change] }).expect("it is made for that view");
        }
        views
    }

    pub(crate) fn hear(&mut self, now: u64, body: Body) -> Vec<Effect> {
        let (cluster, address) = (Some(CLUSTER), Address::new("leader"));
        let frame = Frame { cluster, from: LEADER, incarnation: Incarnation(1), address, to: Some(ME), body };
        self.handle(now, Input::Frame(Box::new(frame)))
    }

    pub(crate) fn handle(&mut self, now: u64, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.peer.handle(now, input, &mut effects, &mut |_| 0);
        effects
    }

    /// Until when a client is told that what it holds is its own.
    pub(crate) fn deadline(&mut self, now: u64) -> u64 {
        let effects = self.handle(now, Input::Call(Call::Open { session: SessionId(1), ttl: None }));
        let told = effects.iter().find_map(|effect| match effect {
            Effect::Renewed { deadline, .. } => Some(*deadline),
            _ => None,
        });
        told.expect("it is told")
    }
}
