//! The space–time diagram: a line for each node, time from left to right, an arrow for each message.

mod marks;
mod messages;

use vez_algorithms::NodeId;

use self::{
    marks::{Mark, Shape, marks},
    messages::{Arrow, End, arrows, label_arrows, usual_delay},
};
use super::{
    brief,
    labels::{Area, Room, TOO_MUCH, at_mark},
    legend::{Entry, Sample, legend},
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    /// What was earlier than this is left out.
    pub from: f64,
    /// What was later than this is left out, if it is given.
    pub until: Option<f64>,
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
const MAX_RIGHT: f64 = 130.0;
/// How far an arrow goes to the right, so that it does not look as if it took no time.
const SLOPE: f64 = 64.0;
/// Half the height of a bar, for those inside and those who wait.
const INSIDE: f64 = 6.5;
const WAITING: f64 = 4.0;

/// Draws what happened.
#[must_use]
pub fn space_time(scene: &Scene, options: &Options) -> String {
    let mut marks = marks(scene);
    let frame = Frame::new(scene, options, &marks);
    marks.retain(|mark| frame.shows(mark.time));
    let mut svg = Svg::default();
    let stays = frame.clip(scene.stays());
    let arrows = arrows(scene, &frame, &stays);
    frame.draw_axis(&mut svg, options.axis);
    draw_lines(&mut svg, &frame, &stays, options, scene.nodes);
    for arrow in &arrows {
        arrow.draw_line(&mut svg);
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
    label_arrows(&mut svg, scene, &frame, &arrows, options.words, &mut room);
    let below = frame.bottom + 44.0;
    let height = legend(&mut svg, (8.0, below), frame.width - 16.0, &entries(scene, &frame, &stays, &arrows, &marks));
    let title = if options.title.is_empty() { "A space–time diagram" } else { &options.title };
    svg.finish(title, frame.width, below + height + 6.0)
}

/// Where times and nodes are on the page.
struct Frame {
    /// Where the beginning is.
    left: f64,
    /// How wide a unit of time is.
    scale: f64,
    start: f64,
    end: f64,
    width: f64,
    /// Where the axis is.
    bottom: f64,
}

impl Frame {
    fn new(scene: &Scene, options: &Options, marks: &[Mark]) -> Self {
        let names = NodeId::all(scene.nodes).map(|node| text_width(&name(options, node), LARGE));
        let left = 8.0 + names.fold(16.0, f64::max) + 10.0 + LEAD;
        let start = if options.from < scene.end { options.from.max(0.0) } else { 0.0 };
        let end = options.until.map_or(scene.end, |until| until.min(scene.end));
        let end = if end > start { end } else { start + 1.0 };
        let late = marks.iter().filter(|mark| mark.time > start + 0.9 * (end - start));
        let right = late.map(|mark| text_width(&brief(&mark.text), SMALL)).fold(RIGHT, f64::max).min(MAX_RIGHT);
        let margins = left + LEAD + right;
        let mut moments: Vec<f64> = scene.happenings.iter().map(|happening| happening.time).collect();
        moments.retain(|time| (start..=end).contains(time));
        moments.dedup();
        let delays = (end - start) / usual_delay(scene).unwrap_or(end - start);
        let wide = (44.0 * moments.len() as f64).max(SLOPE * delays).clamp(420.0, 960.0);
        let width = options.width.unwrap_or(margins + wide).max(margins + 100.0);
        let bottom = TOP + ROW * (scene.nodes.max(1) - 1) as f64 + 36.0;
        Self { left, scale: (width - margins) / (end - start), start, end, width, bottom }
    }

    fn x(&self, time: f64) -> f64 {
        self.left + self.scale * (time - self.start)
    }

    fn y(node: NodeId) -> f64 {
        TOP + ROW * node.index() as f64
    }

    fn point(&self, time: f64, node: NodeId) -> Point {
        (self.x(time), Self::y(node))
    }

    fn shows(&self, time: f64) -> bool {
        (self.start..=self.end).contains(&time)
    }

    /// What of these is to be seen.
    fn clip(&self, stays: Vec<Stay>) -> Vec<Stay> {
        let seen = |stay: &Stay| stay.until >= self.start && stay.from <= self.end;
        let clip = |stay: Stay| Stay { from: stay.from.max(self.start), until: stay.until.min(self.end), ..stay };
        stays.into_iter().filter(seen).map(clip).collect()
    }

    /// Where lines begin and end.
    fn ends(&self) -> (f64, f64) {
        (self.left - LEAD, self.x(self.end) + LEAD)
    }

    fn draw_axis(&self, svg: &mut Svg, axis: Axis) {
        let (from, to) = self.ends();
        let smallest = if axis == Axis::Step { 1.0 } else { 0.0 };
        let (step, digits) = tick(50.0 / self.scale, smallest);
        let first = (self.start / step - 1e-9).ceil();
        let times = (0..).map(|count| step * (first + f64::from(count)));
        for time in times.take_while(|time| *time <= self.end * (1.0 + 1e-9)) {
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
            let dead = if stay.from > frame.start || frame.start == 0.0 { frame.x(stay.from) } else { from };
            svg.line((alive, y), (dead, y), LIFE);
            alive = if stay.until >= frame.end { to } else { frame.x(stay.until) };
            svg.line((dead, y), (alive, y), DEATH);
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
    let of_mark = |mark: &Mark| {
        let (x, y) = frame.point(mark.time, mark.node);
        around((x, y - mark.shape.lift()), 6.0)
    };
    let (from, to) = frame.ends();
    let line = |node| ((from, Frame::y(node)), (to, Frame::y(node)));
    Room {
        page: Area { left: from - 4.0, top: 2.0, right: frame.width - 2.0, bottom: frame.bottom - 3.0 },
        words: Vec::new(),
        shapes: stays.iter().filter_map(|stay| bar(frame, stay)).chain(marks.iter().map(of_mark)).collect(),
        arrows: arrows.iter().flat_map(Arrow::pieces).collect(),
        faint: NodeId::all(nodes).map(line).collect(),
    }
}

fn label_marks(svg: &mut Svg, frame: &Frame, marks: &[Mark], room: &mut Room) {
    for mark in marks.iter().filter(|mark| !mark.text.is_empty()) {
        let text = brief(&mark.text);
        let (x, y) = frame.point(mark.time, mark.node);
        let lift = mark.shape.lift();
        let places = at_mark((x, y - lift), lift == 0.0, &text, SMALL);
        if let Some((place, cost)) = room.best(&places)
            && cost < 10.0 * TOO_MUCH
        {
            svg.text(place.base(), Anchor::Middle, SMALL, INK, &text);
            room.words.push(place);
        }
    }
}

/// The legend: bars and marks, then kinds of messages. Only what occurs.
fn entries(scene: &Scene, frame: &Frame, stays: &[Stay], arrows: &[Arrow], marks: &[Mark]) -> [Vec<Entry>; 2] {
    let mut shapes = Vec::new();
    let mut add = |occurs: bool, text: &str, width: f64, shape: Sample| {
        if occurs {
            shapes.push(Entry { shape, width, text: text.to_owned() });
        }
    };
    let bar = |half: f64, fill: &'static str| -> Sample {
        let stroke = Stroke::solid(INK, 1.2);
        Box::new(move |svg, (x, y)| svg.rect((x - 14.0, y - half), (x + 14.0, y + half), fill, stroke))
    };
    let waits = |stay: &Stay| stay.how == How::Waiting && stay.until > stay.from;
    add(stays.iter().any(waits), "waits", 28.0, bar(WAITING, "white"));
    add(stays.iter().any(|stay| stay.how == How::Inside), "inside", 28.0, bar(INSIDE, INK));
    let dead: Sample = Box::new(|svg, (x, y)| svg.line((x - 16.0, y), (x + 16.0, y), DEATH));
    add(stays.iter().any(|stay| stay.how == How::Dead), "dead", 32.0, dead);
    for shape in Shape::ALL {
        let occurs = marks.iter().any(|mark| mark.shape == shape);
        add(occurs, shape.meaning(), 12.0, Box::new(move |svg, (x, y)| shape.draw(svg, (x, y + shape.lift()))));
    }
    for (end, text) in [(End::Lost, "never arrives"), (End::Open, "still on its way at the end")] {
        let sample = move |svg: &mut Svg, (x, y): Point| {
            let stroke = Stroke::solid(INK, 1.3);
            Arrow { from: (x - 12.0, y), to: (x + 10.0, y), bend: 0.0, end, stroke }.draw(svg);
        };
        add(arrows.iter().any(|arrow| arrow.end == end), text, 28.0, Box::new(sample));
    }
    let kind = |(at, kind): (usize, &'static str)| {
        let sample = move |svg: &mut Svg, (x, y): Point| {
            let (end, stroke) = (End::Arrives, messages::stroke(at));
            Arrow { from: (x - 18.0, y), to: (x + 18.0, y), bend: 0.0, end, stroke }.draw(svg);
        };
        Entry { shape: Box::new(sample), width: 36.0, text: kind.to_owned() }
    };
    let sent = |kind: &str| scene.messages.iter().any(|message| message.kind == kind && frame.shows(message.sent));
    let kinds = scene.kinds().into_iter().enumerate().filter(|(_, kind)| sent(kind));
    [shapes, kinds.map(kind).collect()]
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
