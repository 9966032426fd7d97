//! The arrows, and the words at them.

use std::collections::{BTreeMap, BTreeSet};

use vez_algorithms::NodeId;

use super::{
    super::{
        brief,
        labels::{Area, Room, TOO_MUCH, beside},
        svg::{Anchor, Point, Stroke, Svg},
    },
    Frame, SMALL, Words, bar,
};
use crate::scene::{How, Message, Scene, Stay};

/// How an arrow ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// Its message arrives.
    Arrives,
    /// Its message never does.
    Lost,
    /// The scene ends first.
    Open,
}

/// A message on the page.
pub(super) struct Arrow {
    pub(super) from: Point,
    pub(super) to: Point,
    /// How far it is bent aside in its middle.
    pub(super) bend: f64,
    pub(super) end: End,
    pub(super) stroke: Stroke,
}

/// Colours that differ for everybody, by Okabe and Ito, and with each a pattern of dashes.
const KINDS: [(&str, &str); 8] = [
    ("#0072B2", ""),
    ("#D55E00", "7 3"),
    ("#009E73", "2 3"),
    ("#A0468C", "10 3 2 3"),
    ("#B07800", "14 4"),
    ("#2A8FCC", "5 2 1 2 1 2"),
    ("#000000", "1 3"),
    ("#777777", "4 4"),
];

/// How the messages of a kind are drawn, by the place of the kind among all.
pub(super) fn stroke(kind: usize) -> Stroke {
    let (color, dash) = KINDS[kind % KINDS.len()];
    Stroke::solid(color, 1.4).dashed(dash)
}

const HEAD: f64 = 8.0;

/// How far the second of two arrows that would lie on each other is bent aside.
const BEND: f64 = 9.0;

impl Arrow {
    /// The point towards which it is bent.
    fn towards(&self) -> Point {
        let (dx, dy) = (self.to.0 - self.from.0, self.to.1 - self.from.1);
        let length = dx.hypot(dy).max(1e-9);
        let middle = (f64::midpoint(self.from.0, self.to.0), f64::midpoint(self.from.1, self.to.1));
        (middle.0 + 2.0 * self.bend * dy.abs() / length, middle.1 - 2.0 * self.bend * dx / length * dy.signum())
    }

    /// About where it runs.
    pub(super) fn pieces(&self) -> [(Point, Point); 2] {
        let (x, y) = self.towards();
        let (from, to) = (self.from, self.to);
        let middle = (f64::midpoint(x, f64::midpoint(from.0, to.0)), f64::midpoint(y, f64::midpoint(from.1, to.1)));
        [(from, middle), (middle, to)]
    }

    pub(super) fn draw(&self, svg: &mut Svg) {
        self.draw_line(svg);
        self.draw_end(svg);
    }

    /// Draws all but its end.
    pub(super) fn draw_line(&self, svg: &mut Svg) {
        if self.bend == 0.0 {
            svg.line(self.from, self.to, self.stroke);
        } else {
            svg.curve(self.from, self.towards(), self.to, self.stroke);
        }
    }

    /// Draws what its end looks like.
    pub(super) fn draw_end(&self, svg: &mut Svg) {
        match self.end {
            End::Arrives => svg.head(self.towards(), self.to, HEAD, self.stroke.color),
            End::Lost => svg.cross(self.to, 4.0, Stroke::solid(self.stroke.color, 1.8)),
            End::Open => {}
        }
    }

    /// Whether another one would lie on it: both begin or both end at one point, and the shorter ends, or begins, on the
    /// longer.
    fn hides(&self, other: &Self) -> bool {
        const NEAR: f64 = 4.0;
        let distance = |one: Point, other: Point| (one.0 - other.0).hypot(one.1 - other.1);
        let length = |arrow: &Self| distance(arrow.from, arrow.to);
        let (short, long) = if length(self) < length(other) { (self, other) } else { (other, self) };
        let free = if distance(short.from, long.from) < NEAR {
            short.to
        } else if distance(short.to, long.to) < 2.0 * NEAR {
            short.from
        } else {
            return false;
        };
        let (dx, dy) = (long.to.0 - long.from.0, long.to.1 - long.from.1);
        let off = (free.0 - long.from.0) * dy - (free.1 - long.from.1) * dx;
        let is_between = distance(free, long.from) + distance(free, long.to) < length(long) + 2.0 * NEAR;
        is_between && off.abs() / length(long).max(1e-9) < NEAR
    }
}

/// How long messages take on average, if any arrives.
pub(super) fn usual_delay(scene: &Scene) -> Option<f64> {
    let took: Vec<f64> = scene.messages.iter().filter_map(|message| Some(message.received? - message.sent)).collect();
    Some(took.iter().sum::<f64>() / took.len() as f64).filter(|usual| *usual > 0.0)
}

/// The messages that are sent while somebody looks.
fn shown<'a>(scene: &'a Scene, frame: &'a Frame) -> impl Iterator<Item = &'a Message> + Clone {
    scene.messages.iter().filter(|message| (frame.start..=frame.end).contains(&message.sent))
}

/// Every message that is to be seen.
pub(super) fn arrows(scene: &Scene, frame: &Frame, stays: &[Stay]) -> Vec<Arrow> {
    let kinds: BTreeMap<&str, usize> = scene.kinds().into_iter().zip(0..).collect();
    let usual = usual_delay(scene).unwrap_or((frame.end - frame.start) / 10.0);
    let mut arrows: Vec<Arrow> = Vec::new();
    for message in shown(scene, frame) {
        let from = frame.point(message.sent, message.from);
        let (end, share, time) = end(message, frame, stays, usual);
        let y = Frame::y(message.to);
        let tip = (frame.x(time), from.1 + share * (y - from.1));
        let to = if end == End::Arrives { before_bar(from, tip, message.to, frame, stays) } else { tip };
        let mut arrow = Arrow { from, to, bend: 0.0, end, stroke: stroke(kinds[message.kind]) };
        arrow.bend = BEND * arrows.iter().filter(|other| other.hides(&arrow)).count() as f64;
        arrows.push(arrow);
    }
    arrows
}

/// How a message ends: which share of the way it made, and until when. Of one that never arrives nobody knows how long it
/// would have taken: as long as the others usually do.
fn end(message: &Message, frame: &Frame, stays: &[Stay], usual: f64) -> (End, f64, f64) {
    const PART: f64 = 0.7;
    let is_dead = |node: NodeId, time: f64| {
        stays.iter().any(|stay| stay.node == node && stay.how == How::Dead && (stay.from..=stay.until).contains(&time))
    };
    let due = message.sent + usual;
    let last = frame.end + super::LEAD / frame.scale;
    let seen = |time: &f64| *time <= frame.end;
    match (message.received.filter(seen), message.lost.filter(seen)) {
        (Some(time), _) => (End::Arrives, 1.0, time),
        (None, Some(time)) if is_dead(message.to, time) => (End::Lost, 1.0, time.max(message.sent + 0.1 * usual)),
        (None, Some(time)) => (End::Lost, PART, time.max(message.sent + PART * usual).min(last)),
        (None, None) if is_dead(message.to, due.min(frame.end)) && due <= last => (End::Lost, 1.0, due),
        (None, None) => (End::Open, ((last - message.sent) / due.max(last)).clamp(0.15, 0.9), last),
    }
}

/// Where an arrow meets the bar of its receiver, or else its line.
fn before_bar(from: Point, tip: Point, node: NodeId, frame: &Frame, stays: &[Stay]) -> Point {
    let on = |area: &Area| area.left <= tip.0 + 0.5 && tip.0 - 0.5 <= area.right;
    let bars = stays.iter().filter(|stay| stay.node == node).filter_map(|stay| bar(frame, stay)).filter(on);
    let half = bars.map(|area| (area.bottom - area.top) / 2.0).fold(0.6, f64::max);
    let way = (tip.1 - from.1).abs();
    if way <= half {
        return tip;
    }
    let share = (way - half) / way;
    (from.0 + share * (tip.0 - from.0), from.1 + share * (tip.1 - from.1))
}

/// Writes at each arrow what it says; once for all that say the same and leave one node, or reach one, at one moment.
pub(super) fn label_arrows(
    svg: &mut Svg,
    scene: &Scene,
    frame: &Frame,
    arrows: &[Arrow],
    words: Words,
    room: &mut Room,
) {
    let text = |message: &Message| match words {
        Words::Nothing => String::new(),
        Words::Kind => message.kind.to_owned(),
        Words::Brief => brief(&message.text),
        Words::Text => message.text.clone(),
    };
    let messages: Vec<&Message> = shown(scene, frame).collect();
    let texts: Vec<String> = messages.iter().map(|message| text(message)).collect();
    for group in groups(&messages, &texts) {
        let text = &texts[group[0]];
        let places: Vec<Area> =
            group.iter().flat_map(|at| beside(arrows[*at].from, arrows[*at].to, text, SMALL)).collect();
        let Some((place, cost)) = room.best(&places).filter(|_| !text.is_empty()) else { continue };
        // The legend names the kind anyway; what a message says stands only here.
        if cost < TOO_MUCH || words != Words::Kind {
            let color = arrows[group[0]].stroke.color;
            svg.text(place.base(), Anchor::Middle, SMALL, color, text);
            room.words.push(place);
        }
    }
}

/// The messages that share a text: sent by one node at one moment, or, if it is the only one of those, received so.
fn groups(messages: &[&Message], texts: &[String]) -> Vec<Vec<usize>> {
    let mut sent: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    let mut received: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, (message, text)) in messages.iter().zip(texts).enumerate() {
        sent.entry((message.from, message.sent.to_bits(), text)).or_default().push(at);
        if let Some(time) = message.received {
            received.entry((message.to, time.to_bits(), text)).or_default().push(at);
        }
    }
    let mut done = BTreeSet::new();
    let mut groups = Vec::new();
    for (at, (message, text)) in messages.iter().zip(texts).enumerate() {
        if done.contains(&at) {
            continue;
        }
        let together = &sent[&(message.from, message.sent.to_bits(), text)];
        let arriving = message.received.and_then(|time| received.get(&(message.to, time.to_bits(), text)));
        let group = if together.len() > 1 { together } else { arriving.unwrap_or(together) };
        let group: Vec<usize> = group.iter().copied().filter(|at| !done.contains(at)).collect();
        done.extend(group.iter().copied());
        groups.push(group);
    }
    groups
}
