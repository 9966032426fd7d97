//! The space–time diagram: a line for each node, time from left to right, an arrow for each message.

mod marks;
mod messages;

use vez_algorithms::NodeId;

use self::{
    marks::{Mark, Shape, marks},
    messages::{Arrow, End, arrows, label_arrows},
};
use super::{
    brief,
    labels::{Area, Room, TOO_MUCH, at_mark},
    legend::{Entry, legend},
    svg::{Anchor, GREY, INK, PALE, Point, Stroke, Svg, text_width},
};
use crate::scene::{How, Scene, Stay};

/// What is written at the axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Axis {
    /// Virtual time.
    #[default]
    Time,
    /// The numbers of steps on a stage.
    Step,
}

/// What is written at an arrow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Words {
    /// Nothing: the legend says which kind it is.
    Nothing,
    /// The kind of the message, where there is room.
    #[default]
    Kind,
    /// All that it says, without the names of fields.
    Brief,
    /// All that it says.
    Text,
}

/// How a scene is drawn.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Options {
    /// What the drawing shows, for those who cannot see it.
    pub title: String,
    /// What the axis counts.
    pub axis: Axis,
    /// What is written at arrows.
    pub words: Words,
    /// The names of nodes, in order; n0, n1, … where there are none.
    pub labels: Vec<String>,
    /// How wide the drawing is; as wide as it needs to be if none is given.
    pub width: Option<f64>,
}

/// Words at arrows and marks, at the axis, and at the lines of nodes.
const SMALL: f64 = 11.0;
const MEDIUM: f64 = 12.0;
const LARGE: f64 = 13.0;
/// Between the lines of two nodes.
const ROW: f64 = 66.0;
/// Above the first line.
const TOP: f64 = 34.0;
/// Of a line before the beginning and after the end.
const LEAD: f64 = 16.0;
/// To the right of all lines, for a word that needs more room.
const RIGHT: f64 = 18.0;
/// Half the height of a bar, for those inside and those who wait.
const INSIDE: f64 = 6.5;
const WAITING: f64 = 4.0;

/// Draws what happened.
#[must_use]
pub fn space_time(scene: &Scene, options: &Options) -> String {
    let frame = Frame::new(scene, options);
    let mut svg = Svg::default();
    let stays = scene.stays();
    let arrows = arrows(scene, &frame, &stays);
    let marks = marks(scene);
    frame.draw_axis(&mut svg, options.axis);
    draw_lines(&mut svg, &frame, &stays, options, scene.nodes);
    for arrow in &arrows {
        svg.line(arrow.from, arrow.to, arrow.stroke);
    }
    for stay in &stays {
        draw_bar(&mut svg, &frame, stay);
    }
    for arrow in &arrows {
        arrow.draw_end(&mut svg);
    }
    for mark in &marks {
        mark.shape.draw(&mut svg, frame.point(mark.time, mark.node));
    }
    let mut room = room(&frame, &stays, &arrows, &marks, scene.nodes);
    label_marks(&mut svg, &frame, &marks, &mut room);
    label_arrows(&mut svg, scene, &arrows, options.words, &mut room);
    let below = frame.bottom + 44.0;
    let height = legend(&mut svg, (8.0, below), frame.width - 16.0, &entries(scene, &stays, &arrows, &marks));
    let title = if options.title.is_empty() { "A space–time diagram" } else { &options.title };
    svg.finish(title, frame.width, below + height + 6.0)
}

/// Where times and nodes are on the page.
struct Frame {
    /// Where time 0 is.
    left: f64,
    /// How wide a unit of time is.
    scale: f64,
    end: f64,
    width: f64,
    /// Where the axis is.
    bottom: f64,
}

impl Frame {
    fn new(scene: &Scene, options: &Options) -> Self {
        let names = NodeId::all(scene.nodes).map(|node| text_width(&name(options, node), LARGE));
        let left = 8.0 + names.fold(16.0, f64::max) + 10.0 + LEAD;
        let margins = left + LEAD + RIGHT;
        let mut moments: Vec<f64> = scene.happenings.iter().map(|happening| happening.time).collect();
        moments.dedup();
        let wide = (44.0 * moments.len() as f64).clamp(420.0, 1000.0);
        let width = options.width.unwrap_or(margins + wide).max(margins + 100.0);
        let end = if scene.end > 0.0 { scene.end } else { 1.0 };
        let bottom = TOP + ROW * (scene.nodes.max(1) - 1) as f64 + 36.0;
        Self { left, scale: (width - margins) / end, end, width, bottom }
    }

    fn x(&self, time: f64) -> f64 {
        self.left + self.scale * time
    }

    fn y(node: NodeId) -> f64 {
        TOP + ROW * node.index() as f64
    }

    fn point(&self, time: f64, node: NodeId) -> Point {
        (self.x(time), Self::y(node))
    }

    /// Where lines begin and end.
    fn ends(&self) -> (f64, f64) {
        (self.left - LEAD, self.x(self.end) + LEAD)
    }

    fn draw_axis(&self, svg: &mut Svg, axis: Axis) {
        let (from, to) = self.ends();
        let smallest = if axis == Axis::Step { 1.0 } else { 0.0 };
        let (step, digits) = tick(50.0 / self.scale, smallest);
        for count in 0.. {
            let time = step * f64::from(count);
            if time > self.end * (1.0 + 1e-9) {
                break;
            }
            let x = self.x(time);
            svg.line((x, TOP - 16.0), (x, self.bottom), Stroke::solid(PALE, 1.0));
            svg.line((x, self.bottom), (x, self.bottom + 4.0), Stroke::solid(INK, 1.0));
            svg.text((x, self.bottom + 17.0), Anchor::Middle, MEDIUM, INK, &format!("{time:.digits$}"));
        }
        svg.line((from, self.bottom), (to, self.bottom), Stroke::solid(INK, 1.0));
        svg.head((from, self.bottom), (to + 8.0, self.bottom), 8.0, INK);
        let word = if axis == Axis::Step { "step" } else { "time" };
        svg.text((to + 8.0, self.bottom + 32.0), Anchor::End, MEDIUM, INK, word);
    }
}

/// The smallest of 1, 2, 5, 10, … and their tenths that is at least so large, and how many digits it has after the point.
fn tick(least: f64, smallest: f64) -> (f64, usize) {
    let least = least.max(smallest).clamp(1e-9, 1e9);
    for power in -9_i32..=9 {
        for factor in [1.0, 2.0, 5.0] {
            // A quotient of whole numbers, so that ticks come out round.
            let step = if power < 0 { factor / 10_f64.powi(-power) } else { factor * 10_f64.powi(power) };
            if step >= least * (1.0 - 1e-9) {
                return (step, usize::try_from(-power).unwrap_or(0));
            }
        }
    }
    (least, 0)
}

fn name(options: &Options, node: NodeId) -> String {
    options.labels.get(node.index()).cloned().unwrap_or_else(|| node.to_string())
}

const LIFE: Stroke = Stroke::solid("#555555", 1.2);
const DEATH: Stroke = Stroke::solid(GREY, 1.2).dashed("2 5");

/// The lines of the nodes: solid while they live.
fn draw_lines(svg: &mut Svg, frame: &Frame, stays: &[Stay], options: &Options, nodes: usize) {
    let (from, to) = frame.ends();
    for node in NodeId::all(nodes) {
        let y = Frame::y(node);
        svg.text((from - 8.0, y + 4.5), Anchor::End, LARGE, INK, &name(options, node));
        let mut alive = from;
        for stay in stays.iter().filter(|stay| stay.node == node && stay.how == How::Dead) {
            svg.line((alive, y), (frame.x(stay.from), y), LIFE);
            alive = if stay.until >= frame.end { to } else { frame.x(stay.until) };
            svg.line((frame.x(stay.from), y), (alive, y), DEATH);
        }
        if alive < to {
            svg.line((alive, y), (to, y), LIFE);
        }
    }
}

/// The part of the page that a bar takes, if it is to be seen.
fn bar(frame: &Frame, stay: &Stay) -> Option<Area> {
    let half = match stay.how {
        How::Waiting if stay.until > stay.from => WAITING,
        How::Inside => INSIDE,
        How::Waiting | How::Dead => return None,
    };
    let (left, right, y) = (frame.x(stay.from), frame.x(stay.until), Frame::y(stay.node));
    Some(Area { left, top: y - half, right: right.max(left + 3.0), bottom: y + half })
}

fn draw_bar(svg: &mut Svg, frame: &Frame, stay: &Stay) {
    if let Some(Area { left, top, right, bottom }) = bar(frame, stay) {
        let fill = if stay.how == How::Inside { INK } else { "white" };
        svg.rect((left, top), (right, bottom), fill, Stroke::solid(INK, 1.2));
    }
}

/// What words must keep away from.
fn room(frame: &Frame, stays: &[Stay], arrows: &[Arrow], marks: &[Mark], nodes: usize) -> Room {
    let around = |(x, y): Point, half: f64| Area { left: x - half, top: y - half, right: x + half, bottom: y + half };
    let of_mark = |mark: &Mark| match (frame.point(mark.time, mark.node), mark.shape) {
        ((x, y), Shape::Ask) => around((x, y - 12.0), 6.0),
        (at, _) => around(at, 6.0),
    };
    let (from, to) = frame.ends();
    let line = |node| ((from, Frame::y(node)), (to, Frame::y(node)));
    Room {
        page: Area { left: from - 4.0, top: 2.0, right: frame.width - 2.0, bottom: frame.bottom - 3.0 },
        words: Vec::new(),
        shapes: stays.iter().filter_map(|stay| bar(frame, stay)).chain(marks.iter().map(of_mark)).collect(),
        arrows: arrows.iter().map(|arrow| (arrow.from, arrow.to)).collect(),
        faint: NodeId::all(nodes).map(line).collect(),
    }
}

fn label_marks(svg: &mut Svg, frame: &Frame, marks: &[Mark], room: &mut Room) {
    for mark in marks.iter().filter(|mark| !mark.text.is_empty()) {
        let text = brief(&mark.text);
        let places = at_mark(frame.point(mark.time, mark.node), 5.0, &text, SMALL);
        if let Some((place, cost)) = room.best(&places)
            && cost < 10.0 * TOO_MUCH
        {
            svg.text(place.base(), Anchor::Middle, SMALL, INK, &text);
            room.words.push(place);
        }
    }
}

/// The legend: bars and marks, then kinds of messages. Only what occurs.
fn entries<'a>(scene: &Scene, stays: &[Stay], arrows: &[Arrow], marks: &[Mark]) -> [Vec<Entry<'a>>; 2] {
    let mut shapes: Vec<Entry<'a>> = Vec::new();
    let mut add = |occurs: bool, text: &str, shape: Box<dyn Fn(&mut Svg, Point)>| {
        if occurs {
            shapes.push(Entry { shape, text: text.to_owned() });
        }
    };
    let bar = |half: f64, fill: &'static str| -> Box<dyn Fn(&mut Svg, Point)> {
        let stroke = Stroke::solid(INK, 1.2);
        Box::new(move |svg, (x, y)| svg.rect((x - 14.0, y - half), (x + 14.0, y + half), fill, stroke))
    };
    let waits = |stay: &Stay| stay.how == How::Waiting && stay.until > stay.from;
    add(stays.iter().any(waits), "waits", bar(WAITING, "white"));
    add(stays.iter().any(|stay| stay.how == How::Inside), "inside", bar(INSIDE, INK));
    let dead: Box<dyn Fn(&mut Svg, Point)> = Box::new(|svg, (x, y)| svg.line((x - 16.0, y), (x + 16.0, y), DEATH));
    add(stays.iter().any(|stay| stay.how == How::Dead), "dead", dead);
    for shape in Shape::ALL {
        let occurs = marks.iter().any(|mark| mark.shape == shape);
        add(occurs, shape.meaning(), Box::new(move |svg, (x, y)| shape.draw(svg, (x, y + shape.drop()))));
    }
    for (end, text) in [(End::Lost, "never arrives"), (End::Open, "still on its way at the end")] {
        let (from, to) = ((-14.0, 0.0), (10.0, 0.0));
        let stroke = Stroke::solid(INK, 1.3);
        let sample = move |svg: &mut Svg, (x, y): Point| {
            let arrow = Arrow { from: (x + from.0, y + from.1), to: (x + to.0, y + to.1), end, stroke };
            svg.line(arrow.from, arrow.to, stroke);
            arrow.draw_end(svg);
        };
        add(arrows.iter().any(|arrow| arrow.end == end), text, Box::new(sample));
    }
    let kind = |(at, kind): (usize, &'static str)| -> Entry<'a> {
        let sample = move |svg: &mut Svg, (x, y): Point| {
            let stroke = messages::stroke(at);
            svg.line((x - 17.0, y), (x + 11.0, y), stroke);
            svg.head((x - 17.0, y), (x + 17.0, y), 8.0, stroke.color);
        };
        Entry { shape: Box::new(sample), text: kind.to_owned() }
    };
    [shapes, scene.kinds().into_iter().enumerate().map(kind).collect()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(tick(0.07, 0.0), (0.1, 1));
        assert_eq!(tick(0.2, 0.0), (0.2, 1));
        assert_eq!(tick(0.21, 1.0), (1.0, 0));
        assert_eq!(tick(3.0, 1.0), (5.0, 0));
        assert_eq!(tick(0.0, 0.0), (1e-9, 9));
    }
}
