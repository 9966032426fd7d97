//! What can happen, and what must be so.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use stateright::{Model, Property};
use vez_algorithms::Order;
use vez_peer::{
    ask::{Ask, Patience, RequestId},
    name::Name,
    view::View,
};

use super::{
    config::{Change, Config, Event},
    world::{Held, MEMBERS, Packet, Process, Standing, World, member, who},
};

/// Something that can happen.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Action {
    /// The next client of a member asks.
    Ask(usize),
    /// One who waits gives up.
    Cancel(usize, RequestId),
    /// One who holds gives back.
    Release(Held),
    /// A member looks whether a name was idle for long enough, and it was if it is.
    Rest(usize),
    /// A message arrives.
    Receive(Packet),
    /// A new view is decided. Who is not in it has stopped, and its clients know.
    Announce(Change),
    /// A member goes on to the next view.
    Install(usize),
    /// A process ends. Its clients do not know.
    Crash(usize),
}

/// Three members and one name.
pub(crate) struct Explorer {
    pub config: Config,
    pub name: Name,
    /// What was seen so far, a bit for each: it is no part of the state, so that it does not multiply the states.
    seen: AtomicU32,
}

impl Explorer {
    pub(crate) fn new(config: Config) -> Self {
        // The last member is the name's home if it can be, otherwise the one before it.
        let homes = |name: &Name| {
            let all = View { number: 1, members: (0..MEMBERS).map(|at| member(at, 0, 0)).collect() };
            let fewer = View { number: 1, members: all.members[..MEMBERS - 1].to_vec() };
            who(&all, all.home(name)) == MEMBERS - 1 && who(&fewer, fewer.home(name)) == MEMBERS - 2
        };
        let name = (b'a'..=b'z').map(|letter| Name::new(&[letter]).expect("a name")).find(homes).expect("there is one");
        Self { config, name, seen: AtomicU32::new(0) }
    }

    /// What should have been seen, but was not.
    pub(crate) fn missed(&self) -> impl Iterator<Item = Event> {
        let seen = self.seen.load(Ordering::Relaxed);
        self.config.shows.iter().copied().filter(move |event| seen & 1 << *event as u32 == 0)
    }

    /// Takes note of it, if it happened.
    pub(crate) fn see(&self, event: Event, happened: bool) {
        if happened && self.seen.load(Ordering::Relaxed) & 1 << event as u32 == 0 {
            self.seen.fetch_or(1 << event as u32, Ordering::Relaxed);
        }
    }

    /// What a request is for.
    pub(crate) fn ask(&self, request: RequestId) -> &'static (Ask, Patience) {
        let request = usize::try_from(request.0).expect("small");
        &self.config.asks[request / 10][request % 10]
    }

    /// What is bound to happen some time, if nothing else happens.
    fn inevitable(&self, world: &World, actions: &mut Vec<Action>) {
        for (at, packet) in world.network.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| &world.network[before]);
            let is_next = match self.config.order {
                Order::Any => before != Some(packet),
                Order::Fifo => before.is_none_or(|other| other.lane() != packet.lane()),
            };
            if is_next && world.arrives(packet) {
                actions.push(Action::Receive(packet.clone()));
            }
        }
        let alive = world.holds.iter().filter(|held| world.runs(held.member));
        actions.extend(alive.map(|held| Action::Release(held.clone())));
        for (at, process) in world.processes.iter().enumerate() {
            match process.standing {
                Standing::Joins => actions.push(Action::Install(at)),
                Standing::Runs if process.view < world.last() => actions.push(Action::Install(at)),
                Standing::Runs | Standing::Gone => {}
            }
            if self.config.forgets && world.runs(at) && process.shard.deadline().is_some() {
                actions.push(Action::Rest(at));
            }
        }
        if world.crashed().is_some() {
            self.announcements(world, actions);
        }
    }

    /// What may happen or not.
    fn possible(&self, world: &World, actions: &mut Vec<Action>) {
        for (at, process) in world.processes.iter().enumerate().filter(|(at, _)| world.runs(*at)) {
            if world.asked[at] < self.config.asks[at].len() {
                actions.push(Action::Ask(at));
            }
            if world.cancels > 0 {
                actions.extend(process.waiting.iter().map(|waiting| Action::Cancel(at, waiting.0)));
            }
            if world.crashes > 0 && self.can_end(at, world.last()) {
                actions.push(Action::Crash(at));
            }
        }
        if world.crashed().is_none() {
            self.announcements(world, actions);
        }
    }

    /// Which view may come next. Who crashed is not left in the last of them.
    fn announcements(&self, world: &World, actions: &mut Vec<Action>) {
        let Some(changes) = self.config.changes.get(world.last()) else { return };
        let crashed = world.crashed();
        let legal = |change: &&Change| match change.ends() {
            None => crashed.is_none_or(|at| self.can_end(at, world.last() + 1)),
            Some(at) => crashed == Some(at) || self.config.evicts && crashed.is_none() && world.runs(at),
        };
        actions.extend(changes.iter().filter(legal).map(|change| Action::Announce(*change)));
    }

    /// Whether a member can be removed or restarted by one of the views that follow so many others.
    fn can_end(&self, member: usize, others: usize) -> bool {
        self.config.changes[others..].iter().copied().flatten().any(|change| change.ends() == Some(member))
    }

    /// Nothing but leaving is bound to happen: then who only tries must have had an answer. If nothing at all is, nobody
    /// may wait or hold, all must be settled, and of what can be forgotten nothing may be left.
    fn is_stuck(&self, world: &World) -> bool {
        let mut actions = Vec::new();
        self.inevitable(world, &mut actions);
        if actions.iter().any(|action| !matches!(action, Action::Release(_))) {
            return false;
        }
        let at_rest = |process: &Process| {
            let (instances, clients) = process.shard.names();
            let clean = clients == 0 && (instances == 0 || !self.config.forgets);
            process.shard.is_settled() && process.waiting.is_empty() && clean
        };
        let over = actions.is_empty();
        let all_at_rest = world.holds.is_empty() && world.network.is_empty() && world.running().all(at_rest);
        world.running().any(|process| self.tries(process)) || over && !all_at_rest
    }

    /// Whether a client waits that does not want to.
    fn tries(&self, process: &Process) -> bool {
        process.waiting.iter().any(|waiting| self.ask(waiting.0).1 == Patience::Try)
    }
}

impl Model for Explorer {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let members = (0..MEMBERS).map(|at| member(at, 0, self.config.joined[at])).collect();
        let mut world = World {
            views: vec![Arc::new(View { number: 1, members })],
            processes: (0..MEMBERS).map(|_| Arc::new(Process::new(Standing::Joins, 0))).collect(),
            network: Vec::new(),
            holds: Vec::new(),
            asked: [0; MEMBERS],
            cancels: self.config.cancels,
            crashes: self.config.crashes,
            sent: 0,
            latest: None,
            floor: None,
            breach: None,
        };
        (0..MEMBERS).for_each(|at| self.install(&mut world, at));
        while let Some(packet) = world.network.first().cloned() {
            self.receive(&mut world, &packet);
        }
        vec![world]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.breach.is_none() {
            self.inevitable(world, actions);
            self.possible(world, actions);
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = last.clone();
        match action {
            Action::Ask(at) => self.request(&mut world, at),
            Action::Cancel(at, request) => self.cancel(&mut world, at, request),
            Action::Release(held) => self.release(&mut world, &held),
            Action::Rest(at) => self.rest(&mut world, at),
            Action::Receive(packet) => self.receive(&mut world, &packet),
            Action::Announce(change) => self.announce(&mut world, change),
            Action::Install(at) => self.install(&mut world, at),
            Action::Crash(at) => self.crash(&mut world, at),
        }
        let hold_in_new_view = |two: &[Held]| {
            let [one, other] = [0, 1].map(|at| two[at].member);
            one != other && world.processes[one].view > 0 && world.processes[other].view > 0
        };
        self.see(Event::TwoMembersHoldInNewView, world.holds.windows(2).any(hold_in_new_view));
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("those inside may be inside together", |_: &Self, world: &World| world.excludes()),
            Property::always("nothing happens that should not", |_: &Self, world: &World| world.breach.is_none()),
            Property::always("nobody is stuck, nothing is left", |model: &Self, world: &World| {
                world.breach.is_some() || !model.is_stuck(world)
            }),
            Property::always("who only tries does not wait for a view to be settled", |model: &Self, world: &World| {
                world.running().all(|process| process.shard.is_settled() || !model.tries(process))
            }),
            Property::sometimes(ALL_SEEN, |model: &Self, _: &World| model.missed().next().is_none()),
        ]
    }
}

/// So that a model in which nothing happens fails.
pub(crate) const ALL_SEEN: &str = "all was seen that this should show";
