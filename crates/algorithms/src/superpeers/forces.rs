//! The square in which tokens repel each other, in whole numbers. Steps: docs/algorithms/superpeers-by-repulsion.md.

use alloc::vec::Vec;

use serde::Serialize;

use super::Office;
use crate::{NodeId, graph::distance_squared};

/// Where a node stands.
pub(super) type Place = [u16; 2];

/// A difference of two places, or a force: how far it would take a token.
type Vector = [i64; 2];

/// How long a side of the square is.
pub(super) const SIDE: i64 = 1 << 16;

/// What the forces between tokens depend on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Field {
    /// n
    pub(super) nodes: usize,
    /// N
    pub(super) tokens: usize,
}

impl Field {
    /// How far apart N tokens are if each has six others at the same distance around it: 1.07/√N of a side. Nearer ones repel
    /// each other, so that they push until the square is full, and no farther.
    pub(super) fn range(self) -> i64 {
        const TWO_OVER_ROOT_THREE: (i64, i64) = (11_547, 10_000);
        let (over, under) = TWO_OVER_ROOT_THREE;
        (SIDE * SIDE / under * over / self.tokens as i64).isqrt()
    }

    /// TS07:3 What acts on a token: half of what it and each other token, or its image in each wall, are too near to each other.
    /// Half, for the other one goes the other half. Together at most half the range.
    pub(super) fn force(self, at: Place, others: impl Iterator<Item = Vector>) -> Vector {
        let pushes = others.map(|from| self.push(from));
        let [x, y] = pushes.fold(at.map(|along| self.walls(along)), |sum, push| [sum[0] + push[0], sum[1] + push[1]]);
        let (most, length) = (self.range() / 2, (x * x + y * y).isqrt());
        if length > most { [x, y].map(|along| along * most / (length + 1)) } else { [x, y] }
    }

    fn push(self, from: Vector) -> Vector {
        let length = (from[0] * from[0] + from[1] * from[1]).isqrt();
        let short_by = (self.range() - length).max(0);
        from.map(|along| along * short_by / (2 * length).max(1))
    }

    /// The force along an axis between the walls at its ends.
    fn walls(self, along: u16) -> i64 {
        let short_by = |image: i64| (self.range() - image).max(0) / 2;
        let low = 2 * i64::from(along) + 1;
        short_by(low) - short_by(2 * SIDE - low)
    }

    /// TS07:4 A token that has moved so often only moves if the force is larger than this: first an eighth of the range, in the end
    /// half, which no force is larger than. So every token rests after 6√n moves at the latest, whatever the others do.
    pub(super) fn threshold(self, moves: u32) -> i64 {
        let pace = self.nodes.isqrt().max(1) as i64;
        self.range() * (2 * pace + i64::from(moves)) / (16 * pace)
    }
}

/// How one token stands from another. If both are at the same place, the later one stands to the right.
pub(super) fn apart((at, token): (Place, Office), (other, theirs): (Place, Office)) -> Vector {
    match [0, 1].map(|axis| i64::from(at[axis]) - i64::from(other[axis])) {
        [0, 0] if token < theirs => [-1, 0],
        [0, 0] => [1, 0],
        vector => vector,
    }
}

/// Whether a force is larger than a threshold.
pub(super) fn exceeds([x, y]: Vector, threshold: i64) -> bool {
    x * x + y * y > threshold * threshold
}

/// Where a force would take a token, within the square.
pub(super) fn target(at: Place, force: Vector) -> Place {
    [0, 1].map(|axis| (i64::from(at[axis]) + force[axis]).clamp(0, SIDE - 1) as u16)
}

/// TS07:5 The nodes that a node can pass a token to: the nearest one in each of eight directions.
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

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: Field = Field { nodes: 100, tokens: 4 };

    fn force(at: Place, others: &[Place]) -> Vector {
        FOUR.force(at, others.iter().map(|other| apart((at, 1), (*other, 2))))
    }

    #[test]
    fn near_tokens_repel_each_other_and_far_ones_do_not() {
        let middle = [32_768; 2];
        assert_eq!(FOUR.range(), 35_211);
        assert_eq!(force(middle, &[]), [0, 0]);
        assert_eq!(force(middle, &[[22_768, 32_768]]), [(35_211 - 10_000) / 2, 0]);
        assert_eq!(force(middle, &[[22_768, 32_768], [32_768, 65_535]]), [12_605, -1_222]);
        assert_eq!(force(middle, &[[0, 0]]), [0, 0]);
        assert_eq!(force(middle, &[middle]), [-17_605, 0]);
    }

    #[test]
    fn walls_repel_and_no_force_is_beyond_all_thresholds() {
        let [x, y] = force([0, 65_535], &[]);
        assert!(x > 10_000 && y < -10_000 && !exceeds([x, y], FOUR.range() / 2), "{x} {y}");
        assert!(exceeds([x, y], FOUR.threshold(0)) && exceeds([x, y], FOUR.threshold(59)));
        assert!(!exceeds([x, y], FOUR.threshold(60)));
        assert_eq!(target([0, 65_535], [-5, -5]), [0, 65_530]);
    }

    #[test]
    fn the_nearest_in_each_direction() {
        let places = [[50, 50], [60, 51], [70, 52], [50, 40], [40, 61], [50, 50]];
        let nodes: Vec<u32> = contacts(&places, NodeId(0)).iter().map(|(node, _)| node.0).collect();
        assert_eq!(nodes, [5, 4, 3]);
    }
}
