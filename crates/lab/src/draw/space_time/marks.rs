//! What happens at one node at one moment.

use std::collections::BTreeSet;

use vez_algorithms::NodeId;

use super::super::svg::{Anchor, INK, Point, Stroke, Svg};
use crate::scene::{Scene, What};

/// The shape of a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    Ask,
    Told,
    Fire,
    Notice,
    Internal,
    Crash,
    Restart,
    Object,
}

/// Something to be marked on the line of a node.
pub(super) struct Mark {
    pub(super) time: f64,
    pub(super) node: NodeId,
    pub(super) shape: Shape,
    /// What is to be read there, if anything.
    pub(super) text: String,
}

/// All marks of a scene. What is the same everywhere is not written: that somebody asks, the shape says.
pub(super) fn marks(scene: &Scene) -> Vec<Mark> {
    let asked = |what: &What| if let What::Ask(text) = what { Some(text.clone()) } else { None };
    let asks: BTreeSet<String> = scene.happenings.iter().filter_map(|happening| asked(&happening.what)).collect();
    let fired = |what: &What| if let What::Fire(text) = what { Some(text.clone()) } else { None };
    let fires: BTreeSet<String> = scene.happenings.iter().filter_map(|happening| fired(&happening.what)).collect();
    let mut marks: Vec<Mark> = Vec::new();
    for happening in &scene.happenings {
        let (shape, text) = match &happening.what {
            What::Ask(text) if asks.len() > 1 => (Shape::Ask, text.clone()),
            What::Ask(_) => (Shape::Ask, String::new()),
            What::Told(text) => (Shape::Told, text.clone()),
            What::Fire(text) if fires.len() > 1 => (Shape::Fire, text.clone()),
            What::Fire(_) => (Shape::Fire, String::new()),
            What::Notice(node) => (Shape::Notice, node.to_string()),
            What::Internal => (Shape::Internal, String::new()),
            What::Crash => (Shape::Crash, String::new()),
            What::Restart => (Shape::Restart, String::new()),
            What::Object(text) => (Shape::Object, text.clone()),
            What::Start
            | What::Enter
            | What::Leave
            | What::Send { .. }
            | What::Receive { .. }
            | What::Lost { .. }
            | What::Doubled { .. }
            | What::Set(_)
            | What::Cancel(_) => continue,
        };
        let mark = Mark { time: happening.time, node: happening.node, shape, text };
        // Two things that a client is told at once stand at one mark.
        match marks.iter_mut().rev().take_while(|other| other.time == mark.time).find(|other| is_same(other, &mark)) {
            Some(other) if !mark.text.is_empty() => other.text = format!("{}, {}", other.text, mark.text),
            Some(_) => {}
            None => marks.push(mark),
        }
    }
    marks
}

fn is_same(one: &Mark, other: &Mark) -> bool {
    one.node == other.node && one.shape == other.shape
}

impl Shape {
    /// In the order of the legend.
    pub(super) const ALL: [Self; 8] =
        [Self::Ask, Self::Told, Self::Fire, Self::Notice, Self::Internal, Self::Crash, Self::Restart, Self::Object];

    /// What it says.
    pub(super) const fn meaning(self) -> &'static str {
        match self {
            Self::Ask => "asks",
            Self::Told => "is told",
            Self::Fire => "a timer fires",
            Self::Notice => "learns of a crash",
            Self::Internal => "internal event",
            Self::Crash => "crashes",
            Self::Restart => "is back",
            Self::Object => "objects",
        }
    }

    /// How far above the line it is drawn: what comes from outside stands there, what the node does on the line.
    pub(super) const fn lift(self) -> f64 {
        match self {
            Self::Ask | Self::Fire | Self::Notice => 13.0,
            Self::Told | Self::Internal | Self::Crash | Self::Restart | Self::Object => 0.0,
        }
    }

    /// Draws it at the line of a node.
    pub(super) fn draw(self, svg: &mut Svg, (x, y): Point) {
        let y = y - self.lift();
        let thin = Stroke::solid(INK, 1.2);
        let rim = Stroke::solid("white", 1.0);
        match self {
            Self::Ask => svg.polygon(&[(x, y + 5.0), (x - 4.5, y - 4.0), (x + 4.5, y - 4.0)], INK, rim),
            Self::Told => svg.polygon(&[(x, y - 5.5), (x + 5.5, y), (x, y + 5.5), (x - 5.5, y)], INK, rim),
            Self::Fire => {
                svg.circle((x, y), 5.0, "white", thin);
                svg.line((x, y), (x, y - 3.5), thin);
                svg.line((x, y), (x + 2.5, y), thin);
            }
            Self::Notice => svg.rect((x - 4.0, y - 4.0), (x + 4.0, y + 4.0), "white", thin),
            Self::Internal => svg.circle((x, y), 3.0, INK, rim),
            Self::Crash => svg.cross((x, y), 6.0, Stroke::solid(INK, 3.0)),
            Self::Restart => svg.polygon(&[(x + 6.0, y), (x - 3.0, y - 5.5), (x - 3.0, y + 5.5)], "white", thin),
            Self::Object => svg.text((x, y + 6.0), Anchor::Middle, 18.0, INK, "!"),
        }
    }
}
