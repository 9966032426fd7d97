//! A rooted tree, layer by layer.

use std::collections::BTreeMap;

use vez_algorithms::NodeId;

use super::svg::{Anchor, GREY, INK, Point, Stroke, Svg, text_width};
use crate::scene::{How, Scene};

/// A tree to draw, or several beside each other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tree {
    /// What the drawing shows, for those who cannot see it.
    pub title: String,
    /// The nodes. Those below one node stand in this order.
    pub nodes: Vec<TreeNode>,
}

/// A node of a tree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TreeNode {
    /// What is written in it.
    pub label: String,
    /// The place in the list of the one above it; none if it is a root.
    pub above: Option<usize>,
    /// What is written at the line from there.
    pub edge: Option<String>,
    /// Whether it is dead: drawn hollow, dashed and crossed out.
    pub dead: bool,
}

impl Tree {
    /// The tree of a broadcast: each node below the one from which it got its first message of that kind. A node that died
    /// stands below the one that sent to it in vain, or else by itself.
    #[must_use]
    pub fn of_first_receipts(scene: &Scene, kind: &str) -> Self {
        let mut above = scene.first_receipts(kind);
        let mut sent: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        for message in scene.messages.iter().filter(|message| message.kind == kind) {
            sent.entry(message.to).or_insert(message.from);
        }
        let stays = scene.stays();
        let dead = |node: NodeId| stays.iter().any(|stay| stay.node == node && stay.how == How::Dead);
        for node in NodeId::all(scene.nodes).filter(|node| dead(*node)) {
            if let (false, Some(from)) = (above.contains_key(&node), sent.get(&node)) {
                above.insert(node, *from);
            }
        }
        let node = |node: NodeId| TreeNode {
            label: node.to_string(),
            above: above.get(&node).map(|above| above.index()),
            edge: None,
            dead: dead(node),
        };
        Self { title: String::new(), nodes: NodeId::all(scene.nodes).map(node).collect() }
    }

    fn below(&self, at: usize) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.nodes.len()).filter(move |other| self.nodes[*other].above == Some(at))
    }

    /// The place of each node: leaves beside each other, all others above the middle of those below them. A node that is
    /// above itself has no place.
    fn places(&self, column: f64, row: f64) -> Vec<Option<Point>> {
        let mut places = vec![None; self.nodes.len()];
        let mut leaves = 0.0;
        let roots = (0..self.nodes.len()).filter(|at| self.nodes[*at].above.is_none());
        // Depth first with a list of what is to be done: `true` once those below have their places.
        let mut left: Vec<(usize, usize, bool)> = roots.rev().map(|at| (at, 0, false)).collect();
        while let Some((at, depth, ready)) = left.pop() {
            let y = depth as f64 * row;
            let below: Vec<f64> = self.below(at).filter_map(|other| places[other]).map(|(x, _): Point| x).collect();
            if let (true, [first, .., last] | [first @ last]) = (ready, &below[..]) {
                places[at] = Some((f64::midpoint(*first, *last), y));
            } else if ready {
                places[at] = Some((leaves * column, y));
                leaves += 1.0;
            } else {
                left.push((at, depth, true));
                left.extend(self.below(at).rev().map(|other| (other, depth + 1, false)));
            }
        }
        places
    }
}

const RADIUS: f64 = 18.0;
const ROW: f64 = 74.0;
const MARGIN: f64 = 26.0;
const SIZE: f64 = 13.0;

/// Draws a tree.
#[must_use]
pub fn tree(tree: &Tree) -> String {
    let widest = tree.nodes.iter().map(|node| text_width(&node.label, SIZE)).fold(0.0, f64::max);
    let radius = RADIUS.max(widest / 2.0 + 5.0);
    let places = tree.places(2.0 * radius + 22.0, ROW.max(2.0 * radius + 38.0));
    let at = |index: usize| places.get(index).copied().flatten().map(|(x, y)| (x + radius + MARGIN, y + radius + 10.0));
    let mut svg = Svg::default();
    for (index, node) in tree.nodes.iter().enumerate() {
        let (Some(to), Some(from)) = (at(index), node.above.and_then(at)) else { continue };
        let (from, to) = shorten(from, to, radius);
        let stroke = Stroke::solid(INK, 1.4);
        svg.line(from, to, if node.dead { stroke.dashed("4 4") } else { stroke });
        svg.head(from, to, 9.0, INK);
    }
    for (index, node) in tree.nodes.iter().enumerate() {
        let Some(place) = at(index) else { continue };
        draw_node(&mut svg, place, radius, &[(&node.label, SIZE)], node.dead);
        if let (Some(text), Some(from)) = (&node.edge, node.above.and_then(at)) {
            let middle = (f64::midpoint(from.0, place.0), f64::midpoint(from.1, place.1) + 4.0);
            svg.text(middle, Anchor::Middle, 11.0, INK, text);
        }
    }
    let far = |side: fn(Point) -> f64| (0..tree.nodes.len()).filter_map(at).map(side).fold(0.0, f64::max);
    let title = if tree.title.is_empty() { "A tree" } else { &tree.title };
    svg.finish(title, far(|at| at.0) + radius + MARGIN, far(|at| at.1) + radius + 10.0)
}

/// The part of a line between two circles.
pub(super) fn shorten(from: Point, to: Point, radius: f64) -> (Point, Point) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1e-9);
    let (ux, uy) = (radius * dx / length, radius * dy / length);
    ((from.0 + ux, from.1 + uy), (to.0 - ux, to.1 - uy))
}

/// A circle with lines of text in it, the first one the most important; crossed out if it is dead.
pub(super) fn draw_node(svg: &mut Svg, (x, y): Point, radius: f64, lines: &[(&str, f64)], dead: bool) {
    if dead {
        svg.circle((x, y), radius, "white", Stroke::solid(GREY, 1.4).dashed("4 3"));
        svg.cross((x, y), radius * 0.7, Stroke::solid(GREY, 1.4));
    } else {
        svg.circle((x, y), radius, "#eef3f8", Stroke::solid(INK, 1.4));
    }
    let height: f64 = lines.iter().map(|(_, size)| size * 1.05).sum();
    let mut base = y - height / 2.0;
    for (text, size) in lines {
        base += size * 1.05;
        svg.text_on(if dead { "white" } else { "#eef3f8" }, (x, base - 0.24 * size), Anchor::Middle, *size, INK, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(above: &[Option<usize>]) -> Tree {
        let node = |above: &Option<usize>| TreeNode { above: *above, ..TreeNode::default() };
        Tree { title: String::new(), nodes: above.iter().map(node).collect() }
    }

    #[test]
    fn a_node_stands_above_the_middle_of_those_below() {
        let tree = of(&[None, Some(0), Some(0), Some(2), Some(2)]);
        let places: Vec<Point> = tree.places(10.0, 1.0).into_iter().flatten().collect();
        assert_eq!(places, [(7.5, 0.0), (0.0, 1.0), (15.0, 1.0), (10.0, 2.0), (20.0, 2.0)]);
    }

    #[test]
    fn what_is_above_itself_is_not_drawn() {
        assert_eq!(of(&[None, Some(2), Some(1), Some(9)]).places(1.0, 1.0), [Some((0.0, 0.0)), None, None, None]);
    }
}
