//! The hypercube of up to four dimensions, with the edges that matter drawn thick.

use std::collections::BTreeSet;

use vez_algorithms::NodeId;

use super::{
    svg::{INK, Point, Stroke, Svg},
    tree::{draw_node, shorten},
};

/// A drawing with more dimensions than this cannot be read.
pub const MAX_DIMENSION: u32 = 4;

/// A hypercube to draw.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hypercube {
    /// What the drawing shows, for those who cannot see it.
    pub title: String,
    /// How many dimensions it has: at most [`MAX_DIMENSION`].
    pub dimension: u32,
    /// Arrows to be drawn thick, such as those of a tree. One between nodes that are no neighbours is drawn as an arc.
    pub arrows: Vec<(NodeId, NodeId)>,
    /// The nodes that have crashed.
    pub dead: BTreeSet<NodeId>,
}

/// What each bit of a number moves its node by.
const STEPS: [Point; 4] = [(150.0, 0.0), (66.0, -62.0), (0.0, 170.0), (310.0, 64.0)];
const RADIUS: f64 = 21.0;
const MARGIN: f64 = 14.0;

/// Draws a hypercube; nothing if it has too many dimensions.
#[must_use]
pub fn hypercube(cube: &Hypercube) -> Option<String> {
    if cube.dimension > MAX_DIMENSION {
        return None;
    }
    let nodes = || NodeId::all(1 << cube.dimension);
    let steps = &STEPS[..cube.dimension as usize];
    let up: f64 = steps.iter().map(|step| step.1.min(0.0)).sum();
    let at = |node: NodeId| {
        let taken = (0..).zip(steps).filter(|(bit, _)| node.0 >> bit & 1 == 1).map(|(_, step)| step);
        let start = (RADIUS + MARGIN, RADIUS + MARGIN - up);
        taken.fold(start, |(x, y), step| (x + step.0, y + step.1))
    };
    let mut svg = Svg::default();
    for node in nodes() {
        for bit in (0..cube.dimension).filter(|bit| node.0 >> bit & 1 == 0) {
            svg.line(at(node), at(NodeId(node.0 | 1 << bit)), Stroke::solid("#bbbbbb", 1.0));
        }
    }
    let known = |node: &NodeId| node.index() < 1 << cube.dimension;
    for (from, to) in cube.arrows.iter().filter(|(from, to)| known(from) && known(to) && from != to) {
        draw_arrow(&mut svg, at(*from), at(*to), (from.0 ^ to.0).count_ones() == 1);
    }
    for node in nodes() {
        let binary = format!("{:0width$b}", node.0, width = cube.dimension.max(1) as usize);
        draw_node(&mut svg, at(node), RADIUS, &[(&binary, 13.0), (&node.to_string(), 10.0)], cube.dead.contains(&node));
    }
    let far = |side: fn(Point) -> f64| nodes().map(at).map(side).fold(0.0, f64::max) + RADIUS + MARGIN;
    let title = if cube.title.is_empty() { "A hypercube" } else { &cube.title };
    Some(svg.finish(title, far(|at| at.0), far(|at| at.1)))
}

/// A thick arrow: straight along an edge, bent where there is none.
fn draw_arrow(svg: &mut Svg, from: Point, to: Point, is_edge: bool) {
    let thick = Stroke::solid(INK, 3.0);
    if is_edge {
        let (from, to) = shorten(from, to, RADIUS);
        let (_, base) = shorten(from, to, 6.0);
        svg.line(from, base, thick);
        svg.head(from, to, 13.0, INK);
        return;
    }
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let towards = (f64::midpoint(from.0, to.0) + 0.22 * dy, f64::midpoint(from.1, to.1) - 0.22 * dx);
    let (start, _) = shorten(from, towards, RADIUS);
    let (_, tip) = shorten(towards, to, RADIUS);
    let (_, base) = shorten(towards, tip, 6.0);
    svg.curve(start, towards, base, thick);
    svg.head(towards, tip, 13.0, INK);
}
