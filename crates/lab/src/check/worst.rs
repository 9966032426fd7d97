//! The worst case over all interleavings.

use vez_algorithms::NodeId;

use super::{
    Bound, Config, Workload, Worst,
    graph::{Graph, components},
};

pub(super) fn case(graph: &Graph, nodes: usize, askers: usize, config: &Config) -> Worst {
    let messages_per_entry = match config.workload {
        // Whoever crashes has fewer entries than it asked for.
        _ if config.crashes > 0 || askers == 0 => Bound::Unknown,
        // Every run ends with the same number of entries: the longest, counted in messages, is the worst.
        Workload::Requests(requests) => {
            let ways = |state: u32| graph.ways(state).iter().map(|way| (way.to, u64::from(way.messages)));
            match longest(graph.states(), std::iter::once(0), ways) {
                Bound::AtMost(messages) => Bound::AtMost(messages as f64 / (askers as f64 * f64::from(requests))),
                Bound::Unbounded => Bound::Unbounded,
                Bound::Unknown => Bound::Unknown,
            }
        }
        Workload::Unbounded => Bound::Unknown,
    };
    let mut most = Bound::AtMost(0);
    for node in NodeId::all(nodes) {
        most = match (most, bypasses(graph, nodes, node)) {
            (Bound::AtMost(one), Bound::AtMost(other)) => Bound::AtMost(one.max(other)),
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => Bound::Unbounded,
            (Bound::Unknown, _) | (_, Bound::Unknown) => Bound::Unknown,
        };
    }
    Worst { messages_per_entry, bypasses: most }
}

/// Each point takes four bytes; more than this are not looked at.
const MAX_POINTS: u64 = 1 << 29;

/// How often others that asked after `victim` may enter before it does.
///
/// A point is a state in which the victim waits, together with the set of the others whose request is later than the
/// victim's.
fn bypasses(graph: &Graph, nodes: usize, victim: NodeId) -> Bound<u64> {
    let sets = 1_u64 << nodes;
    let size = u64::from(graph.states()) * sets;
    if size > MAX_POINTS {
        return Bound::Unknown;
    }
    let size = size as u32;
    let point = |state: u32, later: u64| (u64::from(state) * sets + later) as u32;
    let starts = (0..graph.states()).flat_map(|state| {
        let asks = graph.ways(state).iter().filter(|way| way.event.asks() && way.actor == victim.0 as u8);
        asks.filter(|way| graph.waits(way.to, victim)).map(|way| point(way.to, 0))
    });
    let ways = |at: u32| {
        let (state, later) = ((u64::from(at) / sets) as u32, u64::from(at) % sets);
        graph.ways(state).iter().filter(move |way| graph.waits(way.to, victim)).map(move |way| {
            let actor = 1_u64 << way.actor;
            let later = if way.event.asks() { later | actor } else { later };
            let passes = way.event.enters() && later & actor != 0;
            let still_later = if way.event.enters() { later & !actor } else { later };
            (point(way.to, still_later), u64::from(passes))
        })
    };
    longest(size, starts, ways)
}

/// The weight of the heaviest path from any of the starts, given the ways out of each of `size` points and their weights. A
/// cycle may make paths of any weight.
fn longest<I>(size: u32, starts: impl Iterator<Item = u32>, ways: impl Fn(u32) -> I) -> Bound<u64>
where
    I: Iterator<Item = (u32, u64)>,
{
    // Only what can be reached from a start counts: visit that part alone, under numbers of its own.
    const UNSEEN: u32 = u32::MAX;
    let mut number_of = vec![UNSEEN; size as usize];
    let mut points = Vec::new();
    for start in starts {
        if number_of[start as usize] == UNSEEN {
            number_of[start as usize] = points.len() as u32;
            points.push(start);
        }
    }
    let mut done = 0;
    while let Some(&at) = points.get(done) {
        done += 1;
        for (to, _) in ways(at) {
            if number_of[to as usize] == UNSEEN {
                number_of[to as usize] = points.len() as u32;
                points.push(to);
            }
        }
    }
    let mut heaviest = vec![0_u64; points.len()];
    let mut component_of = vec![UNSEEN; points.len()];
    let mut components_found = 0;
    let mut bounded = true;
    let successors = |node: u32| ways(points[node as usize]).map(|(to, _)| number_of[to as usize]);
    components(points.len() as u32, successors, |component| {
        component.iter().for_each(|&node| component_of[node as usize] = components_found);
        let mut best = 0;
        for &node in component {
            for (to, weight) in ways(points[node as usize]) {
                let to = number_of[to as usize] as usize;
                if component_of[to] == components_found {
                    bounded &= weight == 0;
                } else {
                    best = best.max(weight + heaviest[to]);
                }
            }
        }
        component.iter().for_each(|&node| heaviest[node as usize] = best);
        components_found += 1;
    });
    if bounded { Bound::AtMost(heaviest.into_iter().max().unwrap_or(0)) } else { Bound::Unbounded }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heaviest(ways: &[&[(u32, u64)]]) -> Bound<u64> {
        longest(ways.len() as u32, std::iter::once(0), |at| ways[at as usize].iter().copied())
    }

    #[test]
    fn the_heaviest_path() {
        assert_eq!(heaviest(&[&[(1, 1), (2, 5)], &[(3, 10)], &[(3, 1)], &[]]), Bound::AtMost(11));
        // A cycle without weight is harmless, wherever it is left.
        assert_eq!(heaviest(&[&[(1, 0)], &[(0, 0), (2, 3)], &[]]), Bound::AtMost(3));
        // A cycle with weight is not, unless it cannot be reached.
        assert_eq!(heaviest(&[&[(1, 0)], &[(0, 1)]]), Bound::Unbounded);
        assert_eq!(heaviest(&[&[], &[(1, 1)]]), Bound::AtMost(0));
    }
}
