//! The square in which tokens repel each other, in whole numbers. Steps: docs/algorithms/superpeers-by-repulsion.md.

use alloc::vec::Vec;

use serde::Serialize;

use super::{Office, Spread, root};
use crate::{NodeId, graph::distance_squared};

/// Where a node stands.
pub(super) type Place = [u16; 2];

/// A token at a place.
pub(super) type Body = (Place, Office);

/// A difference of two places, or a force: how far it would take a token.
type Vector = [i64; 2];

/// How long a side of the square is.
const SIDE: i64 = 1 << 16;

/// What the forces between tokens depend on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Field {
    /// n
    pub(super) nodes: usize,
    /// N
    pub(super) tokens: usize,
}

impl Field {
    /// To whom a token goes that has moved so often; to nobody if it rests.
    ///
    /// TS07:5 To the free node that is nearest to where the force would take it, if that is nearer than here and the
    /// potential is smaller there: with a node on either side of the best place, a token would go to and fro between
    /// them.
    pub(super) fn way_out(
        self,
        (here, token): Body,
        moves: u32,
        others: &[Body],
        free: impl Iterator<Item = (NodeId, Place)>,
    ) -> Option<NodeId> {
        let force = self.force((here, token), others);
        if !exceeds(force, self.threshold(moves)) {
            return None;
        }
        let target = [0, 1].map(|axis| (i64::from(here[axis]) + force[axis]).clamp(0, SIDE - 1) as u16);
        let potential = self.potential((here, token), others);
        let nearer = free.map(|(node, place)| (distance_squared(place, target), node, place));
        let nearer = nearer.filter(|(left, ..)| *left < distance_squared(here, target));
        let better = nearer.filter(|(_, _, place)| self.potential((*place, token), others) < potential);
        better.min().map(|(_, node, _)| node)
    }

    /// How near two tokens must be to repel each other: half as much again as the side of a square cell, if each of the
    /// N tokens has one to itself. So they push until the square is full, and those far away do not matter.
    fn range(self) -> i64 {
        (SIDE * SIDE * 9 / 4 / self.tokens as i64).isqrt()
    }

    /// By how much two things at this distance are too near to each other.
    fn short_by(self, distance: i64) -> i64 {
        (self.range() - distance).max(0)
    }

    /// TS07:3 What acts on a token: from each other one, and from its own image in each wall, by how much they are
    /// nearer to each other than the range. Together at most the range.
    fn force(self, body: Body, others: &[Body]) -> Vector {
        let mut force =
            body.0.map(|along| images(along).map(|image| self.short_by(image))).map(|[low, high]| low - high);
        for other in others {
            let from = apart(body, *other);
            for axis in [0, 1] {
                force[axis] += from[axis] * self.short_by(length(from)) / length(from);
            }
        }
        let (long, most) = (length(force), self.range());
        if long > most { force.map(|along| along * most / (long + 1)) } else { force }
    }

    /// Four times the potential of that force. When one token alone moves, the sum over all tokens changes by as much
    /// as its own.
    fn potential(self, body: Body, others: &[Body]) -> i64 {
        let walls = body.0.iter().flat_map(|along| images(*along)).map(|image| self.short_by(image).pow(2));
        let tokens = others.iter().map(|other| 2 * self.short_by(length(apart(body, *other))).pow(2));
        walls.chain(tokens).sum()
    }

    /// TS07:4 A token that has moved so often only moves if the force is larger than this: at first a sixteenth of the
    /// range, in the end all of it, and no force is larger. So every token rests after 6√n moves at the latest,
    /// whatever the others do.
    fn threshold(self, moves: u32) -> i64 {
        let width = self.nodes.isqrt().max(1) as i64;
        self.range() * (2 * width + 5 * i64::from(moves)) / (32 * width)
    }
}

/// How far it is to one's images in the walls at both ends of an axis.
fn images(along: u16) -> [i64; 2] {
    let low = 2 * i64::from(along) + 1;
    [low, 2 * SIDE - low]
}

/// How one token stands from another. If both are at the same place, the later one stands to the right.
fn apart((at, token): Body, (other, theirs): Body) -> Vector {
    match [0, 1].map(|axis| i64::from(at[axis]) - i64::from(other[axis])) {
        [0, 0] if token < theirs => [-1, 0],
        [0, 0] => [1, 0],
        vector => vector,
    }
}

fn length([x, y]: Vector) -> i64 {
    (x * x + y * y).isqrt()
}

fn exceeds([x, y]: Vector, threshold: i64) -> bool {
    x * x + y * y > threshold * threshold
}

/// The nodes that a node can pass a token to: the nearest one in each of eight directions.
pub(super) fn contacts(places: &[Place], me: NodeId) -> Vec<(NodeId, Place)> {
    let here = places[me.index()];
    let mut nearest: [Option<(u64, NodeId)>; 8] = [None; 8];
    for (node, place) in NodeId::all(places.len()).zip(places).filter(|(node, _)| *node != me) {
        let [x, y] = [0, 1].map(|axis| i64::from(place[axis]) - i64::from(here[axis]));
        let eighth = usize::from(x < 0) | usize::from(y < 0) << 1 | usize::from(x.abs() < y.abs()) << 2;
        let candidate = (distance_squared(here, *place), node);
        nearest[eighth] = Some(nearest[eighth].map_or(candidate, |best| best.min(candidate)));
    }
    nearest.into_iter().flatten().map(|(_, node)| (node, places[node.index()])).collect()
}

/// How well superpeers at these places serve normal nodes at those, each of which turns to the nearest.
pub(super) fn spread(superpeers: &[Place], normal: &[Place]) -> Spread {
    let mut served: Vec<u64> = superpeers.iter().map(|_| 0).collect();
    let mut total = 0.0;
    for node in normal {
        let distances = superpeers.iter().map(|superpeer| distance_squared(*node, *superpeer));
        if let Some((square, at)) = distances.zip(0_usize..).min() {
            served[at] += 1;
            total += root(square) / SIDE as f64;
        }
    }
    Spread::of(&served, total)
}

/// How far, on average, a point of the square is from the middle of its cell, if the square is cut into so many square
/// cells.
pub(super) fn access_in_grid(cells: usize) -> f64 {
    const OF_A_CELL: f64 = 0.382_597_858;
    OF_A_CELL / root(cells.max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: Field = Field { nodes: 100, tokens: 4 };
    const MIDDLE: Place = [32_768; 2];

    fn bodies(places: &[Place]) -> Vec<Body> {
        places.iter().copied().zip(1..).collect()
    }

    fn force(at: Place, others: &[Place]) -> Vector {
        FOUR.force((at, 0), &bodies(others))
    }

    #[test]
    fn near_tokens_repel_each_other_and_far_ones_do_not() {
        assert_eq!(FOUR.range(), 49_152);
        assert_eq!(force(MIDDLE, &[]), [0, 0]);
        assert_eq!(force(MIDDLE, &[[12_768, 32_768]]), [29_152, 0]);
        assert_eq!(force(MIDDLE, &[[12_768, 32_768], [32_768, 65_535]]), [29_152, -16_385]);
        assert_eq!(force([24_576; 2], &[[65_535, 65_535]]), [0, 0]);
        assert_eq!(force(MIDDLE, &[MIDDLE]), [-49_151, 0]);
    }

    #[test]
    fn walls_repel_and_no_force_is_beyond_all_thresholds() {
        let corner = force([0, 65_535], &[]);
        assert!(corner[0] > 30_000 && corner[1] < -30_000 && !exceeds(corner, FOUR.range()), "{corner:?}");
        assert!(exceeds(corner, FOUR.threshold(0)) && exceeds(corner, FOUR.threshold(59)));
        assert!(!exceeds(corner, FOUR.threshold(60)));
    }

    #[test]
    fn a_force_is_how_the_potential_falls() {
        let others = bodies(&[[20_000, 30_000], [31_000, 60_000], [9_000, 5_000]]);
        let at = |x| FOUR.potential(([x, 20_000], 0), &others);
        let slope = (at(14_000) - at(16_000)) / (4 * 2_000);
        let force = FOUR.force(([15_000, 20_000], 0), &others)[0];
        assert!(slope.abs_diff(force) < 100, "{slope} {force}");
    }

    #[test]
    fn to_and_fro_is_no_way_out() {
        let free = |places: &[Place]| NodeId::all(places.len()).zip(places.to_vec()).collect::<Vec<_>>().into_iter();
        let way_out =
            |places: &[Place]| FOUR.way_out(([27_000, 32_768], 0), 0, &bodies(&[[9_000, 32_768]]), free(places));
        assert_eq!(way_out(&[[20_000, 32_768]]), None);
        assert_eq!(way_out(&[[20_000, 32_768], [45_000, 32_768]]), Some(NodeId(1)));
        assert_eq!(way_out(&[[65_000, 32_768]]), None);
    }

    #[test]
    fn the_nearest_in_each_direction() {
        let places = [[50, 50], [60, 51], [70, 52], [50, 40], [40, 61], [50, 50]];
        let nodes: Vec<u32> = contacts(&places, NodeId(0)).iter().map(|(node, _)| node.0).collect();
        assert_eq!(nodes, [5, 4, 3]);
    }
}
