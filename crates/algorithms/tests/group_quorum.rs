//! What group-quorum costs, and how long a group waits: numbers that its page claims.

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

    /// Delivers the first message of a kind from one node to another.
    fn deliver(&mut self, from: usize, to: usize, kind: &str) {
        let way = (NodeId::from_index(from), NodeId::from_index(to));
        let found = self.in_flight.iter().position(|packet| (packet.0, packet.1) == way && packet.2.kind() == kind);
        let packet = self.in_flight.remove(found.expect("it is on its way")).expect("it is there");
        self.arrive(packet);
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

/// Two groups compete in a star, and one of them has entered a hundred times before. It need not wait a hundred times.
#[test]
fn a_busy_group_is_not_passed_over_by_a_fresh_one() {
    for busy in [1, 2] {
        let (fresh, fresh_group) = (1, 3 - busy);
        let mut system = System::new(2, 3, Quorum::Star);
        for _ in 0..100 {
            system.ask(0, busy);
            system.settle();
            system.leave(0);
            system.settle();
        }
        system.ask(fresh, fresh_group);
        system.settle();
        system.ask(0, busy);
        system.settle();
        system.entered.clear();
        while system.entered.last() != Some(&0) {
            system.leave(fresh);
            system.ask(fresh, fresh_group);
            system.settle();
        }
        assert!(system.entered.len() <= 2, "passed over {} times", system.entered.len() - 1);
    }
}

#[test]
fn a_system_without_groups_is_refused() {
    let refused = |groups, quorum| GroupQuorum::system(&setup(2, groups, quorum)).expect_err("no such system").0;
    assert!(refused(0, Quorum::Grid).contains("--groups"));
    assert!(refused(4, Quorum::Plane).contains("the nearest are 3 and 7"));
}
