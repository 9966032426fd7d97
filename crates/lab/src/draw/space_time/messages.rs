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

impl Arrow {
    /// Draws what its end looks like.
    pub(super) fn draw_end(&self, svg: &mut Svg) {
        match self.end {
            End::Arrives => svg.head(self.from, self.to, HEAD, self.stroke.color),
            End::Lost => svg.cross(self.to, 4.0, Stroke::solid(self.stroke.color, 1.8)),
            End::Open => {}
        }
    }
}

/// Every message of a scene.
pub(super) fn arrows(scene: &Scene, frame: &Frame, stays: &[Stay]) -> Vec<Arrow> {
    let kinds: BTreeMap<&str, usize> = scene.kinds().into_iter().zip(0..).collect();
    let took: Vec<f64> = scene.messages.iter().filter_map(|message| Some(message.received? - message.sent)).collect();
    let usual = if took.is_empty() { frame.end / 10.0 } else { took.iter().sum::<f64>() / took.len() as f64 };
    let arrow = |message: &Message| {
        let from = frame.point(message.sent, message.from);
        let (end, share, time) = end(message, frame, stays, usual);
        let y = Frame::y(message.to);
        let tip = (frame.x(time), from.1 + share * (y - from.1));
        let to = if end == End::Arrives { before_bar(from, tip, message.to, frame, stays) } else { tip };
        Arrow { from, to, end, stroke: stroke(kinds[message.kind]) }
    };
    scene.messages.iter().map(arrow).collect()
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
    match (message.received, message.lost) {
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
pub(super) fn label_arrows(svg: &mut Svg, scene: &Scene, arrows: &[Arrow], words: Words, room: &mut Room) {
    let text = |message: &Message| match words {
        Words::Nothing => String::new(),
        Words::Kind => message.kind.to_owned(),
        Words::Brief => brief(&message.text),
        Words::Text => message.text.clone(),
    };
    let texts: Vec<String> = scene.messages.iter().map(text).collect();
    for group in groups(scene, &texts) {
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
fn groups(scene: &Scene, texts: &[String]) -> Vec<Vec<usize>> {
    let mut sent: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    let mut received: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, (message, text)) in scene.messages.iter().zip(texts).enumerate() {
        sent.entry((message.from, message.sent.to_bits(), text)).or_default().push(at);
        if let Some(time) = message.received {
            received.entry((message.to, time.to_bits(), text)).or_default().push(at);
        }
    }
    let mut done = BTreeSet::new();
    let mut groups = Vec::new();
    for (at, (message, text)) in scene.messages.iter().zip(texts).enumerate() {
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
