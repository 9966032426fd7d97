//! Quorums: for each node a set of nodes that it asks, such that any two sets meet.

use alloc::{format, string::String, vec, vec::Vec};
use core::{fmt, str::FromStr};

use crate::{NodeId, NodeSet, SetupError, tree::columns};

/// A quorum of n nodes may take n bits, and there are n of them.
const MAX_NODES: usize = 1 << 16;

/// How quorums are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Quorum {
    /// A row and a column of a square grid.
    Grid,
    /// A line of a finite projective plane.
    Plane,
    /// Node 0 and oneself.
    Star,
}

impl Quorum {
    /// The quorum of each of n nodes.
    ///
    /// # Errors
    /// If there are none of this kind for n nodes, or n is so large that they would not fit into memory.
    pub fn sets(self, n: usize) -> Result<Vec<NodeSet>, SetupError> {
        if n > MAX_NODES {
            return Err(SetupError(format!("{n} nodes are too many for quorums; take at most {MAX_NODES}")));
        }
        match self {
            Self::Grid => Ok(grid(n)),
            Self::Plane => plane(n),
            Self::Star => Ok(star(n)),
        }
    }
}

impl fmt::Display for Quorum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Grid => "grid",
            Self::Plane => "plane",
            Self::Star => "star",
        })
    }
}

impl FromStr for Quorum {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "grid" => Ok(Self::Grid),
            "plane" => Ok(Self::Plane),
            "star" => Ok(Self::Star),
            other => Err(format!("unknown quorum \"{other}\"; there are grid, plane and star")),
        }
    }
}

/// A node's row and column in a square grid, for any n: about 2√n − 1 nodes each.
///
/// The last row may be short. Two quorums still meet: in the row of one and the column of the other, where the short
/// row has no such column, in the other one's row and column; within the short row, in the row itself.
#[must_use]
pub fn grid(n: usize) -> Vec<NodeSet> {
    let width = columns(n);
    let quorum = |i: usize| {
        let (row, column) = (i / width, i % width);
        let row = row * width..((row + 1) * width).min(n);
        row.chain((column..n).step_by(width)).map(NodeId::from_index).collect()
    };
    (0..n).map(quorum).collect()
}

/// Each node asks node 0, and itself: a central coordinator as a system of quorums.
#[must_use]
pub fn star(n: usize) -> Vec<NodeSet> {
    NodeId::all(n).map(|i| [NodeId(0), i].into_iter().collect()).collect()
}

/// The lines of a finite projective plane: n = q² + q + 1 with q a prime power, q + 1 nodes each, and any two quorums
/// have exactly one node in common.
///
/// # Errors
/// If there is no such plane of n points, or none that is known.
pub fn plane(n: usize) -> Result<Vec<NodeSet>, SetupError> {
    let line = difference_set(n).ok_or_else(|| {
        let below = (1..n).rev().find(|&m| prime_power_of(m).is_some()).unwrap_or(3);
        let above = (n + 1..).find(|&m| prime_power_of(m).is_some()).unwrap_or(3);
        SetupError(format!(
            "no projective plane has {n} points: that takes q² + q + 1 with q a prime power; \
             the nearest are {below} and {above}, and a grid takes any number"
        ))
    })?;
    Ok((0..n).map(|i| line.iter().map(|d| NodeId::from_index((d + i) % n)).collect()).collect())
}

/// The prime p and the exponent m for which n = q² + q + 1 with q = p^m; 3 = 1 + 1 + 1 counts, as a triangle.
fn prime_power_of(n: usize) -> Option<(usize, u32)> {
    let q = (4 * n).saturating_sub(3).isqrt().saturating_sub(1) / 2;
    if q == 0 || q * q + q + 1 != n {
        return None;
    }
    let p = (2..=q).find(|p| q.is_multiple_of(*p)).unwrap_or(1);
    let m = (0..q.ilog2() + 1).find(|&m| p.pow(m) == q)?;
    Some((p, m))
}

/// Residues modulo n whose differences are every residue but 0 exactly once, 0 among them (Singer 1938): in the field
/// of q³ elements with generator a, the exponents i < n for which the trace of aⁱ over the field of q elements is zero.
fn difference_set(n: usize) -> Option<Vec<usize>> {
    let (p, m) = prime_power_of(n)?;
    if p == 1 {
        return Some(vec![0, 1]);
    }
    let q = p.pow(m);
    let powers = powers_of_generator(p, 3 * m as usize);
    let order = powers.len();
    let trace_is_zero = |i: usize| {
        let conjugates = [i, i * q % order, i * q % order * q % order].map(|k| powers[k]);
        (0..3 * m).all(|digit| conjugates.iter().map(|x| x / p.pow(digit) % p).sum::<usize>() % p == 0)
    };
    let set: Vec<usize> = (0..n).filter(|&i| trace_is_zero(i)).collect();
    assert_eq!(set.len(), q + 1, "a line of a plane of order q has q + 1 points");
    let first = set[0];
    Some(set.into_iter().map(|d| d - first).collect())
}

/// All powers of a generator of the field of p^degree elements, in order. An element is a polynomial over the integers
/// modulo p, written as a number in base p; the generator is x, modulo the first polynomial for which x generates.
fn powers_of_generator(p: usize, degree: usize) -> Vec<usize> {
    let elements = p.pow(u32::try_from(degree).expect("degrees are small"));
    let top = elements / p;
    let mut powers = Vec::with_capacity(elements - 1);
    // A multiple of p would make x a divisor of zero.
    for reduction in (1..elements).filter(|reduction| reduction % p != 0) {
        // x^degree = reduction. Multiplying by x shifts the digits up and puts the reduction in for the one that falls out.
        powers.clear();
        powers.push(1);
        loop {
            let last = powers[powers.len() - 1];
            let (carry, mut shifted) = (last / top, last % top * p);
            let mut place = 1;
            while place < elements && carry > 0 {
                let digit = (shifted / place % p + carry * (reduction / place % p)) % p;
                shifted = shifted - shifted / place % p * place + digit * place;
                place *= p;
            }
            if shifted == 1 {
                break;
            }
            powers.push(shifted);
        }
        if powers.len() == elements - 1 {
            return powers;
        }
    }
    unreachable!("every finite field has a generator")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_any_two_meet(quorums: &[NodeSet]) {
        for (i, a) in quorums.iter().enumerate() {
            assert!(a.contains(NodeId::from_index(i)), "{i} is in its own quorum");
            assert!(quorums.iter().all(|b| a.iter().any(|node| b.contains(node))), "{a:?} meets all others");
        }
    }

    #[test]
    fn any_two_quorums_meet() {
        for n in 1..60 {
            assert_any_two_meet(&grid(n));
            assert_any_two_meet(&star(n));
            assert!(grid(n).iter().all(|quorum| quorum.len() < 2 * columns(n)));
        }
    }

    #[test]
    fn planes_exist_for_every_prime_power() {
        let sizes: Vec<usize> = (1..140).filter(|&n| plane(n).is_ok()).collect();
        assert_eq!(sizes, [3, 7, 13, 21, 31, 57, 73, 91, 133]);
        for n in sizes {
            let lines = plane(n).expect("a plane");
            assert_any_two_meet(&lines);
            let meet = |a: &NodeSet, b: &NodeSet| a.iter().filter(|node| b.contains(*node)).count();
            assert!(lines.iter().skip(1).all(|line| meet(line, &lines[0]) == 1));
        }
        assert_eq!(plane(9507).expect("the plane of order 97")[17].len(), 98);
    }

    #[test]
    fn a_size_without_a_plane_is_named_with_its_neighbours() {
        let error = plane(8).expect_err("no plane of 8 points");
        assert!(error.0.contains("the nearest are 7 and 13"), "{error}");
    }
}
