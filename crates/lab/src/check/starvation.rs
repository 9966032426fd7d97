//! Can somebody be passed over for ever?

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use vez_algorithms::NodeId;

use super::graph::{Graph, components};

/// A run that goes on for ever and never lets the victim in, although nothing that stays possible is put off for ever.
pub(super) struct Starvation {
    pub(super) victim: NodeId,
    /// The states that the run goes through again and again. The first and the last one are the same.
    pub(super) cycle: Vec<u32>,
}

/// Among the states in which a node waits, a component that a run can stay in for ever with weak fairness: whatever is
/// possible in all of its states is done on some way within it. If there is any such run at all, there is such a component.
pub(super) fn find(graph: &Graph, nodes: usize) -> Option<Starvation> {
    // Where no run goes on for ever, nobody waits for ever: most bounded workloads end here.
    let mut goes_on = false;
    components(
        graph.states(),
        |state| graph.ways(state).iter().map(|way| way.to),
        |component| {
            goes_on |= component.len() > 1 || graph.ways(component[0]).iter().any(|way| way.to == component[0]);
        },
    );
    if !goes_on {
        return None;
    }
    NodeId::all(nodes).find_map(|victim| {
        let within = |state: u32| {
            let ways = if graph.waits(state, victim) { graph.ways(state) } else { &[] };
            ways.iter().map(|way| way.to).filter(|&to| graph.waits(to, victim))
        };
        let mut found: Option<Starvation> = None;
        components(graph.states(), within, |component| {
            let goes_on = component.len() > 1 || within(component[0]).any(|to| to == component[0]);
            if found.is_none() && goes_on && graph.waits(component[0], victim) {
                found = fair_cycle(graph, component).map(|cycle| Starvation { victim, cycle });
            }
        });
        found
    })
}

/// A cycle through the component that is fair, if there is one.
fn fair_cycle(graph: &Graph, component: &[u32]) -> Option<Vec<u32>> {
    let members: BTreeSet<u32> = component.iter().copied().collect();
    let start = component[0];
    let mut possible: BTreeMap<u32, usize> = BTreeMap::new();
    let mut done_from: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for &state in component {
        let here: BTreeSet<u32> = graph.ways(state).iter().filter_map(|way| way.fair).collect();
        here.iter().for_each(|unit| *possible.entry(*unit).or_default() += 1);
        for way in graph.ways(state) {
            if let (Some(unit), true) = (way.fair, members.contains(&way.to)) {
                done_from.entry(unit).or_insert((state, way.to));
            }
        }
    }
    let always = possible.iter().filter(|(_, count)| **count == component.len()).map(|(unit, _)| *unit);
    if always.clone().any(|unit| !done_from.contains_key(&unit)) {
        return None;
    }
    // Walk through a way of each unit that is done, and a state without each that is not, then home.
    let mut cycle = vec![start];
    for unit in possible.keys() {
        let here = *cycle.last().expect("it has a start");
        match done_from.get(unit) {
            Some(&(from, to)) => {
                walk(graph, &members, here, |state| state == from, &mut cycle);
                cycle.push(to);
            }
            None => {
                let lacks = |state: u32| graph.ways(state).iter().all(|way| way.fair != Some(*unit));
                walk(graph, &members, here, lacks, &mut cycle);
            }
        }
    }
    let here = *cycle.last().expect("it has a start");
    if here != start || cycle.len() == 1 {
        // A cycle has at least one step, even if nothing had to be done.
        let first = graph.ways(here).iter().map(|way| way.to).find(|to| members.contains(to));
        cycle.extend(first);
        let here = *cycle.last().expect("it has a start");
        walk(graph, &members, here, |state| state == start, &mut cycle);
    }
    Some(cycle)
}

/// The shortest way from a state to one that is wanted, without leaving the component.
fn walk(graph: &Graph, members: &BTreeSet<u32>, from: u32, wanted: impl Fn(u32) -> bool, path: &mut Vec<u32>) {
    let mut came_from: BTreeMap<u32, u32> = BTreeMap::from([(from, from)]);
    let mut queue = VecDeque::from([from]);
    while let Some(state) = queue.pop_front() {
        if wanted(state) {
            let back = std::iter::successors(Some(state), |at| Some(came_from[at])).take_while(|at| *at != from);
            let at = path.len();
            path.extend(back);
            path[at..].reverse();
            return;
        }
        for way in graph.ways(state) {
            if members.contains(&way.to) && !came_from.contains_key(&way.to) {
                came_from.insert(way.to, state);
                queue.push_back(way.to);
            }
        }
    }
    unreachable!("a component is connected")
}
