//! How it happens: what the real shard is told, and what becomes of what it wants done.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use vez_algorithms::{Order, mutex::fila};
use vez_peer::{
    ask::{Failure, Patience, RequestId},
    charter::Algorithms,
    fence::Fence,
    shard::{Effect, Effects, Habits, Message, Shard, TurnMessage, Waiter},
    view::View,
};

use super::{
    config::{Change, Event},
    model::Explorer,
    world::{Held, Packet, Process, Standing, World, id, member, session, who},
};

/// All happens at 0; but for one who looks whether a name is idle it is so late.
const IDLE: u64 = 1;
/// Nowhere are so many messages needed.
const ENOUGH: u16 = 150;

impl Explorer {
    pub(crate) fn request(&self, world: &mut World, at: usize) {
        let request = RequestId(at as u64 * 10 + world.asked[at] as u64);
        world.asked[at] += 1;
        let (ask, patience) = self.ask(request).clone();
        let process = Arc::make_mut(&mut world.processes[at]);
        self.see(Event::AskedWhileSettling, patience == Patience::Endless && !process.shard.is_settled());
        process.waiting.push((request, false));
        let waiter = Waiter { session: session(request), request, ask, patience, since: 0 };
        self.happen(world, at, |shard, out| shard.acquire(0, &self.name, waiter, out));
    }

    pub(crate) fn cancel(&self, world: &mut World, at: usize, request: RequestId) {
        world.cancels -= 1;
        let mut waited = false;
        self.happen(world, at, |shard, out| waited = shard.cancel(0, &self.name, request, out));
        if !waited {
            world.object("one who waits cannot give up");
        }
    }

    pub(crate) fn rest(&self, world: &mut World, at: usize) {
        self.happen(world, at, |shard, out| shard.tick(IDLE, out));
    }

    pub(crate) fn crash(&self, world: &mut World, at: usize) {
        world.crashes -= 1;
        self.see(Event::HolderCrashed, world.holds.iter().any(|held| held.member == at));
        let view = world.processes[at].view;
        world.processes[at] = Arc::new(Process::new(Standing::Gone, view));
        self.sweep(world);
    }

    pub(crate) fn release(&self, world: &mut World, held: &Held) {
        let Held { member, request, fence, .. } = held;
        self.see(Event::ReleasedWhileSettling, !world.processes[*member].shard.is_settled());
        world.holds.retain(|other| other != held);
        let mut refused = false;
        self.happen(world, *member, |shard, out| {
            refused = shard.release(0, session(*request), &self.name, *fence, out).is_err();
        });
        if refused {
            world.object("what was granted cannot be released");
        }
    }

    pub(crate) fn receive(&self, world: &mut World, packet: &Packet) {
        let at = world.network.iter().position(|other| other == packet).expect("it is under way");
        let Packet { view, from, to, message } = world.network.remove(at);
        let process = &world.processes[to];
        self.see(Event::IdleWhileSettling, matches!(message, Message::Idle { .. }) && !process.shard.is_settled());
        let is_token = is_lock(&message, |message| matches!(message, fila::Message::Token(_)));
        let nobody = process.waiting.is_empty() && world.holds.iter().all(|held| held.member != to);
        let from = world.views[view].position(id(from)).expect("it was a member");
        let (token, attempt) = self.happen(world, to, |shard, out| shard.message(0, from, message, out));
        self.see(Event::TokenForNobodyMovedOn, is_token && nobody && token);
        self.see(Event::Pulled, nobody && attempt);
    }

    pub(crate) fn install(&self, world: &mut World, at: usize) {
        let process = Arc::make_mut(&mut world.processes[at]);
        if process.standing == Standing::Runs {
            process.view += 1;
            process.waiting.iter_mut().for_each(|waiting| waiting.1 = true);
        }
        process.standing = Standing::Runs;
        let view = View::clone(&world.views[process.view]);
        let me = view.position(id(at)).expect("it is a member");
        self.see(Event::HolderInNewView, world.holds.iter().any(|held| held.member == at));
        self.happen(world, at, |shard, out| shard.install(0, view, me, out));
    }

    pub(crate) fn announce(&self, world: &mut World, change: Change) {
        let (index, number) = (world.views.len(), world.views.len() as u64 + 1);
        let mut view = View { number, members: world.views[index - 1].members.clone() };
        if let Some(at) = change.ends() {
            let holds = world.holds.iter().any(|held| held.member == at);
            self.see(Event::HolderEvicted, holds && world.runs(at));
            world.holds.retain(|held| held.member != at); // Its lease is over, and its clients know.
            let process = Arc::make_mut(&mut world.processes[at]);
            *process = Process::new(Standing::Gone, index);
            view.members.retain(|member| member.id != id(at));
            if let Change::Restarted(_) = change {
                process.standing = Standing::Joins;
                view.members.push(member(at, number, number));
                view.members.sort_by_key(|member| member.id);
            }
        }
        self.see(Event::HomeMoved, {
            let before = &world.views[index - 1];
            who(before, before.home(&self.name)) != who(&view, view.home(&self.name))
        });
        world.views.push(Arc::new(view));
        self.sweep(world);
    }

    /// Lets something happen to a shard, and does what it wants done. Says whether a token goes out, and whether a try.
    fn happen(&self, world: &mut World, at: usize, what: impl FnOnce(&mut Shard, &mut Effects)) -> (bool, bool) {
        let process = Arc::make_mut(&mut world.processes[at]);
        let mut effects = Vec::new();
        if catch_unwind(AssertUnwindSafe(|| what(&mut process.shard, &mut effects))).is_err() {
            world.object("a panic");
        }
        let sends = |wanted: fn(&fila::Message) -> bool| {
            effects.iter().any(|effect| matches!(effect, Effect::Send(_, message) if is_lock(message, wanted)))
        };
        let token = sends(|message| matches!(message, fila::Message::Token(_)));
        let attempt = sends(|message| matches!(message, fila::Message::Try { .. }));
        for effect in effects {
            self.obey(world, at, effect);
        }
        self.sweep(world);
        (token, attempt)
    }

    fn obey(&self, world: &mut World, at: usize, effect: Effect) {
        match effect {
            Effect::Send(to, message) => {
                let view = world.processes[at].view;
                let to = who(&world.views[view], to);
                self.send(world, Packet { view, from: at, to, message });
            }
            Effect::Granted { request, fence, floor, .. } => self.grant(world, at, request, fence, floor),
            Effect::Failed { request, failure, .. } => self.fail(world, at, request, &failure),
            Effect::Forgotten(_) => self.see(Event::Forgotten, true),
            Effect::Settled | Effect::Observed { .. } | Effect::Resized { .. } => {}
            Effect::NewViewWanted => world.object("fences run out"),
            Effect::Violation(_, what) => world.object(what),
        }
    }

    fn send(&self, world: &mut World, packet: Packet) {
        self.see(Event::EarlyWaited, world.processes[packet.to].view < packet.view);
        let place = match self.config.order {
            Order::Any => world.network.partition_point(|other| *other < packet),
            Order::Fifo => world.network.partition_point(|other| other.lane() <= packet.lane()),
        };
        world.network.insert(place, packet);
        world.sent += u16::from(self.config.counts);
        if world.sent > ENOUGH {
            world.object("there is no end of messages");
        }
    }

    fn grant(&self, world: &mut World, at: usize, request: RequestId, fence: Fence, floor: Fence) {
        let process = Arc::make_mut(&mut world.processes[at]);
        let waiting = process.waiting.iter().position(|waiting| waiting.0 == request);
        let Some(waiting) = waiting else { return world.object("a grant that nobody waits for") };
        let (_, since_before) = process.waiting.remove(waiting);
        self.see(Event::WaiterServedInNewView, since_before);
        let view = &world.views[process.view];
        let me = view.member(view.position(id(at)).expect("it is a member"));
        self.see(Event::ServedAfterRestart, me.incarnation.0 > 0);
        let ask = self.ask(request).0.clone();
        world.grant(Held { member: at, request, ask, fence }, floor);
    }

    fn fail(&self, world: &mut World, at: usize, request: RequestId, failure: &Failure) {
        Arc::make_mut(&mut world.processes[at]).waiting.retain(|waiting| waiting.0 != request);
        match failure {
            Failure::Cancelled(_) => {}
            Failure::Busy(_) => self.see(Event::Busy, true),
            Failure::Settling(_) => self.see(Event::TriedWhileSettling, true),
            Failure::Mismatch { is, asked, .. } if is != asked => self.see(Event::Mismatch, true),
            _ => world.object("a failure without a reason"),
        }
    }

    /// Takes away what makes no difference any more wherever it arrives.
    fn sweep(&self, world: &mut World) {
        let mut network = std::mem::take(&mut world.network);
        self.see(Event::StaleDropped, network.iter().any(|packet| world.is_stale(packet)));
        network.retain(|packet| !world.is_void(packet));
        world.network = network;
    }
}

impl Process {
    pub(crate) fn new(standing: Standing, view: usize) -> Self {
        Self {
            shard: Shard::new(Habits { visit: 1, idle: IDLE, ..Habits::default() }, Algorithms::default()),
            standing,
            view,
            waiting: Vec::new(),
        }
    }
}

fn is_lock(message: &Message, wanted: impl FnOnce(&fila::Message) -> bool) -> bool {
    matches!(message, Message::Lock { message: TurnMessage::Fila(message), .. } if wanted(message))
}
