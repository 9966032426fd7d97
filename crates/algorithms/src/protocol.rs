//! The contract between an algorithm and whatever drives it.

use alloc::{collections::VecDeque, vec::Vec};
use core::{fmt::Debug, hash::Hash, ops::Range, time::Duration};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use smallvec::SmallVec;

use crate::{Family, NodeId, NodeSet, Setting, Setup, SetupError};

/// A logical clock.
pub type Clock = u64;

/// An algorithm as one node runs it. The value is the whole state of that node.
///
/// # The calling contract
///
/// - A driver never calls a handler itself: it calls [`step`] or [`act`], then carries out the effects, in their order.
/// - A handler is atomic, and the same state with the same input has the same effects.
/// - `on_start` comes once, before anything else.
/// - A message arrives at most as often as it was sent, and in the order that [`Self::MODEL`] asks for.
/// - A message to oneself arrives at once, within the same step. It costs nothing and cannot be lost.
/// - A timer that was cancelled or set anew never fires as it was; one that fires is no longer set.
pub trait Protocol: Clone + Eq + Hash + Debug + Serialize + Send + Sync + 'static {
    /// What the algorithm's proof takes for granted.
    const MODEL: Model;

    /// A law about all nodes and messages together, true after every step: the lemmas of the paper.
    const INVARIANT: Option<Invariant<Self>> = None;

    /// Rewrites nodes and messages in flight into an equivalent state with the smallest clocks, so that a system
    /// that runs for ever may have finitely many states. Only the checker calls it.
    const CANONICAL: Option<Canonical<Self>> = None;

    /// What nodes say to each other.
    type Message: Message;
    /// What a node may want to be woken for; [`Never`] if it never does.
    type Timer: Copy + Ord + Hash + Debug + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// The problem that it solves, with the words and the law that go with it.
    type Family: Family;

    /// The system starts.
    fn on_start(&mut self, _cx: &mut Context<'_, Self>) {}

    /// The node is back after a crash. It knows only what it knew before its first start.
    fn on_restart(&mut self, cx: &mut Context<'_, Self>) {
        self.on_start(cx);
    }

    /// A client of this node asks for something.
    fn on_command(&mut self, command: CommandOf<Self>, cx: &mut Context<'_, Self>);

    /// A message arrives.
    fn on_message(&mut self, from: NodeId, message: Self::Message, cx: &mut Context<'_, Self>);

    /// A timer fires.
    fn on_timer(&mut self, timer: Self::Timer, cx: &mut Context<'_, Self>);

    /// The failure detector says that a node has crashed. Of each node it says so once, and only if
    /// [`Model::detector`] asks for one; messages that the dead node sent may still arrive.
    fn on_crash(&mut self, _node: NodeId, _cx: &mut Context<'_, Self>) {}

    /// Something happens here that is nobody else's business. Only a logical clock takes notice.
    fn on_internal_event(&mut self) {}
}

/// What the clients of a protocol ask for.
pub type CommandOf<P> = <<P as Protocol>::Family as Family>::Command;

/// What the clients of a protocol are told.
pub type OutputOf<P> = <<P as Protocol>::Family as Family>::Output;

/// A protocol that stands in the catalog: it has a name, and a whole system of it can be set up.
pub trait Algorithm: Protocol {
    /// As one types it.
    const NAME: &'static str;
    /// Messages an entry, as a formula.
    const COST: &'static str;
    /// Where it comes from; a key of `docs/references.md`.
    const PAPER: &'static str;
    /// What of the setup concerns it, of that which does not concern all.
    const SETTINGS: &'static [Setting] = &[];

    /// The nodes of a system at rest, in the order of their numbers.
    ///
    /// # Errors
    /// If the algorithm cannot run on such a system.
    fn system(setup: &Setup) -> Result<Vec<Self>, SetupError>;

    /// How many of the nodes have a client: the first ones.
    fn clients(setup: &Setup) -> usize {
        setup.nodes()
    }

    /// What clients may ask for.
    fn wants(setup: &Setup) -> Vec<CommandOf<Self>> {
        Self::Family::wants(setup)
    }

    /// What else there is to measure of a whole system at the end of a run, given the nodes that live.
    fn measures(_nodes: &[&Self]) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// What an algorithm's proof takes for granted of the world.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Model {
    /// The order in which the messages from one node to another must arrive.
    pub order: Order,
    /// Whom a node can send to.
    pub reach: Reach,
    /// Whether a timer that fires says anything about the messages that have not come.
    pub timing: Timing,
    /// Whether it must be told of crashes by a failure detector that is never wrong.
    pub detector: bool,
    /// Whether it still works when messages get lost.
    pub survives_loss: bool,
    /// Whether the others still get their turn when a node crashes.
    pub survives_crashes: bool,
    /// Whether a crashed node may come back, having forgotten everything.
    pub survives_restarts: bool,
}

impl Model {
    /// No loss, no crash; messages may overtake each other.
    pub const RELIABLE: Self = Self {
        order: Order::Any,
        reach: Reach::Everybody,
        timing: Timing::Any,
        detector: false,
        survives_loss: false,
        survives_crashes: false,
        survives_restarts: false,
    };
    /// No loss, no crash; messages from one node to another arrive in the order of their sending.
    pub const RELIABLE_FIFO: Self = Self { order: Order::Fifo, ..Self::RELIABLE };
}

/// Whom a node can send to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// Every other node.
    Everybody,
    /// Its neighbours in the graph of the system; see [`Setup::neighbours`].
    Neighbours,
}

/// What a timer says about messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Timing {
    /// Nothing: a message may take any time.
    Any,
    /// What has not come within [`Setup::patience`] will never come: delays are bounded, and the bound is known.
    Bounded,
}

/// The order in which messages from one node to another arrive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The order of their sending.
    Fifo,
    /// Any: a later message may overtake an earlier one.
    Any,
}

/// What nodes may say to each other. Implemented by every enum that derives the traits named here, and strum's
/// `IntoStaticStr` for the name of the variant.
pub trait Message: Clone + Ord + Hash + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The kind of message: the name of the variant.
    fn kind(&self) -> &'static str;
}

impl<M> Message for M
where
    M: Clone + Ord + Hash + Debug + Serialize + DeserializeOwned + Send + Sync + 'static,
    for<'a> &'a M: Into<&'static str>,
{
    fn kind(&self) -> &'static str {
        self.into()
    }
}

/// A type without values: the timer of an algorithm that sets none, handled by `match timer {}`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Never {}

/// Something that happens to a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input<P: Protocol> {
    /// The system starts.
    Start,
    /// The node is back after a crash.
    Restart,
    /// A client asks for something.
    Command(CommandOf<P>),
    /// A message arrives.
    Message {
        /// Who sent it.
        from: NodeId,
        /// What it says.
        message: P::Message,
    },
    /// A timer fires.
    Timer(P::Timer),
    /// The failure detector says that a node has crashed.
    Crash(NodeId),
    /// Something happens here that is nobody else's business.
    Internal,
}

/// Something that a handler wants done.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Effect<M, T, O> {
    /// Send a message to another node.
    Send(NodeId, M),
    /// Wake the node after some time in the range, and forget any earlier wish for this timer.
    SetTimer(T, Range<Duration>),
    /// Forget this timer.
    CancelTimer(T),
    /// Tell the client.
    Output(O),
    /// A peer did what the algorithm does not allow. The lab stops; a node in production drops the peer.
    Violation(&'static str),
}

/// The effects of a protocol's handlers.
pub type EffectOf<P> = Effect<<P as Protocol>::Message, <P as Protocol>::Timer, OutputOf<P>>;

/// The only door out of a handler. What goes through it is done after the handler returns.
pub struct Context<'a, P: Protocol> {
    me: NodeId,
    effects: &'a mut Vec<EffectOf<P>>,
    to_self: VecDeque<P::Message>,
    choose: &'a mut dyn FnMut(usize) -> usize,
}

impl<P: Protocol> Context<'_, P> {
    /// Sends a message.
    pub fn send(&mut self, to: NodeId, message: P::Message) {
        if to == self.me {
            self.to_self.push_back(message);
        } else {
            self.effects.push(Effect::Send(to, message));
        }
    }

    /// Sends a message to each of several nodes.
    pub fn multicast(&mut self, to: impl IntoIterator<Item = NodeId>, message: &P::Message) {
        for node in to {
            self.send(node, message.clone());
        }
    }

    /// Asks to be woken after some time in the range.
    pub fn set_timer(&mut self, timer: P::Timer, after: Range<Duration>) {
        self.effects.push(Effect::SetTimer(timer, after));
    }

    /// Takes that wish back.
    pub fn cancel_timer(&mut self, timer: P::Timer) {
        self.effects.push(Effect::CancelTimer(timer));
    }

    /// Tells the client.
    pub fn output(&mut self, output: OutputOf<P>) {
        self.effects.push(Effect::Output(output));
    }

    /// A number below `n`: the simulator answers from its seed, the checker with every one in turn.
    ///
    /// # Panics
    /// If there is nothing to choose from.
    pub fn choose(&mut self, n: usize) -> usize {
        assert!(n > 0, "nothing to choose from");
        let chosen = (self.choose)(n);
        assert!(chosen < n, "the driver chose {chosen} of {n}");
        chosen
    }

    /// Reports that a peer did what the algorithm does not allow.
    pub fn violation(&mut self, what: &'static str) {
        self.effects.push(Effect::Violation(what));
    }

    /// Runs a handler of another protocol that this one is made of. What that one sends and sets goes out wrapped; what it
    /// tells its client comes back, for this one is the client.
    pub fn inner<Q: Protocol>(
        &mut self,
        message: impl Fn(Q::Message) -> P::Message,
        timer: impl Fn(Q::Timer) -> P::Timer,
        run: impl FnOnce(&mut Context<'_, Q>),
    ) -> SmallVec<[OutputOf<Q>; 2]> {
        let mut effects = Vec::new();
        let mut cx =
            Context { me: self.me, effects: &mut effects, to_self: VecDeque::new(), choose: &mut *self.choose };
        run(&mut cx);
        self.to_self.extend(cx.to_self.into_iter().map(&message));
        let mut outputs = SmallVec::new();
        for effect in effects {
            match effect {
                Effect::Send(to, what) => self.effects.push(Effect::Send(to, message(what))),
                Effect::SetTimer(what, after) => self.effects.push(Effect::SetTimer(timer(what), after)),
                Effect::CancelTimer(what) => self.effects.push(Effect::CancelTimer(timer(what))),
                Effect::Output(output) => outputs.push(output),
                Effect::Violation(what) => self.effects.push(Effect::Violation(what)),
            }
        }
        outputs
    }
}

/// Lets one thing happen to one node, with all that it sends itself in consequence, and appends what it wants done.
///
/// `choose` answers [`Context::choose`]: given n, any number below n.
pub fn step<P: Protocol>(
    me: NodeId,
    node: &mut P,
    input: Input<P>,
    effects: &mut Vec<EffectOf<P>>,
    choose: &mut dyn FnMut(usize) -> usize,
) {
    act(me, node, effects, choose, |node, cx| match input {
        Input::Start => node.on_start(cx),
        Input::Restart => node.on_restart(cx),
        Input::Command(command) => node.on_command(command, cx),
        Input::Message { from, message } => node.on_message(from, message, cx),
        Input::Timer(timer) => node.on_timer(timer, cx),
        Input::Crash(crashed) => node.on_crash(crashed, cx),
        Input::Internal => node.on_internal_event(),
    });
}

/// Lets a driver that knows the algorithm call a handler that is not in the trait, such as
/// [`Fila::attempt`](crate::mutex::Fila::attempt). All else is as in [`step`].
pub fn act<P: Protocol>(
    me: NodeId,
    node: &mut P,
    effects: &mut Vec<EffectOf<P>>,
    choose: &mut dyn FnMut(usize) -> usize,
    run: impl FnOnce(&mut P, &mut Context<'_, P>),
) {
    let mut cx = Context { me, effects, to_self: VecDeque::new(), choose };
    run(node, &mut cx);
    while let Some(message) = cx.to_self.pop_front() {
        node.on_message(me, message, &mut cx);
    }
}

/// A law about a whole system.
pub type Invariant<P> = fn(&World<'_, P>) -> Result<(), &'static str>;

/// Rewrites all nodes and all messages in flight.
pub type Canonical<P> = fn(&mut [P], &mut [<P as Protocol>::Message]);

/// A whole system at one instant, for a law that concerns all of it.
pub struct World<'a, P: Protocol> {
    /// Every node, in the order of their numbers; of those that have crashed nothing can be said.
    pub nodes: &'a [&'a P],
    /// Those that have crashed.
    pub crashed: &'a NodeSet,
    /// Every message in flight: from, to, and what it says.
    pub in_flight: &'a [(NodeId, NodeId, &'a P::Message)],
}
