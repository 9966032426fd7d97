//! What group-quorum costs, how long a group waits, and what it does with recalls: what its page claims, and takes more
//! nodes or more turns than the checker has time for.

use std::{collections::VecDeque, time::Duration};

use vez_algorithms::{
    Algorithm, Effect, Input, Message, NodeId, Protocol, Setup,
    graph::Graph,
    group::{Command, GroupQuorum, Session},
    quorum::Quorum,
    step,
    tree::Tree,
};

/// A message under way, and to whom.
type Packet = (NodeId, NodeId, <GroupQuorum as Protocol>::Message);

/// A system whose messages are delivered one at a time.
struct System {
    nodes: Vec<GroupQuorum>,
    in_flight: VecDeque<Packet>,
    /// Who has entered, in this order.
    entered: Vec<usize>,
    sent: usize,
}

fn setup(processes: usize, groups: usize, quorum: Quorum) -> Setup {
    Setup {
        tree: Tree::star(processes),
        graph: Graph::OfTree,
        places: Vec::new(),
        quorum,
        k: 1,
        groups,
        replicas: 1,
        majority: 1,
        bits: 1,
        prefix: 1,
        retry: Duration::ZERO..Duration::ZERO,
        patience: Duration::ZERO,
        period: Duration::ZERO,
    }
}

impl System {
    fn new(processes: usize, groups: usize, quorum: Quorum) -> Self {
        let nodes = GroupQuorum::system(&setup(processes, groups, quorum)).expect("a system");
        Self { nodes, in_flight: VecDeque::new(), entered: Vec::new(), sent: 0 }
    }

    fn happen(&mut self, node: usize, input: Input<GroupQuorum>) {
        let me = NodeId::from_index(node);
        let mut effects = Vec::new();
        step(me, &mut self.nodes[node], input, &mut effects, &mut |_| 0);
        for effect in effects {
            match effect {
                Effect::Send(to, message) => {
                    self.sent += 1;
                    self.in_flight.push_back((me, to, message));
                }
                Effect::Output(_) => self.entered.push(node),
                Effect::Violation(what) => panic!("{me} objects: {what}"),
                Effect::SetTimer(..) | Effect::CancelTimer(_) => unreachable!("there are no timers"),
            }
        }
    }

    fn ask(&mut self, process: usize, session: u32) {
        self.happen(process, Input::Command(Command::Enter(Session(session))));
    }

    fn leave(&mut self, process: usize) {
        self.happen(process, Input::Command(Command::Leave));
    }

    fn arrive(&mut self, (from, to, message): Packet) {
        self.happen(to.index(), Input::Message { from, message });
    }

    /// Takes the first message of a kind from one node to another off the network.
    fn take(&mut self, from: usize, to: usize, kind: &str) -> Packet {
        let way = (NodeId::from_index(from), NodeId::from_index(to));
        let found = self.in_flight.iter().position(|packet| (packet.0, packet.1) == way && packet.2.kind() == kind);
        self.in_flight.remove(found.expect("it is on its way")).expect("it is there")
    }

    fn deliver(&mut self, from: usize, to: usize, kind: &str) {
        let packet = self.take(from, to, kind);
        self.arrive(packet);
    }

    /// To whom messages of a kind are under way.
    fn under_way(&self, kind: &str) -> Vec<usize> {
        let of_kind = self.in_flight.iter().filter(|packet| packet.2.kind() == kind);
        of_kind.map(|packet| packet.1.index()).collect()
    }

    fn settle(&mut self) {
        while let Some(packet) = self.in_flight.pop_front() {
            self.arrive(packet);
        }
    }
}

/// The best case of the paper: no lock is called back.
#[test]
fn together_they_cost_three_each_and_three_a_voter() {
    for (quorum, groups, voters) in [(Quorum::Star, 4, 2), (Quorum::Grid, 4, 3), (Quorum::Plane, 7, 3)] {
        for together in 1..5 {
            let mut system = System::new(together, groups, quorum);
            for process in 0..together {
                system.ask(process, 1);
            }
            system.settle();
            assert_eq!(system.entered.len(), together);
            for process in 0..together {
                system.leave(process);
            }
            system.settle();
            assert_eq!(system.sent, 3 * together + 3 * (voters - 1), "{quorum}, {together} together");
        }
    }
}

/// In a grid of four, the groups 0 and 3 (here n2 and n5) meet in 1 and 2 (n3 and n4). Group 3 loses both locks to the
/// earlier claim, one after the other: 3l + 6(q−1), where the paper, which does not count the recall, has 5(q−1).
#[test]
fn who_loses_every_lock_once_pays_twice() {
    let mut system = System::new(2, 4, Quorum::Grid);
    system.ask(0, 0);
    system.ask(1, 3);
    system.deliver(0, 2, "ProcessRequest");
    system.deliver(1, 5, "ProcessRequest");
    for voter in [3, 4] {
        system.deliver(5, voter, "GroupRequest");
        system.deliver(voter, 5, "GroupGrant");
        assert_eq!(system.entered, [] as [usize; 0], "the other lock is missing");
        system.deliver(2, voter, "GroupRequest");
        system.deliver(voter, 5, "GroupRecall");
        system.deliver(5, voter, "GroupReturn");
    }
    system.settle();
    assert_eq!(system.entered, [0]);
    system.leave(0);
    system.settle();
    assert_eq!(system.entered, [0, 1]);
    system.leave(1);
    system.settle();
    let (alone, robbed) = (3 + 3 * 2, 3 + 6 * 2);
    assert_eq!(system.sent, alone + robbed);
}

/// Three groups compete in a star, and one of them has entered a hundred times before. It need not wait until the others
/// have done so, too: each passes it over at most twice, with a claim made before it heard of the voter's clock.
#[test]
fn a_busy_group_is_not_passed_over_by_fresh_ones() {
    for busy in 1..4 {
        let mut system = System::new(3, 4, Quorum::Star);
        for _ in 0..100 {
            system.ask(0, busy);
            system.settle();
            system.leave(0);
            system.settle();
        }
        system.entered.clear();
        let fresh: Vec<u32> = (1..4).filter(|group| *group != busy).collect();
        for (process, group) in [(1, fresh[0]), (2, fresh[1]), (0, busy)] {
            system.ask(process, group);
            system.settle();
        }
        while let Some(&process) = system.entered.last().filter(|process| **process != 0) {
            system.leave(process);
            system.settle();
            system.ask(process, fresh[process - 1]);
            system.settle();
        }
        assert!(system.entered.len() <= 5, "passed over {} times", system.entered.len() - 1);
    }
}

/// In a grid of five, the groups 1, 2 and 3 (here n4, n5 and n6) all need the lock of group 0 (n3). The last of them has
/// it when the claims of the others come, each earlier than the one before.
#[test]
fn a_lock_is_called_back_once_and_from_who_has_it() {
    let mut system = System::new(3, 5, Quorum::Grid);
    for (process, group) in [(0, 6), (1, 5), (2, 4)] {
        system.ask(process, group as u32 - 3);
        system.deliver(process, group, "ProcessRequest");
    }
    system.deliver(6, 3, "GroupRequest");
    system.deliver(3, 6, "GroupGrant");
    system.deliver(5, 3, "GroupRequest");
    assert_eq!(system.under_way("GroupRecall"), [6]);
    system.deliver(4, 3, "GroupRequest");
    assert_eq!(system.under_way("GroupRecall"), [6]);
    system.deliver(3, 6, "GroupRecall");
    system.deliver(6, 3, "GroupReturn");
    assert_eq!(system.under_way("GroupGrant"), [4]);
    for entries in 1..=3 {
        system.settle();
        assert_eq!(system.entered.len(), entries);
        system.leave(system.entered[entries - 1]);
    }
}

/// The same groups. The last of them loses the lock to group 1, has it again when that one leaves, and loses it to group 2,
/// whose request comes late: 3l + 6(q−1) is no bound.
#[test]
fn a_lock_may_be_lost_more_than_once() {
    let mut system = System::new(3, 5, Quorum::Grid);
    for (process, group) in [(0, 6), (1, 5), (2, 4)] {
        system.ask(process, group as u32 - 3);
        system.deliver(process, group, "ProcessRequest");
    }
    let lose_to = |system: &mut System, group: usize| {
        system.deliver(3, 6, "GroupGrant");
        system.deliver(group, 3, "GroupRequest");
        system.deliver(3, 6, "GroupRecall");
        system.deliver(6, 3, "GroupReturn");
        system.deliver(3, group, "GroupGrant");
    };
    system.deliver(6, 3, "GroupRequest");
    lose_to(&mut system, 4);
    for voter in [5, 7] {
        system.deliver(4, voter, "GroupRequest");
        system.deliver(voter, 4, "GroupGrant");
    }
    system.deliver(4, 2, "ProcessReply");
    system.leave(2);
    system.deliver(2, 4, "ProcessEnd");
    system.deliver(4, 3, "GroupRelease");
    lose_to(&mut system, 5);
}

/// Group 3 of a grid of four (here n5) has left when the recall of a lock comes, and competes for it again.
#[test]
fn a_recall_for_a_claim_that_is_over_is_ignored() {
    let mut system = System::new(2, 4, Quorum::Grid);
    system.ask(1, 3);
    system.ask(0, 0);
    system.deliver(0, 2, "ProcessRequest");
    system.deliver(1, 5, "ProcessRequest");
    for voter in [3, 4] {
        system.deliver(5, voter, "GroupRequest");
    }
    system.deliver(2, 3, "GroupRequest");
    let late = system.take(3, 5, "GroupRecall");
    system.settle();
    assert_eq!(system.entered, [1]);
    system.leave(1);
    system.settle();
    assert_eq!(system.entered, [1, 0]);
    system.leave(0);
    system.settle();
    system.ask(1, 3);
    system.deliver(1, 5, "ProcessRequest");
    system.deliver(5, 3, "GroupRequest");
    system.deliver(3, 5, "GroupGrant");
    system.arrive(late);
    assert_eq!(system.under_way("GroupReturn"), [] as [usize; 0]);
    system.settle();
    assert_eq!(system.entered, [1, 0, 1]);
}

#[test]
fn a_system_without_groups_is_refused() {
    let refused = |groups, quorum| GroupQuorum::system(&setup(2, groups, quorum)).expect_err("no such system").0;
    assert!(refused(0, Quorum::Grid).contains("--groups"));
    assert!(refused(4, Quorum::Plane).contains("the nearest are 3 and 7"));
}
